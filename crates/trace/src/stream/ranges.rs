//! The data of one direction as it passed the capture point: which bytes, when, and in which packets. [`super::data`] inserts,
//! splits and removes ranges and records repeats; `upstream` and `downstream` also split them and record what is known about arrival.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

use super::disorder;
use super::sighting::CapturedSegment;

/// The kind of a further packet with the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Repeat {
    /// The sender has sent them again.
    Retransmission,
    /// A retransmission that the receiver needed: it did not have the bytes although all earlier packets with them had passed.
    Replacement,
    /// A retransmission that the receiver may have needed: the data may have waited behind other missing data.
    Waiting,
    /// The network has copied a packet.
    Copy,
    /// The first transmission, late.
    Late,
    /// A copy or a retransmission.
    Unclear,
}

impl Repeat {
    /// True if the sender has sent the bytes again, as far as is known.
    pub(super) const fn is_sent_again(self) -> bool {
        !matches!(self, Repeat::Copy | Repeat::Late)
    }
}

/// A further sighting of bytes that had passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Resighting {
    pub(super) seen: CapturedSegment,
    pub(super) why: crate::RetransmitReason,
    pub(super) what: Repeat,
}

/// The further sightings of a range. Most ranges have none, so an empty list is only a pointer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::box_collection, reason = "a vector is three times as large as a pointer")]
pub(super) struct Repeats(Option<Box<Vec<Resighting>>>);

impl Repeats {
    pub(super) fn push(&mut self, again: Resighting) {
        self.0.get_or_insert_default().push(again);
    }
}

impl Deref for Repeats {
    type Target = [Resighting];

    fn deref(&self) -> &[Resighting] {
        self.0.as_ref().map_or(&[], |all| all.as_slice())
    }
}

impl DerefMut for Repeats {
    fn deref_mut(&mut self) -> &mut [Resighting] {
        self.0.as_mut().map_or(&mut [], |all| all.as_mut_slice())
    }
}

/// How the bytes first passed the capture point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Origin {
    /// In their first transmission.
    Original,
    /// In a retransmission that filled a hole. The first transmission may still come.
    Repair,
    /// In a retransmission whose first transmission came later.
    Overtaken,
    /// In a retransmission of bytes that had been acknowledged, although their first transmission was not captured.
    Acknowledged,
    /// In a packet that filled a hole: the first transmission or a retransmission.
    Unclear,
}

/// What is known about the arrival of the bytes at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Delivery {
    /// Not acknowledged.
    Open,
    /// Not acknowledged, although the receiver has acknowledged everything before them in answer to a later packet: it does not
    /// have them.
    Missing,
    /// Not acknowledged, and beyond the window when they passed: the receiver refuses them.
    Refused,
    /// Acknowledged; the first captured transmission delivered them.
    Clear,
    /// Acknowledged; this transmission delivered them if no duplicate is reported: 0 is the first.
    Likely { by: u8, evidence: Evidence },
}

/// How it is known which transmission was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Evidence {
    /// The receiver has echoed its timestamp.
    Echo,
    /// By the time.
    Time,
    /// By the time, but packets of the receiver are missing, which may have acknowledged an earlier transmission.
    Doubtful,
}

/// Consecutive bytes that have the same history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first: CapturedSegment,
    /// The offset of the range in its packet: ranges of one packet keep their order.
    pub(super) within: u32,
    pub(super) origin: Origin,
    pub(super) delivery: Delivery,
    pub(super) delivered_at: Instant,
    /// Reports of duplicates (RFC 2883).
    pub(super) duplicates: u8,
    /// The place of the first transmission in the order of arrival at the capture point, and at the receiver.
    pub(super) place_here: u32,
    pub(super) place_there: u32,
    pub(super) again: Repeats,
}

impl Range {
    /// The bytes from `start` to `end` of a packet that passes now, `within` bytes after its first. `place_here`: its place in
    /// the order of arrival.
    #[inline]
    pub(super) fn new(
        (start, end): (u64, u64),
        first: CapturedSegment,
        within: u32,
        origin: Origin,
        delivery: Delivery,
        place_here: u32,
    ) -> Range {
        Range {
            start,
            end,
            first,
            within,
            origin,
            delivery,
            delivered_at: first.at,
            duplicates: 0,
            place_here,
            place_there: disorder::NONE,
            again: Repeats::default(),
        }
    }

    /// Its place in the order in which data passed the capture point for the first time.
    pub(super) fn order(&self) -> u64 {
        const STEP: u32 = 128;
        self.first.frame << 16 | u64::from((self.within / STEP).min(0xffff))
    }

    /// The packet that carried a range with this place in the order.
    pub(super) fn frame_of(order: u64) -> u64 {
        order >> 16
    }

    pub(super) fn last_sent(&self) -> CapturedSegment {
        self.again.last().map_or(self.first, |again| again.seen)
    }

    /// True if nothing happened to it: it passed once, in order, and was acknowledged.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.again.is_empty()
            && self.duplicates == 0
            && self.delivery == Delivery::Clear
            && self.origin == Origin::Original
    }

    /// True if the sender has sent it again.
    pub(super) fn is_retransmitted(&self) -> bool {
        self.again.iter().any(|again| again.what.is_sent_again())
    }

    /// True if it begins and ends between `from` and `to`.
    pub(super) fn is_within(&self, from: u64, to: u64) -> bool {
        from <= self.start && self.end <= to
    }

    pub(super) fn is_delivered(&self) -> bool {
        matches!(self.delivery, Delivery::Clear | Delivery::Likely { .. })
    }
}

/// A million ranges may be remembered.
const _: () = assert!(size_of::<Range>() <= 72, "ranges take more memory");

/// Ranges that do not overlap, in the order of their bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ranges {
    all: VecDeque<Range>,
    /// Data before this has been forgotten.
    floor: u64,
    /// The approximate index of the first range that is not acknowledged.
    edge: usize,
}

impl Ranges {
    /// No ranges yet; they begin at `start`.
    pub(super) fn starting_at(start: u64) -> Ranges {
        Ranges { floor: start, ..Ranges::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Data before this has been forgotten.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// The index of the first range that ends after `offset`. The search starts at the edge of the acknowledged data or at the
    /// end: most of the ranges are older than the one that is looked for.
    pub(super) fn locate(&self, offset: u64) -> usize {
        let ends_before = |index: usize| self.all[index].end <= offset;
        let Some(last) = self.all.len().checked_sub(1) else { return 0 };
        let edge = self.edge.min(last);
        if self.all[edge].start <= offset && !ends_before(edge) {
            return edge;
        }
        let len = last + 1;
        if ends_before(last) {
            return len;
        }
        let is_near_end = self.end() - offset < offset.saturating_sub(self.all[edge].end);
        let start = if is_near_end { last } else { edge };
        let (mut low, mut high) = (start, start);
        let mut step = 1;
        if ends_before(start) {
            while high < len && ends_before(high) {
                (low, high, step) = (high + 1, high + step, step * 2);
            }
            high = high.min(len);
        } else {
            while low > 0 {
                low = low.saturating_sub(step);
                if ends_before(low) {
                    low += 1;
                    break;
                }
                (high, step) = (low, step * 2);
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            if ends_before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Everything before the range at `index` is acknowledged: a hint for [`Ranges::locate`].
    pub(super) fn note_edge(&mut self, index: usize) {
        self.edge = index;
    }

    /// True if the last range begins at `offset`.
    pub(super) fn last_begins_at(&self, offset: u64) -> bool {
        self.all.back().is_some_and(|range| range.start == offset)
    }

    /// The end of the last range.
    pub(super) fn end(&self) -> u64 {
        self.all.back().map_or(self.floor, |range| range.end)
    }

    pub(super) fn at(&self, index: usize) -> Option<&Range> {
        self.all.get(index)
    }

    pub(super) fn at_mut(&mut self, index: usize) -> Option<&mut Range> {
        self.all.get_mut(index)
    }

    /// Adds a range before the one at `index`. It is built in place: copying what has just been written is slow.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, range: impl FnOnce() -> Range) {
        if index == self.all.len() {
            self.all.push_back(range());
        } else {
            self.all.insert(index, range());
        }
    }

    /// Removes the first range if `is_old`. Returns it, and where the missing bytes before it begin.
    #[inline]
    pub(super) fn pop_front_if(&mut self, is_old: impl FnOnce(&Range) -> bool) -> Option<(Range, u64)> {
        let range = self.all.pop_front_if(|range| is_old(range))?;
        let missing_from = self.floor.min(range.start);
        self.floor = self.floor.max(range.end);
        self.edge = self.edge.saturating_sub(1);
        if self.all.is_empty() && self.all.capacity() > 64 {
            self.all.shrink_to(16);
        }
        Some((range, missing_from))
    }

    /// Splits the range at `index` so that a range begins at `offset`; returns the index of that range.
    pub(super) fn split(&mut self, index: usize, offset: u64) -> usize {
        let Some(range) = self.all.get_mut(index) else { return index };
        if offset <= range.start {
            return index;
        }
        if offset >= range.end {
            return index + 1;
        }
        let mut second = range.clone();
        second.within = range.within.saturating_add((offset - range.start) as u32);
        second.start = offset;
        range.end = offset;
        self.all.insert(index + 1, second);
        index + 1
    }

    /// Splits the range at `index` so that its part in `from..to` is a range; returns the index of that range.
    #[inline]
    pub(super) fn narrow(&mut self, index: usize, from: u64, to: u64) -> usize {
        if self.all.get(index).is_some_and(|range| range.is_within(from, to)) {
            return index;
        }
        let index = self.split(index, from);
        self.split(index, to);
        index
    }

    /// The first packet that carried any of them.
    pub(super) fn first_frame(&self) -> u64 {
        let again = |range: &Range| range.again.iter().map(|again| again.seen.frame).min().unwrap_or(u64::MAX);
        self.all.iter().map(|range| range.first.frame.min(again(range))).min().unwrap_or(u64::MAX)
    }

    /// No duplicates were reported so far.
    #[cold]
    pub(super) fn forget_duplicates(&mut self) {
        self.all.iter_mut().for_each(|range| range.duplicates = 0);
    }

    /// Releases memory that is not needed now.
    pub(super) fn shrink(&mut self) {
        self.all.shrink_to_fit();
    }

    /// The ranges from the first that ends after `offset` on.
    pub(super) fn from(&self, offset: u64) -> impl Iterator<Item = &Range> {
        self.all.range(self.locate(offset)..)
    }

    /// True if all of these bytes have passed.
    pub(super) fn have(&self, (from, to): (u64, u64)) -> bool {
        let mut end = from;
        for range in self.all.range(self.locate(from)..) {
            if range.start > end || end >= to {
                break;
            }
            end = range.end;
        }
        end >= to
    }

    /// The end of the bytes that follow `from` without a gap.
    pub(super) fn contiguous_from(&self, from: u64) -> u64 {
        let mut end = from;
        for range in self.all.range(self.locate(from)..) {
            if range.start > end {
                break;
            }
            end = end.max(range.end);
        }
        end
    }
}
