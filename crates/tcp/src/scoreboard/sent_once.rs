//! Segments to which nothing has happened since they were sent: the fast path of an acknowledgment
//! ([`crate::sender`]'s `expected.rs`, step 3).

use reknit_units::{Instant, Segments};

use super::record::Marks;
use super::transmissions::{NIL, expand};
use super::{AT_ONCE, Scoreboard, SegId, SegmentCount};
use crate::seq::Offset;

impl Scoreboard {
    /// True if nothing is SACKed, lost or retransmitted.
    pub(crate) fn is_undisturbed(&self) -> bool {
        let marked = self.sacked.segments + self.lost.segments + self.retransmitted.segments;
        marked == Segments::ZERO && self.highest_sacked.is_none() && self.reopening.is_none()
    }

    /// How many segments end at or below `ack`, if the last of them ends there and each was sent once.
    pub(crate) fn sent_once_until(&self, ack: Offset) -> Option<usize> {
        for i in 0..AT_ONCE {
            self.visit(1);
            let record = self.records.get(i).filter(|record| record.transmissions == 1)?;
            if record.end() >= ack {
                return (record.end() == ack).then_some(i + 1);
            }
        }
        None
    }

    /// The first `count` segments are cumulatively acknowledged: [`Scoreboard::acknowledge`], of segments that were sent
    /// once, while nothing is disturbed. Appends them to `newly`.
    pub(crate) fn acknowledge_first(&mut self, count: usize, now: Instant, newly: &mut Vec<SegId>) {
        let mut oldest = self.transmissions.oldest;
        for i in 0..count {
            let record = &mut self.records[i];
            record.delivered = now;
            record.marks.set(Marks::ACKED);
            record.older = NIL;
            self.sent = self.sent - SegmentCount::one(record);
            oldest = expand(self.front, record.newer);
            newly.push(SegId(self.front + i as u64));
        }
        self.visit(count);
        self.acked = count;
        self.cut_before(oldest);
    }
}
