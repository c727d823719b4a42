//! Memory that only a busy connection needs.

use std::collections::VecDeque;
use std::hint::black_box;

use reknit_units::Instant;

use super::lowest_first::LowestFirst;
use super::{Scoreboard, SegmentRecord};
use crate::pool::Pool;

impl Scoreboard {
    /// Reads a field of each cache line.
    pub(crate) fn prefetch(&self) {
        black_box(&(self.highest_sacked, self.records.len(), self.front, self.sent, self.lost_so_far));
    }

    /// Reads the record that the next acknowledgment most likely covers.
    pub(crate) fn read_first_ahead(&self) {
        black_box(&self.records.front().map(|record| (record.start, record.delivered)));
    }

    pub(crate) fn borrow_records(&mut self, records: &mut Pool<VecDeque<SegmentRecord>>) {
        records.lend(&mut self.records);
    }

    pub(crate) fn return_records(&mut self, records: &mut Pool<VecDeque<SegmentRecord>>) {
        if self.records.is_empty() {
            records.reclaim(&mut self.records);
        }
    }

    pub(crate) fn holds_memory(&self) -> bool {
        let queues = self.records.capacity() + self.to_retransmit.capacity() + self.retired.capacity();
        queues > 0 || self.rises.is_some()
    }

    /// Bytes of the records, which a long flight needs.
    pub(crate) fn memory(&self) -> usize {
        self.records.capacity() * size_of::<SegmentRecord>() + self.to_retransmit.capacity() * size_of::<u64>()
    }

    /// Releases what a full window needed, if nothing is outstanding, and retired segments that have expired.
    pub(crate) fn shrink(&mut self, now: Instant) {
        if self.records.is_empty() {
            self.records = VecDeque::new();
            self.to_retransmit = LowestFirst::default();
            self.reopening = None;
            self.rises = None;
        }
        self.forget_retired(now);
        self.retired.shrink_to_fit();
    }
}
