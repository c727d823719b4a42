//! The acknowledgment that must be sent, and when.

use reknit_units::Instant;

use crate::seams::AckAction;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PendingAck {
    /// When it must be sent: [`Instant::ZERO`] if immediately, [`Instant::NEVER`] if nothing is pending.
    due: Instant,
    /// If it is sent immediately: when another must follow.
    then: Instant,
    /// It has information that a data segment could not carry.
    alone: bool,
}

impl PendingAck {
    pub(super) const NONE: PendingAck = PendingAck { due: Instant::NEVER, then: Instant::NEVER, alone: false };

    /// The policy has decided about a segment, which was the next one (`in_order`) or not.
    pub(super) fn schedule(&mut self, action: AckAction, in_order: bool) {
        let (due, then) = match action {
            AckAction::Withhold => return,
            AckAction::By(_) if self.due == Instant::ZERO => return,
            AckAction::By(at) => (self.due.min(at), Instant::NEVER),
            AckAction::Now => (Instant::ZERO, Instant::NEVER),
            AckAction::NowAndBy(at) => (Instant::ZERO, at),
        };
        *self = PendingAck { due, then, alone: self.alone || !in_order };
    }

    /// It must be sent now, whatever the policy decides (RFC 9293 §3.10.7.4, RFC 5961).
    pub(super) fn schedule_now(&mut self) {
        *self = PendingAck { due: Instant::ZERO, then: Instant::NEVER, alone: true };
    }

    /// The policy itself has acknowledged everything: a delayed ACK of the same data would be a duplicate.
    pub(super) fn cancel_delayed(&mut self) {
        if self.due > Instant::ZERO {
            *self = PendingAck::NONE;
        }
    }

    /// When it must be sent.
    pub(super) fn deadline(&self) -> Instant {
        self.due
    }

    /// A segment with an acknowledgment is sent; `pure` if it has no data. True if nothing is pending any more, apart from
    /// the second of two.
    pub(super) fn on_ack_sent(&mut self, pure: bool) -> bool {
        if !pure && self.alone {
            return false;
        }
        *self = PendingAck { due: self.then, then: Instant::NEVER, alone: self.then.is_set() };
        true
    }
}
