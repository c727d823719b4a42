//! A network namespace that exists as long as a thread, so that there is never anything to clean up.

use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use tun_rs::{DeviceBuilder, SyncDevice};

/// The largest packet on the device, in bytes.
pub(crate) const MTU: u16 = 1500;
/// The device that makes TUN devices.
pub(crate) const TUN: &str = "/dev/net/tun";
/// The device's name inside its namespace.
const DEVICE: &str = "reknit0";

/// Moves the calling thread into a new, empty network namespace. Its only device is a TUN device with the address
/// `local` on a network with `remote`. The namespace ends with the thread and its sockets.
pub(crate) fn enter(local: IpAddr, remote: IpAddr) -> io::Result<SyncDevice> {
    find_tun()?;
    enter_empty()?;
    configure();
    let builder = DeviceBuilder::new().name(DEVICE).mtu(MTU);
    let device = match (local, remote) {
        (IpAddr::V4(local), IpAddr::V4(_)) => builder.ipv4(local, 24, None).build_sync()?,
        (IpAddr::V6(local), _) => builder.ipv6(local, 64).build_sync()?,
        (IpAddr::V4(_), IpAddr::V6(_)) => return Err(io::Error::other("addresses of different families")),
    };
    device.set_nonblocking(true)?;
    wait_for(local)?;
    Ok(device)
}

/// An error if this machine has no [`TUN`]. The library that makes TUN devices would create the file, which changes the
/// machine and does not help if the kernel has no such devices.
pub(crate) fn find_tun() -> io::Result<()> {
    let missing = |error: io::Error| io::Error::new(error.kind(), format!("{TUN}: {error}"));
    fs::metadata(TUN).map(drop).map_err(missing)
}

/// Moves the calling thread into a new, empty network namespace.
pub(crate) fn enter_empty() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNET)?)
}

/// Waits until the kernel has enabled an IPv6 address. This takes a moment even without duplicate address detection,
/// and until then nothing can be bound to the address.
pub(crate) fn wait_for(local: IpAddr) -> io::Result<()> {
    const STEP: Duration = Duration::from_millis(1);
    const STEPS: u32 = 3000;
    for _ in 0..STEPS {
        match UdpSocket::bind((local, 0)) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => thread::sleep(STEP),
            result => return result.map(drop),
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrNotAvailable, format!("the kernel did not enable the address {local}")))
}

/// Settings of the new namespace: no state is kept from earlier connections, and there is no duplicate address
/// detection. A kernel without one of these settings works too.
pub(crate) fn configure() {
    for (key, value) in [
        ("net/ipv4/tcp_no_metrics_save", "1"),
        ("net/ipv6/conf/all/accept_dad", "0"),
        ("net/ipv6/conf/default/accept_dad", "0"),
        ("net/ipv6/conf/default/router_solicitations", "0"),
    ] {
        let _ = fs::write(format!("/proc/sys/{key}"), value);
    }
}
