//! # Reno
//!
//! Jacobson 1990; RFC 2581 (Allman, Paxson, Stevens, 1999); RFC 5681 §3.2.
//!
//! **What it changes.** Nothing: this was the TCP of most systems before SACK. The papers compare with it. The first
//! partial ACK ends recovery, so two losses in one window halve the window twice, and three can stall the sender until the
//! timer expires (Laor and Gendel, "High Reorder and Drop Rate Effects").
//!
//! **Rules.** The dupthresh-th duplicate ACK retransmits the first segment and sets `cwnd = ssthresh + duplicates`,
//! where `duplicates` is the number of duplicate ACKs received (3 in the RFC). Each further duplicate ACK adds a
//! segment. Any ACK that advances SND.UNA ends recovery with `cwnd = ssthresh`.
//!
//! **Departures.** At cwnd = ssthresh congestion avoidance is used; Laor and Gendel have slow start there, which RFC 5681 allows,
//! too. Without `bug_fix` (RFC 2581), duplicate ACKs for a second loss in the same window start a second
//! recovery, also after a timeout. With it (`bugFix_` in ns-2, RFC 2582), they do so only after everything outstanding
//! at the first recovery has been acknowledged.
//!
//! **ns-2.** This is `Agent/TCP/Reno`.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, Phase};
use reknit_tcp::seams::{FastRecovery, LossDetector, LossReason, Plugin, Verdicts};
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters of the detector.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CountedDuplicatesConfig {
    /// No second fast retransmit until everything outstanding at the first one has been acknowledged.
    pub bug_fix: bool,
}

impl Algorithm<dyn LossDetector> for CountedDuplicatesConfig {
    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Duplicates { config: self.clone() })
    }
}

/// Counts duplicate ACKs.
#[derive(Clone, Debug)]
struct Duplicates {
    config: CountedDuplicatesConfig,
}

impl Plugin for Duplicates {}

impl LossDetector for Duplicates {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let enough = ack.duplicate && cx.snd.dup_acks >= cx.snd.dup_thresh;
        let allowed = !self.config.bug_fix || cx.snd.snd_una > cx.snd.recover;
        if enough && allowed && cx.snd.phase != Phase::Recovery {
            verdicts.lost(cx.board.first(), LossReason::Duplicates);
            verdicts.event(cx.board.first()); // after a timeout too
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if !in_episode(cx) && cx.snd.dup_acks >= cx.snd.dup_thresh && !cx.board.is_empty() {
            verdicts.lost(cx.board.first(), LossReason::Duplicates);
        }
    }
}

/// True in fast recovery and after a timeout.
pub(crate) fn in_episode(cx: &Context<'_>) -> bool {
    matches!(cx.snd.phase, Phase::Recovery | Phase::Loss)
}

/// Parameters of the recovery: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InflateConfig {}

impl Algorithm<dyn FastRecovery> for InflateConfig {
    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Inflate)
    }
}

#[derive(Clone, Debug)]
struct Inflate;

/// The window inflated by duplicate ACKs: each one shows that a segment has left the network.
pub(crate) fn inflated(cx: &Context<'_>, duplicates: Segments) -> Bytes {
    cx.snd.recovery_window + duplicates.of(cx.snd.smss)
}

impl Plugin for Inflate {}

impl FastRecovery for Inflate {
    fn enter(&mut self, cx: &Context<'_>, _ack: Option<&AckFacts<'_>>) -> Bytes {
        inflated(cx, cx.snd.dup_acks)
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        if ack.duplicate { cx.snd.cwnd + cx.snd.smss } else { cx.snd.cwnd }
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - cx.snd.flight_size()
    }

    fn is_over(&self, _cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        ack.advances()
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.recovery_window
    }
}
