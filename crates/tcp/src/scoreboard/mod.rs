//! The state of every segment that was sent and is not yet cumulatively acknowledged.
//!
//! # Packet accounting
//!
//! ```text
//! sent          = segments from SND.UNA to SND.NXT             (each has one `SegmentRecord`)
//! sacked        = of these, selectively acknowledged
//! lost          = of the rest, marked lost: a transmission is assumed not to have arrived
//! retransmitted = of the rest, retransmitted, and that copy is estimated to be in flight
//!
//! pipe = sent - sacked - lost + retransmitted      (RFC 6675 §4, `SetPipe`)
//! ```
//!
//! A segment that was retransmitted although it is neither sacked nor lost (a probe, a rescue) counts twice: both copies
//! may be in the network. Each sum is kept in segments and in bytes. In debug builds, [`Scoreboard::check`] recomputes
//! all of them from the records after every event.
//!
//! # Cost
//!
//! Records are in a ring, ordered by their bytes. Because of three indexes, the cost of an operation depends on what it
//! changes, not on how much is outstanding: *skips* jump over runs of sacked records (path-compressed, as in
//! union-find), a doubly linked list has the open records in the order of their last transmission, and a heap yields
//! the lowest record that waits to be retransmitted.

mod check;
mod lowest_first;
mod marks;
mod memory;
mod overtaken;
mod record;
mod reopening;
mod retired;
mod sent_once;
mod transmissions;

use std::cell::Cell;
use std::collections::VecDeque;

use reknit_units::{Bytes, Instant, Segments};

use self::lowest_first::LowestFirst;
pub(crate) use self::marks::New;
use self::overtaken::Rises;
pub use self::record::{SegId, SegmentCount, SegmentRecord, SendReason};
use self::reopening::Unmarking;
pub use self::retired::Duplicate;
use self::retired::RetiredSegments;
use self::transmissions::Ends;
use crate::seq::Offset;

/// The most segments that one event acknowledges, SACKs, marks or sends. With more, several events follow each other.
/// Fuzzers, whose windows are small, use a small number.
pub(crate) const AT_ONCE: usize = if cfg!(fuzzing) { 8 } else { 2048 };

/// The records of all outstanding segments. Plug-ins read it; only the sender changes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Scoreboard {
    records: VecDeque<SegmentRecord>,
    /// The id of the record at the front of the ring.
    front: u64,
    /// Records at the front that the current ACK covers; they are removed when the ACK has been processed.
    acked: usize,
    sent: SegmentCount,
    sacked: SegmentCount,
    lost: SegmentCount,
    retransmitted: SegmentCount,
    /// Discontiguous runs of sacked records.
    runs: u32,
    highest_sacked: Option<SegId>,
    /// None before the first SACK.
    rises: Option<Box<Rises>>,
    /// Of the sacked records, those shorter than a full segment.
    short_sacked: u32,
    transmissions: Ends,
    /// Marked lost and not yet retransmitted, lowest first. Outdated entries are skipped when they are reached.
    to_retransmit: LowestFirst,
    /// Loss marks that are being removed.
    reopening: Option<Box<Unmarking>>,
    retired: RetiredSegments,
    lost_so_far: Bytes,
    /// Counts the work, for tests of its limits.
    visited: Work,
}

/// Records visited. Not a part of the state: two scoreboards are equal however they became so.
#[derive(Clone, Debug, Default)]
struct Work(Cell<u64>);

impl PartialEq for Work {
    fn eq(&self, _: &Work) -> bool {
        true
    }
}

/// Read access.
impl Scoreboard {
    /// The first segment that is not cumulatively acknowledged; the next new one if all are.
    pub fn first(&self) -> SegId {
        SegId(self.front + self.acked as u64)
    }

    /// The id that the next new segment will get.
    pub fn next_id(&self) -> SegId {
        SegId(self.front + self.records.len() as u64)
    }

    /// The record of `id`, if it is outstanding or covered by the current ACK.
    pub fn get(&self, id: SegId) -> Option<&SegmentRecord> {
        self.visit(1);
        self.index(id).map(|i| &self.records[i])
    }

    /// The number of records visited so far: the work of the sender and its plug-ins. Counted only in debug builds.
    pub fn visited(&self) -> u64 {
        self.visited.0.get()
    }

    fn visit(&self, records: usize) {
        if cfg!(debug_assertions) {
            self.visited.0.set(self.visited.0.get() + records as u64);
        }
    }

    /// The end of the `n`-th outstanding segment, if there are more than `n`.
    pub(crate) fn end_of_first(&self, n: usize) -> Option<Offset> {
        (self.records.len() - self.acked > n).then(|| self.records[self.acked + n - 1].end())
    }

    /// The outstanding segment that contains `offset`.
    pub fn containing(&self, offset: Offset) -> Option<(SegId, &SegmentRecord)> {
        let index = self.locate(offset);
        let record = self.records.get(index).filter(|record| record.start <= offset)?;
        Some((self.id(index), record))
    }

    /// True if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.sent.segments == Segments::ZERO
    }

    /// All outstanding segments.
    pub fn sent(&self) -> SegmentCount {
        self.sent
    }

    /// The outstanding segments that are selectively acknowledged.
    pub fn sacked(&self) -> SegmentCount {
        self.sacked
    }

    /// Of the others, those marked lost.
    pub fn lost(&self) -> SegmentCount {
        self.lost
    }

    /// Everything that was ever marked lost. Each transmission counts separately, whatever happened to it later.
    pub fn lost_so_far(&self) -> Bytes {
        self.lost_so_far
    }

    /// Retransmitted and estimated to be in flight.
    pub fn retransmitted(&self) -> SegmentCount {
        self.retransmitted
    }

    /// The estimate of the data in flight (RFC 6675 §4, `SetPipe`).
    pub fn pipe(&self) -> SegmentCount {
        self.sent + self.retransmitted - self.sacked - self.lost
    }

    /// The number of discontiguous runs of SACKed segments.
    pub fn sacked_runs(&self) -> u32 {
        self.runs
    }

    /// The number of SACKed segments that are shorter than a full one.
    pub fn short_sacked(&self) -> u32 {
        self.short_sacked
    }

    /// The highest SACKed segment that is still outstanding.
    pub fn highest_sacked(&self) -> Option<SegId> {
        self.highest_sacked
    }

    /// The first outstanding segment at or above `from` that is not SACKed.
    pub fn next_unsacked(&self, from: SegId) -> Option<SegId> {
        let from = self.index(from.max(self.first()))?;
        self.unsacked_at_or_after(from).map(|i| self.id(i))
    }

    /// The lowest segment that is marked lost, whether it was retransmitted or not. Visits the holes below it.
    pub fn lowest_lost(&self) -> Option<SegId> {
        let mut at = self.next_unsacked(self.first());
        while let Some(id) = at.filter(|id| !self.get(*id).is_some_and(SegmentRecord::is_lost)) {
            at = self.next_unsacked(id.next());
        }
        at
    }

    /// The first segment that was first sent after `at`; the next new one if there is none.
    pub fn first_sent_after(&self, at: Instant) -> SegId {
        self.id(self.records.partition_point(|record| record.first_sent <= at))
    }

    /// The number of SACKed segments above `id`. Visits the holes above it.
    pub fn sacked_above(&self, id: SegId) -> Segments {
        let Some(highest) = self.highest_sacked.filter(|highest| *highest > id) else { return Segments::ZERO };
        let mut sacked = highest.beyond(id);
        let mut hole = self.next_unsacked(id.next());
        while let Some(at) = hole.filter(|at| *at < highest) {
            sacked -= Segments(1);
            hole = self.next_unsacked(at.next());
        }
        sacked
    }

    fn index(&self, id: SegId) -> Option<usize> {
        let i = id.0.checked_sub(self.front)? as usize;
        (i < self.records.len()).then_some(i)
    }

    fn id(&self, index: usize) -> SegId {
        SegId(self.front + index as u64)
    }

    fn waits(&self, id: SegId) -> bool {
        self.get(id).is_some_and(|r| r.is_lost() && !r.is_retransmitted())
    }

    /// Follows the skips from `from`, then shortens them; the amortised cost is almost constant.
    fn unsacked_at_or_after(&self, from: usize) -> Option<usize> {
        let mut found = from;
        while let Some(record) = self.records.get(found) {
            self.visit(1);
            let skip = record.skip.get();
            if skip == 0 {
                break;
            }
            found += skip as usize;
        }
        let mut at = from;
        while at < found {
            let skip = self.records[at].skip.replace((found - at) as u32);
            at += skip as usize;
        }
        (found < self.records.len()).then_some(found)
    }

    /// The index of the record that contains `offset`, or one past the last.
    ///
    /// Segments mostly have the same size, so a guess by division is mostly right; a binary search handles the other
    /// cases.
    fn locate(&self, offset: Offset) -> usize {
        let contains = |r: &SegmentRecord| r.start <= offset && offset < r.end();
        if let (Some(first), Some(last)) = (self.records.front(), self.records.back())
            && offset >= first.start
            && offset < last.end()
        {
            let guess = (offset.since(first.start).0 / u64::from(first.len.max(1))) as usize;
            for i in guess.saturating_sub(1)..=guess + 1 {
                if self.records.get(i).is_some_and(contains) {
                    return i;
                }
            }
        }
        self.records.partition_point(|r| r.end() <= offset)
    }
}
