//! Clears loss marks in parts: an undo may clear those of a whole flight. A segment is open while it counts as in flight
//! ([`SegmentRecord::is_open`]).

use super::lowest_first::LowestFirst;
use super::record::Marks;
use super::{Scoreboard, SegId, SegmentCount, SegmentRecord};

/// The loss marks that are still to be cleared.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Unmarking {
    /// Marked lost and not retransmitted, lowest first. Entries of segments that do not wait any more are skipped.
    waiting: LowestFirst,
    /// The loss marks of retransmitted segments are removed, too, from this one on.
    retransmitted_from: Option<SegId>,
    /// The last segment that was opened, of those sent once and of those retransmitted. The next one was usually sent shortly
    /// after, so the list is searched from there.
    near: [Option<SegId>; 2],
}

impl Scoreboard {
    /// Segments that are marked lost and have not been retransmitted count as in flight again, once
    /// [`Scoreboard::reopen`] has opened them.
    pub(crate) fn clear_lost(&mut self) {
        let mut waiting = std::mem::take(&mut self.to_retransmit);
        self.reopening.get_or_insert_default().waiting.append(&mut waiting);
    }

    /// Removes all loss marks. Segments that were retransmitted count as in flight twice.
    pub(crate) fn clear_all_lost(&mut self) {
        self.clear_lost();
        let first = self.first();
        self.reopening.get_or_insert_default().retransmitted_from = Some(first);
    }

    /// Opens `id` now, before the others.
    pub(crate) fn open_now(&mut self, id: SegId) {
        let Some(mut reopening) = self.reopening.take() else { return };
        reopening.waiting.remove(id);
        self.open(id, &mut reopening.near);
        self.reopening = Some(reopening);
    }

    /// True if loss marks are still to be removed.
    pub(crate) fn reopens(&self) -> bool {
        self.reopening.is_some()
    }

    /// Opens up to `most` segments.
    pub(crate) fn reopen(&mut self, most: usize) {
        let Some(mut reopening) = self.reopening.take() else { return };
        for _ in 0..most {
            let Some(id) = reopening.waiting.pop() else { break };
            self.open(id, &mut reopening.near);
        }
        if reopening.waiting.is_empty() {
            reopening.retransmitted_from = reopening.retransmitted_from.and_then(|from| self.unmark(from, most));
        }
        if !reopening.waiting.is_empty() || reopening.retransmitted_from.is_some() {
            self.reopening = Some(reopening);
        }
    }

    /// Removes the loss mark of `id`, if it waits to be retransmitted, and puts it into the list at the position of its
    /// last transmission.
    fn open(&mut self, id: SegId, near: &mut [Option<SegId>; 2]) {
        if !self.waits(id) {
            return;
        }
        let record = &mut self.records[(id.0 - self.front) as usize];
        self.lost = self.lost - SegmentCount::one(record);
        record.marks.clear(Marks::LOST);
        let is_again = record.transmissions > 1;
        let near = &mut near[usize::from(is_again)];
        let listed = near.filter(|near| self.get(*near).is_some_and(SegmentRecord::is_open));
        let end = if is_again { self.transmissions.newest } else { self.transmissions.oldest };
        self.link_from(id, listed.or(end));
        *near = Some(id);
    }

    /// Removes the loss marks of retransmitted segments, of up to `most` segments from `from` on. The next one, none if
    /// all are done.
    fn unmark(&mut self, from: SegId, most: usize) -> Option<SegId> {
        let end = self.records.len();
        let start = (from.0.saturating_sub(self.front) as usize).max(self.acked).min(end);
        let part = start..end.min(start + most);
        self.visit(part.len());
        for record in self.records.range_mut(part.clone()).filter(|r| r.is_lost() && r.is_retransmitted()) {
            self.lost = self.lost - SegmentCount::one(record);
            record.marks.clear(Marks::LOST);
        }
        (part.end < end).then(|| self.id(part.end))
    }
}
