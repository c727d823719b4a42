//! A thread in a network namespace of its own, which ends with it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use reknit_net::{Device, Network};
use reknit_testkit::machine;

/// The kernel's address and ours, of both families.
pub(crate) const KERNEL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub(crate) const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
pub(crate) const KERNEL_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
pub(crate) const OURS_6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));

/// The machines that run tests are slow, but nothing takes this long.
const LIMIT: Duration = Duration::from_mins(2);

/// Runs `test` in a thread with an empty network namespace and a runtime.
pub(crate) fn in_namespace<F: Future<Output = io::Result<()>>>(test: impl FnOnce() -> F + Send + 'static) {
    if !machine::has(&machine::LIVE) {
        return;
    }
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { within(test()).await.unwrap() });
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Fails if it takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("it ends in time")
}

/// A network whose only neighbour is the kernel.
pub(crate) fn network(offload: bool) -> io::Result<Network> {
    let device = Device::create("reknit0", KERNEL, 24, 1500, offload)?;
    device.add_address(KERNEL_6, 64)?;
    // The kernel uses an IPv6 address only when a worker of its own has seen that the link is up.
    let is_usable = || UdpSocket::bind((KERNEL_6, 0)).and_then(|socket| socket.connect((OURS_6, 9))).is_ok();
    let mut tries = 0..2000;
    while tries.next().is_some() && !is_usable() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Network::builder(OURS).address(OURS_6).start_on(device)
}
