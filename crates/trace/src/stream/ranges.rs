//! The data of one direction as it passed the point of capture: which bytes, when, and in which packets.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

/// A packet that carried some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Sighting {
    pub(super) at: Instant,
    /// The packet's number in the file.
    pub(super) frame: u64,
    // Whether there are any is kept beside, which takes less room than in two options.
    tsval: u32,
    ip_id: u16,
    has_tsval: bool,
    has_ip_id: bool,
}

impl Sighting {
    pub(super) fn new(at: Instant, frame: u64, tsval: Option<u32>, ip_id: Option<u16>) -> Sighting {
        Sighting {
            at,
            frame,
            tsval: tsval.unwrap_or_default(),
            ip_id: ip_id.unwrap_or_default(),
            has_tsval: tsval.is_some(),
            has_ip_id: ip_id.is_some(),
        }
    }

    pub(super) fn tsval(&self) -> Option<u32> {
        self.has_tsval.then_some(self.tsval)
    }

    pub(super) fn ip_id(&self) -> Option<u16> {
        self.has_ip_id.then_some(self.ip_id)
    }
}

/// A further sighting of bytes that had been seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Again {
    pub(super) seen: Sighting,
    pub(super) why: crate::Why,
    /// It is a copy of an earlier sighting, so the sender has not sent it.
    pub(super) is_copy: bool,
    /// Its event has been reported.
    pub(super) is_told: bool,
}

/// The further sightings of a range. Most ranges have none, so none take only a pointer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(clippy::box_collection, reason = "a vector is three times as large as a pointer")]
pub(super) struct Repeats(Option<Box<Vec<Again>>>);

impl Repeats {
    pub(super) fn push(&mut self, again: Again) {
        self.0.get_or_insert_default().push(again);
    }
}

impl Deref for Repeats {
    type Target = [Again];

    fn deref(&self) -> &[Again] {
        self.0.as_ref().map_or(&[], |all| all.as_slice())
    }
}

impl DerefMut for Repeats {
    fn deref_mut(&mut self) -> &mut [Again] {
        self.0.as_mut().map_or(&mut [], |all| all.as_mut_slice())
    }
}

/// What the packet that brought the bytes first was, seen from the point of capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Origin {
    /// Their first transmission.
    Original,
    /// A retransmission that filled a hole. The first transmission may still come.
    Repair,
    /// The same, and it has been settled what it was.
    Settled,
    /// It filled a hole, and cannot be told apart.
    Unclear,
}

/// What is known about the arrival of the bytes at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Delivery {
    /// Not acknowledged.
    Open,
    /// Acknowledged, and it is clear by which transmission, or there was only one.
    Clear,
    /// Acknowledged; this transmission brought them, if no duplicate is reported: 0 is the first.
    Likely {
        by: u8,
        /// The echoed timestamp says so.
        by_echo: bool,
    },
}

/// Consecutive bytes that have the same history.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) first: Sighting,
    /// Where the range begins in its packet: ranges of one packet keep their order.
    pub(super) within: u32,
    pub(super) origin: Origin,
    pub(super) delivery: Delivery,
    pub(super) delivered_at: Instant,
    /// Reports of duplicates (RFC 2883).
    pub(super) duplicates: u8,
    /// The place of the first transmission in the order of arrival at the point of capture, and at the receiver.
    pub(super) place_here: u32,
    pub(super) place_there: u32,
    pub(super) again: Repeats,
}

impl Range {
    /// Its place in the order in which data passed the point of capture for the first time.
    pub(super) fn order(&self) -> u64 {
        const STEP: u32 = 128;
        self.first.frame << 16 | u64::from((self.within / STEP).min(0xffff))
    }

    pub(super) fn last_sent(&self) -> Sighting {
        self.again.last().map_or(self.first, |again| again.seen)
    }

    /// True if it begins and ends between `from` and `to`.
    pub(super) fn is_within(&self, from: u64, to: u64) -> bool {
        from <= self.start && self.end <= to
    }

    pub(super) fn is_delivered(&self) -> bool {
        !matches!(self.delivery, Delivery::Open)
    }
}

/// A million of them may be remembered.
const _: () = assert!(size_of::<Range>() <= 72, "ranges take more memory");

/// Ranges that do not overlap, in the order of their bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Ranges {
    all: VecDeque<Range>,
    /// What came before this has been forgotten.
    pub(super) floor: u64,
    /// About where the data begins that is not acknowledged.
    edge: usize,
}

impl Ranges {
    /// None yet; they begin at `start`.
    pub(super) fn starting_at(start: u64) -> Ranges {
        Ranges { floor: start, ..Ranges::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The index of the first range that ends after `offset`. It is searched from the edge of what is acknowledged, or from
    /// the end: most of what is remembered is older than what is looked for.
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

    /// Everything before the range at `index` is acknowledged.
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

    /// Adds a range before the one at `index`. It is made where it stays: copies of what has just been written are slow.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, range: impl FnOnce() -> Range) {
        if index == self.all.len() {
            self.all.push_back(range());
        } else {
            self.all.insert(index, range());
        }
    }

    /// Removes the first range if `is_old` says so.
    #[inline]
    pub(super) fn pop_front_if(&mut self, is_old: impl FnOnce(&Range) -> bool) -> Option<Range> {
        let range = self.all.pop_front_if(|range| is_old(range))?;
        self.floor = self.floor.max(range.end);
        self.edge = self.edge.saturating_sub(1);
        if self.all.is_empty() && self.all.capacity() > 64 {
            self.all.shrink_to(16);
        }
        Some(range)
    }

    /// Splits the range at `index` so that one begins at `offset`; returns that one's index.
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

    /// Splits the range at `index`, part of which is in `from..to`, so that this part is a range; returns its index.
    #[inline]
    pub(super) fn narrow(&mut self, index: usize, from: u64, to: u64) -> usize {
        if self.all.get(index).is_some_and(|range| range.is_within(from, to)) {
            return index;
        }
        let index = self.split(index, from);
        self.split(index, to);
        index
    }

    /// Gives back memory that is not needed now.
    pub(super) fn shrink(&mut self) {
        self.all.shrink_to_fit();
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
