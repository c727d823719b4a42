//! Which transmission of a range arrived, by echoed timestamps and by time. Called by [`super`] as the range arrives, and when a
//! duplicate of it is reported.

use reknit_units::{Duration, Instant};

use super::super::ranges::Range;

/// The transmission that delivered a range, by the timestamp that the receiver echoes: 0 is the first. None if two of them have
/// the same timestamp.
pub(super) fn by_echo(range: &Range, echo: u32) -> Option<usize> {
    let values = || std::iter::once(&range.first).chain(range.again.iter().map(|again| &again.seen));
    let mut by = 0;
    let mut last = None;
    for (i, seen) in values().enumerate() {
        let value = seen.tsval()?;
        if last == Some(value) {
            return None;
        }
        last = Some(value);
        if echo.wrapping_sub(value).cast_signed() >= 0 {
            by = i;
        }
    }
    Some(by)
}

/// The last transmission that can have arrived by now: the last one if no lower bound of the round trip is known.
pub(super) fn by_time(range: &Range, now: Instant, bound: Option<Duration>) -> usize {
    let least = bound.unwrap_or_default();
    range.again.iter().take_while(|again| now.since(again.seen.at) >= least).count()
}

/// The transmission of which this one is a copy; itself if it is none. Packets that the network or the capture copied were not
/// sent again.
pub(super) fn original_of(range: &Range, by: usize) -> usize {
    let is_copy = |by: &usize| !range.again[by - 1].what.is_sent_again();
    (1..=by).rev().find(|by| !is_copy(by)).unwrap_or(0)
}

/// When the first transmission arrived, if it and the last retransmission both did, one now and one when the data was
/// acknowledged: the retransmission took about the usual round trip.
pub(super) fn arrival_of_first(range: &Range, now: Instant, usual: Duration) -> Instant {
    let sent = range.last_sent().at;
    let is_usual = |arrival: Instant| arrival.since(sent).abs_diff(usual);
    if is_usual(now) < is_usual(range.delivered_at) { range.delivered_at } else { now }
}
