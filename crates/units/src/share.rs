//! A share of a whole.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number from 0 to 1: a probability, a loss rate, a weight. Parses `0.01`, `1 %` or `1%`; formats as per cent.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Share(f64);

impl Share {
    /// Zero.
    pub const ZERO: Share = Share(0.0);
    /// One.
    pub const ONE: Share = Share(1.0);

    /// The share `value`, if it is from 0 to 1.
    pub fn new(value: f64) -> Option<Share> {
        (0.0..=1.0).contains(&value).then_some(Share(value))
    }

    /// The share as a number from 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Share, String> {
        let trimmed = text.trim();
        let (number, scale) = match trimmed.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (trimmed, 1.0),
        };
        let value = number.parse::<f64>().ok().and_then(|n| Share::new(n / scale));
        value.ok_or_else(|| {
            format!("`{text}` is not a probability; write a number from 0 to 1, or a percentage such as `1 %`")
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = format!("{:.4}", self.0 * 100.0);
        write!(f, "{} %", number.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a probability from 0 to 1, or a percentage such as \"1 %\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_parse_fractions_and_per_cent() {
        assert_eq!("0.01".parse(), Ok(Share(0.01)));
        assert_eq!("1 %".parse(), Ok(Share(0.01)));
        assert_eq!("100%".parse(), Ok(Share::ONE));
        assert_eq!(Share(0.005).to_string(), "0.5 %");
        for text in ["1.5", "-0.1", "NaN", "ten", "101 %"] {
            assert!(text.parse::<Share>().is_err(), "{text:?} was accepted");
        }
    }
}
