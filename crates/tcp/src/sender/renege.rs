//! Receivers that renege: they have discarded what they SACKed (RFC 2018 §8).
//!
//! The first outstanding segment is SACKed. A receiver that still had it would have acknowledged it, so everything is
//! sent again. The retransmission timer notices this when it expires. A sender without that timer has one for this: a
//! retransmission timeout after the segment was SACKed, and twice as long whenever the receiver SACKs it again without
//! acknowledging it.

use reknit_units::Instant;

use super::Sender;
use crate::scoreboard::{AT_ONCE, Record, SegId};
use crate::seq::Offset;

/// How often the receiver has reneged without acknowledging anything in between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reneging {
    una: Offset,
    times: u32,
}

impl Reneging {
    pub(super) const NEVER: Reneging = Reneging { una: Offset::SYN, times: 0 };
}

impl Sender {
    fn first_is_sacked(&self) -> bool {
        self.board.get(self.board.first()).is_some_and(Record::is_sacked)
    }

    pub(super) fn forget_sacks_if_reneged(&mut self, now: Instant) {
        if self.first_is_sacked() {
            self.last_blocks.clear();
            self.forget_sacks_from(now, self.board.first());
        }
    }

    pub(super) fn forget_sacks_from(&mut self, now: Instant, from: SegId) {
        if let Some(next) = self.board.forget_sacks(from, AT_ONCE) {
            self.leave_forgetting(now, next);
        }
    }

    /// Without a retransmission timer: when the receiver counts as reneging.
    pub(super) fn reneging_expires(&self) -> Instant {
        if self.runs_rto() || self.persist.probing {
            return Instant::NEVER;
        }
        let Some(first) = self.board.get(self.board.first()).filter(|first| first.is_sacked()) else {
            return Instant::NEVER;
        };
        first.delivered.max(self.last_progress) + self.patience_backed_off(self.times_reneged())
    }

    fn times_reneged(&self) -> u32 {
        if self.reneging.una == self.state.snd_una { self.reneging.times } else { 0 }
    }

    /// That time has come.
    pub(super) fn on_reneging(&mut self, now: Instant) {
        self.reneging = Reneging { una: self.state.snd_una, times: self.times_reneged() + 1 };
        self.forget_sacks_if_reneged(now);
        self.transmit(now);
    }
}
