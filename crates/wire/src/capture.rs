//! Capture files (pcapng) with one interface for each place at which packets were seen.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};
use reknit_units::Instant;

/// One place at which packets are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface(u32);

/// Nanoseconds, as a power of ten.
const NANOSECONDS: u8 = 9;

/// A capture file that is being written.
pub struct Capture<W: Write> {
    writer: PcapNgWriter<W>,
    interfaces: u32,
}

impl<W: Write> Capture<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// If `writer` does.
    pub fn new(writer: W) -> io::Result<Capture<W>> {
        Ok(Capture { writer: PcapNgWriter::new(writer).map_err(into_io)?, interfaces: 0 })
    }

    /// Announces a place at which packets are seen. Packets begin with their IP header.
    ///
    /// # Errors
    /// If the writer does.
    pub fn interface(&mut self, name: &str) -> io::Result<Interface> {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        self.writer.write_pcapng_block(block).map_err(into_io)?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Writes a packet that was seen at `at`. If it was longer than `packet`, `original_len` says how long.
    ///
    /// # Errors
    /// If the writer does.
    pub fn packet(&mut self, interface: Interface, at: Instant, packet: &[u8], original_len: usize) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id: interface.0,
            timestamp: Duration::from_nanos(at.as_nanos()),
            original_len: original_len.max(packet.len()) as u32,
            data: Cow::Borrowed(packet),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(block).map_err(into_io)?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If the writer does.
    pub fn finish(self) -> io::Result<()> {
        self.writer.into_inner().flush()
    }
}

impl<W: Write> std::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

fn into_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn what_was_captured_is_read() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        let [a, b] = ["client", "server"].map(|name| capture.interface(name).unwrap());
        capture.packet(a, Instant::from_nanos(1_000_000_007), &[0x45; 20], 1500).unwrap();
        capture.packet(b, Instant::from_nanos(2_000_000_000), &[0x60; 41], 41).unwrap();
        capture.finish().unwrap();

        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(packet) = block.unwrap() {
                let nanos = packet.timestamp.as_nanos();
                packets.push((packet.interface_id, nanos, packet.data.len(), packet.original_len));
            }
        }
        assert_eq!(packets, [(0, 1_000_000_007, 20, 1500), (1, 2_000_000_000, 41, 41)]);
    }
}
