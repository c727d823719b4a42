//! The TCP header (RFC 9293 §3.1) with the options that show loss and reordering.

use super::rest::{Cursor, u16_at, u32_at};
use super::{Packet, Skipped};

pub(super) const LEN: usize = 20;
/// Bytes of the header without which a segment cannot be analysed.
const UP_TO_FLAGS: usize = 14;
const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
/// Bytes of a SACK block.
const BLOCK: usize = 8;
const TIMESTAMPS: u8 = 8;
const TIMESTAMPS_LEN: usize = 10;

/// Control bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise.
    pub const SYN: Flags = Flags(0x02);
    /// Reset.
    pub const RST: Flags = Flags(0x04);
    /// The acknowledgment number counts.
    pub const ACK: Flags = Flags(0x10);

    /// True if the segment opens, closes or resets the connection.
    #[inline]
    pub(crate) const fn is_control(self) -> bool {
        self.0 & (Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0) != 0
    }

    /// True if all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The fields of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window as in the header, without scaling.
    pub window: u16,
    /// Bytes of payload on the wire, captured or not.
    pub len: u32,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks of the SACK option.
    pub sack: [(u32, u32); 4],
    /// How many of them there are.
    pub sack_len: u8,
    /// The maximum segment size of a SYN.
    pub mss: Option<u16>,
    /// The window scale of a SYN.
    pub window_scale: Option<u8>,
    /// A SYN permits SACK.
    pub sack_permitted: bool,
    /// The options were captured only in part.
    pub is_cut: bool,
    /// SACK blocks that were not captured, by the length of the header.
    pub hidden_sack: u8,
}

impl Segment {
    /// The SACK blocks.
    pub fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.sack_len)]
    }
}

/// Reads the segment and the ports.
#[inline]
pub(super) fn read(rest: Cursor<'_>, into: &mut Packet) -> Result<(), Skipped> {
    let header: [u8; LEN] = rest.head(UP_TO_FLAGS)?;
    let header_len = header_len(&header);
    if header_len < LEN || header_len > rest.original_len {
        return Err(Skipped::Malformed);
    }
    let captured = rest.bytes.len();
    let options = rest.bytes.get(LEN..header_len.min(captured)).unwrap_or_default();
    fields(&header, options, rest.original_len - header_len, &mut into.segment);
    if captured < header_len {
        into.segment.is_cut = true;
        read_cut_options(options, header_len - LEN, &mut into.segment);
    }
    [into.source.port, into.destination.port] = [u16_at(&header, 0), u16_at(&header, 2)];
    Ok(())
}

/// The length of the header in bytes, as it says.
#[inline]
pub(super) fn header_len(header: &[u8; LEN]) -> usize {
    usize::from(header[12] >> 4) * 4
}

/// The fields of a segment with this header, these options, and `len` bytes of payload on the wire.
#[inline]
pub(super) fn fields(header: &[u8; LEN], options: &[u8], len: usize, segment: &mut Segment) {
    *segment = Segment {
        seq: u32_at(header, 4),
        ack: u32_at(header, 8),
        flags: Flags(header[13]),
        window: u16_at(header, 14),
        len: u32::try_from(len).unwrap_or(u32::MAX),
        sack: segment.sack,
        ..Segment::default()
    };
    read_options(options, segment);
}

#[inline]
fn read_options(rest: &[u8], segment: &mut Segment) {
    // What nearly all segments have, and most of them nothing else: NOP, NOP, timestamps.
    match rest.split_first_chunk::<12>() {
        Some(([NOP, NOP, TIMESTAMPS, 10, value @ ..], rest)) => {
            segment.timestamps = Some((u32_at(value, 0), u32_at(value, 4)));
            if !rest.is_empty() {
                other_options(rest, segment);
            }
        }
        _ => other_options(rest, segment),
    }
}

fn other_options(mut rest: &[u8], segment: &mut Segment) {
    while let [kind, after @ ..] = rest {
        match *kind {
            END => return,
            NOP => {
                rest = after;
                continue;
            }
            _ => {}
        }
        let Some(len) = after.first().map(|len| usize::from(*len)).filter(|len| *len >= 2) else { return };
        let Some(value) = rest.get(2..len) else { return };
        option(*kind, value, segment);
        rest = &rest[len..];
    }
}

/// What is known of the option in which `options`, the captured ones of `all` bytes, end. The options before it have been read.
#[cold]
fn read_cut_options(options: &[u8], all: usize, segment: &mut Segment) {
    let mut at = 0;
    let cut = loop {
        match options.get(at..).unwrap_or_default() {
            [] => break None,
            [END, ..] => return,
            [NOP, ..] => at += 1,
            [kind] => break Some((*kind, 0)),
            [kind, len, ..] if at + usize::from(*len) > options.len() => break Some((*kind, usize::from(*len))),
            [_, 0 | 1, ..] => return,
            [_, len, ..] => at += usize::from(*len),
        }
    };
    let blocks = |len: usize| (len.saturating_sub(2) / BLOCK) as u8;
    let behind = |len: usize| blocks(all.saturating_sub(at + len));
    segment.hidden_sack = match cut {
        Some((SACK, len)) => {
            option(SACK, options.get(at + 2..).unwrap_or_default(), segment);
            let len = if len > 0 { len } else { all - at };
            blocks(len).saturating_sub(segment.sack_len)
        }
        Some((TIMESTAMPS, _)) => behind(TIMESTAMPS_LEN),
        Some((_, len)) => behind(len),
        None => behind(0),
    };
}

fn option(kind: u8, value: &[u8], segment: &mut Segment) {
    match (kind, value) {
        (MSS, [high, low]) => segment.mss = Some(u16::from_be_bytes([*high, *low])),
        (WINDOW_SCALE, [shift]) => segment.window_scale = Some((*shift).min(14)),
        (SACK_PERMITTED, []) => segment.sack_permitted = true,
        (TIMESTAMPS, value) if value.len() == 8 => {
            segment.timestamps = Some((u32_at(value, 0), u32_at(value, 4)));
        }
        (SACK, value) => {
            for (block, into) in value.chunks_exact(BLOCK).zip(&mut segment.sack) {
                *into = (u32_at(block, 0), u32_at(block, 4));
                segment.sack_len += 1;
            }
        }
        _ => {}
    }
}
