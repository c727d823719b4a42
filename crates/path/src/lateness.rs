//! A histogram of how late segments arrive, in 52 counters.

use reknit_units::Duration;

/// Four buckets for each doubling, from 1 ms to 8.4 s.
const BUCKETS: usize = 52;
/// The exponent of the first bucket, in microseconds.
const FIRST: u32 = 10;
/// One after the last.
const END: u32 = FIRST + BUCKETS as u32 / 4;
/// The counts are halved at this total, so that old values fade when the path changes.
const REMEMBERED: u32 = 4096;
/// One late segment of this many may arrive after the wait.
const LATER: u32 = 1000;

/// The lateness of late segments: the time from when each was first missing until it was acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    /// None before the first late segment.
    counts: Option<Box<[u16; BUCKETS]>>,
    total: u32,
    /// The number of congestion events in the same time.
    lost: u32,
    /// The wait that follows from the counts; the longest duration before the first late segment.
    wait: Duration,
}

impl Lateness {
    pub(crate) fn new() -> Lateness {
        Lateness { counts: None, total: 0, lost: 0, wait: Duration::MAX }
    }

    /// A segment arrived this late.
    pub(crate) fn learn(&mut self, lateness: Duration) {
        let counts = self.counts.get_or_insert_with(|| Box::new([0; BUCKETS]));
        counts[bucket(lateness)] += 1;
        self.total += 1;
        if self.total >= REMEMBERED {
            counts.iter_mut().for_each(|count| *count /= 2);
            self.total = counts.iter().map(|count| u32::from(*count)).sum();
            self.lost /= 2;
        }
        self.update();
    }

    /// A congestion event.
    pub(crate) fn learn_loss(&mut self) {
        self.lost += 1;
        self.update();
    }

    /// A congestion event turned out to be spurious: its segments were only late.
    pub(crate) fn unlearn_loss(&mut self) {
        self.lost = self.lost.saturating_sub(1);
        self.update();
    }

    fn update(&mut self) {
        self.wait = self.longest().map_or(Duration::MAX, |longest| longest.mul_ratio(self.margin()));
    }

    /// How long to wait for a late segment; `None` before the first one.
    pub(crate) fn wait(&self) -> Option<Duration> {
        Some(self.wait).filter(|wait| *wait < Duration::MAX)
    }

    /// The lateness that at most one late segment in [`LATER`] exceeds, or at most as many as there were losses: after
    /// that time, a missing segment is more likely lost than late.
    pub(crate) fn longest(&self) -> Option<Duration> {
        let mut later = (self.total / LATER).max(self.lost);
        for (i, &count) in self.counts.as_deref()?.iter().enumerate().rev() {
            if u32::from(count) > later {
                return Some(upper_edge(i));
            }
            later -= u32::from(count);
        }
        None
    }

    pub(crate) fn heap_size(&self) -> usize {
        self.counts.as_deref().map_or(0, size_of_val)
    }

    /// The wait, in eighths of the longest lateness. The fewer segments have been seen, the more the next one may
    /// exceed it.
    fn margin(&self) -> u64 {
        match self.total {
            0..16 => 16,
            16..128 => 12,
            _ => 9,
        }
    }
}

/// Multiplies a time by a number of eighths.
trait Eighths {
    fn mul_ratio(self, eighths: u64) -> Self;
}

impl Eighths for Duration {
    fn mul_ratio(self, eighths: u64) -> Duration {
        self * eighths / 8
    }
}

fn bucket(lateness: Duration) -> usize {
    let micros = (lateness.as_nanos() / 1000).clamp(1 << FIRST, (1 << END) - 1);
    let exponent = micros.ilog2();
    let quarter = (micros >> (exponent - 2)) & 3;
    ((exponent - FIRST) * 4) as usize + quarter as usize
}

fn upper_edge(bucket: usize) -> Duration {
    let exponent = FIRST + bucket as u32 / 4;
    let quarters = 4 + bucket as u64 % 4 + 1;
    Duration::from_micros(quarters << (exponent - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_below_the_edge_of_its_bucket_and_not_far_below() {
        for micros in [1_024, 1_100, 1_279, 1_280, 50_000, 777_777, 8_000_000] {
            let lateness = Duration::from_micros(micros);
            let edge = upper_edge(bucket(lateness));
            assert!(edge > lateness && edge.as_nanos() * 4 <= lateness.as_nanos() * 5, "{lateness}: {edge}");
        }
    }

    #[test]
    fn one_in_a_thousand_may_arrive_later() {
        let mut lateness = Lateness::new();
        for _ in 0..2000 {
            lateness.learn(Duration::from_millis(10));
        }
        let usual = lateness.wait();
        lateness.learn(Duration::from_secs(2));
        assert_eq!(lateness.wait(), usual);
        lateness.learn(Duration::from_secs(2));
        lateness.learn(Duration::from_secs(2));
        assert!(lateness.wait() > Some(Duration::from_secs(2)));
    }

    #[test]
    fn with_losses_the_wait_is_shorter() {
        let mut lateness = Lateness::new();
        for i in 0..1000 {
            lateness.learn(Duration::from_millis(if i % 20 == 0 { 400 } else { 10 }));
        }
        assert!(lateness.wait() > Some(Duration::from_millis(400)));
        for _ in 0..50 {
            lateness.learn_loss();
        }
        assert!(lateness.wait() < Some(Duration::from_millis(20)));
        lateness.unlearn_loss();
        assert!(lateness.wait() > Some(Duration::from_millis(400)));
    }

    #[test]
    fn old_values_are_forgotten() {
        let mut lateness = Lateness::new();
        lateness.learn(Duration::from_secs(2));
        for _ in 0..8192 {
            lateness.learn(Duration::from_millis(10));
        }
        assert!(lateness.wait() < Some(Duration::from_millis(20)));
    }
}
