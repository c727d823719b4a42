//! Positions in the byte stream: 32 bits that wrap on the wire, and 64 bits that do not wrap inside the engine.

use std::ops::{Add, AddAssign, Sub};

use reknit_units::Bytes;

/// A sequence number on the wire (RFC 9293 §3.4). It wraps, so it is not ordered; compare with [`SeqNum::before`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// True if `self` comes before `other`, modulo 2^32.
    pub const fn before(self, other: SeqNum) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// `self` advanced by `n` bytes.
    #[must_use]
    pub const fn plus(self, n: u32) -> SeqNum {
        SeqNum(self.0.wrapping_add(n))
    }

    /// The number of bytes from `earlier` forward to `self`.
    pub const fn distance_from(self, earlier: SeqNum) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }
}

/// A position in one direction's sequence space that never wraps: the SYN is 0, the first byte of data 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Offset(pub u64);

impl Offset {
    /// The position of the SYN.
    pub const SYN: Offset = Offset(0);
    /// The position of the application's first byte.
    pub const DATA: Offset = Offset(1);
    /// Beyond every byte.
    pub const MAX: Offset = Offset(u64::MAX);

    /// The sequence number at this position of a stream with the initial sequence number `isn`.
    pub const fn to_wire(self, isn: SeqNum) -> SeqNum {
        SeqNum(isn.0.wrapping_add(self.0 as u32))
    }

    /// The position of `seq` that is nearest to `self`, or `None` if that lies before the SYN.
    ///
    /// All further processing uses the result, so no algorithm compares sequence numbers that wrap.
    pub const fn nearest(self, seq: SeqNum, isn: SeqNum) -> Option<Offset> {
        let distance = seq.0.wrapping_sub(self.to_wire(isn).0).cast_signed();
        match self.0.checked_add_signed(distance as i64) {
            Some(position) => Some(Offset(position)),
            None => None,
        }
    }

    /// The number of bytes from `earlier` to `self`; zero if `earlier` is later.
    pub const fn since(self, earlier: Offset) -> Bytes {
        Bytes(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Bytes> for Offset {
    type Output = Offset;
    fn add(self, n: Bytes) -> Offset {
        Offset(self.0.saturating_add(n.0))
    }
}

impl AddAssign<Bytes> for Offset {
    fn add_assign(&mut self, n: Bytes) {
        *self = *self + n;
    }
}

impl Sub<Bytes> for Offset {
    type Output = Offset;
    fn sub(self, n: Bytes) -> Offset {
        Offset(self.0.saturating_sub(n.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_is_modulo_2_to_the_32() {
        assert!(SeqNum(u32::MAX).before(SeqNum(3)));
        assert!(!SeqNum(3).before(SeqNum(u32::MAX)));
        assert_eq!(SeqNum(3).distance_from(SeqNum(u32::MAX)), 4);
    }

    #[test]
    fn offsets_survive_the_wrap() {
        let isn = SeqNum(u32::MAX - 10);
        let here = Offset(5_000_000_000);
        assert_eq!(here.nearest(here.to_wire(isn), isn), Some(here));
        assert_eq!(here.nearest((here + Bytes(1460)).to_wire(isn), isn), Some(here + Bytes(1460)));
        assert_eq!(here.nearest((here - Bytes(1460)).to_wire(isn), isn), Some(here - Bytes(1460)));
    }

    #[test]
    fn nothing_lies_before_the_syn() {
        let isn = SeqNum(100);
        assert_eq!(Offset(5).nearest(SeqNum(99), isn), None);
    }
}
