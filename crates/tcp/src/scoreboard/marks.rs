//! Changes of the scoreboard, for use by the sender only: segments are sent, acknowledged, marked lost, retransmitted.

use std::cell::Cell;
use std::ops::Range;

use reknit_units::{Bytes, Instant, Segments};

use super::record::Marks;
use super::transmissions::{NIL, low};
use super::{Scoreboard, SegId, SegmentCount, SegmentRecord, SendReason};
use crate::seq::Offset;

/// A segment that is sent for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New {
    pub(crate) start: Offset,
    /// Bytes; a FIN counts as one.
    pub(crate) len: u32,
    /// Payload of a full-sized segment.
    pub(crate) smss: Bytes,
    pub(crate) cwnd: Bytes,
    pub(crate) cause: SendReason,
}

impl Scoreboard {
    /// Adds a new segment.
    pub(crate) fn push(&mut self, now: Instant, new: New) -> SegId {
        let New { start, len, smss, cwnd, cause } = new;
        let id = self.next_id();
        let newest = self.transmissions.newest;
        let mut marks = Marks::default();
        if Bytes(u64::from(len)) < smss {
            marks.set(Marks::SHORT);
        }
        self.records.push_back(SegmentRecord {
            start,
            len,
            first_sent: now,
            last_sent: now,
            delivered: Instant::NEVER,
            cwnd_at_sent: cwnd.0 as u32,
            first_length: None,
            transmissions: 1,
            duplicates: 0,
            reported_at: 0,
            cause,
            marks,
            skip: Cell::new(0),
            newer: NIL,
            older: low(newest),
        });
        self.sent = self.sent + SegmentCount { segments: Segments(1), bytes: Bytes(u64::from(len)) };
        match newest {
            Some(newest) => self.at_mut(newest).newer = low(Some(id)),
            None => self.transmissions.oldest = Some(id),
        }
        self.transmissions.newest = Some(id); // no segment with a higher number was sent at the same time
        id
    }

    /// Adds `more` bytes to the newest segment, which is not acknowledged; `smss` is the size of a full segment.
    pub(crate) fn extend_last(&mut self, more: Bytes, smss: Bytes) {
        let Some(record) = self.records.back_mut() else { return };
        record.len += more.0 as u32;
        if Bytes(u64::from(record.len)) >= smss {
            record.marks.clear(Marks::SHORT);
        }
        let bytes = SegmentCount { segments: Segments::ZERO, bytes: more };
        self.sent = self.sent + bytes;
        if record.is_lost() {
            self.lost = self.lost + bytes;
        }
        if record.is_retransmitted() {
            self.retransmitted = self.retransmitted + bytes;
        }
    }

    /// Everything below `ack` is cumulatively acknowledged. Appends the segments that had not been SACKed to `newly`.
    ///
    /// The records can be read until [`Scoreboard::retire`].
    pub(crate) fn acknowledge(&mut self, ack: Offset, now: Instant, newly: &mut Vec<SegId>) {
        while let Some(record) = self.records.get(self.acked) {
            self.visit(1);
            if record.end() > ack {
                break;
            }
            let id = self.id(self.acked);
            if !record.is_sacked() {
                newly.push(id);
            }
            self.leave(self.acked);
            let record = &mut self.records[self.acked];
            record.delivered = record.delivered.min(now);
            record.marks.set(Marks::ACKED);
            self.sent = self.sent - SegmentCount::one(record);
            self.acked += 1;
        }
        self.trim_first(ack);
        if self.highest_sacked.is_some_and(|highest| highest < self.first()) {
            self.highest_sacked = None;
        }
    }

    /// The ACK falls inside a segment; the part below it needs no retransmission any more.
    fn trim_first(&mut self, ack: Offset) {
        let Some(record) = self.records.get_mut(self.acked) else { return };
        let covered = ack.since(record.start);
        if covered == Bytes::ZERO {
            return;
        }
        let part = SegmentCount { segments: Segments::ZERO, bytes: covered };
        if record.is_sacked() {
            self.sacked = self.sacked - part;
        }
        if record.is_lost() {
            self.lost = self.lost - part;
        }
        if record.is_retransmitted() {
            self.retransmitted = self.retransmitted - part;
        }
        self.sent = self.sent - part;
        record.start = ack;
        record.len -= covered.0 as u32;
    }

    /// Processes a SACK block. Appends each segment that is completely covered for the first time to `newly`, but stops
    /// when that has `most`. False if it stopped early.
    pub(crate) fn sack(&mut self, block: Range<Offset>, now: Instant, most: usize, newly: &mut Vec<SegId>) -> bool {
        let mut i = self.locate(block.start).max(self.acked);
        if self.records.get(i).is_some_and(|r| r.start < block.start) {
            i += 1;
        }
        while let Some(unsacked) = self.unsacked_at_or_after(i) {
            if self.records[unsacked].end() > block.end {
                break;
            }
            if newly.len() >= most {
                return false;
            }
            self.mark_sacked(unsacked, now);
            newly.push(self.id(unsacked));
            i = unsacked + 1;
        }
        true
    }

    fn mark_sacked(&mut self, i: usize, now: Instant) {
        let id = self.id(i);
        self.leave(i);
        let left = i > self.acked && self.records[i - 1].is_sacked();
        let right = self.records.get(i + 1).is_some_and(SegmentRecord::is_sacked);
        self.runs = self.runs + 1 - u32::from(left) - u32::from(right);
        let record = &mut self.records[i];
        record.marks.set(Marks::SACKED);
        record.skip.set(1);
        record.delivered = record.delivered.min(now);
        self.sacked = self.sacked + SegmentCount::one(record);
        self.short_sacked += u32::from(record.marks.has(Marks::SHORT));
        self.note_rise(id, now);
        self.highest_sacked = self.highest_sacked.max(Some(id));
    }

    /// Removes the loss marks of the `i`-th segment, which was delivered, so that only `sent` and `sacked` count it.
    fn leave(&mut self, i: usize) {
        let record = &mut self.records[i];
        let (one, marks) = (SegmentCount::one(record), record.marks);
        if marks.has(Marks::SACKED) {
            self.sacked = self.sacked - one;
            self.short_sacked -= u32::from(marks.has(Marks::SHORT));
            if !self.records.get(i + 1).is_some_and(SegmentRecord::is_sacked) {
                self.runs -= 1;
            }
            return;
        }
        record.marks.clear(Marks::LOST);
        record.marks.clear(Marks::RETRANSMITTED);
        if marks.has(Marks::LOST) {
            self.lost = self.lost - one;
        }
        if marks.has(Marks::RETRANSMITTED) {
            self.retransmitted = self.retransmitted - one;
        }
        if !marks.has(Marks::LOST) || marks.has(Marks::RETRANSMITTED) {
            self.unlink(self.id(i));
        }
    }

    /// Marks the latest transmission of `id` as lost. False if it was delivered or is already waiting to be retransmitted.
    pub(crate) fn mark_lost(&mut self, id: SegId) -> bool {
        let Some(i) = self.index(id) else { return false };
        let one = SegmentCount::one(&self.records[i]);
        let marks = self.records[i].marks;
        let waiting = marks.has(Marks::LOST) && !marks.has(Marks::RETRANSMITTED);
        if marks.has(Marks::SACKED) || marks.has(Marks::ACKED) || waiting {
            return false;
        }
        self.unlink(id);
        if !marks.has(Marks::LOST) {
            self.lost = self.lost + one;
        }
        if marks.has(Marks::RETRANSMITTED) {
            self.retransmitted = self.retransmitted - one;
        }
        let record = &mut self.records[i];
        record.marks.set(Marks::LOST);
        record.marks.clear(Marks::RETRANSMITTED);
        self.to_retransmit.push(id);
        self.lost_so_far += one.bytes;
        true
    }

    /// Marks the first transmission of `id` as lost although it was retransmitted without a loss mark: one copy is in
    /// flight, not two.
    pub(crate) fn mark_original_lost(&mut self, id: SegId) {
        let Some(i) = self.index(id) else { return };
        let record = &mut self.records[i];
        if record.marks.has(Marks::RETRANSMITTED) && !record.marks.has(Marks::LOST) {
            record.marks.set(Marks::LOST);
            self.lost = self.lost + SegmentCount::one(record);
        }
    }

    /// The lowest segment that is marked lost and has not been retransmitted yet.
    pub(crate) fn lowest_to_retransmit(&mut self) -> Option<SegId> {
        while let Some(id) = self.to_retransmit.peek() {
            if self.waits(id) {
                return Some(id);
            }
            self.to_retransmit.pop();
        }
        None
    }

    /// Notes that `id` is retransmitted. False if it was delivered, so that there is nothing to send.
    pub(crate) fn on_retransmit(&mut self, id: SegId, now: Instant, cwnd: Bytes, cause: SendReason) -> bool {
        let Some(i) = self.index(id) else { return false };
        let marks = self.records[i].marks;
        if marks.has(Marks::SACKED) || marks.has(Marks::ACKED) {
            return false;
        }
        if !marks.has(Marks::LOST) || marks.has(Marks::RETRANSMITTED) {
            self.unlink(id);
        }
        if !marks.has(Marks::RETRANSMITTED) {
            self.retransmitted = self.retransmitted + SegmentCount::one(&self.records[i]);
        }
        let record = &mut self.records[i];
        record.marks.set(Marks::RETRANSMITTED);
        record.transmissions = record.transmissions.saturating_add(1);
        record.last_sent = now;
        record.cwnd_at_sent = cwnd.0 as u32;
        record.cause = cause;
        self.link_newest(id);
        true
    }

    /// Notes that `id`, which was withheld until now, is sent. It counts as sent twice, so that nothing is measured by
    /// it: it is late because of its sender.
    pub(crate) fn release(&mut self, id: SegId, now: Instant) {
        let Some(i) = self.index(id) else { return };
        if !self.records[i].is_open() {
            return;
        }
        self.unlink(id);
        let record = &mut self.records[i];
        record.marks.set(Marks::WITHHELD);
        record.transmissions = 2;
        record.last_sent = now;
        self.link_newest(id);
    }

    /// Records the reordering length of a segment's first delivery, until a DSACK shows which copy it was.
    pub(crate) fn set_first_length(&mut self, id: SegId, length: Segments) {
        if let Some(i) = self.index(id) {
            self.records[i].first_length = Some(length);
        }
    }

    /// The receiver has discarded data that it had SACKed (RFC 2018 §8): its segments are lost. Examines up to `most`
    /// segments from `from` on. Returns the next one, none if all are done.
    pub(crate) fn forget_sacks(&mut self, from: SegId, most: usize) -> Option<SegId> {
        let start = (from.0.saturating_sub(self.front) as usize).max(self.acked);
        let end = (start + most).min(self.records.len());
        self.visit(end.saturating_sub(start));
        for i in start..end {
            if self.records[i].is_sacked() {
                self.forget_sack(i);
            }
        }
        if end < self.records.len() {
            return Some(self.id(end));
        }
        if self.sacked.segments == Segments::ZERO {
            self.highest_sacked = None;
        }
        None
    }

    fn forget_sack(&mut self, i: usize) {
        let left = i > self.acked && self.records[i - 1].is_sacked();
        let right = self.records.get(i + 1).is_some_and(SegmentRecord::is_sacked);
        self.runs = self.runs + u32::from(left) + u32::from(right) - 1;
        let id = self.id(i);
        let record = &mut self.records[i];
        record.marks.clear(Marks::SACKED);
        record.marks.set(Marks::LOST);
        record.skip.set(0);
        record.delivered = Instant::NEVER;
        let one = SegmentCount::one(record);
        self.short_sacked -= u32::from(record.marks.has(Marks::SHORT));
        self.sacked = self.sacked - one;
        self.lost = self.lost + one;
        self.lost_so_far += one.bytes;
        self.to_retransmit.push(id);
    }
}
