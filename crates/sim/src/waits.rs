//! How long segments wait at the receiver for earlier segments. Each flow has one of these, so it must be small.

use reknit_units::Duration;

/// Significant bits of a wait that are kept: three decimal digits.
const BITS: u32 = 11;
/// Waits that are collected before they are counted; most flows never have more.
const ASIDE: usize = 512;

/// A histogram of microseconds with the buckets of an HDR histogram with three digits, but only those in use.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Segments that did not wait.
    none: u64,
    /// The latest waits in order of arrival, so that adding one touches a single place in memory.
    aside: Vec<Bucket>,
    /// All others, in order.
    counted: Vec<(Bucket, u32)>,
}

impl Waits {
    /// A segment has come in its turn.
    pub(crate) fn note_in_order(&mut self) {
        self.none += 1;
    }

    /// A segment has waited.
    pub(crate) fn note(&mut self, wait: Duration) {
        self.aside.push(Bucket::of(wait.as_nanos() / 1000));
        if self.aside.len() == ASIDE {
            self.count();
        }
    }

    /// A quantile of the waits.
    pub(crate) fn quantile(&mut self, quantile: f64) -> Duration {
        self.count();
        let some: u64 = self.counted.iter().map(|(_, count)| u64::from(*count)).sum();
        let rank = quantile * (self.none + some) as f64 - self.none as f64;
        if some == 0 || rank <= 0.0 {
            return Duration::ZERO;
        }
        let share = (rank / some as f64).min(1.0);
        let wanted = (share * some as f64).ceil();
        let mut passed = 0;
        let reached = |(bucket, count): &(Bucket, u32)| {
            passed += u64::from(*count);
            (passed as f64 >= wanted).then_some(*bucket)
        };
        let bucket = self.counted.iter().find_map(reached);
        bucket.map_or(Duration::ZERO, |bucket| Duration::from_micros(bucket.highest()))
    }

    /// Counts the collected waits.
    fn count(&mut self) {
        self.counted.extend(self.aside.drain(..).map(|bucket| (bucket, 1)));
        self.counted.sort_by_key(|(bucket, _)| *bucket);
        self.counted.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }
}

/// Numbers that agree in their highest [`BITS`] bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Bucket(u16);

impl Bucket {
    /// The number of buckets of the same width; after two rows the width begins to double.
    const ROW: u64 = 1 << (BITS - 1);

    fn of(value: u64) -> Bucket {
        let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS);
        Bucket((u64::from(shift) * Bucket::ROW + (value >> shift)) as u16)
    }

    /// The highest number in this bucket.
    fn highest(self) -> u64 {
        let shift = (u64::from(self.0) / Bucket::ROW).saturating_sub(1);
        let lowest = (u64::from(self.0) - shift * Bucket::ROW) << shift;
        lowest + ((1 << shift) - 1)
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Gives the same results as an HDR histogram.
        #[test]
        fn quantiles_are_those_of_an_hdr_histogram(
            waits in prop::collection::vec((0u32..55, any::<u64>()), 1..2000),
            none in 0u64..100,
            share in 0.0..=1.0,
        ) {
            let mut sparse = Waits { none, ..Waits::default() };
            let mut dense = Histogram::<u32>::new(3).unwrap();
            for (bits, random) in waits {
                let micros = random & ((1 << bits) - 1);
                sparse.note(Duration::from_micros(micros));
                dense.record(micros).unwrap();
            }
            let some = dense.len() as f64;
            let rank = share * (some + none as f64) - none as f64;
            let expected = if rank > 0.0 { dense.value_at_quantile(rank / some) } else { 0 };
            prop_assert_eq!(sparse.quantile(share), Duration::from_micros(expected));
        }
    }

    #[test]
    fn equal_waits_of_many_segments_take_no_space() {
        let mut waits = Waits::default();
        for i in 0..100_000 {
            waits.note(Duration::from_micros(i % 10));
        }
        waits.count();
        assert_eq!(waits.counted.len(), 10);
        assert_eq!(waits.quantile(0.5), Duration::from_micros(4));
        assert!(waits.aside.capacity() <= ASIDE);
    }
}
