//! An experimental option (RFC 4727, shared as RFC 6994 requires) with the few header fields that published algorithms
//! need beyond the standard options. Each field is used only if both SYNs offered it.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

use crate::seq::SeqNum;

/// The option's kind (RFC 4727 §1).
pub const KIND: u8 = 253;
/// The experiment's identifier (RFC 6994 §3). It is not registered, so the option is off by default.
pub const EXPERIMENT_ID: u16 = 0x5252;
/// Bytes before the first field: kind, length, identifier.
pub const HEADER_LEN: usize = 4;

/// A set of features, as the SYN offers it in one byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(u8);

impl Features {
    /// None.
    pub const NONE: Features = Features(0);
    /// Segments are marked as retransmissions, and ACKs echo the mark.
    pub const RESENT: Features = Features(1);
    /// Segments number their transmissions; ACKs number themselves and report that something arrived out of order.
    pub const ORDINALS: Features = Features(2);
    /// Routers note in segments what they dropped; ACKs report that a gap is due to reordering.
    pub const DROPS: Features = Features(4);
    /// ACKs advise a duplicate threshold.
    pub const DUP_THRESH: Features = Features(8);
    /// Duplicates are reported in more than one ACK.
    pub const REPEATS: Features = Features(16);

    const NAMES: [(Features, &str); 5] = [
        (Features::RESENT, "retransmitted"),
        (Features::ORDINALS, "ordinals"),
        (Features::DROPS, "drops"),
        (Features::DUP_THRESH, "dup-thresh"),
        (Features::REPEATS, "repeats"),
    ];

    /// The byte on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The byte `bits` of a SYN.
    pub const fn from_bits(bits: u8) -> Features {
        Features(bits)
    }

    /// True if all of `other` are in the set.
    pub const fn has(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What both sets contain.
    #[must_use]
    pub const fn and(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }

    /// What this set contains and `other` does not.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// The features of the set, one by one.
    pub fn each(self) -> impl Iterator<Item = Features> {
        Features::NAMES.into_iter().map(|(feature, _)| feature).filter(move |feature| self.has(*feature))
    }

    /// Bytes of options to reserve in every data segment.
    pub const fn data_len(self) -> usize {
        let fields = if self.has(Features::RESENT) { 2 } else { 0 }
            + if self.has(Features::ORDINALS) { 3 } else { 0 }
            + if self.has(Features::DROPS) { 9 } else { 0 };
        padded(fields)
    }

    /// Bytes of options to reserve in every ACK.
    pub const fn ack_len(self) -> usize {
        let fields = if self.has(Features::RESENT) { 2 } else { 0 }
            + if self.has(Features::ORDINALS) { 3 } else { 0 }
            + if self.has(Features::DROPS) { 2 } else { 0 }
            + if self.has(Features::DUP_THRESH) { 2 } else { 0 };
        padded(fields)
    }
}

/// The option's length with `fields` bytes of fields, in whole 32-bit words; zero if there are no fields.
const fn padded(fields: usize) -> usize {
    if fields == 0 { 0 } else { (HEADER_LEN + fields).next_multiple_of(4) }
}

impl BitOr for Features {
    type Output = Features;
    fn bitor(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}

impl BitOrAssign for Features {
    fn bitor_assign(&mut self, other: Features) {
        self.0 |= other.0;
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (_, name) in Features::NAMES.iter().filter(|(feature, _)| self.has(*feature)) {
            write!(f, "{separator}{name}")?;
            separator = ", ";
        }
        Ok(())
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// An ACK's own number: how many ACKs before it had the same acknowledgment field, and whether a segment arrived out of
/// order since the previous ACK.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckOrdinal {
    /// Modulo 256.
    pub repetition: u8,
    /// A segment has arrived that was overtaken by a later one.
    pub overtaken: bool,
}

/// The sequence numbers of what routers dropped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dropped {
    /// First byte of the lowest segment.
    pub lowest: SeqNum,
    /// First byte of the highest segment.
    pub highest: SeqNum,
}

impl Dropped {
    /// Nothing yet. A sender reserves this space for routers, because a packet cannot grow on its way.
    pub const NOTHING: Dropped = Dropped { lowest: SeqNum(0), highest: SeqNum(u32::MAX) };

    /// True if nothing was dropped: the highest number is below the lowest.
    pub const fn is_empty(self) -> bool {
        self.highest.before(self.lowest)
    }
}

/// The experimental option of one segment. Each field is a sub-option: one byte of type, then its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExperimentalOption {
    /// On a SYN: what is offered. Type 0, one byte.
    pub features: Option<Features>,
    /// With data: this is a retransmission. On an ACK: what the acknowledged segment said. Type 1, one byte.
    pub retransmitted: Option<bool>,
    /// With data: the number of data segments sent before it, modulo 2^16, including retransmissions. Type 2, two
    /// bytes.
    pub transmission: Option<u16>,
    /// On an ACK. Type 3, two bytes.
    pub ack_ordinal: Option<AckOrdinal>,
    /// With data: space that the sender reserves for routers to fill in. Type 4, eight bytes.
    pub dropped: Option<Dropped>,
    /// On an ACK: the first gap is due to reordering. Type 5, one byte.
    pub reordered: Option<bool>,
    /// On an ACK: the duplicate threshold that the receiver advises. Type 6, one byte.
    pub dup_thresh: Option<u8>,
}

impl ExperimentalOption {
    /// The option's length on the wire, padded to whole 32-bit words; 0 if it is empty.
    pub fn wire_len(&self) -> usize {
        let ExperimentalOption { features, retransmitted, transmission, ack_ordinal, dropped, reordered, dup_thresh } =
            self;
        if self.is_empty() {
            return 0;
        }
        let field = |present: bool, len: usize| if present { 1 + len } else { 0 };
        padded(
            field(features.is_some(), 1)
                + field(retransmitted.is_some(), 1)
                + field(transmission.is_some(), 2)
                + field(ack_ordinal.is_some(), 2)
                + field(dropped.is_some(), 8)
                + field(reordered.is_some(), 1)
                + field(dup_thresh.is_some(), 1),
        )
    }

    /// True if it has no fields, so that the segment does not need the option.
    pub fn is_empty(&self) -> bool {
        *self == ExperimentalOption::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_reserved_for_all_fields() {
        let all = Features::RESENT | Features::ORDINALS | Features::DROPS | Features::DUP_THRESH | Features::REPEATS;
        let data = ExperimentalOption {
            retransmitted: Some(true),
            transmission: Some(1),
            dropped: Some(Dropped { lowest: SeqNum(1), highest: SeqNum(2) }),
            ..ExperimentalOption::default()
        };
        let ack = ExperimentalOption {
            retransmitted: Some(false),
            ack_ordinal: Some(AckOrdinal { repetition: 1, overtaken: false }),
            reordered: Some(true),
            dup_thresh: Some(9),
            ..ExperimentalOption::default()
        };
        assert_eq!((data.wire_len(), all.data_len()), (20, 20));
        assert_eq!((ack.wire_len(), all.ack_len()), (16, 16));
        assert_eq!(
            Features::NONE.data_len() + Features::REPEATS.ack_len() + ExperimentalOption::default().wire_len(),
            0
        );
    }

    #[test]
    fn a_set_is_shown_as_a_list() {
        assert_eq!((Features::DROPS | Features::RESENT).to_string(), "retransmitted, drops");
    }
}
