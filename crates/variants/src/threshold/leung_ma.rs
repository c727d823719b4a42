//! # Leung-Ma
//!
//! Leung, Ma: Enhancing TCP Performance to Persistent Packet Reordering. Journal of Communications and Networks 7(3),
//! 2005; as described in the survey of Leung, Li, Yang (§5.2.4).
//!
//! **What it changes.** Extends the algorithms of Blanton and Allman, with their limited transmit and their slow start
//! back to the old window (`ba-r`): dupthresh is a moving average of reordering lengths plus a multiple of their mean
//! deviation, but small enough to repair a lost segment before the retransmission timer expires.
//!
//! **State.** `avg` and `mdev`; the length of the hole of the last episode.
//!
//! **Rules.**
//! - 1: a length x is measured when a segment that was sent once arrives late, or when a fast retransmit proves
//!   spurious (the length at the first delivery). The first x sets avg. Each later one moves mdev towards |avg - x|,
//!   and then avg towards x.
//! - 2: dupthresh is avg + lambda mdev, rounded up. It is at least 3, and at most each of: cwnd (kappa RTO / SRTT -
//!   `round_trips`); two windows less one segment, the most duplicate ACKs that the window and limited transmit can cause;
//!   `max_dup_thresh`. The first limit follows from the timer: an ACK for the retransmitted segment must arrive before it expires. The duplicate ACKs
//!   take dupthresh / cwnd of an RTT, and the retransmission one RTT. The ACK before the lost segment restarted the
//!   timer, so the round trip of that segment does not count.
//! - 3: on the first expiry of the timer avg is halved and mdev is divided by four. Later expiries in a series are not
//!   caused by the threshold.
//!
//! **Departures.** The survey gives no constants. The gains of 1/8 and 1/4 and the factor 4 are those of RFC 6298, whose
//! estimator the algorithm copies. `leung-ma-port` has the constants of an implementation by others: both gains and the
//! factor 0.3, 0.7 of the RTO, and room for two round trips. With these the threshold is close to the average, so about
//! every second late segment is still retransmitted; and if RTO is less than 2.9 round trips, the threshold is 3. The
//! factors of rule 3 are of that implementation, too. The limits are applied when the threshold is used. The
//! limits by the window and by `max_dup_thresh`, and that only the first expiry of a series counts, are ours: the survey has
//! the limit by the timer only, and does not distinguish expiries. In-order arrivals never lower the threshold.
//!
//! **Status.** Partial: the survey, the only source, names the average, the deviation, the limit by the timer and an
//! exponential decrease at timeouts, but not the gains, the factor of the deviation, the terms of the limit or the factor
//! of the decrease. All of them change the threshold: see Departures.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::{Segments, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::episode_sample::EpisodeSample;
use crate::requirement::{Need, Requirement};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LeungMaConfig {
    /// g, the weight of a new length in the average.
    pub gain: Share,
    /// The weight of a new length in the mean deviation.
    pub deviation_gain: Share,
    /// The factor of the mean deviation that is added to the average.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub lambda: f64,
    /// The share of the retransmission timeout within which a retransmission must be acknowledged.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub kappa: f64,
    /// Round trips that must fit into that time too, in SRTT: one, that of the retransmission.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub round_trips: f64,
    /// The largest threshold, in segments.
    #[schemars(range(min = 3, max = 1000))]
    pub max_dup_thresh: Segments,
}

impl Default for LeungMaConfig {
    fn default() -> LeungMaConfig {
        LeungMaConfig {
            gain: share(0.125),
            deviation_gain: share(0.25),
            lambda: 4.0,
            kappa: 1.0,
            round_trips: 1.0,
            max_dup_thresh: Segments(64),
        }
    }
}

impl LeungMaConfig {
    /// The constants of an implementation by others.
    pub fn port() -> LeungMaConfig {
        let gain = share(0.3);
        LeungMaConfig {
            gain,
            deviation_gain: gain,
            lambda: 0.3,
            kappa: 0.7,
            round_trips: 2.0,
            ..LeungMaConfig::default()
        }
    }
}

fn share(value: f64) -> Share {
    Share::new(value).unwrap_or_default()
}

impl Algorithm<dyn DupThresh> for LeungMaConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::MayExceedWindow, Requirement::Needs(Need::Sack, "the threshold stays at 3")]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(LeungMa { config: self.clone(), lengths: None, episode: EpisodeSample::default() })
    }
}

const MIN_DUP_THRESH: Segments = Segments(3);
/// The tolerance for rounding errors in floating-point arithmetic.
const EPSILON: f64 = 1e-9;

#[derive(Clone, Copy, Debug)]
struct Lengths {
    avg: f64,
    mdev: f64,
}

#[derive(Clone, Debug)]
struct LeungMa {
    config: LeungMaConfig,
    /// `None` before the first event.
    lengths: Option<Lengths>,
    /// The length of the hole of the episode at its first delivery, if the ACK shows it.
    episode: EpisodeSample<Option<Segments>>,
}

impl LeungMa {
    /// Rule 1.
    fn learn(&mut self, length: Segments) {
        let (x, g, h) = (f64::from(length.0), self.config.gain.get(), self.config.deviation_gain.get());
        self.lengths = Some(match self.lengths {
            None => Lengths { avg: x, mdev: 0.0 },
            Some(Lengths { avg, mdev }) => {
                Lengths { mdev: h * (avg - x).abs() + (1.0 - h) * mdev, avg: g * x + (1.0 - g) * avg }
            }
        });
    }

    /// Rule 2 without its limits.
    fn unbounded(&self) -> f64 {
        self.lengths.map_or(0.0, |Lengths { avg, mdev }| (avg + self.config.lambda * mdev - EPSILON).ceil())
    }

    /// Rule 2: how many duplicate ACKs fit into the time before the timer expires; `cwnd` is in segments.
    fn timer_bound(&self, cwnd: f64, rto_in_srtt: Option<f64>) -> f64 {
        let bound = |ratio: f64| (cwnd * (self.config.kappa * ratio - self.config.round_trips) + EPSILON).floor();
        rto_in_srtt.map_or(f64::INFINITY, bound)
    }

    /// Rule 2: how many duplicate ACKs the window and limited transmit can cause. The lost segment causes none, but each
    /// of the first two duplicate ACKs another one, and each further one half of another.
    fn window_bound(cwnd: f64) -> f64 {
        2.0 * (cwnd + EPSILON).floor() - 1.0
    }

    /// Rule 2.
    fn threshold(&self, cwnd: f64, rto_in_srtt: Option<f64>) -> Segments {
        let largest = f64::from(self.config.max_dup_thresh.0);
        let limits = self.timer_bound(cwnd, rto_in_srtt).min(LeungMa::window_bound(cwnd)).min(largest);
        #[expect(clippy::cast_sign_loss, reason = "a float cast saturates: negative values become zero")]
        let limited = self.unbounded().min(limits) as u32;
        Segments(limited).max(MIN_DUP_THRESH)
    }

    /// Rule 3.
    fn shrink(&mut self) {
        if let Some(Lengths { avg, mdev }) = &mut self.lengths {
            *avg /= 2.0;
            *mdev /= 4.0;
        }
    }
}

impl DupThresh for LeungMa {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        // An ACK that covers more than the hole shows no length: an earlier ACK was lost or overtaken.
        let spurious = self.episode.on_ack(ack, |hole| match ack.newly {
            [_] => ack.highest.map(|highest| highest.beyond(hole)),
            _ => None,
        });
        if let Some(length) = spurious.flatten() {
            self.learn(length);
        }
        let sent_once = |id| cx.board.get(id).is_some_and(|record| record.transmissions == 1);
        if let Some(event) = ack.reordering.filter(|event| sent_once(event.segment)) {
            self.learn(event.length);
        }
    }

    fn dup_thresh(&self, cx: &Context<'_>) -> Segments {
        let cwnd = cx.snd.cwnd.0 as f64 / cx.snd.smss.0 as f64;
        self.threshold(cwnd, cx.snd.srtt.map(|srtt| cx.snd.rto.as_secs_f64() / srtt.as_secs_f64()))
    }
}

impl Plugin for LeungMa {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.episode.on_recovery_event(cx, event);
        if matches!(event, RecoveryEvent::Timeout { first: true, .. }) {
            self.shrink();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(config: LeungMaConfig, lengths: &[u32]) -> LeungMa {
        let mut policy = LeungMa { config, lengths: None, episode: EpisodeSample::default() };
        for length in lengths {
            policy.learn(Segments(*length));
        }
        policy
    }

    fn with_lengths(avg: f64, mdev: f64) -> LeungMa {
        LeungMa { lengths: Some(Lengths { avg, mdev }), ..after(LeungMaConfig::port(), &[]) }
    }

    /// The threshold in a window of 50 segments, with an RTO of ten round trips.
    fn wide(policy: &LeungMa) -> u32 {
        policy.threshold(50.0, Some(10.0)).0
    }

    fn is_close(policy: &LeungMa, avg: f64, mdev: f64) -> bool {
        policy.lengths.is_some_and(|l| (l.avg - avg).abs() < 1e-12 && (l.mdev - mdev).abs() < 1e-12)
    }

    #[test]
    fn average_and_deviation() {
        let lengths = [10, 20, 5];
        let thresholds = [1, 2, 3].map(|n| wide(&after(LeungMaConfig::port(), &lengths[..n])));
        assert_eq!(thresholds, [10, 14, 12]);
        assert!(is_close(&after(LeungMaConfig::port(), &lengths[..2]), 13.0, 3.0));
        assert!(is_close(&after(LeungMaConfig::port(), &lengths), 10.6, 4.5));
        let whole = LeungMaConfig { lambda: 1.0, ..LeungMaConfig::port() };
        assert_eq!([1, 2, 3].map(|n| wide(&after(whole.clone(), &lengths[..n]))), [10, 16, 16]);
    }

    #[test]
    fn average_and_four_deviations() {
        let lengths = [10, 20, 5];
        assert!(is_close(&after(LeungMaConfig::default(), &lengths[..2]), 11.25, 2.5));
        assert!(is_close(&after(LeungMaConfig::default(), &lengths), 10.468_75, 3.4375));
        let thresholds = [1, 2, 3].map(|n| wide(&after(LeungMaConfig::default(), &lengths[..n])));
        assert_eq!(thresholds, [10, 22, 25]);
    }

    #[test]
    fn before_the_first_event_the_threshold_is_three() {
        assert_eq!(wide(&after(LeungMaConfig::default(), &[])), 3);
    }

    #[test]
    fn the_timer_bounds_the_threshold() {
        let seconds = [0.1, 0.2, 0.4, 0.8];
        for (config, bounds, thresholds) in [
            (LeungMaConfig::port(), [100.0, 30.0, -5.0, -23.0], [30, 30, 3, 3]),
            (LeungMaConfig::default(), [180.0, 80.0, 30.0, 5.0], [30, 30, 30, 5]),
        ] {
            let policy = LeungMa { config, ..with_lengths(30.0, 0.0) };
            for (srtt, should) in seconds.into_iter().zip(bounds) {
                let is = policy.timer_bound(20.0, Some(1.0 / srtt));
                assert!((is - should).abs() < 1e-12, "{is} for {should}");
            }
            assert_eq!(seconds.map(|srtt| policy.threshold(20.0, Some(1.0 / srtt)).0), thresholds);
        }
    }

    #[test]
    fn the_largest_threshold_bounds_the_threshold() {
        let long = |max_dup_thresh| LeungMa {
            config: LeungMaConfig { max_dup_thresh: Segments(max_dup_thresh), ..LeungMaConfig::default() },
            ..with_lengths(90.0, 0.0)
        };
        for (max_dup_thresh, cwnd, dup_thresh) in [(64, 50.0, 64), (500, 50.0, 90), (500, 40.0, 79), (10, 50.0, 10)] {
            assert_eq!(long(max_dup_thresh).threshold(cwnd, None), Segments(dup_thresh));
        }
    }

    #[test]
    fn a_timeout_halves_and_quarters() {
        let mut policy = with_lengths(10.6, 4.5);
        policy.shrink();
        assert!(is_close(&policy, 5.3, 1.125));
        assert_eq!(wide(&policy), 6);
    }

    #[test]
    fn the_window_bounds_the_threshold() {
        let policy = with_lengths(13.0, 3.0);
        assert_eq!(policy.threshold(5.0, Some(10.0)), Segments(9));
        assert_eq!(wide(&policy), 14);
    }
}
