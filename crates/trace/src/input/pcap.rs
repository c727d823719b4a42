//! The classic format of `tcpdump` (draft-ietf-opsawg-pcap).

use std::io::{self, Read};

use reknit_units::grouped;

use super::buffer::Buffer;
use super::{MAX_BYTES, Next, Order, Record};

const HEADER_LEN: usize = 24;
const RECORD_LEN: usize = 16;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// Written by a patched libpcap: eight more bytes in each record.
const MODIFIED: u32 = 0xa1b2_cd34;

#[derive(Debug)]
pub(super) struct Pcap {
    order: Order,
    nanos_per_tick: u64,
    record_len: usize,
    link: u16,
}

/// True if a file of this format begins with these four bytes.
pub(super) fn is_magic(start: &[u8]) -> bool {
    let number = |bytes: &[u8; 4]| [u32::from_le_bytes(*bytes), u32::from_be_bytes(*bytes)];
    let is_known = |number: u32| [MICROSECONDS, NANOSECONDS, MODIFIED].contains(&number);
    start.first_chunk().is_some_and(|bytes| number(bytes).into_iter().any(is_known))
}

impl Pcap {
    /// Reads the file's header; none if it is another format.
    pub(super) fn begin<R: Read>(buffer: &mut Buffer<R>) -> io::Result<Option<Pcap>> {
        if !buffer.fill(HEADER_LEN)? {
            return Ok(None);
        }
        let bytes = buffer.bytes();
        for order in [Order::Little, Order::Big] {
            let (nanos_per_tick, record_len) = match order.u32(bytes, 0) {
                MICROSECONDS => (1_000, RECORD_LEN),
                NANOSECONDS => (1, RECORD_LEN),
                MODIFIED => (1_000, RECORD_LEN + 8),
                _ => continue,
            };
            let link = (order.u32(bytes, 20) & 0xffff) as u16; // the upper bits describe a checksum
            buffer.consume(HEADER_LEN);
            return Ok(Some(Pcap { order, nanos_per_tick, record_len, link }));
        }
        Ok(None)
    }

    /// The next record, if all of it is in `bytes` and its length is plausible.
    #[inline]
    pub(super) fn available(&self, bytes: &[u8]) -> Option<Record> {
        let [seconds, ticks, captured, original] = self.order.numbers(bytes.first_chunk()?);
        let len = self.record_len + captured as usize;
        if captured as usize > MAX_BYTES || bytes.len() < len {
            return None;
        }
        let at = u64::from(seconds) * 1_000_000_000 + u64::from(ticks) * self.nanos_per_tick;
        let original_len = original.max(captured) as usize;
        Some(Record { at: Some(at), interface: 0, link: self.link, from: self.record_len, to: len, original_len, len })
    }

    pub(super) fn next<R: Read>(&self, buffer: &mut Buffer<R>) -> io::Result<Next> {
        let Some(header) = buffer.next(self.record_len)?.and_then(|record| record.first_chunk()) else {
            let rest = buffer.bytes().len();
            return Ok(if rest == 0 { Next::End } else { Next::Damaged(format!("cut off after {rest} bytes")) });
        };
        let captured = self.order.numbers(header)[2] as usize;
        if captured > MAX_BYTES {
            return Ok(Next::Damaged(format!(
                "its length is {} bytes; at most {} MiB are allowed",
                grouped(captured as u64),
                MAX_BYTES >> 20
            )));
        }
        buffer.fill(self.record_len + captured)?;
        let rest = buffer.bytes().len() - self.record_len;
        let cut = || Next::Damaged(format!("cut off after {rest} of {captured} bytes"));
        Ok(self.available(buffer.bytes()).map_or_else(cut, Next::Frame))
    }
}
