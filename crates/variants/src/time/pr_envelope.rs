//! # The upper envelope of round-trip times of TCP-PR
//!
//! Bohacek, Hespanha, Lee, Lim, Obraczka, 2006; see `pr.rs`, which uses it for its timers.
//!
//! **What it changes.** There is no smoothed mean and no retransmission timer, but the longest recent round-trip time.
//! A longer sample is taken at once. The envelope then decays by α in each round trip, so slower paths stay covered for
//! a while.
//!
//! **State.** `ewrtt`, which the connection uses as its SRTT.
//!
//! **Rules.** For each delivered segment: `ewrtt = max(α^(1/⌊cwnd⌋) ewrtt, rtt)`, with the root computed by two
//! iterations of Newton's method.
//!
//! **Departures.** α and β are known from other descriptions of TCP-PR. The root is computed once for each value of `⌊cwnd⌋`, not on every ACK.
//!
//! **Status.** Partial: the survey has the filter, but not the value of α.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context, TIMESTAMP_TICK};
use reknit_tcp::scoreboard::SegmentRecord;
use reknit_tcp::seams::{Plugin, RtoEstimator, Seam};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::Requirement;

/// Parameters of the envelope.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RttEnvelopeConfig {
    /// α, the factor by which the envelope decays in one round trip.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub alpha: f64,
    /// The number of Newton iterations for `α^(1/⌊cwnd⌋)`.
    #[schemars(range(min = 1, max = 100))]
    pub iterations: u32,
}

impl Default for RttEnvelopeConfig {
    fn default() -> RttEnvelopeConfig {
        RttEnvelopeConfig { alpha: 0.995, iterations: 2 }
    }
}

impl Algorithm<dyn RtoEstimator> for RttEnvelopeConfig {
    /// It has no retransmission timer.
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::LossDetector, &["segment-clocks"])]
    }

    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(Envelope { config: self.clone(), ewrtt: None, decay: (1, self.alpha) })
    }
}

#[derive(Clone, Debug)]
struct Envelope {
    config: RttEnvelopeConfig,
    ewrtt: Option<Duration>,
    /// The last `⌊cwnd⌋` and its root of α.
    decay: (u32, f64),
}

impl Envelope {
    /// `ewrtt = max(α^(1/⌊cwnd⌋) ewrtt, rtt)`.
    fn update(&mut self, cwnd: u32, rtt: Duration) {
        let Some(ewrtt) = self.ewrtt else {
            self.ewrtt = Some(rtt);
            return;
        };
        if self.decay.0 != cwnd {
            self.decay = (cwnd, root(self.config.alpha, cwnd, self.config.iterations.min(MAX_ITERATIONS)));
        }
        self.ewrtt = Some(ewrtt.mul_f64(self.decay.1).max(rtt));
    }
}

/// More iterations would not change the result.
const MAX_ITERATIONS: u32 = 100;

/// The `c`-th root of `alpha` by Newton's method from 1: `x = (c - 1)/c x + α/(c x^(c - 1))`.
fn root(alpha: f64, c: u32, iterations: u32) -> f64 {
    let c = f64::from(c);
    (0..iterations).fold(1.0, |x, _| (c - 1.0) / c * x + alpha / (c * libm::pow(x, c - 1.0)))
}

/// The unambiguous RTT samples of an ACK. A segment that was sent twice needs an echoed timestamp; without SACK only
/// the segment that was sent last can have caused the ACK.
pub(crate) fn samples<'a>(cx: &Context<'a>, ack: &AckFacts<'a>) -> impl Iterator<Item = Duration> {
    let (now, board, sack) = (cx.now, cx.board, cx.snd.sack);
    let echoed = ack.echoed.filter(|_| ack.advances()).map(|at| now.since(at));
    let records = ack.newly.iter().filter_map(move |id| board.get(*id)).filter(move |_| sack);
    let certain = move |record: &SegmentRecord| match record.transmissions {
        1 => Some(now.since(record.last_sent)),
        // A timestamp from before its first transmission belongs to another segment.
        _ => echoed.filter(|rtt| now - *rtt >= record.first_sent.floor_to(TIMESTAMP_TICK)),
    };
    records.filter_map(certain).chain(ack.rtt.filter(|_| !sack))
}

impl Plugin for Envelope {}

impl RtoEstimator for Envelope {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let cwnd = cx.snd.cwnd.whole_segments(cx.snd.smss).0.max(1);
        let mut sampled = false;
        for rtt in samples(cx, ack) {
            self.update(cwnd, rtt);
            sampled = true;
        }
        sampled
    }

    fn on_sample(&mut self, _config: &Tcp, rtt: Duration) {
        self.update(1, rtt);
    }

    fn rto(&self) -> Option<Duration> {
        None
    }

    /// Only before the first sample.
    fn has_timer(&self) -> bool {
        self.ewrtt.is_none()
    }

    fn srtt(&self) -> Option<Duration> {
        self.ewrtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        let mut envelope = Envelope { config: RttEnvelopeConfig::default(), ewrtt: None, decay: (1, 0.995) };
        envelope.update(1, Duration::from_millis(100));
        envelope
    }

    #[test]
    fn a_longer_sample_is_the_envelope() {
        let mut envelope = envelope();
        envelope.update(10, Duration::from_millis(300));
        assert_eq!(envelope.ewrtt, Some(Duration::from_millis(300)));
    }

    #[test]
    fn the_envelope_decays_by_alpha_per_window() {
        for (cwnd, nanos) in [(10, 299_849_661), (1, 298_500_000)] {
            let mut envelope = envelope();
            envelope.update(10, Duration::from_millis(300));
            envelope.update(cwnd, Duration::from_millis(100));
            assert_eq!(envelope.ewrtt, Some(Duration::from_nanos(nanos)));
        }
    }

    #[test]
    fn newtons_method_finds_the_root_in_two_iterations() {
        let close = |a: f64, b: f64| (a - b).abs() < 5e-9;
        assert!(close(root(0.995, 10, 1), 0.9995));
        assert!(close(root(0.995, 10, 2), 0.999_498_87));
        assert!(close(root(0.995, 1, 2), 0.995));
        assert!((1..1000).all(|c| (libm::pow(root(0.995, c, 2), f64::from(c)) - 0.995).abs() < 1e-7));
    }
}
