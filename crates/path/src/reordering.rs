//! Measures of reordering for packets that arrive one after the other, in bounded memory: RFC 4737.

use std::collections::VecDeque;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Arrivals that are remembered: larger extents are reported as this one.
const HORIZON: usize = 1 << 16;
/// Degrees of `n`-reordering that are counted.
const DEGREES: usize = 64;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Reordering {
    /// First arrivals with a larger number than all before: number, position and time, all increasing. The first
    /// arrival with a number larger than n is always one of them.
    maxima: VecDeque<(u64, u64, Instant)>,
    /// The number of the last of them.
    highest: u64,
    /// The latest of the other arrivals: number and position.
    others: VecDeque<(u64, u64)>,
    arrived: u64,
    reordered: u64,
    degrees: Vec<u64>,
    runs: FreeRuns,
    /// Arrivals that are remembered, if they are limited more than usual.
    limit: Option<usize>,
}

impl Reordering {
    /// Remembers only this many arrivals, at least one: larger extents are reported as this one.
    pub fn limit(&mut self, arrivals: usize) {
        self.limit = Some(arrivals.clamp(1, HORIZON));
    }

    /// Packet `number` arrives at `now`. Returns how late it is if it is reordered.
    #[inline]
    pub fn on_arrival(&mut self, number: u64, now: Instant) -> Option<Late> {
        let position = self.arrived;
        self.arrived += 1;
        if self.highest > number {
            return Some(self.on_late(number, position, now));
        }
        self.highest = number;
        if self.maxima.len() >= self.limit.unwrap_or(HORIZON) {
            self.maxima.pop_front();
        }
        self.maxima.push_back((number, position, now));
        self.runs.current += 1;
        None
    }

    fn on_late(&mut self, number: u64, position: u64, now: Instant) -> Late {
        let late = self.lateness(number, position, now);
        self.others.push_back((number, position));
        if self.others.len() > DEGREES {
            self.others.pop_front();
        }
        self.count(late);
        late
    }

    /// No packet with this number or a smaller one arrives any more: frees the memory that only they need.
    #[inline]
    pub fn forget(&mut self, number: u64) {
        while self.maxima.len() > 1 && self.maxima.front().is_some_and(|(first, ..)| *first <= number) {
            self.maxima.pop_front();
        }
    }

    /// Gives back memory that is not needed as long as nothing arrives.
    pub fn shrink(&mut self) {
        self.maxima.shrink_to_fit();
        self.others.shrink_to_fit();
    }

    fn lateness(&self, number: u64, position: u64, now: Instant) -> Late {
        let first = self.maxima.partition_point(|(other, ..)| *other < number);
        let (_, overtaken_at, since) = self.maxima[first];
        let degree = self.degree(number, position);
        Late { extent: (position - overtaken_at) as u32, late: now.since(since), degree }
    }

    /// How many arrivals in a row before `position` have larger numbers. Those that are forgotten have smaller ones.
    fn degree(&self, number: u64, position: u64) -> u32 {
        let mut maxima = self.maxima.iter().rev().map(|(number, position, _)| (*number, *position)).peekable();
        let mut others = self.others.iter().rev().copied().peekable();
        let mut degree = 0;
        while degree < DEGREES as u64 {
            let before = |(_, at): &(u64, u64)| *at + degree + 1 == position;
            let arrival = maxima.next_if(before).or_else(|| others.next_if(before));
            if arrival.is_none_or(|(other, _)| other <= number) {
                break;
            }
            degree += 1;
        }
        degree as u32
    }

    fn count(&mut self, late: Late) {
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

    /// Extent and degree of each reordered packet.
    fn extents(order: &[u64]) -> Vec<(u32, u32)> {
        arrivals(order).1.iter().map(|late| (late.extent, late.degree)).collect()
    }

    #[test]
    fn one_packet_is_reordered() {
        // RFC 4737 §7.1.
        let mut reordering = Reordering::default();
        let numbers = [1, 2, 3, 5, 6, 7, 8, 4, 9, 10];
        let times = [68, 88, 108, 148, 168, 188, 208, 210, 228, 248];
        let late: Vec<Late> = numbers
            .iter()
            .zip(times)
            .filter_map(|(number, at)| reordering.on_arrival(*number, Instant::ZERO + Duration::from_millis(at)))
            .collect();
        assert_eq!(late, [Late { extent: 4, late: Duration::from_millis(62), degree: 4 }]);
        assert_eq!((reordering.arrived(), reordering.reordered()), (10, 1));
    }

    #[test]
    fn two_packets_are_reordered() {
        // §7.2: packet 5 is 1-reordered, and packet 6 is not n-reordered.
        assert_eq!(extents(&[1, 2, 3, 4, 7, 5, 6, 8, 9, 10]), [(1, 1), (2, 0)]);
    }

    #[test]
    fn three_packets_are_reordered() {
        // §7.3.
        let order = [1, 2, 3, 7, 8, 9, 10, 4, 5, 6, 11];
        assert_eq!(extents(&order), [(4, 4), (5, 0), (6, 0)]);
        let (reordering, _) = arrivals(&order);
        assert_eq!([1, 3, 4, 5].map(|n| reordering.n_reordered(n)), [1, 1, 1, 0]);
    }

    #[test]
    fn runs_between_reordered_packets() {
        // §7.4: runs of 5, 0 and 5 packets, and one that has not ended.
        let order = [1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 12, 13, 11, 14, 15, 16];
        let (reordering, late) = arrivals(&order);
        assert_eq!(late.iter().map(|late| late.extent).collect::<Vec<_>>(), [2, 3, 2]);
        let runs = reordering.free_runs();
        assert_eq!((runs.runs, runs.packets, runs.squares, runs.current), (3, 10, 50, 3));
    }
}
