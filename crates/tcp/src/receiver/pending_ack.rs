//! The acknowledgment that must be sent, and when.

use reknit_units::Instant;

use crate::seams::AckAction;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Due {
    Never,
    By(Instant),
    /// Immediately; and once more at `then`.
    Now {
        then: Option<Instant>,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct PendingAck {
    due: Due,
    /// It has information that a data segment could not carry.
    alone: bool,
}

impl PendingAck {
    pub(super) const NONE: PendingAck = PendingAck { due: Due::Never, alone: false };

    /// The policy has decided about a segment, which was the next one (`in_order`) or not.
    pub(super) fn schedule(&mut self, action: AckAction, in_order: bool) {
        let due = match (action, self.due) {
            (AckAction::Withhold, _) | (AckAction::By(_), Due::Now { .. }) => return,
            (AckAction::Now, _) => Due::Now { then: None },
            (AckAction::NowAndBy(at), _) => Due::Now { then: Some(at) },
            (AckAction::By(at), Due::By(earlier)) => Due::By(at.min(earlier)),
            (AckAction::By(at), Due::Never) => Due::By(at),
        };
        *self = PendingAck { due, alone: self.alone || !in_order };
    }

    /// It must be sent now, whatever the policy decides (RFC 9293 §3.10.7.4, RFC 5961).
    pub(super) fn schedule_now(&mut self) {
        *self = PendingAck { due: Due::Now { then: None }, alone: true };
    }

    /// The policy itself has acknowledged everything: a delayed ACK of the same data would be a duplicate.
    pub(super) fn cancel_delayed(&mut self) {
        if matches!(self.due, Due::By(_)) {
            *self = PendingAck::NONE;
        }
    }

    /// When it must be sent.
    pub(super) fn deadline(&self) -> Instant {
        match self.due {
            Due::Never => Instant::NEVER,
            Due::By(at) => at,
            Due::Now { .. } => Instant::ZERO,
        }
    }

    /// A segment with an acknowledgment is sent; `pure` if it has no data. True if nothing is pending any more, apart from
    /// the second of two.
    pub(super) fn on_ack_sent(&mut self, pure: bool) -> bool {
        if !pure && self.alone {
            return false;
        }
        *self = match self.due {
            Due::Now { then: Some(at) } => PendingAck { due: Due::By(at), alone: true },
            _ => PendingAck::NONE,
        };
        true
    }
}
