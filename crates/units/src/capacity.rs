//! The size of a queue or a buffer.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::{Bytes, Segments};

/// The capacity of a queue or a buffer: in bytes (`64 KiB`), or in packets of any size (`50 packets`, `44 segments`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capacity {
    /// Counted in bytes.
    Bytes(Bytes),
    /// Counted in packets or segments.
    Count(Segments),
}

impl Capacity {
    /// The capacity in bytes if every packet has `size` bytes.
    pub const fn in_bytes(self, size: Bytes) -> Bytes {
        match self {
            Capacity::Bytes(bytes) => bytes,
            Capacity::Count(count) => count.of(size),
        }
    }
}

impl FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Capacity, String> {
        let trimmed = text.trim();
        let count = ["packets", "packet", "segments", "segment"]
            .iter()
            .find_map(|unit| trimmed.strip_suffix(unit))
            .map(|number| number.trim_end().parse().map(|n| Capacity::Count(Segments(n))).ok());
        match count {
            Some(capacity) => capacity,
            None => trimmed.parse().map(Capacity::Bytes).ok(),
        }
        .ok_or_else(|| {
            format!(
                "`{text}` is not a capacity; write a number and a unit (packets, segments, B, kB, KiB, MB, MiB, GB, \
                 GiB), for example `50 packets`"
            )
        })
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Bytes(bytes) => write!(f, "{bytes}"),
            Capacity::Count(count) => write!(f, "{count} packets"),
        }
    }
}

impl Serialize for Capacity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Capacity, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Capacity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a capacity such as \"50 packets\" or \"64 KiB\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Capacity, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Capacity, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_count_packets_or_bytes() {
        assert_eq!("50 packets".parse(), Ok(Capacity::Count(Segments(50))));
        assert_eq!("1 segment".parse(), Ok(Capacity::Count(Segments(1))));
        assert_eq!("64 KiB".parse(), Ok(Capacity::Bytes(Bytes(65_536))));
        assert_eq!(Capacity::Count(Segments(44)).in_bytes(Bytes(1460)), Bytes(64_240));
        for text in ["50", "packets", "-1 packets", "1.5 packets"] {
            assert!(text.parse::<Capacity>().is_err(), "{text:?} was accepted");
        }
    }
}
