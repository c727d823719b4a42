//! Since when it is known that data above a segment has arrived.
//!
//! The highest SACKed segment only rises, and each rise applies to all segments below it that were above the previous one.
//! So the rises are kept instead of a time in each record: one SACK far ahead is one rise.

use std::collections::VecDeque;

use reknit_units::Instant;

use super::{Scoreboard, SegId};

/// The rises of the highest SACKed segment, oldest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Rises(VecDeque<Rise>);

/// The highest SACKed segment became `top`.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rise {
    top: SegId,
    at: Instant,
}

impl Rises {
    fn add(&mut self, top: SegId, now: Instant) {
        match self.0.back_mut() {
            Some(last) if top <= last.top => {}
            Some(last) if last.at == now => last.top = top,
            _ => self.0.push_back(Rise { top, at: now }),
        }
    }

    fn first_above(&self, id: SegId) -> Option<Instant> {
        let first = self.0.front()?;
        if first.top > id {
            return Some(first.at);
        }
        if self.0.back().is_some_and(|last| last.top <= id) {
            return None;
        }
        let rise = self.0.partition_point(|rise| rise.top <= id);
        self.0.get(rise).map(|rise| rise.at)
    }

    /// Forgets rises that apply only to segments below `first`.
    fn forget_below(&mut self, first: SegId) {
        while self.0.front().is_some_and(|rise| rise.top <= first) {
            self.0.pop_front();
        }
    }
}

impl Scoreboard {
    /// When data above `id` was first found to be SACKed; none if none was. `id` is outstanding, or covered by the
    /// current ACK.
    pub fn first_above(&self, id: SegId) -> Option<Instant> {
        self.rises.as_ref().and_then(|rises| rises.first_above(id))
    }

    /// `top` has been SACKed.
    pub(super) fn note_rise(&mut self, top: SegId, now: Instant) {
        self.rises.get_or_insert_default().add(top, now);
    }

    /// Forgets rises that apply only to segments that are no longer outstanding.
    pub(super) fn forget_rises(&mut self) {
        if let Some(rises) = &mut self.rises {
            rises.forget_below(SegId(self.front));
        }
    }
}
