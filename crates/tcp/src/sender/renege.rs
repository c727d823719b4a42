//! Receivers that renege: they have discarded what they SACKed (RFC 2018 §8). Owned by [`super::Sender`].
//!
//! It shows when the first outstanding segment is SACKed: a receiver that still had it would have acknowledged it. Then
//! everything is sent again. This is checked when the retransmission timer expires. A sender without that timer has a separate
//! one: a retransmission timeout after the segment was SACKed, doubled whenever the receiver SACKs it again without
//! acknowledging it. Called by [`super::timeout`].

use reknit_units::Instant;

use super::state::SendVariables;
use super::timers::Timers;
use crate::config::Config;
use crate::scoreboard::{Scoreboard, SegmentRecord};
use crate::seq::Offset;

/// True if the receiver has SACKed the first outstanding segment without acknowledging it.
pub(super) fn first_is_sacked(board: &Scoreboard) -> bool {
    board.get(board.first()).is_some_and(SegmentRecord::is_sacked)
}

/// How often the receiver has reneged without acknowledging anything in between.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reneging {
    una: Offset,
    times: u32,
}

impl Reneging {
    pub(super) fn new() -> Reneging {
        Reneging { una: Offset::SYN, times: 0 }
    }

    /// Without a retransmission timer: when the receiver counts as reneging.
    pub(super) fn expires(
        &self,
        state: &SendVariables,
        board: &Scoreboard,
        timers: &Timers,
        config: &Config,
    ) -> Instant {
        if state.has_rto_timer() || timers.is_probing_window() {
            return Instant::NEVER;
        }
        let Some(first) = board.get(board.first()).filter(|first| first.is_sacked()) else {
            return Instant::NEVER;
        };
        let delivered = first.delivered().unwrap_or(timers.last_progress());
        delivered.max(timers.last_progress()) + state.backed_off(config, self.times(state.snd_una))
    }

    /// That time has passed. Called before the SACK marks are removed.
    pub(super) fn note(&mut self, una: Offset) {
        *self = Reneging { una, times: self.times(una) + 1 };
    }

    fn times(&self, una: Offset) -> u32 {
        if self.una == una { self.times } else { 0 }
    }
}
