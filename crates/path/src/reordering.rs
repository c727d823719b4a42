//! Measures of reordering for packets that arrive one after the other, in bounded memory: RFC 4737 and RFC 5236.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use reknit_units::{Duration, Instant};

/// Arrivals that are remembered: larger extents are reported as this one.
const HORIZON: usize = 1 << 16;
/// Degrees of `n`-reordering that are counted.
const DEGREES: usize = 64;
/// RFC 5236 §3.1: packets that arrive this much too late count as lost.
const MOST_DISPLACEMENT: u64 = 1 << 12;

/// A packet that arrived after a packet that was sent later (RFC 4737 §3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// Arrivals since the first packet that overtook it, that one included (§4.2).
    pub extent: u32,
    /// Time since the arrival of the first packet that overtook it (§4.3).
    pub late: Duration,
    /// All of this many packets that arrived just before it were sent later (`n`-reordering, §5); at most 64.
    pub degree: u32,
}

/// Runs of packets without reordering between reordered packets (RFC 4737 §4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FreeRuns {
    /// Runs that ended with a reordered packet.
    pub runs: u64,
    /// Packets in them.
    pub packets: u64,
    /// Sum of the squares of their lengths.
    pub squares: u64,
    /// Packets in order since the last reordered packet.
    pub current: u64,
}

impl FreeRuns {
    /// The mean length of the runs that ended.
    pub fn mean(&self) -> Option<f64> {
        (self.runs > 0).then(|| self.packets as f64 / self.runs as f64)
    }
}

/// The measures of RFC 4737 over a stream of arrivals. Packets have numbers that grow in the order of sending; lost
/// packets may leave gaps, and copies of packets must be left out.
#[derive(Clone, Debug, Default)]
pub struct Reordering {
    /// First arrivals with a larger number than all before: number, position and time, all increasing. The first
    /// arrival with a number larger than n is always one of them.
    maxima: VecDeque<(u64, u64, Instant)>,
    /// The numbers of the packets that arrived last.
    last: VecDeque<u64>,
    arrived: u64,
    reordered: u64,
    degrees: Vec<u64>,
    runs: FreeRuns,
}

impl Reordering {
    /// Packet `number` arrives at `now`. Returns how late it is if it is reordered.
    pub fn on_arrival(&mut self, number: u64, now: Instant) -> Option<Late> {
        let position = self.arrived;
        self.arrived += 1;
        let late = match self.maxima.back() {
            Some((highest, ..)) if *highest > number => Some(self.lateness(number, position, now)),
            _ => {
                self.maxima.push_back((number, position, now));
                if self.maxima.len() > HORIZON {
                    self.maxima.pop_front();
                }
                None
            }
        };
        self.last.push_back(number);
        if self.last.len() > DEGREES {
            self.last.pop_front();
        }
        self.count(late);
        late
    }

    fn lateness(&self, number: u64, position: u64, now: Instant) -> Late {
        let first = self.maxima.partition_point(|(other, ..)| *other < number);
        let (_, overtaken_at, since) = self.maxima[first];
        let degree = self.last.iter().rev().take_while(|other| **other > number).count();
        Late { extent: (position - overtaken_at) as u32, late: now.since(since), degree: degree as u32 }
    }

    fn count(&mut self, late: Option<Late>) {
        let Some(late) = late else {
            self.runs.current += 1;
            return;
        };
        self.reordered += 1;
        let degree = late.degree as usize;
        if self.degrees.len() <= degree {
            self.degrees.resize(degree + 1, 0);
        }
        self.degrees[degree] += 1;
        let run = std::mem::take(&mut self.runs.current);
        self.runs.runs += 1;
        self.runs.packets += run;
        self.runs.squares = self.runs.squares.saturating_add(run.saturating_mul(run));
    }

    /// Packets that arrived.
    pub fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Those that were reordered.
    pub fn reordered(&self) -> u64 {
        self.reordered
    }

    /// The share of arrived packets that were reordered (RFC 4737 §4.1).
    pub fn ratio(&self) -> f64 {
        self.reordered as f64 / self.arrived.max(1) as f64
    }

    /// The number of `n`-reordered packets (§5): the `n` packets that arrived just before have larger numbers. `n` is at
    /// most 64.
    pub fn n_reordered(&self, n: u32) -> u64 {
        self.degrees.iter().skip(n.max(1) as usize).sum()
    }

    /// Runs without reordering.
    pub fn free_runs(&self) -> FreeRuns {
        self.runs
    }
}

/// Reorder density and reorder buffer-occupancy density (RFC 5236 §§3.3, 3.4). Packets are numbered without gaps, and
/// copies must be left out.
#[derive(Clone, Debug, Default)]
pub struct Density {
    /// The next packet in order.
    expected: u64,
    /// Packets that arrived early, with the number of packets that arrived before them.
    early: BTreeMap<u64, u64>,
    /// Packets that will not arrive.
    lost: BTreeSet<u64>,
    /// What to add to a number of arrivals to get a receive index: lost packets have no index, so it is skipped (§3.2).
    shift: u64,
    arrived: u64,
    displacements: BTreeMap<i64, u64>,
    occupancy: BTreeMap<u64, u64>,
}

impl Density {
    /// A measurement that begins with packet `first`.
    pub fn starting_at(first: u64) -> Density {
        Density { expected: first, shift: first, ..Density::default() }
    }

    /// Packet `number` arrives. Packets that arrive after they have been given up count as lost.
    pub fn on_arrival(&mut self, number: u64) {
        if number < self.expected || self.early.contains_key(&number) {
            return;
        }
        self.early.insert(number, self.arrived);
        self.arrived += 1;
        self.release();
        while self.early.first_key_value().is_some_and(|(_, before)| self.arrived > before + MOST_DISPLACEMENT) {
            let next = self.expected;
            self.on_lost(next);
        }
        *self.occupancy.entry(self.early.len() as u64).or_default() += 1;
    }

    /// Packet `number` will not arrive.
    pub fn on_lost(&mut self, number: u64) {
        if number >= self.expected && !self.early.contains_key(&number) && self.lost.len() < HORIZON {
            self.lost.insert(number);
            self.release();
        }
    }

    /// Packets that are now in order leave the buffer.
    fn release(&mut self) {
        loop {
            if let Some(before) = self.early.remove(&self.expected) {
                let index = before + self.shift;
                let displacement = index.cast_signed() - self.expected.cast_signed();
                *self.displacements.entry(displacement).or_default() += 1;
            } else if self.lost.remove(&self.expected) {
                self.shift += 1;
            } else {
                return;
            }
            self.expected += 1;
        }
    }

    /// How many packets had each displacement: negative is early, positive late.
    pub fn displacements(&self) -> impl Iterator<Item = (i64, u64)> {
        self.displacements.iter().map(|(displacement, count)| (*displacement, *count))
    }

    /// After how many arrivals the buffer that restores the order held each number of packets.
    pub fn occupancy(&self) -> impl Iterator<Item = (u64, u64)> {
        self.occupancy.iter().map(|(packets, count)| (*packets, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(order: &[u64]) -> (Reordering, Vec<Late>) {
        let mut reordering = Reordering::default();
        let at = |i: u64| Instant::ZERO + Duration::from_millis(68 * i);
        let late = order.iter().zip(0..).filter_map(|(number, i)| reordering.on_arrival(*number, at(i)));
        let late = late.collect();
        (reordering, late)
    }

    #[test]
    fn examples_of_rfc_4737() {
        // §10.1: 7 and 8 overtaken by 9 and 10.
        let (reordering, late) = arrivals(&[1, 2, 3, 4, 5, 6, 9, 10, 7, 8, 11]);
        assert_eq!(late.iter().map(|l| (l.extent, l.degree)).collect::<Vec<_>>(), [(2, 2), (3, 0)]);
        assert_eq!(late[1].late, Duration::from_millis(3 * 68));
        assert_eq!((reordering.arrived(), reordering.reordered()), (11, 2));
        // §4.6: runs of 8 and 0 packets, and one that has not ended.
        let runs = reordering.free_runs();
        assert_eq!((runs.runs, runs.packets, runs.squares, runs.current), (2, 8, 64, 1));
        // §5.4: 3-reordering of 1 after 2, 3, 4, and of nothing else.
        let (reordering, _) = arrivals(&[2, 3, 4, 1, 5]);
        assert_eq!([1, 3, 4].map(|n| reordering.n_reordered(n)), [1, 1, 0]);
    }

    #[test]
    fn example_of_rfc_5236() {
        let mut density = Density::starting_at(1);
        for number in [1, 4, 2, 5, 3, 6, 7, 8] {
            density.on_arrival(number);
        }
        assert_eq!(density.displacements().collect::<Vec<_>>(), [(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)]);
        assert_eq!(density.occupancy().collect::<Vec<_>>(), [(0, 5), (1, 2), (2, 1)]);
    }

    #[test]
    fn a_lost_packet_displaces_nothing() {
        let mut density = Density::starting_at(1);
        for number in [1, 2, 4, 5] {
            density.on_arrival(number);
        }
        density.on_lost(3);
        density.on_arrival(3); // too late: it has been given up
        density.on_arrival(6);
        assert_eq!(density.displacements().collect::<Vec<_>>(), [(0, 5)]);
    }
}
