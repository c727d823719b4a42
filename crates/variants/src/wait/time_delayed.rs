//! # Time-delayed fast retransmit: TIMEDEL, TIMEINC
//!
//! Blanton, Allman: On Making TCP More Robust to Packet Reordering. ACM CCR 32(1), 2002; as described in RR-TCP (Zhang,
//! Karp, Floyd, Peterson, ICSI TR-02-006, §3) and in the survey of Leung, Li, Yang (§6.1.3).
//!
//! **What it changes.** After three duplicate ACKs the sender waits, and retransmits only if the hole is still open.
//! The delay grows with each fast retransmit that a DSACK proves spurious.
//!
//! **State.** `delay`; and for the hole of the last episode, the time from the first duplicate ACK to the ACK that
//! covered it.
//!
//! **Rules.**
//! - 1: when the threshold is reached, the sender waits for `delay`, at most half of SRTT. Without a delay or an SRTT
//!   there is no wait.
//! - 2: an ACK for the hole ends the wait; a new hole starts a new one.
//! - 3: otherwise fast retransmit follows.
//! - 4: a timeout ends the wait and changes nothing else.
//! - 5, when a fast retransmit proves spurious: TIMEDEL sets `delay` to the time that the hole was open, if that is
//!   longer; TIMEINC adds 10 ms. `delay` grows to at most half of SRTT and is never reduced.
//!
//! The survey (§6.1.3) calls TIMEINC "Blanton-Allman:DEL"; it has no limit there, and may be reset at timeouts.
//!
//! **Departures.** The window is restored as in `ba-r`. New data is sent during the wait, by the limited transmit of `ba-r`. So the survey's Table 2 has it, too; its
//! §7.3 says that of all algorithms that postpone the response only TCP-DCR sends then. If SRTT becomes smaller, `delay` is kept, and only the wait is limited.
//!
//! **Status.** Faithful to RR-TCP §3, which gives the step, the limit and what is measured.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_tcp::seams::{Plugin, Postponement, RecoveryEntry};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;

use crate::algorithm::Algorithm;
use crate::base::episode_sample::EpisodeSample;
use crate::requirement::Requirement;

/// How the delay grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Growth {
    /// To the time from the first duplicate ACK to the ACK for the late segment.
    #[default]
    Measured,
    /// By a constant.
    Step,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeDelayedConfig {
    /// How the delay grows.
    pub growth: Growth,
    /// What TIMEINC adds (RR-TCP §3: 10 ms).
    pub step: Duration,
    /// The delay is at most SRTT divided by this (RR-TCP §3: 2).
    #[schemars(range(min = 1, max = 1000))]
    pub srtt_divisor: NonZeroU64,
}

impl Default for TimeDelayedConfig {
    fn default() -> TimeDelayedConfig {
        let srtt_divisor = NonZeroU64::MIN.saturating_add(1);
        TimeDelayedConfig { growth: Growth::Measured, step: Duration::from_millis(10), srtt_divisor }
    }
}

impl Algorithm<dyn Postponement> for TimeDelayedConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Waits]
    }

    fn build(&self) -> Box<dyn Postponement> {
        Box::new(TimeDelayed::new(self.clone()))
    }
}

#[derive(Clone, Debug)]
struct TimeDelayed {
    config: TimeDelayedConfig,
    delay: Duration,
    /// The time from the first duplicate ACK above the hole to the ACK that covered it.
    episode: EpisodeSample<Duration>,
}

impl TimeDelayed {
    fn new(config: TimeDelayedConfig) -> TimeDelayed {
        TimeDelayed { config, delay: Duration::ZERO, episode: EpisodeSample::default() }
    }

    fn limit(&self, srtt: Option<Duration>) -> Duration {
        srtt.unwrap_or(Duration::ZERO) / self.config.srtt_divisor.get()
    }

    /// Rule 1.
    fn wait(&self, srtt: Option<Duration>) -> Duration {
        self.delay.min(self.limit(srtt))
    }

    /// Rule 5.
    fn learn_from_needless(&mut self, took: Duration, srtt: Option<Duration>) {
        let wanted = match self.config.growth {
            Growth::Measured => took,
            Growth::Step => self.delay + self.config.step,
        };
        self.delay = self.delay.max(wanted.min(self.limit(srtt)));
    }
}

impl Postponement for TimeDelayed {
    fn may_enter(&mut self, cx: &Context<'_>, _hole: SegId) -> RecoveryEntry {
        let wait = self.wait(cx.snd.srtt);
        if wait.is_zero() { RecoveryEntry::Now } else { RecoveryEntry::At(cx.now + wait) }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let took = |hole| {
            let delivered = cx.board.get(hole).and_then(SegmentRecord::delivered);
            let waited = delivered.zip(cx.board.first_above(hole));
            waited.map_or(Duration::ZERO, |(delivered, above)| delivered.since(above))
        };
        let spurious = self.episode.on_ack(ack, took);
        if let Some(took) = spurious {
            self.learn_from_needless(took, cx.snd.srtt);
        }
    }
}

impl Plugin for TimeDelayed {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.episode.on_recovery_event(cx, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn after(growth: Growth, took: &[u64]) -> TimeDelayed {
        let mut delayed = TimeDelayed::new(TimeDelayedConfig { growth, ..TimeDelayedConfig::default() });
        for ms in took {
            delayed.learn_from_needless(MS(*ms), Some(MS(200)));
        }
        delayed
    }

    #[test]
    fn half_of_srtt_limits_the_wait_but_not_the_learned_delay() {
        let delayed = after(Growth::Measured, &[28]);
        assert_eq!(delayed.wait(Some(MS(40))), MS(20));
        assert_eq!(delayed.wait(Some(MS(200))), MS(28));
        assert_eq!(delayed.wait(None), Duration::ZERO);
    }

    #[test]
    fn the_delay_is_never_reduced() {
        let mut delayed = after(Growth::Measured, &[28, 15]);
        assert_eq!(delayed.delay, MS(28));
        delayed.learn_from_needless(MS(60), Some(MS(40)));
        assert_eq!(delayed.delay, MS(28));
    }

    #[test]
    fn steps_add_up_to_half_of_srtt() {
        assert_eq!(after(Growth::Step, &[28, 15]).delay, MS(20));
        assert_eq!(after(Growth::Step, &[1; 30]).delay, MS(100));
    }
}
