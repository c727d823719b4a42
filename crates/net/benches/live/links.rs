//! Namespaces, and what connects them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::spawn;

use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{Backlog, listen};
use nix::unistd::gettid;

/// The kernel that is the peer.
pub(crate) const PEER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// What is measured.
pub(crate) const SUBJECT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Two kernels, each in its namespace.
    Veth { offload: bool },
    /// The kernel and a program.
    Tun { offload: bool },
}

impl Link {
    fn is_veth(self) -> bool {
        matches!(self, Link::Veth { .. })
    }

    /// Connects this thread's namespace with that of the thread `peer`. A TUN device is created by what uses it.
    fn create(self, peer: i32) -> io::Result<()> {
        if self.is_veth() {
            ip(&format!("link add subject type veth peer name peer netns {peer}"))?;
            self.set_up("subject", SUBJECT)?;
        }
        Ok(())
    }

    fn set_up(self, name: &str, address: Ipv4Addr) -> io::Result<()> {
        ip(&format!("address add {address}/24 dev {name}"))?;
        if self == (Link::Veth { offload: false }) {
            ip(&format!("link set {name} gso_max_segs 1"))?;
        }
        ip(&format!("link set {name} up"))
    }
}

/// Runs `peer` with a listener in one thread, and `subject` with its address in another one; returns what both return.
pub(crate) fn run<A: Send + 'static, B: Send + 'static>(
    link: Link,
    peer: impl FnOnce(TcpListener) -> io::Result<A> + Send + 'static,
    subject: impl FnOnce(SocketAddr) -> io::Result<B> + Send + 'static,
) -> io::Result<(A, B)> {
    let subject = spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let (ready, is_ready) = channel();
        let (connected, is_connected) = channel();
        // This thread begins in the namespace of its parent.
        let peer = spawn(move || {
            if link.is_veth() {
                unshare(CloneFlags::CLONE_NEWNET)?;
            }
            ready.send(gettid().as_raw()).map_err(io::Error::other)?;
            is_connected.recv().map_err(io::Error::other)?;
            if link.is_veth() {
                link.set_up("peer", PEER)?;
            }
            let listener = TcpListener::bind("0.0.0.0:7000")?;
            listen(&listener, Backlog::new(4096)?)?; // the standard library's is too short for a thousand at once
            ready.send(0).map_err(io::Error::other)?;
            peer(listener)
        });
        let id = is_ready.recv().map_err(io::Error::other)?;
        link.create(id)?;
        connected.send(()).map_err(io::Error::other)?;
        is_ready.recv().map_err(io::Error::other)?;
        let result = subject((PEER, 7000).into())?;
        let peer = peer.join().map_err(|_| io::Error::other("the peer has panicked"))??;
        Ok((peer, result))
    });
    subject.join().map_err(|_| io::Error::other("the subject has panicked"))?
}

/// Runs a command of iproute2.
fn ip(command: &str) -> io::Result<()> {
    let output = Command::new("ip").args(command.split(' ')).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("ip {command}: {}", text.trim()))) }
}
