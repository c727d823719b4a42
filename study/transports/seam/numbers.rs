//! Which packets have been received, among the last 4096, and which of them an ACK reports.

use std::ops::Range;

const WORDS: u64 = 64;
const SIZE: u64 = WORDS * 64;

/// Numbers of packets.
pub(super) struct Dedup {
    /// One bit for each number, in a ring.
    window: [u64; WORDS as usize],
    /// One above the highest.
    next: u64,
}

/// The bits from `first` to `last` of a word.
fn bits(first: u64, last: u64) -> u64 {
    (u64::MAX << first) & (u64::MAX >> (63 - last))
}

impl Dedup {
    pub(super) fn new() -> Self {
        Self { window: [0; WORDS as usize], next: 0 }
    }

    /// The part of each word that has numbers from `first` to `last`: its index, its first number, and the bits.
    fn words(first: u64, last: u64) -> impl Iterator<Item = (usize, u64, u64)> {
        (first / 64..=last / 64).map(move |word| {
            let start = word * 64;
            let mask = bits(first.max(start) - start, last.min(start + 63) - start);
            ((word % WORDS) as usize, start, mask)
        })
    }

    /// Whether the packet might be a duplicate.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number + SIZE < self.next {
            return true;
        }
        if number >= self.next {
            let skipped = self.next.max((number + 1).saturating_sub(SIZE));
            Self::words(skipped, number).for_each(|(i, _, mask)| self.window[i] &= !mask);
            self.next = number + 1;
        }
        let (i, bit) = ((number / 64 % WORDS) as usize, 1 << (number % 64));
        let is_duplicate = self.window[i] & bit != 0;
        self.window[i] |= bit;
        is_duplicate
    }

    /// Between `low` and `high`, which have been received.
    pub(super) fn smallest_missing_in_interval(&self, low: u64, high: u64) -> Option<u64> {
        let first = (low + 1).max(self.next.saturating_sub(SIZE));
        if first >= high {
            return None;
        }
        Self::words(first, high - 1).find_map(|(i, start, mask)| {
            let missing = !self.window[i] & mask;
            (missing != 0).then(|| start + u64::from(missing.trailing_zeros()))
        })
    }

    pub(super) fn missing_in_interval(&self, low: u64, high: u64) -> bool {
        self.smallest_missing_in_interval(low, high).is_some()
    }
}

/// The last packets that arrived. Several ACKs report each of them, however late it was, so that the sender learns of it even if one
/// of these ACKs is lost.
#[derive(Debug)]
pub(super) struct Recent {
    numbers: [u64; 32],
    oldest: usize,
}

impl Recent {
    pub(super) const fn new() -> Self {
        Self { numbers: [u64::MAX; 32], oldest: 0 }
    }

    pub(super) const fn push(&mut self, number: u64) {
        self.numbers[self.oldest] = number;
        self.oldest = (self.oldest + 1) % self.numbers.len();
    }

    /// Of `len` ranges in ascending order, the highest, and those with packets that arrived last.
    pub(super) fn select<'a>(
        &'a self,
        ranges: impl Iterator<Item = Range<u64>> + 'a,
        len: usize,
        highest: usize,
    ) -> impl Iterator<Item = Range<u64>> + 'a {
        let is_selected =
            move |i, range: &Range<u64>| i + highest >= len || self.numbers.iter().any(|n| range.contains(n));
        ranges.enumerate().filter(move |(i, range)| is_selected(*i, range)).map(|(_, range)| range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_late_packets_are_reported() {
        let mut recent = Recent::new();
        (0..100).chain([7]).for_each(|number| recent.push(2 * number));
        let ranges = (0..100).map(|number| 2 * number..2 * number + 1);
        let selected: Vec<_> = recent.select(ranges, 100, 40).map(|range| range.start).collect();
        assert_eq!(selected, [14].into_iter().chain((120..200).step_by(2)).collect::<Vec<_>>());
    }

    #[test]
    fn each_number_is_new_once_and_those_below_the_window_never() {
        let mut dedup = Dedup::new();
        for number in [0, 5, 4000, 5000, 1000, 63, 64, 4999, 4998] {
            let is_old = number + SIZE < dedup.next;
            assert_eq!((dedup.insert(number), dedup.insert(number)), (is_old, true), "{number}");
        }
        assert!(dedup.insert(5000 - SIZE) && !dedup.insert(5001 - SIZE));
        assert!(!dedup.insert(50_000) && dedup.insert(45_903) && !dedup.insert(45_905));
    }

    #[test]
    fn the_smallest_missing_number_is_found() {
        let mut dedup = Dedup::new();
        (0..300).filter(|n| *n != 70 && *n != 200).for_each(|n| {
            dedup.insert(n);
        });
        assert_eq!(dedup.smallest_missing_in_interval(0, 299), Some(70));
        assert_eq!(dedup.smallest_missing_in_interval(71, 299), Some(200));
        assert_eq!(dedup.smallest_missing_in_interval(201, 299), None);
        assert_eq!(dedup.smallest_missing_in_interval(69, 70), None);
        assert!(dedup.missing_in_interval(69, 71) && !dedup.missing_in_interval(70, 71));
    }
}
