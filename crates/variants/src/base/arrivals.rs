//! What has arrived above the first gap, segment by segment: for receivers that decide when to tell of it.

use std::collections::VecDeque;

use reknit_tcp::seams::{Arrival, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};

/// Segments remembered at most; of further ones only the stamps count.
const MAX_HELD: usize = 4096;

/// The round-trip time of a receiver that knows none.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Held {
    end: Offset,
    at: Instant,
}

/// The segments that arrived while something was missing below them, those that filled a gap included, in the order of
/// the stream, until [`Arrivals::forget_below`] lets them go.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    held: VecDeque<Held>,
    /// The newest timestamp among them.
    newest: Option<u32>,
}

impl Arrivals {
    /// A segment arrived that is not simply the next one.
    pub(crate) fn note(&mut self, rx: &RxFacts<'_>) {
        if rx.arrival == Arrival::Duplicate {
            return;
        }
        // What the window did not admit has not arrived.
        let end = rx.end.min(rx.highest);
        let at = match self.held.back() {
            Some(last) if last.end >= end => self.held.partition_point(|held| held.end < end),
            _ => self.held.len(),
        };
        let known = self.held.get(at).is_some_and(|held| held.end == end);
        if !known && self.held.len() < MAX_HELD {
            self.held.insert(at, Held { end, at: rx.now });
        }
        self.newest = match (self.newest, rx.timestamp) {
            (Some(newest), Some(stamp)) if is_newer(newest, stamp) => Some(newest),
            (newest, stamp) => stamp.or(newest),
        };
    }

    /// The end of the last segment that ends at or before `offset`.
    pub(crate) fn segment_end(&self, offset: Offset) -> Option<Offset> {
        let above = self.held.partition_point(|held| held.end <= offset);
        above.checked_sub(1).map(|i| self.held[i].end)
    }

    /// When the lowest segment arrived: the first gap is at least that old.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.held.front().map(|held| held.at)
    }

    /// Everything below `offset` is acknowledged.
    pub(crate) fn forget_below(&mut self, offset: Offset) {
        while self.held.front().is_some_and(|held| held.end <= offset) {
            self.held.pop_front();
        }
        if self.held.is_empty() {
            self.newest = None;
        }
    }

    /// Whether the segment at hand, not noted yet, was sent again, by the best evidence there is: what it says itself;
    /// else, if it fills a gap, its timestamp, not older than any of those that overtook it; else that these have been
    /// here for more than a round trip. With equal timestamps it may be of their burst, or follow what limited transmit
    /// sent on their ACKs: a loss that is taken for reordering does more harm than the reverse.
    pub(crate) fn is_retransmission(&self, rx: &RxFacts<'_>) -> bool {
        let fills = rx.end < rx.highest;
        match (rx.experiment.retransmitted, rx.timestamp, self.newest) {
            (Some(retransmitted), _, _) => retransmitted,
            (None, Some(stamp), Some(newest)) => fills && !is_newer(newest, stamp),
            _ => fills && self.oldest().is_some_and(|since| is_longer_than_a_round_trip(rx, since)),
        }
    }

    /// Bytes on the heap.
    pub(crate) fn heap_size(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }
}

/// True if more than a round trip has passed since.
pub(crate) fn is_longer_than_a_round_trip(rx: &RxFacts<'_>, since: Instant) -> bool {
    rx.now.since(since) > rx.rtt.unwrap_or(UNKNOWN_RTT)
}

/// RFC 7323 §5.2: timestamps wrap.
fn is_newer(stamp: u32, than: u32) -> bool {
    stamp.wrapping_sub(than).cast_signed() > 0
}
