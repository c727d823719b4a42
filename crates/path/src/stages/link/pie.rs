//! PIE (RFC 8033): packets are dropped at random, so that those that remain wait for a given time. A controller corrects the
//! probability by how far the time is from that, and by how it has changed.

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{DropReason, Server};
use crate::random::Stream;

/// RFC 8033 section 4: the packets that are never dropped early, and the weights of the controller, per second.
const MEAN_PKTSIZE: Bytes = Bytes(1500);
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;

/// PIE's parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Pie {
    /// How long packets should wait (`QDELAY_REF`).
    pub target: Duration,
    /// The time from one correction of the probability to the next (`T_UPDATE`).
    pub update: Duration,
    /// A burst of this length passes (`MAX_BURST`).
    pub burst: Duration,
}

impl Default for Pie {
    fn default() -> Pie {
        let fifteen = Duration::from_millis(15);
        Pie { target: fifteen, update: fifteen, burst: Duration::from_millis(150) }
    }
}

impl fmt::Display for Pie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PIE, target {}", self.target)
    }
}

impl Pie {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        if self.target.is_zero() {
            return Err(KeyError::new("pie.target", "must be more than 0"));
        }
        if self.update < Duration::from_millis(1) {
            return Err(KeyError::new("pie.update", "must be at least 1 ms"));
        }
        Ok(())
    }
}

/// A link with PIE. The names are those of RFC 8033 section 4.
#[derive(Debug)]
pub(crate) struct Managed {
    server: Server,
    pie: Pie,
    chance: Stream,
    drop_prob: f64,
    qdelay_old: Duration,
    burst_allowance: Duration,
    next_update: Instant,
}

impl Managed {
    pub(super) fn new(server: Server, pie: &Pie, chance: Stream) -> Managed {
        Managed {
            server,
            drop_prob: 0.0,
            qdelay_old: Duration::ZERO,
            burst_allowance: pie.burst,
            next_update: Instant::ZERO + pie.update,
            pie: pie.clone(),
            chance,
        }
    }

    /// As [`Server::pass`].
    pub(super) fn pass(&mut self, at: Instant, size: Bytes) -> Result<Instant, DropReason> {
        self.update_until(at);
        if self.drops_early(at) { Err(DropReason::Early) } else { self.server.pass(at, size) }
    }

    /// How long a packet would wait that arrived at `at`, after all that have arrived.
    fn qdelay(&self, at: Instant) -> Duration {
        self.server.free_at().since(at)
    }

    /// Makes the corrections that were due by `at`.
    fn update_until(&mut self, at: Instant) {
        while self.next_update <= at {
            let qdelay = self.qdelay(self.next_update);
            self.update(qdelay);
            self.next_update = self.next_update + self.pie.update;
            if self.is_at_rest(qdelay) {
                let missed = at.since(self.next_update).as_nanos() / self.pie.update.as_nanos();
                self.next_update = self.next_update + self.pie.update * missed;
            }
        }
    }

    /// True if further corrections change nothing while the queue is empty.
    fn is_at_rest(&self, qdelay: Duration) -> bool {
        qdelay.is_zero() && self.drop_prob == 0.0 && self.burst_allowance == self.pie.burst
    }

    fn update(&mut self, qdelay: Duration) {
        let [now, old, target] = [qdelay, self.qdelay_old, self.pie.target].map(Duration::as_secs_f64);
        let correction = ALPHA * (now - target) + BETA * (now - old);
        self.drop_prob += correction / scale(self.drop_prob);
        if qdelay.is_zero() && self.qdelay_old.is_zero() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.burst_allowance = self.burst_allowance.saturating_sub(self.pie.update);
        if self.drop_prob == 0.0 && now < target / 2.0 && old < target / 2.0 {
            self.burst_allowance = self.pie.burst;
        }
        self.qdelay_old = qdelay;
    }

    fn drops_early(&mut self, at: Instant) -> bool {
        let is_low = self.qdelay_old * 2 < self.pie.target && self.drop_prob < 0.2;
        if !self.burst_allowance.is_zero() || is_low || self.server.waiting_bytes(at) <= MEAN_PKTSIZE + MEAN_PKTSIZE {
            return false;
        }
        self.chance.chance(self.drop_prob)
    }
}

/// Small probabilities are corrected in small steps (RFC 8033 section 4.2).
fn scale(drop_prob: f64) -> f64 {
    match drop_prob {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Link;
    use super::*;
    use crate::random::{Phases, StreamId};
    use reknit_units::Rate;

    fn managed() -> Managed {
        let rate = Some(Rate::from_bits_per_second(8_000_000)); // 1000 bytes take a millisecond
        let link = Link { rate, queue: "10000 packets".parse().unwrap(), ..Link::default() };
        let id = StreamId { seed: 1, stage: 0, phases: Phases::Fixed };
        Managed::new(Server::new(&link), &Pie::default(), id.stream(0))
    }

    /// Packets arrive at 1.25 times the rate, for this many seconds. Returns the shares dropped and the delays, by second.
    fn overload(managed: &mut Managed, seconds: u64) -> Vec<(f64, Duration)> {
        let second = |managed: &mut Managed, s: u64| {
            let mut dropped = 0;
            for i in 0..1250 {
                let at = Instant::ZERO + Duration::from_micros(s * 1_000_000 + i * 800);
                dropped += u32::from(managed.pass(at, Bytes(1000)) == Err(DropReason::Early));
            }
            (f64::from(dropped) / 1250.0, managed.qdelay(Instant::ZERO + Duration::from_secs(s + 1)))
        };
        (0..seconds).map(|s| second(managed, s)).collect()
    }

    #[test]
    fn the_excess_is_dropped_and_packets_wait_for_the_target() {
        let by_second = overload(&mut managed(), 60);
        for (dropped, delay) in &by_second[30..] {
            assert!((0.15..0.25).contains(dropped), "{by_second:?}");
            assert!(*delay < Duration::from_millis(40), "{by_second:?}");
        }
        let mean = by_second[30..].iter().map(|(_, delay)| delay.as_secs_f64()).sum::<f64>() / 30.0;
        assert!((0.010..0.020).contains(&mean), "{mean}");
    }

    #[test]
    fn a_burst_passes_and_an_idle_link_forgets() {
        let mut managed = managed();
        let burst = (0..100).filter(|_| managed.pass(Instant::ZERO, Bytes(1000)).is_err()).count();
        assert_eq!(burst, 0);
        overload(&mut managed, 10);
        assert!(managed.drop_prob > 0.1);
        managed.update_until(Instant::ZERO + Duration::from_secs(1000));
        assert!(managed.is_at_rest(Duration::ZERO));
        // Corrections of centuries are not made one by one.
        managed.update_until(Instant::ZERO + Duration::from_secs(10_000_000_000));
        assert!(managed.is_at_rest(Duration::ZERO));
    }
}
