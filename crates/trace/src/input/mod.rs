//! Capture files as a sequence of frames: pcap and pcapng, plain or compressed.

mod ahead;
mod buffer;
mod compressed;
mod foreign;
mod pcap;
mod pcapng;

use std::io::Read;

pub use ahead::ReadAhead;
use buffer::Buffer;
pub(crate) use compressed::plain;
use pcap::Pcap;
use pcapng::Pcapng;

use crate::{Damage, Error};

/// The longest frame or block that is accepted. `tcpdump` captures at most 256 KiB of a packet.
const MAX_BYTES: usize = 16 << 20;
/// The formats that can be read.
const SUPPORTED: &str = "pcap and pcapng, plain or compressed with gzip or zstd";

/// A frame as captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Its number in the file, from 1, as Wireshark shows it.
    pub number: u64,
    /// When it was captured, nanoseconds since 1970. None if the file does not say.
    pub at: Option<u64>,
    /// The interface: its number in the file's section; 0 in files that have no interfaces.
    pub interface: u32,
    /// The link layer: a LINKTYPE number of the pcap registry.
    pub link: u16,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The frame's length on the wire.
    pub original_len: usize,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// A record with a frame: its fields, and where its bytes are from the beginning of the buffer.
#[derive(Clone, Copy, Debug)]
struct Record {
    at: Option<u64>,
    interface: u32,
    link: u16,
    from: usize,
    to: usize,
    original_len: usize,
    /// Bytes of the record.
    len: usize,
}

/// The result of reading one record of a file.
enum Next {
    Frame(Record),
    /// A record without a frame.
    Other,
    /// The end of the file.
    End,
    /// The rest cannot be read.
    Damaged(String),
}

/// Reads the frames of a capture from any reader, in memory that does not grow with the capture.
pub struct Frames<'r> {
    buffer: Buffer<Box<dyn Read + 'r>>,
    format: Format,
    number: u64,
    /// Bytes of the record that was returned last, which leave the buffer with the next call.
    used: usize,
    damage: Option<Damage>,
}

impl<'r> Frames<'r> {
    /// Recognizes the compression and the format.
    ///
    /// # Errors
    /// If the reader fails, or the format is none that can be read.
    pub fn new(reader: impl Read + 'r) -> Result<Frames<'r>, Error> {
        let mut buffer = Buffer::new(plain(reader)?);
        let format = if buffer.fill(4)? { Self::format(&mut buffer)? } else { None };
        let Some(format) = format else {
            if let Some(format) = foreign::recognize(buffer.bytes()) {
                return Err(Error::OtherFormat(format));
            }
            if crate::qlog::is_json(buffer.bytes()) {
                let how = "only `reknit analyze` reads qlog, from files and standard input";
                return Err(Error::Format(format!("is JSON, not a capture: {how}; supported are {SUPPORTED}")));
            }
            let start = &buffer.bytes()[..buffer.bytes().len().min(4)];
            return Err(Error::Format(if start.is_empty() {
                format!("is empty; supported are {SUPPORTED}")
            } else if pcap::is_magic(start) {
                format!("is cut off after {} bytes, within the header of the file", buffer.bytes().len())
            } else {
                let start: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("not a capture (begins with {}); supported are {SUPPORTED}", start.join(" "))
            }));
        };
        Ok(Frames { buffer, format, number: 0, used: 0, damage: None })
    }

    fn format(buffer: &mut Buffer<Box<dyn Read + 'r>>) -> Result<Option<Format>, Error> {
        if buffer.bytes().starts_with(&pcapng::MAGIC) {
            return Ok(Some(Format::Pcapng(Pcapng::default())));
        }
        Ok(Pcap::begin(buffer)?.map(Format::Pcap))
    }

    /// The next frame; none at the end. [`Frames::damage`] then shows whether the capture ended properly.
    #[inline]
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.buffer.consume(std::mem::take(&mut self.used));
        let available = match &self.format {
            Format::Pcap(pcap) => pcap.available(self.buffer.bytes()),
            Format::Pcapng(_) => None,
        };
        let record = if let Some(record) = available { record } else { self.read()? };
        self.number += 1;
        self.used = record.len;
        let Record { at, interface, link, from, to, original_len, .. } = record;
        let bytes = &self.buffer.bytes()[from..to];
        Some(Frame { number: self.number, at, interface, link, bytes, original_len })
    }

    /// The next record with a frame.
    #[inline(never)]
    fn read(&mut self) -> Option<Record> {
        while self.damage.is_none() {
            let next = match &mut self.format {
                Format::Pcap(pcap) => pcap.next(&mut self.buffer),
                Format::Pcapng(pcapng) => pcapng.next(&mut self.buffer),
            };
            match next {
                Ok(Next::Frame(record)) => return Some(record),
                Ok(Next::Other) => {}
                Ok(Next::End) => return None,
                Ok(Next::Damaged(message)) => self.stop(message),
                Err(error) => self.stop(error.to_string()),
            }
        }
        None
    }

    fn stop(&mut self, message: String) {
        self.damage = Some(Damage { packet: self.number + 1, offset: self.buffer.offset(), message });
    }

    /// Why reading ended early, if it did.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }
}

impl std::fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").field("format", &self.format).field("number", &self.number).finish_non_exhaustive()
    }
}

/// Integers in the byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Order {
    #[default]
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let bytes = [bytes[at], bytes[at + 1]];
        if self == Order::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    #[inline]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self == Order::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Four numbers.
    #[inline]
    fn numbers(self, header: &[u8; 16]) -> [u32; 4] {
        std::array::from_fn(|i| self.u32(header, 4 * i))
    }
}
