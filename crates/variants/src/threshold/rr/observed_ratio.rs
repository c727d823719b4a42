//! The FA ratio of RR-TCP as a receiver adapts it: rules 5 to 7 of `receiver.rs` (Zhang, Karp, Floyd, Peterson: ICSI
//! TR-02-006, 2002, §4.3 and §6).

use reknit_tcp::seams::{Arrival, RxFacts};
use reknit_units::{Duration, Instant};

use crate::threshold::rr::costs as cost;

/// The ratio is never high enough to avoid every false fast retransmit (§5.1.1).
const MAX_FA: f64 = 0.99;
/// 1/alpha of the average W, as of D (Table 2).
const MEMORY: f64 = 8.0;
/// Limited transmit of one window (§4.3.1).
const WINDOWS: f64 = 1.0;

/// The segments that arrived since the round trip began.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: Instant,
    segments: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct ObservedRatio {
    fa: f64,
    /// S; zero if the ratio is fixed.
    step: f64,
    /// W, in segments.
    window: Option<f64>,
    round: Option<Round>,
    /// When the last segment arrived, if it left a gap.
    waiting_since: Option<Instant>,
    /// When the ratio was last raised.
    raised: Option<Instant>,
}

impl ObservedRatio {
    pub(crate) fn new(fa: f64, step: f64) -> ObservedRatio {
        ObservedRatio { fa, step, window: None, round: None, waiting_since: None, raised: None }
    }

    pub(crate) fn fa(&self) -> f64 {
        self.fa
    }

    /// A segment arrives. Returns true if the ratio has changed.
    pub(crate) fn on_data(&mut self, rx: &RxFacts<'_>, is_retransmission: bool) -> bool {
        let began = self.waiting_since.take();
        if rx.gaps {
            self.waiting_since = Some(rx.now);
        }
        let Some(rtt) = rx.rtt.filter(|rtt| !rtt.is_zero() && self.step > 0.0) else { return false };
        self.count(rx.now, rtt);
        let before = self.fa;
        if let Some(began) = began {
            self.on_pause(rx.now.since(began).as_secs_f64() / rtt.as_secs_f64(), is_retransmission);
        }
        if rx.arrival == Arrival::Duplicate {
            self.on_false_fast_retransmit(rx.now, rtt);
        }
        self.fa.to_bits() != before.to_bits()
    }

    /// Rule 5.
    fn count(&mut self, now: Instant, rtt: Duration) {
        let round = self.round.get_or_insert(Round { began: now, segments: 0 });
        round.segments += 1;
        if now.since(round.began) >= rtt {
            let sample = f64::from(round.segments);
            let window = self.window.unwrap_or(sample);
            self.window = Some(window + (sample - window) / MEMORY);
            *round = Round { began: now, segments: 0 };
        }
    }

    /// Rule 6.
    fn on_false_fast_retransmit(&mut self, now: Instant, rtt: Duration) {
        if self.raised.is_none_or(|at| now.since(at) >= rtt) {
            self.raised = Some(now);
            self.fa = (self.fa + self.step).min(MAX_FA);
        }
    }

    /// Rule 7: nothing arrived for `rounds` round trips.
    fn on_pause(&mut self, rounds: f64, is_retransmission: bool) {
        let Some(w) = self.window.map(|w| w.max(1.0)) else { return };
        let mistake = cost::false_fast_retransmit(w, 1.0);
        if is_retransmission && rounds > 2.0 {
            self.lower(cost::timeout(w, rounds, WINDOWS) / mistake);
        } else if cost::idle(w, rounds, 0.0) > mistake {
            self.lower(cost::idle(w, rounds, 0.0) / mistake);
        }
    }

    fn lower(&mut self, ratio: f64) {
        self.fa = (self.fa - self.step * ratio).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// After ten round trips of 20 segments each.
    fn steady() -> ObservedRatio {
        let mut ratio = ObservedRatio::new(0.9, 0.01);
        for n in 0..=200 {
            ratio.count(at(5 * n), RTT);
        }
        assert!(ratio.window.is_some_and(|w| (w - 20.0).abs() < 1.0), "{:?}", ratio.window);
        ratio.window = Some(20.0);
        ratio
    }

    #[test]
    fn a_copy_raises_the_ratio_once_per_round_trip() {
        let mut ratio = steady();
        for (ms, fa) in [(1000, 0.91), (1050, 0.91), (1100, 0.92)] {
            ratio.on_false_fast_retransmit(at(ms), RTT);
            assert!((ratio.fa() - fa).abs() < 1e-9, "{} at {ms} ms", ratio.fa());
        }
    }

    #[test]
    fn the_ratio_falls_by_the_cost_of_a_pause() {
        // A false fast retransmit costs 10 segments, a pause of half a round trip as much, one of two round trips 40.
        // A timeout after ten round trips costs 160 idle segments and 67.4 in slow start.
        for (rounds, is_retransmission, fa) in
            [(0.5, false, 0.9), (2.0, false, 0.86), (2.0, true, 0.86), (10.0, false, 0.7), (10.0, true, 0.672_561)]
        {
            let mut ratio = steady();
            ratio.on_pause(rounds, is_retransmission);
            assert!((ratio.fa() - fa).abs() < 1e-6, "{} after {rounds} round trips", ratio.fa());
        }
    }

    #[test]
    fn the_ratio_stays_between_its_limits() {
        let mut ratio = steady();
        (0..20).for_each(|n| ratio.on_false_fast_retransmit(at(100 * n), RTT));
        assert!((ratio.fa() - MAX_FA).abs() < 1e-9);
        ratio.on_pause(1000.0, true);
        assert!(ratio.fa() >= 0.0 && ratio.fa() < 1e-9);
    }
}
