//! Bits per second.

use crate::quantity::{Syntax, quantity};
use crate::{Bytes, Duration};

static SYNTAX: Syntax = Syntax {
    what: "a rate",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    example: "10 Mbit/s",
};

/// A data rate, in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

quantity!(Rate, SYNTAX);

impl Rate {
    /// `n` bits per second.
    pub const fn from_bits_per_second(n: u64) -> Rate {
        Rate(n)
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The rate of `size` bytes in `time`, rounded down. The largest rate if the time is zero.
    pub const fn of(size: Bytes, time: Duration) -> Rate {
        let nanobits = size.0 as u128 * 8 * 1_000_000_000;
        match nanobits.checked_div(time.as_nanos() as u128) {
            Some(rate) if rate < u64::MAX as u128 => Rate(rate as u64),
            _ => Rate(u64::MAX),
        }
    }

    /// The bytes that fit into `time`, rounded down.
    pub const fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = self.0 as u128 * time.as_nanos() as u128 / 8_000_000_000;
        if bytes < u64::MAX as u128 { Bytes(bytes as u64) } else { Bytes::MAX }
    }

    /// The rate times `numerator` / `denominator`, rounded down.
    #[must_use]
    pub const fn scaled(self, numerator: u64, denominator: u64) -> Rate {
        let scaled = self.0 as u128 * numerator as u128 / denominator as u128;
        if scaled < u64::MAX as u128 { Rate(scaled as u64) } else { Rate(u64::MAX) }
    }

    /// How long `size` takes at this rate, rounded up to a nanosecond. Forever at rate zero.
    pub const fn time_for(self, size: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanobits = size.0 as u128 * 8 * 1_000_000_000;
        let nanos = nanobits.div_ceil(self.0 as u128);
        if nanos < u64::MAX as u128 { Duration::from_nanos(nanos as u64) } else { Duration::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_parse_and_format_with_units() {
        assert_eq!("28.8 kbit/s".parse(), Ok(Rate(28_800)));
        assert_eq!(Rate(3_900_000).to_string(), "3.9 Mbit/s");
        assert!("10 Mb".parse::<Rate>().is_err());
    }

    #[test]
    fn rates_sizes_and_times_agree() {
        let rate = Rate::of(Bytes(1000), Duration::from_micros(800));
        assert_eq!(rate, Rate::from_bits_per_second(10_000_000));
        assert_eq!(rate.bytes_in(Duration::from_micros(801)), Bytes(1001));
        assert_eq!(rate.scaled(5, 4), Rate(12_500_000));
        assert_eq!(Rate::of(Bytes(1), Duration::ZERO), Rate(u64::MAX));
        assert_eq!(Rate(u64::MAX).bytes_in(Duration::MAX), Bytes::MAX);
    }

    #[test]
    fn serialisation_takes_bits_over_rate() {
        let rate = Rate::from_bits_per_second(10_000_000);
        assert_eq!(rate.time_for(Bytes(1000)), Duration::from_micros(800));
        assert_eq!(Rate(0).time_for(Bytes(1)), Duration::MAX);
        assert_eq!(Rate(1).time_for(Bytes(1 << 40)), Duration::MAX);
    }
}
