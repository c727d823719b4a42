//! Packet I/O: where the packets of a network come from and go to. Called by the driver only.

#[cfg(feature = "ethernet")]
mod arp;
mod channel;
#[cfg(feature = "ethernet")]
mod ethernet;
#[cfg(feature = "fd")]
mod fd;
#[cfg(feature = "tun")]
mod tun;

use std::future::Future;
use std::io;
use std::time::Duration;

pub use channel::{ChannelIo, channel, pair};
#[cfg(feature = "ethernet")]
pub use ethernet::EthernetIo;
#[cfg(feature = "fd")]
pub use fd::FdIo;
#[cfg(feature = "fd")]
pub(crate) use fd::register;
#[cfg(feature = "tun")]
pub use tun::Device;

/// The longest that [`PacketIo::wait`] sleeps if it cannot wait for packets.
const NAP: Duration = Duration::from_millis(1);

/// Reads and writes IP packets, without a link layer. [`Device`] is a TUN device, [`EthernetIo`] an
/// Ethernet interface, [`FdIo`] a descriptor, [`ChannelIo`] a pair of channels. Calls never block, except [`PacketIo::wait`].
///
/// The driver reads packets until there are none or it has a batch of them, lets the stack process the batch, sends the
/// answers, and calls [`PacketIo::flush`].
pub trait PacketIo: Send + 'static {
    /// The largest packet that can be sent or received.
    fn mtu(&self) -> u16;

    /// True if each packet begins with a virtio header of 10 bytes (virtio 1.2 §5.1.6) and may have up to 64 KiB: several
    /// segments can be one packet (GRO, TSO), and checksums are left out.
    fn has_offload(&self) -> bool {
        false
    }

    /// True if it waits for a descriptor: the tokio runtime must have its I/O driver, and the timers are those of the kernel,
    /// which are more precise than tokio's.
    fn has_descriptor(&self) -> bool {
        false
    }

    /// Reads a packet into `packet`; returns its length. None if there is none now.
    ///
    /// # Errors
    /// If there will be no more packets: the network ends.
    fn recv(&mut self, packet: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a packet, now or with [`PacketIo::flush`]. If the queue is full it is lost, as in any network.
    ///
    /// # Errors
    /// If no more packets can be sent: the network ends.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// Sends what [`PacketIo::send`] has kept.
    ///
    /// # Errors
    /// As [`PacketIo::send`].
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns when there may be a packet. It may be dropped before, and called again.
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> + Send;

    /// Blocks the thread until there may be a packet, at most for `time`. Only used without a runtime.
    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time.min(NAP));
    }
}
