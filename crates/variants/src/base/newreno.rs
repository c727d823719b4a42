//! # NewReno
//!
//! Henderson, Floyd, Gurtov, Nishida: The NewReno Modification to TCP's Fast Recovery Algorithm. RFC 6582, 2012.
//!
//! **What it changes.** Fast recovery of Reno, without SACK. A partial ACK shows that the next segment was lost too, so
//! that segment is retransmitted at once. Recovery continues until everything that was outstanding at its start
//! (`recover`) is acknowledged.
//!
//! **Rules** (§3.2).
//! - 2: fast retransmit follows the dupthresh-th duplicate ACK, if that ACK covers more than `recover`.
//! - 3: each further duplicate ACK adds a segment to cwnd.
//! - 4: a full ACK ends recovery with `min(ssthresh, max(FlightSize, SMSS) + SMSS)`. A partial ACK causes a
//!   retransmission, deflates cwnd by the amount acknowledged and adds one segment back; only the first one restarts
//!   the timer (the "Impatient" variant).
//! - 5: after a timeout there is no fast retransmit until `recover` is acknowledged.
//!
//! **Departures.** At the start of recovery cwnd is `ssthresh + duplicates` instead of `ssthresh + 3`, for thresholds
//! other than 3 (survey §1.2; Laor and Gendel).
//!
//! **ns-2.** This is `Agent/TCP/Newreno`.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, Phase};
use reknit_tcp::seams::{FastRecovery, LossDetector, LossReason, Plugin, SenderPlugins, Verdicts};
use reknit_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::reno::{in_episode, inflated};
use crate::base::rfc6298;

/// Replaces SACK-based detection and recovery if the peer does not support SACK.
pub(crate) fn without_sack(plugins: &mut SenderPlugins) {
    plugins.loss_detector = PartialAcksConfig {}.build();
    recovery_without_sack(plugins);
}

/// The same for a variant whose estimator has no timer, because its detector has one.
pub(crate) fn with_its_timer(plugins: &mut SenderPlugins) {
    without_sack(plugins);
    plugins.rto_estimator = rfc6298::Rfc6298Config::default().build();
}

/// Replaces only the recovery, for a detector that works without SACK.
pub(crate) fn recovery_without_sack(plugins: &mut SenderPlugins) {
    plugins.fast_recovery = DeflateConfig {}.build();
}

/// Parameters of the detector: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PartialAcksConfig {}

impl Algorithm<dyn LossDetector> for PartialAcksConfig {
    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(PartialAcks)
    }
}

/// Detects losses by duplicate ACKs, and by partial ACKs in recovery.
#[derive(Clone, Debug)]
struct PartialAcks;

impl PartialAcks {
    /// §3.2 step 2.
    fn enough_duplicates(cx: &Context<'_>) -> bool {
        cx.snd.dup_acks >= cx.snd.dup_thresh && cx.snd.snd_una > cx.snd.recover
    }
}

impl Plugin for PartialAcks {}

impl LossDetector for PartialAcks {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        if cx.snd.phase == Phase::Recovery && ack.advances() {
            verdicts.lost(cx.board.first(), LossReason::PartialAck);
        } else if !in_episode(cx) && ack.duplicate && PartialAcks::enough_duplicates(cx) {
            verdicts.lost(cx.board.first(), LossReason::Duplicates);
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if !in_episode(cx) && PartialAcks::enough_duplicates(cx) && !cx.board.is_empty() {
            verdicts.lost(cx.board.first(), LossReason::Duplicates);
        }
    }
}

/// Parameters of the recovery: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeflateConfig {}

impl Algorithm<dyn FastRecovery> for DeflateConfig {
    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Deflate { timer_restarted: false })
    }
}

#[derive(Clone, Debug)]
struct Deflate {
    timer_restarted: bool,
}

impl Plugin for Deflate {}

impl FastRecovery for Deflate {
    fn enter(&mut self, cx: &Context<'_>, _ack: Option<&AckFacts<'_>>) -> Bytes {
        self.timer_restarted = false;
        inflated(cx, cx.snd.dup_acks)
    }

    /// §3.2 step 3 and the partial ACK of step 4.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let smss = cx.snd.smss;
        if ack.duplicate {
            cx.snd.cwnd + smss
        } else if ack.advances() {
            let deflated = cx.snd.cwnd - ack.advance();
            (if ack.advance() >= smss { deflated + smss } else { deflated }).max(smss)
        } else {
            cx.snd.cwnd
        }
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - cx.snd.flight_size()
    }

    /// §3.2 step 4, a full ACK, option (1).
    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.recovery_window.min(cx.snd.flight_size().max(cx.snd.smss) + cx.snd.smss)
    }

    fn restarts_timer(&mut self) -> bool {
        !std::mem::replace(&mut self.timer_restarted, true)
    }
}
