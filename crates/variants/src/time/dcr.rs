//! # TCP-DCR
//!
//! Bhandarkar, Reddy: TCP-DCR: Making TCP Robust to Non-Congestion Events. NETWORKING 2004; as described in the survey
//! of Leung, Li and Yang (IEEE TPDS 2007), §6.1.4, and in RFC 4653 §1 and §2, which builds on it.
//!
//! **What it changes.** Duplicate ACKs are not counted. The first one starts a timer, and the segment is marked lost
//! only if the hole is still open after τ, one round trip. Until then each duplicate ACK releases a new segment.
//!
//! **State.** The first hole and when its wait ends. The record of a hole holds the time of the first duplicate ACK
//! above it.
//!
//! **Rules.**
//! - 1: the first duplicate ACK starts the wait of τ.
//! - 2: each newly SACKed segment releases a new one (`every-sack`).
//! - 3: if SND.UNA passes the hole, nothing was lost. The wait of the next hole began with its own first duplicate ACK.
//! - 4: when the wait ends, fast retransmit follows, and the window is reduced from the FlightSize before the first
//!   duplicate ACK. During recovery RFC 6675 decides about the other holes (`sacked-above`).
//! - 5: a timeout ends every wait.
//!
//! **Departures.** By the survey, each duplicate ACK releases a segment; rule 2 counts what they SACK, which is the same unless
//! ACKs are lost or reordered. It stops when FlightSize reaches two windows. A segment that was retransmitted in an earlier
//! episode waits from its last transmission. Without an SRTT, RFC 6675 applies; without SACK, the variant recovers as
//! NewReno. Rule 4 does not store a FlightSize: the engine's FlightSize, without what limited transmit added, is the
//! same. `before_timeout`, which is off, ends the wait one round trip before the retransmission timer expires. No source
//! has that rule: with an RTO of less than two round trips it turns the wait off.
//!
//! **Limits.** If a drop-tail queue is full, rule 2 keeps it full. Retransmissions at the end of the wait add to it and
//! are often dropped, and the timer has to repair the loss.
//!
//! **Status.** Partial: τ, its start and rule 2 are in the survey. It does not say what happens to the holes after the
//! first (rules 3 and 4), nor how far rule 2 may exceed the window. Both matter: with several late segments in a window,
//! and when the receive buffer is small.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{LossDetector, LossDetectorTraits, LossReason, Plugin, Seam, Verdicts};
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::reno::in_episode;
use crate::base::sack::{self, SackedAbove};
use crate::requirement::{NEEDS_SACK, Requirement};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DelayedResponseConfig {
    /// τ, how long the congestion response is delayed, in smoothed round-trip times (survey §6.1.4: one).
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub tau: f64,
    /// End the wait one round trip before the retransmission timer expires, so that the retransmission can be
    /// acknowledged in time. In no source.
    pub before_timeout: bool,
}

impl Default for DelayedResponseConfig {
    fn default() -> DelayedResponseConfig {
        DelayedResponseConfig { tau: 1.0, before_timeout: false }
    }
}

impl Algorithm<dyn LossDetector> for DelayedResponseConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::DupThresh, &["fixed"]), Requirement::Waits, NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        let sacked_above = SackedAbove::new(sack::SackedAboveConfig::default());
        Box::new(DelayedResponse { config: self.clone(), sacked_above, wait: None })
    }
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    hole: SegId,
    until: Instant,
    /// The hole was already judged lost.
    told: bool,
}

#[derive(Clone, Debug)]
struct DelayedResponse {
    config: DelayedResponseConfig,
    /// Examines all holes of an episode but the first.
    sacked_above: SackedAbove,
    wait: Option<Wait>,
}

impl DelayedResponse {
    /// Rules 1 and 3: the first hole waits, whichever it is.
    fn watch_first_hole(&mut self, cx: &Context<'_>, srtt: Duration) {
        let hole = cx.board.first();
        let has_sacked = cx.board.sacked().segments > Segments::ZERO;
        let Some(since) = overtaken(cx, hole).filter(|_| has_sacked) else {
            self.wait = None;
            return;
        };
        if self.wait.is_none_or(|wait| wait.hole != hole) {
            self.wait = Some(Wait { hole, until: since + self.tau(cx, srtt), told: false });
        }
    }

    /// τ, with `before_timeout` shortened if necessary.
    fn tau(&self, cx: &Context<'_>, srtt: Duration) -> Duration {
        let tau = srtt.mul_f64(self.config.tau);
        if !self.config.before_timeout {
            return tau;
        }
        let until_timeout = cx.snd.rto_expires.since(cx.now);
        tau.min(until_timeout.saturating_sub(srtt))
    }

    /// Rule 4.
    fn judge(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if let Some(wait) = self.wait.as_mut().filter(|wait| wait.until <= cx.now) {
            wait.told = true;
            if cx.now < cx.snd.postponed_until {
                return; // saves examining the window on every ACK
            }
            self.sacked_above.begin(cx, LossReason::Deadline, verdicts);
        }
    }
}

/// When the first duplicate ACK showed that the latest transmission of a hole was overtaken.
fn overtaken(cx: &Context<'_>, hole: SegId) -> Option<Instant> {
    let record = cx.board.get(hole).filter(|record| record.is_open())?;
    cx.board.first_above(hole).map(|above| above.max(record.last_sent))
}

impl LossDetector for DelayedResponse {
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits { retransmits_on_suspicion: true, ..LossDetectorTraits::default() }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        match (cx.snd.phase, cx.snd.srtt) {
            (Phase::Disorder, Some(srtt)) => {
                self.watch_first_hole(cx, srtt);
                self.judge(cx, verdicts);
            }
            (Phase::Open | Phase::Loss, _) => self.wait = None,
            (Phase::Recovery, _) | (Phase::Disorder, None) => self.sacked_above.on_ack(cx, ack, verdicts),
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if cx.snd.srtt.is_none() {
            self.sacked_above.on_timer(cx, verdicts);
        } else if !in_episode(cx) {
            self.judge(cx, verdicts);
        }
    }

    fn deadline(&self) -> Instant {
        self.wait.filter(|wait| !wait.told).map_or(Instant::NEVER, |wait| wait.until)
    }
}

impl Plugin for DelayedResponse {
    /// Rule 5; other changes of the phase also end the wait.
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.wait = None;
        self.sacked_above.on_recovery_event(cx, event);
    }
}
