//! # Blanton and Allman's thresholds: INC, AVG, EWMA
//!
//! Blanton, Allman: On Making TCP More Robust to Packet Reordering. ACM CCR 32(1), 2002; as described in RR-TCP (Zhang,
//! Karp, Floyd, Peterson, ICSI TR-02-006, §3, "DSACK-BL-*") and in the survey of Leung, Li, Yang (§5.2.2).
//!
//! **What it changes.** A fast retransmit that a DSACK proves spurious raises dupthresh (INC, AVG), or moves it (EWMA).
//!
//! **State.** `dup_thresh` (INC, AVG) or `avg` (EWMA), and N for the hole of the last episode: the number of segments
//! that had been SACKed above the hole when it was covered. That many duplicate ACKs would have been needed to
//! distinguish reordering from loss.
//!
//! **Rules.**
//! - 1, when a fast retransmit proves spurious: INC adds K; AVG takes the mean of dupthresh and N, but never lowers
//!   dupthresh.
//! - 2, EWMA: avg moves towards N when a fast retransmit proves spurious, and when a segment that was sent once fills a
//!   hole.
//! - 3: dupthresh is at most 90 % of cwnd, but always at least 3.
//! - 4: each expiry of the retransmission timer resets dupthresh to 3.
//!
//! **Departures.** The window is restored as in `ba-r`. RR-TCP gives K = 1 and rule 3; the survey gives neither. By RR-TCP (§3)
//! only a timeout lowers a threshold; by the survey (§5.2.2) EWMA also falls, as here. For AVG, N follows the survey ("duplicate ACKs
//! required to disambiguate reordering from loss"). The definition in RR-TCP, "duplicate ACKs that caused a false fast
//! retransmit", would be dupthresh itself, and averaging it would have no effect. For EWMA the survey has "the length of
//! perceived reordering events", RR-TCP "duplicate ACKs received at the sender": here it is the same N. AVG and EWMA start at
//! 3, and round up. No source gives the gain of EWMA; here it is 1/4, as for RTTVAR (RFC 6298). The limit of 90 % is
//! applied when the threshold is used, so a small window does not erase what was learned. N counts segments, so that
//! lost ACKs do not reduce it.
//!
//! **Status.** INC is faithful to RR-TCP §3, which gives all rules of its threshold. AVG and EWMA are partial: the sources contradict each
//! other about what AVG averages, and none gives the gain of EWMA. Both decide how fast dupthresh rises.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::{Bytes, Segments, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::episode_sample::EpisodeSample;
use crate::requirement;

/// How the threshold changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// By a constant.
    #[default]
    Inc,
    /// By the mean of the old threshold and N.
    Avg,
    /// By a moving average of N.
    Ewma,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlantonAllmanConfig {
    /// How the threshold changes.
    pub rule: Rule,
    /// K, what INC adds, in segments (RR-TCP §3: one).
    #[schemars(range(min = 0, max = 1000))]
    pub step: Segments,
    /// g, the weight of a new N in EWMA's average.
    pub gain: Share,
    /// The largest threshold, as a share of cwnd (RR-TCP §3).
    pub cap: Share,
}

impl Default for BlantonAllmanConfig {
    fn default() -> BlantonAllmanConfig {
        let share = |value| Share::new(value).unwrap_or_default();
        BlantonAllmanConfig { rule: Rule::Inc, step: Segments(1), gain: share(0.25), cap: share(0.9) }
    }
}

impl Algorithm<dyn DupThresh> for BlantonAllmanConfig {
    fn requirements(&self) -> &'static [requirement::Requirement] {
        &[
            requirement::Requirement::MayExceedWindow,
            requirement::Requirement::Needs(requirement::Need::Sack, "the threshold stays at 3"),
        ]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(BlantonAllman::new(self.clone()))
    }
}

/// The initial and smallest dupthresh (RFC 5681 §3.2).
const DT0: Segments = Segments(3);

#[derive(Clone, Debug)]
struct BlantonAllman {
    config: BlantonAllmanConfig,
    dup_thresh: Segments,
    avg: f64,
    /// N of the episode's hole.
    episode: EpisodeSample<Segments>,
}

impl BlantonAllman {
    fn new(config: BlantonAllmanConfig) -> BlantonAllman {
        BlantonAllman { config, dup_thresh: DT0, avg: f64::from(DT0.0), episode: EpisodeSample::default() }
    }

    /// Rules 1 and 2: a fast retransmit was spurious; `n` duplicate ACKs would have shown it.
    fn learn_from_needless(&mut self, n: Segments) {
        match self.config.rule {
            Rule::Inc => self.dup_thresh += self.config.step,
            Rule::Avg => {
                let mean = Segments((self.dup_thresh + n).0.div_ceil(2));
                self.dup_thresh = self.dup_thresh.max(mean);
            }
            Rule::Ewma => self.average(n),
        }
    }

    /// Rule 2.
    fn average(&mut self, n: Segments) {
        let g = self.config.gain.get();
        self.avg = (1.0 - g) * self.avg + g * f64::from(n.0);
        #[expect(clippy::cast_sign_loss, reason = "a mean of counts")]
        let rounded_up = self.avg.ceil() as u32;
        self.dup_thresh = Segments(rounded_up);
    }

    /// Rule 3.
    fn within(&self, cwnd: Bytes, smss: Bytes) -> Segments {
        #[expect(clippy::cast_sign_loss, reason = "a share of a size")]
        let cap = (self.config.cap.get() * cwnd.0 as f64) as u64;
        self.dup_thresh.min(Bytes(cap).whole_segments(smss)).max(DT0)
    }

    /// Rule 4.
    fn forget(&mut self) {
        self.dup_thresh = DT0;
        self.avg = f64::from(DT0.0);
    }
}

/// N: the segments above `hole` that the receiver already had when this ACK covered it.
fn sacked_above_when_covered(cx: &Context<'_>, ack: &AckFacts<'_>, hole: SegId) -> Segments {
    let first = cx.board.first();
    let covered =
        if hole < first { first.beyond(hole.next()) + cx.board.sacked().segments } else { cx.board.sacked_above(hole) };
    covered - Segments(ack.newly.iter().filter(|id| **id > hole).count() as u32)
}

impl DupThresh for BlantonAllman {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let spurious = self.episode.on_ack(ack, |hole| sacked_above_when_covered(cx, ack, hole));
        if let Some(n) = spurious {
            self.learn_from_needless(n);
        }
        let filled = ack.reordering.map(|event| event.segment);
        let once = filled.filter(|id| cx.board.get(*id).is_some_and(|record| record.transmissions == 1));
        if let Some(hole) = once.filter(|_| self.config.rule == Rule::Ewma) {
            self.average(sacked_above_when_covered(cx, ack, hole));
        }
    }

    fn dup_thresh(&self, cx: &Context<'_>) -> Segments {
        self.within(cx.snd.cwnd, cx.snd.smss)
    }
}

impl Plugin for BlantonAllman {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.episode.on_recovery_event(cx, event);
        if matches!(event, RecoveryEvent::Timeout { .. }) {
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::given::{SMSS, segments};

    /// A policy after each of these N, and its threshold after each.
    fn learned<const LEN: usize>(rule: Rule, ns: [u32; LEN]) -> (BlantonAllman, [u32; LEN]) {
        let mut policy = BlantonAllman::new(BlantonAllmanConfig { rule, ..BlantonAllmanConfig::default() });
        let thresholds = ns.map(|n| {
            policy.learn_from_needless(Segments(n));
            policy.within(segments(50), SMSS).0
        });
        (policy, thresholds)
    }

    #[test]
    fn inc_climbs_by_one() {
        assert_eq!(learned(Rule::Inc, [9; 3]).1, [4, 5, 6]);
        // Survey §5.2.2: 17 of them from 3 to 20.
        assert_eq!(learned(Rule::Inc, [9; 17]).1[16], 20);
    }

    #[test]
    fn a_timeout_resets_the_threshold() {
        for rule in [Rule::Inc, Rule::Avg, Rule::Ewma] {
            let (mut policy, _) = learned(rule, [9, 9]);
            policy.forget();
            assert_eq!(policy.within(segments(50), SMSS), Segments(3));
            // The average is reset too: the next N has the effect of the first.
            policy.learn_from_needless(Segments(9));
            assert_eq!(policy.dup_thresh, learned(rule, [9]).0.dup_thresh);
        }
    }

    #[test]
    fn avg_goes_halfway_and_never_down() {
        assert_eq!(learned(Rule::Avg, [9, 9, 20, 4]).1, [6, 8, 14, 14]);
    }

    #[test]
    fn ewma_follows_n_by_a_quarter() {
        let (policy, thresholds) = learned(Rule::Ewma, [8, 8, 4, 12]);
        assert_eq!(thresholds, [5, 6, 5, 7]);
        assert!((policy.avg - 6.667_968_75).abs() < 1e-12);
    }

    #[test]
    fn the_window_limits_the_threshold_in_use_but_not_the_learned_one() {
        let (policy, _) = learned(Rule::Inc, [9; 17]);
        let used = [10, 40, 3].map(|cwnd| policy.within(segments(cwnd), SMSS).0);
        assert_eq!(used, [9, 20, 3]);
    }

    #[test]
    fn a_hole_filled_by_two_duplicates_lowers_the_average() {
        let (policy, thresholds) = learned(Rule::Ewma, [2]);
        assert!((policy.avg - 2.75).abs() < 1e-12);
        assert_eq!(thresholds, [3]);
    }
}
