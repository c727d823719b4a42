//! What is known of every segment that was sent and not yet cumulatively acknowledged.
//!
//! # The packet algebra
//!
//! ```text
//! sent          = segments from SND.UNA to SND.NXT             (each has one `Record`)
//! sacked        = of these, selectively acknowledged
//! lost          = of the rest, given up: the latest transmission that was judged did not arrive
//! retransmitted = of the rest, sent again since, and that copy is thought to be under way
//!
//! pipe = sent - sacked - lost + retransmitted                  (RFC 6675 §4, `SetPipe`)
//! ```
//!
//! A segment that is neither sacked nor lost but was resent all the same (a probe, a rescue) counts twice: both copies
//! may be in the network. Each term is kept both in segments and in octets, and [`Scoreboard::check`] recomputes all
//! of them from the records after every event in debug builds.
//!
//! # Cost
//!
//! Records lie in a ring in the order of their octets. Three indexes make every operation cost what it changes, not
//! what is outstanding: *skips* jump over runs of sacked records (path-compressed, as in union-find), a doubly linked
//! list keeps the records whose fate is open in the order of their last transmission, and a heap yields the lowest
//! record that waits to be resent.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::{Add, Range, Sub};

use reknit_units::{Bytes, Duration, Instant, Segments};

use crate::seq::Offset;

/// The ordinal of a segment in the order of first transmission; the first segment of a connection is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SegId(pub u64);

impl SegId {
    /// The segment after this one.
    #[must_use]
    pub const fn next(self) -> SegId {
        SegId(self.0 + 1)
    }

    /// How many segments `self` lies beyond `earlier`.
    pub const fn beyond(self, earlier: SegId) -> Segments {
        Segments(self.0.saturating_sub(earlier.0) as u32)
    }
}

/// Why a segment was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// New data within the window.
    New,
    /// New data beyond the window (RFC 3042 and its relatives).
    LimitedTransmit,
    /// Judged lost by the loss detector.
    FastRetransmit,
    /// Judged lost by the retransmission timer.
    Timeout,
    /// Tail loss probe (RFC 8985 §7).
    Probe,
    /// Sent on suspicion at the end of `NextSeg` (RFC 6675 §4, rules 3 and 4).
    Rescue,
    /// Persist timer: tests a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
}

/// One segment.
#[derive(Clone, Debug)]
pub struct Record {
    /// First octet.
    pub start: Offset,
    /// Octets, a FIN counting as one.
    pub len: u32,
    /// When it was first sent.
    pub first_sent: Instant,
    /// When it was last sent.
    pub last_sent: Instant,
    /// When data above it was first seen to be SACKed.
    pub first_above: Instant,
    /// When it was first ACKed or SACKed.
    pub delivered: Instant,
    /// cwnd at its last transmission, in octets.
    pub cwnd_at_sent: u32,
    /// Its reordering length at its first delivery, if it had been sent twice by then (RR-TCP §4.1).
    pub first_length: Option<Segments>,
    /// How often it was sent.
    pub transmissions: u16,
    /// Duplicates of it that the receiver reported (DSACK).
    pub duplicates: u16,
    /// Why it was last sent.
    pub cause: Cause,
    marks: Marks,
    /// Distance to the next record that may be unsacked; 0 on an unsacked one.
    skip: Cell<u32>,
    /// Neighbours in the list of transmissions (low half of their ids).
    newer: u32,
    older: u32,
}

impl Record {
    /// One past the last octet.
    pub fn end(&self) -> Offset {
        self.start + Bytes(u64::from(self.len))
    }

    /// Selectively acknowledged.
    pub fn is_sacked(&self) -> bool {
        self.marks.has(Marks::SACKED)
    }

    /// Judged lost.
    pub fn is_lost(&self) -> bool {
        self.marks.has(Marks::LOST)
    }

    /// Sent again, and that copy is thought to be under way.
    pub fn is_retransmitted(&self) -> bool {
        self.marks.has(Marks::RETRANSMITTED)
    }

    /// Its latest transmission is neither known to have arrived nor held lost.
    pub fn is_open(&self) -> bool {
        !self.marks.has(Marks::SACKED) && !self.marks.has(Marks::ACKED) && (!self.is_lost() || self.is_retransmitted())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Marks(u8);

impl Marks {
    const SACKED: Marks = Marks(1);
    const LOST: Marks = Marks(2);
    const RETRANSMITTED: Marks = Marks(4);
    const ACKED: Marks = Marks(8);

    const fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    fn set(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }

    fn clear(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }
}

/// An amount of data, counted both ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// In segments.
    pub segments: Segments,
    /// In octets.
    pub bytes: Bytes,
}

impl Tally {
    fn one(record: &Record) -> Tally {
        Tally { segments: Segments(1), bytes: Bytes(u64::from(record.len)) }
    }
}

impl Add for Tally {
    type Output = Tally;
    fn add(self, other: Tally) -> Tally {
        Tally { segments: self.segments + other.segments, bytes: self.bytes + other.bytes }
    }
}

impl Sub for Tally {
    type Output = Tally;
    fn sub(self, other: Tally) -> Tally {
        Tally { segments: self.segments - other.segments, bytes: self.bytes - other.bytes }
    }
}

/// A record that was resent and has left the scoreboard; a late DSACK can still be matched with it.
#[derive(Clone, Debug)]
struct Ghost {
    id: SegId,
    record: Record,
    expires: Instant,
}

/// One segment that a DSACK covers whole.
#[derive(Clone, Copy, Debug)]
pub struct Duplicate {
    /// The segment.
    pub id: SegId,
    /// How often it had been sent.
    pub transmissions: u16,
    /// How often the receiver has reported it as duplicate, this report included.
    pub reports: u16,
    /// When it was first sent.
    pub first_sent: Instant,
    /// When it was last sent.
    pub last_sent: Instant,
    /// When it was first ACKed or SACKed.
    pub delivered: Instant,
    /// Its reordering length at its first delivery, if it had been sent twice by then.
    pub first_length: Option<Segments>,
    /// Why it was last sent.
    pub cause: Cause,
}

/// Ghosts kept at most.
const MAX_GHOSTS: usize = 256;
/// No neighbour in the list of transmissions.
const NIL: u32 = u32::MAX;

/// How a neighbour is kept in a record.
fn low(id: Option<SegId>) -> u32 {
    id.map_or(NIL, |id| id.0 as u32)
}

/// The records of all outstanding segments. Plug-ins read it; only the sender's referee writes.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    records: VecDeque<Record>,
    /// The id of the record at the front of the ring.
    front: u64,
    /// Records at the front that the current ACK covers; they leave when the ACK has been dealt with.
    acked: usize,
    sent: Tally,
    sacked: Tally,
    lost: Tally,
    retransmitted: Tally,
    /// Discontiguous runs of sacked records.
    runs: u32,
    highest_sacked: Option<SegId>,
    /// Ends of the list of transmissions.
    newest: Option<SegId>,
    oldest: Option<SegId>,
    /// Lost and not under way again, lowest first. Stale entries are skipped when they come up.
    to_resend: BinaryHeap<Reverse<u64>>,
    ghosts: VecDeque<Ghost>,
    false_losses: u64,
}

/// Reading.
impl Scoreboard {
    /// The first segment that is not cumulatively acknowledged; the next new one if all are.
    pub fn first(&self) -> SegId {
        SegId(self.front + self.acked as u64)
    }

    /// The id that the next new segment will get.
    pub fn next_id(&self) -> SegId {
        SegId(self.front + self.records.len() as u64)
    }

    /// The record of `id`, if it is outstanding or covered by the ACK at hand.
    pub fn get(&self, id: SegId) -> Option<&Record> {
        self.index(id).map(|i| &self.records[i])
    }

    /// True if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.sent.segments == Segments::ZERO
    }

    /// Everything outstanding.
    pub fn sent(&self) -> Tally {
        self.sent
    }

    /// Of it, selectively acknowledged.
    pub fn sacked(&self) -> Tally {
        self.sacked
    }

    /// Of the rest, judged lost.
    pub fn lost(&self) -> Tally {
        self.lost
    }

    /// Sent again and thought to be under way.
    pub fn retransmitted(&self) -> Tally {
        self.retransmitted
    }

    /// What is thought to be in the network (RFC 6675 §4, `SetPipe`).
    pub fn pipe(&self) -> Tally {
        self.sent + self.retransmitted - self.sacked - self.lost
    }

    /// How many segments were held lost although their only transmission was delivered.
    pub fn false_losses(&self) -> u64 {
        self.false_losses
    }

    /// How many discontiguous runs of segments are SACKed.
    pub fn sacked_runs(&self) -> u32 {
        self.runs
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

    /// The segments whose fate is open (neither SACKed, nor lost unless resent), oldest transmission first.
    pub fn in_send_order(&self) -> impl Iterator<Item = (SegId, &Record)> {
        let mut next = self.oldest;
        std::iter::from_fn(move || {
            let id = next?;
            let record = self.get(id)?;
            next = self.expand(record.newer);
            Some((id, record))
        })
    }

    /// Of the segments whose fate is open, the one whose last transmission came closest before that of `id`.
    ///
    /// A record keeps its link to the older neighbour when it leaves the list, so this also answers for a segment that
    /// was just delivered, in as many steps as neighbours left with it.
    pub fn newest_open_before(&self, id: SegId) -> Option<SegId> {
        let mut older = self.expand(self.get(id)?.older);
        while let Some(candidate) = older {
            let record = self.get(candidate)?;
            if record.is_open() {
                break;
            }
            older = self.expand(record.older);
        }
        older
    }

    fn index(&self, id: SegId) -> Option<usize> {
        let i = id.0.checked_sub(self.front)? as usize;
        (i < self.records.len()).then_some(i)
    }

    fn id(&self, index: usize) -> SegId {
        SegId(self.front + index as u64)
    }

    /// The id whose low half is `low`: ring ids span far less than 2^32.
    fn expand(&self, low: u32) -> Option<SegId> {
        (low != NIL).then(|| SegId(self.front + u64::from(low.wrapping_sub(self.front as u32))))
    }

    fn waits(&self, id: SegId) -> bool {
        self.get(id).is_some_and(|r| r.is_lost() && !r.is_retransmitted())
    }

    /// Follows the skips from `from`, then shortens them: amortised almost constant.
    fn unsacked_at_or_after(&self, from: usize) -> Option<usize> {
        let mut found = from;
        while let Some(record) = self.records.get(found) {
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
    /// Segments are mostly of one size, so a guess by division is mostly right; a binary search covers the rest.
    fn locate(&self, offset: Offset) -> usize {
        let contains = |r: &Record| r.start <= offset && offset < r.end();
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

/// Writing, for the referee alone.
impl Scoreboard {
    /// Enters a new segment of `len` octets from `start`.
    pub(crate) fn push(&mut self, start: Offset, len: u32, now: Instant, cwnd: Bytes, cause: Cause) -> SegId {
        let id = self.next_id();
        self.records.push_back(Record {
            start,
            len,
            first_sent: now,
            last_sent: now,
            first_above: Instant::NEVER,
            delivered: Instant::NEVER,
            cwnd_at_sent: cwnd.0 as u32,
            first_length: None,
            transmissions: 1,
            duplicates: 0,
            cause,
            marks: Marks::default(),
            skip: Cell::new(0),
            newer: NIL,
            older: NIL,
        });
        self.sent = self.sent + Tally { segments: Segments(1), bytes: Bytes(u64::from(len)) };
        self.link_newest(id);
        id
    }

    /// Takes the cumulative acknowledgment of everything below `ack`. Appends what had not been SACKed to `newly`.
    ///
    /// The records stay readable until [`Scoreboard::retire`].
    pub(crate) fn acknowledge(&mut self, ack: Offset, now: Instant, newly: &mut Vec<SegId>) {
        while let Some(record) = self.records.get(self.acked) {
            if record.end() > ack {
                break;
            }
            let id = self.id(self.acked);
            if !record.is_sacked() {
                newly.push(id);
            }
            self.leave(id);
            let record = &mut self.records[self.acked];
            record.delivered = record.delivered.min(now);
            record.marks.set(Marks::ACKED);
            self.sent = self.sent - Tally::one(record);
            self.acked += 1;
        }
        self.trim_first(ack);
        if self.highest_sacked.is_some_and(|highest| highest < self.first()) {
            self.highest_sacked = None;
        }
    }

    /// An ACK inside a segment: what is below it needs no repair any more.
    fn trim_first(&mut self, ack: Offset) {
        let Some(record) = self.records.get_mut(self.acked) else { return };
        let covered = ack.since(record.start);
        if covered == Bytes::ZERO {
            return;
        }
        let part = Tally { segments: Segments::ZERO, bytes: covered };
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

    /// Takes a SACK block. Appends every segment that it covers whole for the first time to `newly`.
    pub(crate) fn sack(&mut self, block: Range<Offset>, now: Instant, newly: &mut Vec<SegId>) {
        let mut i = self.locate(block.start).max(self.acked);
        if self.records.get(i).is_some_and(|r| r.start < block.start) {
            i += 1;
        }
        while let Some(unsacked) = self.unsacked_at_or_after(i) {
            if self.records[unsacked].end() > block.end {
                break;
            }
            self.mark_sacked(unsacked, now);
            newly.push(self.id(unsacked));
            i = unsacked + 1;
        }
    }

    fn mark_sacked(&mut self, i: usize, now: Instant) {
        let id = self.id(i);
        self.leave(id);
        let left = i > self.acked && self.records[i - 1].is_sacked();
        let right = self.records.get(i + 1).is_some_and(Record::is_sacked);
        self.runs = self.runs + 1 - u32::from(left) - u32::from(right);
        let record = &mut self.records[i];
        record.marks.set(Marks::SACKED);
        record.skip.set(1);
        record.delivered = record.delivered.min(now);
        self.sacked = self.sacked + Tally::one(record);
        let from = self.highest_sacked.map_or(self.acked, |highest| (highest.0 - self.front) as usize + 1);
        for hole in from..i {
            let hole = &mut self.records[hole];
            hole.first_above = hole.first_above.min(now);
        }
        self.highest_sacked = self.highest_sacked.max(Some(id));
    }

    /// Takes the marks off a segment that was delivered, so that only `sent` and `sacked` count it.
    fn leave(&mut self, id: SegId) {
        let Some(i) = self.index(id) else { return };
        let one = Tally::one(&self.records[i]);
        let marks = self.records[i].marks;
        if marks.has(Marks::SACKED) {
            self.sacked = self.sacked - one;
            if !self.records.get(i + 1).is_some_and(Record::is_sacked) {
                self.runs -= 1;
            }
            return;
        }
        if marks.has(Marks::LOST) {
            self.lost = self.lost - one;
            self.false_losses += u64::from(self.records[i].transmissions == 1);
        }
        if marks.has(Marks::RETRANSMITTED) {
            self.retransmitted = self.retransmitted - one;
        }
        if !marks.has(Marks::LOST) || marks.has(Marks::RETRANSMITTED) {
            self.unlink(id);
        }
        let record = &mut self.records[i];
        record.marks.clear(Marks::LOST);
        record.marks.clear(Marks::RETRANSMITTED);
    }

    /// Marks the latest transmission of `id` as lost. False if it was delivered or is already waiting to be resent.
    pub(crate) fn mark_lost(&mut self, id: SegId) -> bool {
        let Some(i) = self.index(id) else { return false };
        let one = Tally::one(&self.records[i]);
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
        self.to_resend.push(Reverse(id.0));
        true
    }

    /// Forgets every verdict that has not been acted on: lost segments that were not resent count as under way again.
    pub(crate) fn clear_lost(&mut self) {
        let mut before = None;
        while let Some(id) = self.lowest_to_resend() {
            let i = (id.0 - self.front) as usize;
            self.lost = self.lost - Tally::one(&self.records[i]);
            self.records[i].marks.clear(Marks::LOST);
            self.link_in_order(id, before);
            before = Some(id);
            self.to_resend.pop();
        }
    }

    /// The lowest lost segment that waits to be resent.
    pub(crate) fn lowest_to_resend(&mut self) -> Option<SegId> {
        while let Some(&Reverse(id)) = self.to_resend.peek() {
            if self.waits(SegId(id)) {
                return Some(SegId(id));
            }
            self.to_resend.pop();
        }
        None
    }

    /// Notes that `id` is being sent again.
    pub(crate) fn resent(&mut self, id: SegId, now: Instant, cwnd: Bytes, cause: Cause) {
        let Some(i) = self.index(id) else { return };
        let marks = self.records[i].marks;
        if !marks.has(Marks::LOST) || marks.has(Marks::RETRANSMITTED) {
            self.unlink(id);
        }
        if !marks.has(Marks::RETRANSMITTED) {
            self.retransmitted = self.retransmitted + Tally::one(&self.records[i]);
        }
        let record = &mut self.records[i];
        record.marks.set(Marks::RETRANSMITTED);
        record.transmissions = record.transmissions.saturating_add(1);
        record.last_sent = now;
        record.cwnd_at_sent = cwnd.0 as u32;
        record.cause = cause;
        self.link_newest(id);
    }

    /// Keeps the reordering length of a segment's first delivery until a DSACK tells more.
    pub(crate) fn set_first_length(&mut self, id: SegId, length: Segments) {
        if let Some(i) = self.index(id) {
            self.records[i].first_length = Some(length);
        }
    }

    /// The receiver dropped what it had SACKed (RFC 2018 §8): nothing is known to be there any more.
    pub(crate) fn forget_sacks(&mut self) {
        let mut before = None;
        for i in self.acked..self.records.len() {
            let record = &mut self.records[i];
            if record.is_sacked() {
                record.marks.clear(Marks::SACKED);
                record.skip.set(0);
                let id = self.id(i);
                self.link_in_order(id, before);
                before = Some(id);
            }
        }
        self.sacked = Tally::default();
        self.runs = 0;
        self.highest_sacked = None;
    }

    /// Drops the records that the ACK at hand covered. Resent ones live on as ghosts until `ghosts_expire`.
    pub(crate) fn retire(&mut self, ghosts_expire: Instant) {
        for _ in 0..self.acked {
            if let Some(record) = self.records.pop_front() {
                if record.transmissions > 1 {
                    if self.ghosts.len() == MAX_GHOSTS {
                        self.ghosts.pop_front();
                    }
                    self.ghosts.push_back(Ghost { id: SegId(self.front), record, expires: ghosts_expire });
                }
                self.front += 1;
            }
        }
        self.acked = 0;
    }

    /// Matches a DSACK with the segments that `range` covers whole, and counts the report on each of them.
    pub(crate) fn report_duplicate(&mut self, range: Range<Offset>, now: Instant, found: &mut Vec<Duplicate>) {
        while self.ghosts.front().is_some_and(|ghost| ghost.expires < now) {
            self.ghosts.pop_front();
        }
        let inside = |r: &Record| r.start >= range.start && r.end() <= range.end;
        let live = self.locate(range.start);
        let live = self.records.iter_mut().enumerate().skip(live).take_while(|(_, r)| r.start < range.end);
        let live = live.map(|(i, record)| (SegId(self.front + i as u64), record));
        let ghosts = self.ghosts.iter_mut().map(|ghost| (ghost.id, &mut ghost.record));
        for (id, record) in ghosts.chain(live).filter(|(_, record)| inside(record)) {
            record.duplicates = record.duplicates.saturating_add(1);
            found.push(Duplicate {
                id,
                transmissions: record.transmissions,
                reports: record.duplicates,
                first_sent: record.first_sent,
                last_sent: record.last_sent,
                delivered: record.delivered,
                first_length: record.first_length,
                cause: record.cause,
            });
        }
    }

    fn link_newest(&mut self, id: SegId) {
        self.link(id, self.newest, None);
    }

    /// Puts `id` back where its last transmission belongs, looking from `hint` (else from the oldest) onwards.
    fn link_in_order(&mut self, id: SegId, hint: Option<SegId>) {
        let sent = self.at(id).last_sent;
        let mut older = hint.filter(|hint| self.at(*hint).last_sent <= sent);
        let mut newer = match older {
            Some(older) => self.expand(self.at(older).newer),
            None => self.oldest,
        };
        while let Some(next) = newer.filter(|next| self.at(*next).last_sent <= sent) {
            older = newer;
            newer = self.expand(self.at(next).newer);
        }
        self.link(id, older, newer);
    }

    fn link(&mut self, id: SegId, older: Option<SegId>, newer: Option<SegId>) {
        let record = self.at_mut(id);
        record.older = low(older);
        record.newer = low(newer);
        match older {
            Some(older) => self.at_mut(older).newer = low(Some(id)),
            None => self.oldest = Some(id),
        }
        match newer {
            Some(newer) => self.at_mut(newer).older = low(Some(id)),
            None => self.newest = Some(id),
        }
    }

    fn unlink(&mut self, id: SegId) {
        let record = self.at(id);
        let (older, newer) = (self.expand(record.older), self.expand(record.newer));
        match older {
            Some(older) => self.at_mut(older).newer = low(newer),
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.at_mut(newer).older = low(older),
            None => self.newest = older,
        }
    }

    fn at(&self, id: SegId) -> &Record {
        &self.records[(id.0 - self.front) as usize]
    }

    fn at_mut(&mut self, id: SegId) -> &mut Record {
        &mut self.records[(id.0 - self.front) as usize]
    }

    /// How long ghosts are kept: a DSACK comes at most a backed-off trip after the retransmission.
    pub(crate) fn ghost_lifetime(rto: Duration, srtt: Option<Duration>) -> Duration {
        (rto * 2).max(srtt.unwrap_or_default() * 4)
    }
}

/// The invariants at the top of this file.
impl Scoreboard {
    /// Recomputes the algebra from the records.
    ///
    /// # Errors
    /// Says which term differs; that is a bug of the engine.
    pub fn check(&self) -> Result<(), String> {
        let live = self.records.iter().skip(self.acked);
        let count = |keep: fn(&Record) -> bool| {
            live.clone().filter(|r| keep(r)).map(Tally::one).fold(Tally::default(), Tally::add)
        };
        let terms = [
            ("sent", self.sent, count(|_| true)),
            ("sacked", self.sacked, count(Record::is_sacked)),
            ("lost", self.lost, count(Record::is_lost)),
            ("retransmitted", self.retransmitted, count(Record::is_retransmitted)),
        ];
        for (term, kept, counted) in terms {
            if kept != counted {
                return Err(format!("{term}: kept {kept:?}, counted {counted:?}"));
            }
        }
        let mut runs = 0;
        let mut previous = false;
        for record in live.clone() {
            runs += u32::from(record.is_sacked() && !previous);
            previous = record.is_sacked();
        }
        if runs != self.runs {
            return Err(format!("runs: kept {}, counted {runs}", self.runs));
        }
        let open = live.clone().filter(|r| r.is_open()).count();
        let listed = self.in_send_order().take(self.records.len() + 1).count();
        if open != listed {
            return Err(format!("transmissions: {listed} listed, {open} open"));
        }
        let later = self.in_send_order().skip(1);
        if !self.in_send_order().zip(later).all(|((_, a), (_, b))| a.last_sent <= b.last_sent) {
            return Err("transmissions are out of order".to_owned());
        }
        Ok(())
    }
}
