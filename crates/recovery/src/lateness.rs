//! A histogram of how late packets arrive.

use crate::Nanos;

/// Buckets of a histogram that begins at 1 ms, for the Internet.
pub const FROM_1_MS: usize = 52;
/// Buckets of a histogram that begins at 1 us, for data centers too.
pub const FROM_1_US: usize = 92;

/// The exponent of the end of the last bucket, in `Ticks`: 8.4 s.
const END: u32 = 25;
/// The counts are halved at this total, so that old values fade when the path changes.
const REMEMBERED: u32 = 4096;
/// One late packet of this many may arrive after the wait.
const LATER: u32 = 1000;

/// The lateness of late packets: the time from when each was first missing until it was acknowledged. There are four
/// buckets for each doubling, up to 8.4 s; their number says where the first begins ([`FROM_1_MS`], [`FROM_1_US`]).
#[derive(Clone, Debug)]
pub struct Lateness<const BUCKETS: usize> {
    counts: [u16; BUCKETS],
    total: u32,
    /// The number of congestion events in the same time.
    lost: u32,
    /// The wait that follows from the counts; the longest duration before the first late packet.
    wait: Nanos,
}

impl<const BUCKETS: usize> Default for Lateness<BUCKETS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BUCKETS: usize> Lateness<BUCKETS> {
    /// The exponent of the first bucket, in `Ticks`.
    const FIRST: u32 = {
        assert!(BUCKETS.is_multiple_of(4) && BUCKETS >= 4 && BUCKETS <= FROM_1_US);
        END - BUCKETS as u32 / 4
    };

    /// Nothing was late so far.
    pub const fn new() -> Self {
        Lateness { counts: [0; BUCKETS], total: 0, lost: 0, wait: Nanos::NEVER }
    }

    /// A packet arrived this late.
    pub fn learn(&mut self, lateness: Nanos) {
        self.counts[Self::bucket(lateness)] += 1;
        self.total += 1;
        if self.total >= REMEMBERED {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().map(|count| u32::from(*count)).sum();
            self.lost /= 2;
        }
        self.update();
    }

    /// A congestion event.
    pub fn learn_loss(&mut self) {
        self.lost = self.lost.saturating_add(1);
        self.update();
    }

    /// A congestion event turned out to be spurious: its packets were only late.
    pub fn unlearn_loss(&mut self) {
        self.lost = self.lost.saturating_sub(1);
        self.update();
    }

    fn update(&mut self) {
        self.wait = self.longest().map_or(Nanos::NEVER, |longest| longest * self.margin() / 8);
    }

    /// How long to wait for a late packet; `None` before the first one.
    pub fn wait(&self) -> Option<Nanos> {
        Some(self.wait).filter(|wait| *wait < Nanos::NEVER)
    }

    /// The lateness that at most one late packet in `LATER` exceeds, or at most as many as there were losses: after
    /// that time, a missing packet is more likely lost than late.
    pub fn longest(&self) -> Option<Nanos> {
        let mut later = (self.total / LATER).max(self.lost);
        for (i, &count) in self.counts.iter().enumerate().rev() {
            if u32::from(count) > later {
                return Some(Self::upper_edge(i));
            }
            later -= u32::from(count);
        }
        None
    }

    /// The wait, in eighths of the longest lateness. The fewer packets have been late, the more the next one may
    /// exceed it.
    fn margin(&self) -> u64 {
        match self.total {
            0..16 => 16,
            16..128 => 12,
            _ => 9,
        }
    }

    fn bucket(lateness: Nanos) -> usize {
        let ticks = Ticks::of(lateness).clamp(1 << Self::FIRST, (1 << END) - 1);
        let exponent = ticks.ilog2();
        let quarter = (ticks >> (exponent - 2)) & 3;
        ((exponent - Self::FIRST) * 4) as usize + quarter as usize
    }

    fn upper_edge(bucket: usize) -> Nanos {
        let exponent = Self::FIRST + bucket as u32 / 4;
        let quarters = 4 + bucket as u64 % 4 + 1;
        Nanos((quarters << (exponent - 2)) * Ticks::NANOS)
    }
}

/// The unit of the edges: a quarter of a microsecond, so that the bucket from 1 us has quarters.
struct Ticks;

impl Ticks {
    const NANOS: u64 = 250;

    fn of(duration: Nanos) -> u64 {
        duration.0 / Ticks::NANOS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges_are_near<const BUCKETS: usize>(micros: &[u64]) {
        for &micros in micros {
            let lateness = Nanos::from_micros(micros);
            let edge = Lateness::<BUCKETS>::upper_edge(Lateness::<BUCKETS>::bucket(lateness));
            assert!(edge > lateness && edge.0 * 4 <= lateness.0 * 5, "{lateness:?}: {edge:?}");
        }
    }

    #[test]
    fn every_time_lies_below_the_edge_of_its_bucket_and_not_far_below() {
        edges_are_near::<FROM_1_MS>(&[1_024, 1_100, 1_279, 1_280, 50_000, 777_777, 8_000_000]);
        edges_are_near::<FROM_1_US>(&[1, 2, 3, 7, 100, 1_024, 50_000, 8_000_000]);
    }

    #[test]
    fn one_in_a_thousand_may_arrive_later() {
        let mut lateness = Lateness::<FROM_1_US>::new();
        for _ in 0..2000 {
            lateness.learn(Nanos::from_millis(10));
        }
        let usual = lateness.wait();
        lateness.learn(Nanos::from_millis(2000));
        assert_eq!(lateness.wait(), usual);
        lateness.learn(Nanos::from_millis(2000));
        lateness.learn(Nanos::from_millis(2000));
        assert!(lateness.wait() > Some(Nanos::from_millis(2000)));
    }

    #[test]
    fn with_losses_the_wait_is_shorter() {
        let mut lateness = Lateness::<FROM_1_MS>::new();
        for i in 0..1000 {
            lateness.learn(Nanos::from_millis(if i % 20 == 0 { 400 } else { 10 }));
        }
        assert!(lateness.wait() > Some(Nanos::from_millis(400)));
        for _ in 0..50 {
            lateness.learn_loss();
        }
        assert!(lateness.wait() < Some(Nanos::from_millis(20)));
        lateness.unlearn_loss();
        assert!(lateness.wait() > Some(Nanos::from_millis(400)));
    }

    #[test]
    fn old_values_are_forgotten() {
        let mut lateness = Lateness::<FROM_1_US>::new();
        lateness.learn(Nanos::from_millis(2000));
        for _ in 0..8192 {
            lateness.learn(Nanos::from_micros(10));
        }
        assert!(lateness.wait() < Some(Nanos::from_micros(20)));
    }
}
