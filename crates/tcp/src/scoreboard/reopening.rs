//! Removes loss marks in parts: an undo may open a whole flight again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::record::Marks;
use super::{Scoreboard, SegId, Tally};

/// What is left to open.
#[derive(Clone, Debug, Default)]
pub(super) struct Reopening {
    /// Marked lost and not retransmitted, lowest first. Entries of segments that do not wait any more are skipped.
    waiting: BinaryHeap<Reverse<u64>>,
    /// The loss marks of retransmitted segments are removed, too, from this one on.
    retransmitted_from: Option<SegId>,
    /// The last segment that was opened, of those sent once and of those sent again. The next one was mostly sent
    /// shortly after, so the list is searched from there.
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
        reopening.waiting.retain(|entry| *entry != Reverse(id.0));
        self.open(vec![id], &mut reopening.near);
        self.reopening = Some(reopening);
    }

    /// Opens up to `most` segments. False if nothing is left.
    pub(crate) fn reopen(&mut self, most: usize) -> bool {
        let Some(mut reopening) = self.reopening.take() else { return false };
        let mut part = Vec::new();
        while part.len() < most
            && let Some(Reverse(id)) = reopening.waiting.pop()
        {
            part.push(SegId(id));
        }
        self.open(part, &mut reopening.near);
        if reopening.waiting.is_empty() {
            reopening.retransmitted_from = reopening.retransmitted_from.and_then(|from| self.unmark(from, most));
        }
        if !reopening.waiting.is_empty() || reopening.retransmitted_from.is_some() {
            self.reopening = Some(reopening);
        }
        self.reopening.is_some()
    }

    /// Puts the segments of `ids` that wait back into the list of open ones, each at the position of its last
    /// transmission.
    fn open(&mut self, mut ids: Vec<SegId>, near: &mut [Option<SegId>; 2]) {
        ids.dedup();
        ids.retain(|id| self.waits(*id));
        for id in ids {
            let record = &mut self.records[(id.0 - self.front) as usize];
            self.lost = self.lost - Tally::one(record);
            record.marks.clear(Marks::LOST);
            let near = &mut near[usize::from(record.transmissions > 1)];
            self.link_near(id, *near);
            *near = Some(id);
        }
    }

    /// Removes the loss marks of retransmitted segments, of up to `most` segments from `from` on. The next one, none if
    /// all are done.
    fn unmark(&mut self, from: SegId, most: usize) -> Option<SegId> {
        let end = self.records.len();
        let start = (from.0.saturating_sub(self.front) as usize).max(self.acked).min(end);
        let part = start..end.min(start + most);
        self.visit(part.len());
        for record in self.records.range_mut(part.clone()).filter(|r| r.is_lost() && r.is_retransmitted()) {
            self.lost = self.lost - Tally::one(record);
            record.marks.clear(Marks::LOST);
        }
        (part.end < end).then(|| self.id(part.end))
    }
}
