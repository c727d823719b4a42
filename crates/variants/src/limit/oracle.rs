//! # Oracle
//!
//! The oracle is a reference, not an algorithm: it shows roughly what a sender could reach on a path that reorders if it
//! knew what happened to each packet. Only the simulator knows that, so these variants run only in simulations. It bounds
//! only senders whose window grows in the same way and is reduced for each loss, and even these not strictly: on paths with
//! random loss, one that leaves slow start later can be faster. BBR, which hardly responds to random loss, can be several
//! times as fast there as `oracle`.
//!
//! **What it changes.** The sender does not infer losses. The simulator reports each lost packet at the time when its
//! acknowledgment would have arrived: one smoothed round-trip time after it was sent. Duplicate ACKs and time since
//! transmission do not mark segments lost, and there is no retransmission timer.
//!
//! **State.** When to probe if no ACKs arrive, how many probes have not been answered, and when recovery began.
//!
//! **Rules.**
//! - A loss outside recovery reduces the window and begins recovery with PRR. Recovery ends, and growth resumes, when
//!   everything that was outstanding at that time has been acknowledged, so each window of data causes at most one
//!   reduction.
//! - A loss in recovery is retransmitted. If the segment was sent more than a round trip after the reduction, the
//!   reduction was not enough, and the loss causes another one. Otherwise the window would stay too large, and every
//!   retransmission of the first hole would be dropped by a full queue.
//! - The window grows by the bytes delivered, including SACKed ones, and limits the pipe.
//! - Growth and reduction are those of CUBIC (`oracle`) or Reno (`oracle-reno`). With `oracle-bbr` and `oracle-bbr1`, a
//!   model of the path sets the window and the rate (`bbr`, `bbr1`), and is told about each loss.
//! - After two round trips without an ACK a probe is sent, like a tail loss probe, because the ACKs may have been lost.
//!
//! **Departures.** Timestamps are not offered. With them, a retransmission that fills the first hole would make the
//! receiver discard late originals (PAWS, RFC 7323 §5), which would then have to be retransmitted.
//!
//! **Status.** Original.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent};
use reknit_tcp::scoreboard::{SegId, SendReason};
use reknit_tcp::seams::{LossDetector, LossDetectorTraits, LossReason, Plugin, Seam, Verdicts};
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::silence::Silence;
use crate::requirement::Requirement;

/// Parameters of the detector: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OracleConfig {}

impl Algorithm<dyn LossDetector> for OracleConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::Postponement, &[])]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Oracle { silence: Silence::new(), recovery_began: Instant::NEVER })
    }
}

#[derive(Clone, Debug)]
struct Oracle {
    silence: Silence,
    recovery_began: Instant,
}

/// How long to wait before a probe.
fn silence(cx: &Context<'_>) -> Duration {
    cx.snd.srtt.unwrap_or(cx.config.initial_rto) * 2
}

impl Plugin for Oracle {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        if event == RecoveryEvent::EnterRecovery {
            self.recovery_began = cx.now;
        }
    }
}

impl LossDetector for Oracle {
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits { needs_loss_reports: true, ..LossDetectorTraits::default() }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, _verdicts: &mut Verdicts) {
        self.silence.on_ack(cx, !ack.newly.is_empty(), silence(cx));
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if self.silence.on_timer(cx, silence(cx)).is_some() {
            verdicts.probe();
        }
    }

    fn deadline(&self) -> Instant {
        self.silence.deadline()
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: SendReason) {
        self.silence.on_sent(cx, silence(cx));
    }

    fn on_loss_report(&mut self, cx: &Context<'_>, id: SegId, verdicts: &mut Verdicts) {
        let answered_until = self.recovery_began + cx.snd.srtt.unwrap_or_default();
        let is_new = cx.board.get(id).is_some_and(|record| record.last_sent > answered_until);
        if cx.snd.phase == Phase::Recovery && is_new {
            verdicts.event(id);
        }
        verdicts.lost(id, LossReason::Reported);
    }
}
