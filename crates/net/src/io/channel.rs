//! Packets in memory.

use std::io;

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::PacketIo;

/// Passes packets through channels of this process, to a tunnel or to another network.
#[derive(Debug)]
pub struct ChannelIo {
    mtu: u16,
    to: Sender<Vec<u8>>,
    from: Receiver<Vec<u8>>,
    /// Found by [`PacketIo::readable`].
    next: Option<Vec<u8>>,
}

/// A [`ChannelIo`], with the channel of packets to the network and the channel of packets from it. Each holds up to `capacity`
/// packets. Further packets from the network are lost; the network ends when a channel no longer has a sender or receiver.
pub fn channel(mtu: u16, capacity: usize) -> (ChannelIo, Sender<Vec<u8>>, Receiver<Vec<u8>>) {
    let (into, from) = mpsc::channel(capacity);
    let (to, out) = mpsc::channel(capacity);
    (ChannelIo { mtu, to, from, next: None }, into, out)
}

/// Two networks in one process, connected by a link that holds up to `capacity` packets in each direction.
pub fn pair(mtu: u16, capacity: usize) -> (ChannelIo, ChannelIo) {
    let (one, to, from) = channel(mtu, capacity);
    (one, ChannelIo { mtu, to, from, next: None })
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the channel of the network's packets is closed")
}

impl PacketIo for ChannelIo {
    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let packet = match self.next.take().map_or_else(|| self.from.try_recv(), Ok) {
            Ok(packet) => packet,
            Err(mpsc::error::TryRecvError::Empty) => return Ok(None),
            Err(mpsc::error::TryRecvError::Disconnected) => return Err(closed()),
        };
        // A packet that is too long is truncated, as by a device; its length is then wrong, and the stack ignores it.
        let n = packet.len().min(into.len());
        into[..n].copy_from_slice(&packet[..n]);
        Ok(Some(n))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        match self.to.try_reserve() {
            Ok(room) => room.send(packet.to_vec()),
            Err(mpsc::error::TrySendError::Full(())) => {}
            Err(mpsc::error::TrySendError::Closed(())) => return Err(closed()),
        }
        Ok(())
    }

    async fn readable(&mut self) -> io::Result<()> {
        if self.next.is_none() {
            self.next = Some(self.from.recv().await.ok_or_else(closed)?);
        }
        Ok(())
    }
}
