//! What Linux sends after a timeout: retransmissions in slow start, with F-RTO to detect a spurious timeout (Sarolahti,
//! Kojo, Yamamoto, Hata, RFC 5682, 2009, §3, the algorithm for SACK).
//!
//! **Rules.**
//! - 1: when the timer expires, the first segment is marked lost, and every segment that RACK considers overdue without
//!   a reordering window (RFC 8985 §6.3). cwnd is set to the remaining pipe plus one segment. F-RTO becomes active,
//!   unless the sender is in recovery (step 1). It also becomes active if the timer expires again without progress.
//! - 2: while F-RTO is active, an ACK that newly acknowledges data sent once and before the timeout proves that the
//!   timeout was spurious (step 3b, [`super::undo`]). The first ACK after the timeout may do so.
//! - 3: after the first ACK that advances but does not cover everything, new data is sent before any retransmission
//!   (step 2b), as much as the window allows. If there is no new data, F-RTO ends.
//! - 4: after that, a newly SACKed segment ends F-RTO (step 3a).
//!
//! **Departure from the RFC, observed in Linux 6.18.** Retransmissions and slow start continue while F-RTO is active.

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent};
use reknit_tcp::seams::{AfterTimeout, Plugin, TimeoutRecovery, TimeoutStep};
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinuxFrtoConfig {}

impl Algorithm<dyn TimeoutRecovery> for LinuxFrtoConfig {
    fn build(&self) -> Box<dyn TimeoutRecovery> {
        Box::new(Frto { watch: FrtoState::default() })
    }
}

/// The state of F-RTO. The detector of spurious timeouts and the transmission after a timeout each keep one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FrtoState {
    in_episode: bool,
    live: bool,
    /// Data below this was sent before the timeout, or before the first ACK after it.
    sent_before: Offset,
}

impl FrtoState {
    /// Rule 1. Call it on every recovery event.
    pub(super) fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::Timeout { first, .. } => {
                self.live = !self.in_episode || !first;
                self.sent_before = cx.snd.snd_nxt;
            }
            RecoveryEvent::EnterRecovery | RecoveryEvent::LeaveRecovery | RecoveryEvent::Spurious(_) => {
                self.live = false;
            }
        }
        self.in_episode = matches!(event, RecoveryEvent::EnterRecovery | RecoveryEvent::Timeout { .. });
    }

    /// Rule 2.
    pub(super) fn is_spurious(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let newly = || ack.newly.iter().filter_map(|id| cx.board.get(*id));
        self.live && newly().any(|record| record.transmissions == 1 && record.end() <= self.sent_before)
    }

    /// Rules 3 and 4, on an ACK that does not prove the timeout spurious. Returns true if new data is sent first.
    pub(super) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        if !self.live {
            return false;
        }
        if cx.snd.snd_nxt > self.sent_before {
            self.live = ack.newly_sacked == Segments::ZERO;
            return false;
        }
        let partial = ack.advances() && cx.snd.snd_una < self.sent_before;
        if partial {
            self.live = cx.snd.can_send_new;
        }
        partial && self.live
    }
}

#[derive(Clone, Debug)]
struct Frto {
    watch: FrtoState,
}

impl TimeoutRecovery for Frto {
    fn on_timeout(&mut self, _cx: &Context<'_>) -> AfterTimeout {
        AfterTimeout::Conventional
    }

    fn cwnd_after_marking(&self, cx: &Context<'_>) -> Option<Bytes> {
        Some(cx.board.pipe().bytes + cx.snd.smss)
    }

    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> TimeoutStep {
        TimeoutStep::Pass
    }

    fn sends_new_first(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.watch.on_ack(cx, ack)
    }
}

impl Plugin for Frto {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.watch.on_recovery_event(cx, event);
    }
}
