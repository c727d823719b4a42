//! The two ends of the path: network namespaces with a TUN device each.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::AddressFamily;
use nix::unistd::{geteuid, getgid, getuid};
use tun_rs::{DeviceBuilder, SyncDevice};

use super::netlink;
use crate::namespace::{self, MTU};

/// The name of the device inside.
pub(super) const INNER: &str = "reknit0";
/// The name of the device outside; the kernel replaces `%d`.
const OUTER: &str = "reknit-out%d";
/// The length of a device's queue towards the emulator: it holds 8 ms at 1 Gbit/s while the emulator has no processor, and
/// takes at most 15 MB of memory.
const TX_QUEUE: u32 = 10_000;

/// The addresses of a path. The inner end is host 2, the outer end host 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Subnet(pub(super) u8);

impl Subnet {
    /// The first network without a route in the calling thread's namespace, starting after those in use, so that the outer ends
    /// of nested paths have different addresses.
    pub(super) fn choose() -> io::Result<Subnet> {
        let routes = fs::read_to_string("/proc/thread-self/net/route").unwrap_or_default();
        let used: Vec<u8> = routes.lines().filter_map(subnet_of_route).collect();
        let after = used.iter().max().map_or(0, |highest| highest.wrapping_add(1));
        let free = (0..=u8::MAX).map(|n| n.wrapping_add(after)).find(|n| !used.contains(n));
        free.map(Subnet).ok_or_else(|| io::Error::other("all networks from 10.77.0.0 to 10.77.255.0 are in use"))
    }

    fn v4(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.0, host)
    }

    fn v6(self, host: u8) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, self.0.into(), 0, 0, 0, host.into())
    }

    /// The address of the outer end.
    pub(super) fn outer(self) -> Ipv4Addr {
        self.v4(1)
    }

    /// The address of the inner end.
    pub(super) fn inner(self) -> Ipv4Addr {
        self.v4(2)
    }

    /// The IPv6 address of the outer end.
    pub(super) fn outer_v6(self) -> Ipv6Addr {
        self.v6(1)
    }
}

/// The third byte of the destination of a line in `/proc/net/route`, if that is one of our networks.
fn subnet_of_route(line: &str) -> Option<u8> {
    let destination = u32::from_str_radix(line.split_whitespace().nth(1)?, 16).ok()?;
    let [a, b, c, _] = destination.to_le_bytes();
    (a == 10 && b == 77).then_some(c)
}

/// A new device with these addresses.
fn device(name: &str, v4: Ipv4Addr, v6: Ipv6Addr) -> io::Result<SyncDevice> {
    namespace::find_tun()?;
    let builder = DeviceBuilder::new().name(name).mtu(MTU).ipv4(v4, 30, None);
    let device = if has_ipv6() { builder.ipv6(v6, 64).build_sync()? } else { builder.build_sync()? };
    netlink::set_queue(&device.name()?, TX_QUEUE)?;
    device.set_nonblocking(true)?;
    namespace::wait_for(IpAddr::V4(v4))?;
    Ok(device)
}

/// True if devices of the calling thread's namespace have IPv6.
pub(super) fn has_ipv6() -> bool {
    fs::read_to_string("/proc/sys/net/ipv6/conf/all/disable_ipv6").is_ok_and(|text| text.trim() == "0")
}

/// The outer device, in the calling thread's namespace.
pub(super) fn outer_device(subnet: Subnet) -> io::Result<SyncDevice> {
    device(OUTER, subnet.outer(), subnet.v6(1))
}

/// Makes the calling thread's new, empty namespace the inner end. `v6_beyond`: IPv6 is routed beyond the outer end.
pub(super) fn become_inner(subnet: Subnet, v6_beyond: bool) -> io::Result<SyncDevice> {
    prepare()?;
    if !geteuid().is_root() {
        let _ = allow_packet_sockets(); // if the machine refuses it, the command runs without them
    }
    let device = device(INNER, subnet.inner(), subnet.v6(2))?;
    netlink::default_through(INNER, AddressFamily::Inet)?;
    if v6_beyond {
        netlink::default_through(INNER, AddressFamily::Inet6)?;
    }
    Ok(device)
}

/// Makes the calling thread's new, empty namespace the outer end. `everywhere`: it answers for every address.
pub(super) fn become_outer(subnet: Subnet, everywhere: bool) -> io::Result<SyncDevice> {
    prepare()?;
    let device = outer_device(subnet)?;
    if everywhere {
        netlink::default_is_local(AddressFamily::Inet)?;
    }
    Ok(device)
}

fn prepare() -> io::Result<()> {
    namespace::configure();
    // Without this, only root may send pings. A user namespace knows only its own group.
    let group = getgid();
    let _ = fs::write("/proc/sys/net/ipv4/ping_group_range", format!("{group} {group}"));
    netlink::bring_up_loopback()
}

/// Moves the process, which must have a single thread, into a user namespace in which it may create network
/// namespaces. Its user and group stay the same.
pub(super) fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Moves the calling thread into an empty network namespace, with its own view of the mounted file systems: `/sys` shows
/// the devices of this namespace.
pub(super) fn enter_empty() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    let nothing: Option<&str> = None;
    // What is mounted here is not seen elsewhere.
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_SLAVE, nothing)?;
    // Containers may refuse it. Then `/sys` shows the devices outside, as before (docs/guide/emulate.md).
    let _ = show_devices();
    Ok(())
}

/// Shows the devices of the calling thread's namespace in `/sys`. The rest of `/sys` stays, such as control groups.
fn show_devices() -> io::Result<()> {
    let nothing: Option<&str> = None;
    let folder = scratch();
    mount(Some("reknit"), folder, Some("sysfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC, nothing)?;
    let shown = ["devices/virtual/net", "class/net"].into_iter().try_for_each(|part| {
        mount(Some(&folder.join(part)), &Path::new("/sys").join(part), nothing, MsFlags::MS_BIND, nothing)
    });
    umount2(folder, MntFlags::MNT_DETACH)?;
    Ok(shown?)
}

/// A folder over which something can be mounted briefly. Its contents are hidden in the meantime.
pub(super) fn scratch() -> &'static Path {
    ["/tmp", "/dev"].map(Path::new).into_iter().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"))
}

/// Lets the programs that the calling thread starts read the packets of its namespace, as root may. Without this, what an
/// ordinary user starts in a user namespace has no capabilities.
fn allow_packet_sockets() -> io::Result<()> {
    const NET_RAW: u32 = 13; // capabilities(7)
    // Version 3 of the call, for the calling thread.
    let header: [u32; 2] = [0x2008_0522, 0];
    // Effective, permitted, inheritable: the low 32 capabilities, then the others.
    let mut sets = [[0_u32; 3]; 2];
    #[expect(unsafe_code, reason = "nix has no functions for capabilities")]
    // SAFETY: the kernel reads and writes the two arrays, which have the layout of capget(2) and live until the calls return.
    let done = unsafe {
        let got = libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr());
        sets[0][2] |= 1 << NET_RAW;
        let set = libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr());
        got == 0
            && set == 0
            && libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(NET_RAW), 0, 0) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The default congestion control in the calling thread's namespace; empty if it is not known.
pub(super) fn congestion_control() -> String {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    text.trim().to_owned()
}

/// Packets that `device` of the calling thread's namespace has dropped because its queue towards the emulator was full.
pub(super) fn dropped(device: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    // Eight columns for each direction; the fourth counts drops.
    let of_line = |line: &str| {
        let (name, columns) = line.split_once(':')?;
        (name.trim() == device).then(|| columns.split_whitespace().nth(11)?.parse().ok())?
    };
    text.lines().find_map(of_line).unwrap_or(0)
}

/// True if the calling thread has all of these capabilities (`capabilities(7)`: their numbers).
pub(super) fn has_capabilities(numbers: &[u32]) -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    numbers.iter().all(|number| effective >> number & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_in_use_are_recognized() {
        assert_eq!(subnet_of_route("reknit-out0\t00034D0A\t00000000\t0001\t0\t0\t0\tFCFFFFFF\t0\t0\t0"), Some(3));
        assert_eq!(subnet_of_route("eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0"), None);
        assert_eq!(subnet_of_route("Iface\tDestination\tGateway"), None);
    }
}
