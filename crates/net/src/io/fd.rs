//! Packets through a descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::PacketIo;

/// A descriptor that reads and writes one packet at a time: a TUN device that was opened elsewhere, or a packet socket
/// (`SOCK_SEQPACKET`, `SOCK_DGRAM`).
#[derive(Debug)]
pub struct FdIo<T: AsRawFd = OwnedFd> {
    fd: AsyncFd<T>,
    mtu: u16,
    offload: bool,
}

impl<T: AsRawFd + AsFd + Send + Sync + 'static> FdIo<T> {
    /// Uses a descriptor, which must not block (`O_NONBLOCK`). `offload`: packets have a virtio header (see
    /// [`PacketIo::has_offload`]).
    ///
    /// # Errors
    /// If there is no tokio runtime, or the descriptor cannot be polled: it is a file, for instance.
    pub fn new(owner: T, mtu: u16, offload: bool) -> io::Result<FdIo<T>> {
        // A device that was removed does not become readable: it reports an error.
        Ok(FdIo { fd: register(owner, Interest::READABLE | Interest::ERROR)?, mtu, offload })
    }

    /// The owner of the descriptor.
    pub fn get_ref(&self) -> &T {
        self.fd.get_ref()
    }
}

impl<T: AsRawFd + AsFd + Send + Sync + 'static> PacketIo for FdIo<T> {
    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn has_offload(&self) -> bool {
        self.offload
    }

    fn has_descriptor(&self) -> bool {
        true
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match retry_on_intr(|| rustix::io::read(self.fd.get_ref(), &mut *into)) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => Ok(Some(n)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match retry_on_intr(|| rustix::io::write(self.fd.get_ref(), packet)) {
            Err(error @ (Errno::BADFD | Errno::PIPE | Errno::CONNRESET)) => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn readable(&mut self) -> io::Result<()> {
        self.fd.ready(Interest::READABLE | Interest::ERROR).await?.clear_ready();
        Ok(())
    }

    fn wait(&mut self, time: std::time::Duration) {
        wait(self.fd.get_ref(), time);
    }
}

/// Blocks the thread until there may be a packet, at most for `time`.
pub(super) fn wait(fd: &impl AsFd, time: std::time::Duration) {
    let time = Timespec { tv_sec: time.as_secs().cast_signed(), tv_nsec: i64::from(time.subsec_nanos()) };
    // If it fails, the next read says why.
    let _ = poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&time));
}

/// Registers the owner of a descriptor, a device or a timer, with the runtime.
pub(crate) fn register<T: AsRawFd>(owner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    crate::builder::check_runtime()?;
    #[expect(unsafe_code, reason = "tokio cannot check who owns a descriptor")]
    // SAFETY: `owner` owns its descriptor, keeps the same one, and is only dropped with the registration.
    Ok(unsafe { AsyncFd::register_with_interest(owner, interest) }?)
}
