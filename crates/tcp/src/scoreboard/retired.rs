//! Segments that have left the scoreboard but may still be reported as duplicates.

use std::collections::VecDeque;
use std::ops::Range;

use reknit_units::{Duration, Instant, Segments};

use super::{Scoreboard, SegId, SegmentRecord, SendReason};
use crate::seq::Offset;

/// A record of a retransmitted segment that has left the scoreboard; a late DSACK can still be matched with it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RetiredSegment {
    id: SegId,
    record: SegmentRecord,
    expires: Instant,
}

/// A segment that a DSACK covers completely.
#[derive(Clone, Copy, Debug)]
pub struct Duplicate {
    /// The segment.
    pub id: SegId,
    /// How often it was sent.
    pub transmissions: u16,
    /// How often the receiver has reported it as a duplicate, including this report.
    pub reports: u16,
    /// When it was first sent.
    pub first_sent: Instant,
    /// When it was last sent.
    pub last_sent: Instant,
    /// When it was first ACKed or SACKed; none if only this report says that it arrived.
    pub delivered: Option<Instant>,
    /// Its reordering length when it was first delivered, if it had been sent twice by then.
    pub first_length: Option<Segments>,
    /// Why it was last sent.
    pub cause: SendReason,
}

/// The most retired segments that are kept.
const MAX_RETIRED: usize = 256;
/// The most outstanding segments that one DSACK covers. A packet of 64 KiB has 123 segments of 536 bytes; only a sender of
/// tiny segments has more, and the rest of them is not counted as duplicates.
const MAX_COVERED: usize = 256;
pub(super) type RetiredSegments = VecDeque<RetiredSegment>;

impl Scoreboard {
    /// Removes the records that the current ACK covers. Those of retransmitted segments are kept as retired segments until
    /// this time.
    pub(crate) fn retire(&mut self, expire: impl Fn() -> Instant) {
        for _ in 0..self.acked {
            let is_kept = self.records.front().is_some_and(|record| record.transmissions > 1);
            let record = self.records.pop_front();
            if let Some(record) = record.filter(|_| is_kept) {
                self.keep(RetiredSegment { id: SegId(self.front), record, expires: expire() });
            }
            self.front += 1;
        }
        self.acked = 0;
        self.forget_rises();
    }

    #[inline(never)]
    fn keep(&mut self, segment: RetiredSegment) {
        if self.retired.len() == MAX_RETIRED {
            self.retired.pop_front();
        }
        self.retired.push_back(segment);
    }

    /// Matches a DSACK with the segments that `range` covers completely, and counts the report for each of them. If the
    /// peer repeats its reports, a repeated report for the same transmission is ignored.
    pub(crate) fn report_duplicate(
        &mut self,
        range: Range<Offset>,
        now: Instant,
        repeats: bool,
        found: &mut Vec<Duplicate>,
    ) {
        self.forget_retired(now);
        let inside = |r: &SegmentRecord| r.start >= range.start && r.end() <= range.end;
        let first = self.locate(range.start);
        let live = (self.id(first).0..).zip(self.records.range_mut(first..).take(MAX_COVERED));
        let live = live.take_while(|(_, r)| r.start < range.end).map(|(id, record)| (SegId(id), record));
        let retired = self.retired.iter_mut().map(|segment| (segment.id, &mut segment.record));
        let mut visited = 0;
        for (id, record) in retired.chain(live) {
            visited += 1;
            if !inside(record) {
                continue;
            }
            if repeats && record.reported_at == record.transmissions {
                continue;
            }
            record.reported_at = record.transmissions;
            record.duplicates = record.duplicates.saturating_add(1);
            found.push(Duplicate {
                id,
                transmissions: record.transmissions,
                reports: record.duplicates,
                first_sent: record.first_sent,
                last_sent: record.last_sent,
                delivered: record.delivered(),
                first_length: record.first_length,
                cause: record.cause,
            });
        }
        self.visit(visited);
    }

    /// Removes the retired segments that have expired.
    pub(super) fn forget_retired(&mut self, now: Instant) {
        while self.retired.front().is_some_and(|segment| segment.expires < now) {
            self.retired.pop_front();
        }
    }

    /// How long retired segments are kept: a DSACK arrives at most one backed-off round trip after the retransmission.
    pub(crate) fn retired_lifetime(rto: Duration, srtt: Option<Duration>) -> Duration {
        (rto * 2).max(srtt.unwrap_or_default() * 4)
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Bytes;

    use super::super::marks::New;
    use super::*;

    /// Reports the only segment, and returns how many segments the report covers.
    fn told(board: &mut Scoreboard, repeats: bool) -> usize {
        let mut found = Vec::new();
        board.report_duplicate(Offset(1)..Offset(1001), Instant::ZERO, repeats, &mut found);
        found.len()
    }

    fn retransmit(board: &mut Scoreboard) {
        board.mark_lost(SegId(0));
        board.on_retransmit(SegId(0), Instant::ZERO, Bytes(1000), SendReason::Timeout);
    }

    #[test]
    fn a_repeated_report_counts_once_for_each_transmission() {
        let mut board = Scoreboard::default();
        board.push(
            Instant::ZERO,
            New { start: Offset(1), len: 1000, smss: Bytes(1000), cwnd: Bytes(1000), cause: SendReason::New },
        );
        retransmit(&mut board);
        assert_eq!([told(&mut board, true), told(&mut board, true), told(&mut board, true)], [1, 0, 0]);
        retransmit(&mut board);
        assert_eq!([told(&mut board, true), told(&mut board, true)], [1, 0]);
        assert_eq!([told(&mut board, false), told(&mut board, false)], [1, 1]);
    }
}
