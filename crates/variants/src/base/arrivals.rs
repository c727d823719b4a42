//! The segments that have arrived above the first gap, for receivers that delay or withhold ACKs.

use std::collections::VecDeque;

use reknit_tcp::seams::{Arrival, RxFacts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};

/// The maximum number of segments kept. Of further segments only the timestamps are used.
const MAX_HELD: usize = 4096;

/// The round-trip time assumed by a receiver that has not measured one.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Held {
    end: Offset,
    at: Instant,
}

/// The segments that arrived while data below them was missing, and those that filled a gap, in sequence order, until
/// [`Arrivals::forget_below`] drops them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    held: VecDeque<Held>,
    /// The newest timestamp among them.
    newest: Option<u32>,
}

impl Arrivals {
    /// A segment arrived that is not the next one in order.
    pub(crate) fn note(&mut self, rx: &RxFacts<'_>) {
        if rx.arrival == Arrival::Duplicate {
            return;
        }
        // Data beyond the window has not been accepted.
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

    /// When the lowest segment arrived: the first gap has been open at least since then.
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

    /// Whether the current segment, which must not be noted yet, is a retransmission, by the best evidence available.
    /// If it carries a retransmission bit, that decides. Otherwise, if it fills a gap, its timestamp decides: it is a
    /// retransmission if the timestamp is not older than the newest one among the segments above the gap. Without
    /// timestamps, it is one if those segments arrived more than a round trip ago. With equal timestamps the segment
    /// may belong to the same burst, or follow new data that limited transmit sent; it counts as a retransmission,
    /// because taking a loss for reordering does more harm than the reverse.
    pub(crate) fn is_retransmission(&self, rx: &RxFacts<'_>) -> bool {
        let fills = rx.end < rx.highest;
        match (rx.experiment.retransmitted, rx.timestamp, self.newest) {
            (Some(retransmitted), _, _) => retransmitted,
            (None, Some(stamp), Some(newest)) => fills && !is_newer(newest, stamp),
            _ => fills && self.oldest().is_some_and(|since| is_longer_than_a_round_trip(rx, since)),
        }
    }

    /// The size on the heap, in bytes.
    pub(crate) fn heap_size(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }
}

/// True if more than a round trip has passed since `since`.
pub(crate) fn is_longer_than_a_round_trip(rx: &RxFacts<'_>, since: Instant) -> bool {
    rx.now.since(since) > rx.rtt.unwrap_or(UNKNOWN_RTT)
}

/// RFC 7323 §5.2: timestamps wrap.
fn is_newer(stamp: u32, than: u32) -> bool {
    stamp.wrapping_sub(than).cast_signed() > 0
}
