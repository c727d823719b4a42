//! The two ways to count data.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::quantity::{Syntax, quantity};

static SYNTAX: Syntax = Syntax {
    what: "a size",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1_024),
        ("MB", 1_000_000),
        ("MiB", 1_048_576),
        ("GB", 1_000_000_000),
        ("GiB", 1_073_741_824),
    ],
    example: "64 KiB",
};

/// A number of bytes. Subtraction saturates at zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

quantity!(Bytes, SYNTAX);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// More than any buffer holds: no limit.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// The number of segments of `size` bytes, including a partial last one.
    pub const fn in_segments(self, size: Bytes) -> Segments {
        Segments(self.0.div_ceil(size.0) as u32)
    }

    /// The number of full segments of `size` bytes.
    pub const fn whole_segments(self, size: Bytes) -> Segments {
        Segments((self.0 / size.0) as u32)
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, factor: u64) -> Bytes {
        Bytes(self.0.saturating_mul(factor))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

/// A number of segments (or packets). Subtraction saturates at zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Segments(pub u32);

impl Segments {
    /// No segments.
    pub const ZERO: Segments = Segments(0);

    /// The bytes of this many segments of `size` each.
    pub const fn of(self, size: Bytes) -> Bytes {
        Bytes(size.0.saturating_mul(self.0 as u64))
    }
}

impl Add for Segments {
    type Output = Segments;
    fn add(self, other: Segments) -> Segments {
        Segments(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Segments {
    fn add_assign(&mut self, other: Segments) {
        *self = *self + other;
    }
}

impl Sub for Segments {
    type Output = Segments;
    fn sub(self, other: Segments) -> Segments {
        Segments(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Segments {
    fn sub_assign(&mut self, other: Segments) {
        *self = *self - other;
    }
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} segments", self.0)
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_and_format_with_units() {
        assert_eq!("64 KiB".parse(), Ok(Bytes(65_536)));
        assert_eq!("5 MB".parse(), Ok(Bytes(5_000_000)));
        assert_eq!(Bytes(1460).to_string(), "1.426 KiB");
        assert_eq!(Bytes(5_000_000).to_string(), "4.768 MiB");
    }

    #[test]
    fn bytes_and_segments_convert_by_an_explicit_size() {
        let smss = Bytes(1000);
        assert_eq!(Bytes(2500).in_segments(smss), Segments(3));
        assert_eq!(Bytes(2500).whole_segments(smss), Segments(2));
        assert_eq!(Segments(3).of(smss), Bytes(3000));
        assert_eq!(Bytes(1) - Bytes(2), Bytes::ZERO);
    }
}
