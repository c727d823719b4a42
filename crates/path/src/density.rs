//! Reorder density and reorder buffer-occupancy density (RFC 5236).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

/// Lost packets that are remembered until the measures have passed them.
const MAX_LOST: usize = 1 << 16;

/// Both densities over a stream of arrivals. Packets are numbered without gaps in the order of sending. Leave out copies,
/// and report a known loss before any packet that was sent later arrives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Density {
    /// The displacement threshold, and the buffer-occupancy threshold (§§3.4, 3.9).
    threshold: u64,
    /// The receive index of the next arrival, if it is not that of a lost packet (§3.1).
    index: u64,
    /// The next packet in order (§3.7).
    expected: u64,
    /// Packets that arrived early, and wait in the buffer (§3.8), in order.
    early: VecDeque<u64>,
    /// Packets that will not arrive.
    lost: BTreeSet<u64>,
    /// Arrivals that were not displaced and found the buffer empty. They are the usual ones, and counted apart.
    in_order: u64,
    /// The other arrivals. Displacements are [`unsigned`].
    displacements: Counts,
    occupancy: Counts,
}

/// How often each value came. Most are small, and have a place in a list; the others are in a map.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Counts {
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
}

impl Counts {
    const SMALL: usize = 64;

    #[inline]
    fn add(&mut self, value: u64) {
        match self.small.get_mut(value as usize) {
            Some(count) => *count += 1,
            None => self.add_new(value),
        }
    }

    /// The same if the value is large, or larger than all small ones so far.
    fn add_new(&mut self, value: u64) {
        if value >= Counts::SMALL as u64 {
            *self.large.entry(value).or_default() += 1;
            return;
        }
        self.small.reserve_exact(value as usize + 1 - self.small.len());
        self.small.resize(value as usize, 0);
        self.small.push(1);
    }

    fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let small = (0..).zip(self.small.iter().copied()).filter(|(_, count)| *count > 0);
        small.chain(self.large.iter().map(|(value, count)| (*value, *count)))
    }
}

impl Density {
    /// A measurement that begins with packet `first`.
    pub fn starting_at(first: u64, threshold: u64) -> Density {
        Density { threshold, index: first, expected: first, ..Density::default() }
    }

    /// Packet `number` arrives. Beyond the threshold it counts as lost.
    #[inline]
    pub fn on_arrival(&mut self, number: u64) {
        let is_next = number == self.expected && number == self.index;
        if is_next && self.early.is_empty() && self.lost.is_empty() {
            self.in_order += 1;
            self.index += 1;
            self.expected += 1;
        } else {
            self.on_displacement(number);
        }
    }

    /// The same if the packet, or one before it, is not in order.
    fn on_displacement(&mut self, number: u64) {
        let Err(place) = self.early.binary_search(&number) else { return };
        if number < self.expected {
            return;
        }
        while self.lost.contains(&self.index) {
            self.index += 1;
        }
        let displacement = self.index.cast_signed() - number.cast_signed();
        if displacement.unsigned_abs() > self.threshold {
            self.on_lost(number);
            return;
        }
        self.index += 1;
        self.displacements.add(unsigned(displacement));
        self.store(number, place);
        self.occupancy.add(self.early.len() as u64);
        let passed = self.index.min(self.expected);
        while self.lost.first().is_some_and(|lost| *lost < passed) {
            self.lost.pop_first();
        }
    }

    /// The buffer of §7.2. `place`: where the packet belongs among those that wait.
    fn store(&mut self, number: u64, place: usize) {
        let is_full = self.early.len() as u64 >= self.threshold;
        if number == self.expected && !is_full {
            self.expected += 1;
            self.release();
            return;
        }
        self.early.insert(place, number);
        if is_full && let Some(first) = self.early.front() {
            self.expected = self.expected.max(*first);
        }
        self.release();
    }

    /// Packets that are now in order leave the buffer.
    fn release(&mut self) {
        loop {
            if self.early.front() == Some(&self.expected) {
                self.early.pop_front();
            } else if !self.lost.contains(&self.expected) {
                break;
            }
            self.expected += 1;
        }
    }

    /// Packet `number` will not arrive.
    pub fn on_lost(&mut self, number: u64) {
        if number >= self.expected.min(self.index) && self.lost.len() < MAX_LOST {
            self.lost.insert(number);
            self.release();
        }
    }

    /// How many packets had each displacement: negative is early, positive late.
    pub fn displacements(&self) -> impl Iterator<Item = (i64, u64)> {
        with_zeros(self.displacements.iter().map(|(value, count)| (signed(value), count)), self.in_order)
    }

    /// After how many arrivals the buffer that restores the order held each number of packets.
    pub fn occupancy(&self) -> impl Iterator<Item = (u64, u64)> {
        with_zeros(self.occupancy.iter(), self.in_order)
    }
}

/// A displacement as a number from zero on: 0, -1, 1, -2 become 0, 1, 2, 3.
fn unsigned(displacement: i64) -> u64 {
    (displacement << 1 ^ displacement >> 63).cast_unsigned()
}

/// The reverse of [`unsigned`].
fn signed(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -((number & 1).cast_signed())
}

/// Counts of values in their order, with so many zeros more.
fn with_zeros<K: Copy + Default + Ord>(
    counts: impl Iterator<Item = (K, u64)>,
    zeros: u64,
) -> impl Iterator<Item = (K, u64)> {
    let mut counts: BTreeMap<K, u64> = counts.collect();
    if zeros > 0 {
        *counts.entry(K::default()).or_default() += zeros;
    }
    counts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Counts<K> = Vec<(K, u64)>;

    fn density(threshold: u64, lost: &[u64], arrivals: &[u64]) -> (Counts<i64>, Counts<u64>) {
        let mut density = Density::starting_at(1, threshold);
        for number in lost {
            density.on_lost(*number);
        }
        for number in arrivals {
            density.on_arrival(*number);
        }
        (density.displacements().collect(), density.occupancy().collect())
    }

    #[test]
    fn receive_indices_skip_lost_packets() {
        // RFC 5236 §3.1, example 1; §3.3, example 3; §4, examples 4 and 5.
        let displacements = |lost: &[u64], arrivals: &[u64]| density(8, lost, arrivals).0;
        assert_eq!(displacements(&[], &[2, 1, 4, 5, 3]), [(-1, 3), (1, 1), (2, 1)]);
        assert_eq!(displacements(&[2], &[1, 4, 3, 5, 3, 8, 7, 6]), [(-2, 1), (-1, 1), (0, 3), (1, 1), (2, 1)]);
        assert_eq!(displacements(&[], &[1, 2, 3, 5, 4, 6]), [(-1, 1), (0, 4), (1, 1)]);
        assert_eq!(displacements(&[4], &[1, 2, 5, 3, 6, 2]), [(-2, 1), (0, 3), (2, 1)]);
    }

    #[test]
    fn early_packets_wait_in_the_buffer() {
        // §3.8.
        assert_eq!(density(8, &[], &[1, 2, 4, 5, 3]).1, [(0, 3), (1, 1), (2, 1)]);
    }

    #[test]
    fn no_loss() {
        // §8 a, tables 2 and 4.
        let (displacements, occupancy) = density(4, &[], &[1, 4, 2, 5, 3, 6, 7, 8]);
        assert_eq!(displacements, [(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)]);
        assert_eq!(occupancy, [(0, 5), (1, 2), (2, 1)]);
    }

    #[test]
    fn a_loss() {
        // §8 b: table 5 knows that packet 3 is lost, table 6 waits for it until the buffer is full.
        assert_eq!(density(3, &[3], &[1, 2, 4, 5, 6, 7]).0, [(0, 6)]);
        assert_eq!(density(3, &[], &[1, 2, 4, 5, 6, 7]).1, [(0, 3), (1, 1), (2, 1), (3, 1)]);
    }

    #[test]
    fn a_copy() {
        // §8 c, tables 7 and 8.
        let (displacements, occupancy) = density(2, &[], &[1, 3, 2, 3, 4, 5]);
        assert_eq!(displacements, [(-1, 1), (0, 3), (1, 1)]);
        assert_eq!(occupancy, [(0, 4), (1, 1)]);
    }

    #[test]
    fn packets_beyond_the_threshold_count_as_lost() {
        let (displacements, occupancy) = density(2, &[], &[1, 9, 2, 3, 4]);
        assert_eq!((displacements, occupancy), (vec![(0, 4)], vec![(0, 4)]));
    }
}
