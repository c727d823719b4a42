//! A TCP segment: the header's fields, without the bytes of the payload.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::experiment::ExperimentalOption;
use crate::seq::SeqNum;

/// The control bits of a header (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is significant. The engine delivers urgent data in line.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x80);

    /// The bits as on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The control bits `bits` of a header.
    pub const fn from_bits(bits: u8) -> Flags {
        Flags(bits)
    }

    /// True if all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if any of `other` is set.
    pub const fn has_any(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Flags, &str); 8] = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::ACK, "."),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
        ];
        NAMES.iter().filter(|(flag, _)| self.has(*flag)).try_for_each(|(_, name)| f.write_str(name))
    }
}

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable transport, codepoint ECT(1).
    Capable1,
    /// ECN-capable transport, codepoint ECT(0).
    Ect0,
    /// Congestion experienced.
    Congested,
}

/// The timestamps option (RFC 7323 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Timestamps {
    /// The sender's clock.
    pub val: u32,
    /// The clock value that is echoed.
    pub ecr: u32,
}

/// One received block (RFC 2018 §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SackBlock {
    /// First byte of the block.
    pub left: SeqNum,
    /// One past the last byte.
    pub right: SeqNum,
}

/// The SACK option: at most four blocks, or as many as the option space can hold.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    len: u8,
}

impl SackBlocks {
    /// No blocks.
    pub const EMPTY: SackBlocks = SackBlocks { blocks: [SackBlock { left: SeqNum(0), right: SeqNum(0) }; 4], len: 0 };

    /// Appends `block`; ignored if there are already four.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// The blocks in the order of the option.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True if there are no blocks.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// The options that the engine understands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Maximum segment size, on a SYN (RFC 9293 §3.7.1).
    pub mss: Option<u16>,
    /// Window scale shift, on a SYN (RFC 7323 §2).
    pub window_scale: Option<u8>,
    /// SACK permitted, on a SYN (RFC 2018 §2).
    pub sack_permitted: bool,
    /// Timestamps (RFC 7323 §3).
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgment; the first block may be a DSACK (RFC 2883).
    pub sack: SackBlocks,
    /// The experimental option.
    pub experiment: ExperimentalOption,
}

impl Options {
    /// Bytes of the options on the wire, padded to whole 32-bit words in the layout that most stacks use.
    pub fn wire_len(&self) -> usize {
        let mut len = 0;
        if self.mss.is_some() {
            len += 4;
        }
        if self.window_scale.is_some() {
            len += 4; // preceded by one NOP
        }
        len += match (self.timestamps.is_some(), self.sack_permitted) {
            (true, true) => 12, // SACK-permitted replaces the two NOPs
            (true, false) => TIMESTAMPS_LEN,
            (false, true) => 4,
            (false, false) => 0,
        };
        if !self.sack.is_empty() {
            len += 4 + 8 * self.sack.as_slice().len();
        }
        len + self.experiment.wire_len()
    }
}

/// Bytes of the timestamps option in every segment, with its two NOPs.
pub const TIMESTAMPS_LEN: usize = 12;

/// The most bytes of options in a header.
pub const MAX_OPTIONS_LEN: usize = 40;

/// One TCP segment: the header's fields and the length of the payload.
///
/// The caller keeps the bytes of the payload: on a host [`crate::Stream`] does, and a simulator has none. A segment is
/// a plain value, so copying it never allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN, if that is set).
    pub seq: SeqNum,
    /// Next sequence number expected; valid if `flags` has ACK.
    pub ack: SeqNum,
    /// Receive window, not yet scaled.
    pub window: u16,
    /// Bytes of payload.
    pub len: u16,
    /// Control bits.
    pub flags: Flags,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Options.
    pub options: Options,
}

impl Segment {
    /// The sequence space that the segment occupies: payload plus SYN and FIN (RFC 9293 §3.4).
    pub const fn seq_len(&self) -> u32 {
        self.len as u32 + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }

    /// True if the segment only acknowledges: no payload, no SYN, no FIN, no RST.
    pub const fn is_pure_ack(&self) -> bool {
        self.seq_len() == 0 && !self.flags.has(Flags::RST)
    }

    /// Bytes of the TCP header with its options.
    pub fn header_len(&self) -> usize {
        20 + self.options.wire_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syn_and_fin_occupy_sequence_space() {
        let segment = Segment { len: 10, flags: Flags::SYN | Flags::FIN, ..Segment::default() };
        assert_eq!(segment.seq_len(), 12);
        assert!(!segment.is_pure_ack());
    }

    #[test]
    fn there_are_at_most_four_blocks() {
        let mut blocks = SackBlocks::EMPTY;
        for n in 0..6 {
            blocks.push(SackBlock { left: SeqNum(n), right: SeqNum(n + 1) });
        }
        assert_eq!(blocks.as_slice().len(), 4);
    }

    #[test]
    fn segments_stay_small() {
        assert!(size_of::<Segment>() <= 112, "{} bytes", size_of::<Segment>());
    }
}
