//! Capture files (pcapng) with one interface for each point of observation.

use std::io::{self, Write};

use reknit_units::Instant;

/// A point at which packets are observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interface(u32);

// Names and numbers from "PCAP Now Generic (pcapng) Capture File Format", draft-ietf-opsawg-pcapng.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const END_OF_OPTIONS: [u8; 4] = [0; 4];
/// Packets begin with their IP header.
const LINKTYPE_RAW: u16 = 101;
/// The resolution of timestamps as a power of ten: nanoseconds.
const NANOSECONDS: u8 = 9;
/// Bytes of a block besides its body: its type, and its length at the beginning and the end.
const FRAME_LEN: usize = 12;

/// Writes a capture file.
#[derive(Debug)]
pub struct Capture<W: Write> {
    writer: W,
    interfaces: u32,
}

impl<W: Write> Capture<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Errors of `writer`.
    pub fn new(writer: W) -> io::Result<Capture<W>> {
        let mut capture = Capture { writer, interfaces: 0 };
        let mut body = BYTE_ORDER_MAGIC.to_le_bytes().to_vec();
        body.extend(1_u16.to_le_bytes()); // version 1.0
        body.extend(0_u16.to_le_bytes());
        body.extend(SECTION_LENGTH_UNKNOWN.to_le_bytes());
        capture.block(SECTION_HEADER, &[&body])?;
        Ok(capture)
    }

    /// Adds a point of observation. Packets begin with their IP header.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn interface(&mut self, name: &str) -> io::Result<Interface> {
        self.describe(LINKTYPE_RAW, Some(name))
    }

    /// Adds a point of observation whose packets begin with the header of this link layer: a LINKTYPE number of the pcap
    /// registry.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn interface_with_link(&mut self, link: u16) -> io::Result<Interface> {
        self.describe(link, None)
    }

    fn describe(&mut self, link: u16, name: Option<&str>) -> io::Result<Interface> {
        let mut body = link.to_le_bytes().to_vec();
        body.extend([0; 6]); // reserved; packets are not truncated
        if let Some(name) = name {
            option(&mut body, IF_NAME, name.as_bytes());
        }
        option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
        body.extend(END_OF_OPTIONS);
        self.block(INTERFACE_DESCRIPTION, &[&body])?;
        self.interfaces += 1;
        Ok(Interface(self.interfaces - 1))
    }

    /// Writes a packet that was seen at `at`. `original_len` is its length if `packet` is truncated.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn packet(&mut self, interface: Interface, at: Instant, packet: &[u8], original_len: usize) -> io::Result<()> {
        self.commented(interface, at, packet, original_len, &[])
    }

    /// The same, with comments.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn commented(
        &mut self,
        interface: Interface,
        at: Instant,
        packet: &[u8],
        original_len: usize,
        comments: &[String],
    ) -> io::Result<()> {
        let nanos = at.as_nanos();
        let fields = [
            interface.0,
            (nanos >> 32) as u32,
            nanos as u32,
            packet.len() as u32,
            original_len.max(packet.len()) as u32,
        ];
        let fields = fields.map(u32::to_le_bytes);
        if comments.is_empty() {
            return self.block(ENHANCED_PACKET, &[fields.as_flattened(), packet]);
        }
        let mut options = Vec::new();
        for comment in comments {
            option(&mut options, COMMENT, comment.as_bytes());
        }
        options.extend(END_OF_OPTIONS);
        self.block(ENHANCED_PACKET, &[fields.as_flattened(), packet, padding(packet.len()), &options])
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Writes a block whose body consists of `parts`, padded to 32 bits.
    fn block(&mut self, kind: u32, parts: &[&[u8]]) -> io::Result<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let total = (FRAME_LEN + len.next_multiple_of(4)) as u32;
        self.writer.write_all(&kind.to_le_bytes())?;
        self.writer.write_all(&total.to_le_bytes())?;
        for part in parts {
            self.writer.write_all(part)?;
        }
        self.writer.write_all(padding(len))?;
        self.writer.write_all(&total.to_le_bytes())
    }
}

/// Appends an option of a block, padded to 32 bits.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.extend(padding(value.len()));
}

/// The padding after `len` bytes to a multiple of 32 bits.
fn padding(len: usize) -> &'static [u8] {
    &[0; 3][..len.next_multiple_of(4) - len]
}

#[cfg(test)]
mod tests {
    use pcap_file::DataLink;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    #[test]
    fn a_written_capture_can_be_read() {
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file).unwrap();
        let [a, b] = ["client", "server"].map(|name| capture.interface(name).unwrap());
        capture.packet(a, Instant::from_nanos(1_000_000_007), &[0x45; 20], 1500).unwrap();
        capture.packet(b, Instant::from_nanos(5_000_000_000), &[0x60; 41], 41).unwrap();
        capture.finish().unwrap();

        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    assert_eq!((interface.linktype, interface.snaplen), (DataLink::RAW, 0));
                    assert!(interface.options.contains(&InterfaceDescriptionOption::IfTsResol(NANOSECONDS)));
                    interfaces.extend(interface.options.into_iter().find_map(|option| match option {
                        InterfaceDescriptionOption::IfName(name) => Some(name.into_owned()),
                        _ => None,
                    }));
                }
                Block::EnhancedPacket(packet) => {
                    let nanos = packet.timestamp.as_nanos();
                    packets.push((packet.interface_id, nanos, packet.data.into_owned(), packet.original_len));
                }
                block => panic!("not written: {block:?}"),
            }
        }
        assert_eq!(interfaces, ["client", "server"]);
        assert_eq!(packets, [(0, 1_000_000_007, vec![0x45; 20], 1500), (1, 5_000_000_000, vec![0x60; 41], 41)]);
    }
}
