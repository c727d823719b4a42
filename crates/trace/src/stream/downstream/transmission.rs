//! Which transmission of a range arrived, by echoed timestamps and by time. Called by [`super`] as the range arrives, and when a
//! duplicate of it is reported.

use reknit_units::{Duration, Instant};

use super::super::ranges::{Delivery, Origin, Range, Ranges};

/// Larger packets may be cut after they are captured: an Ethernet frame has at most this payload.
const LARGEST_WHOLE: u64 = 1_500;

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

/// This transmission, or else the first after it that no router has dropped for its size.
pub(super) fn fitting(range: &Range, by: usize) -> usize {
    let is_too_big = |by: usize| if by == 0 { range.first.is_too_big() } else { range.again[by - 1].seen.is_too_big() };
    (by..range.again.len()).find(|by| !is_too_big(*by)).unwrap_or(by.max(range.again.len()))
}

/// When the first transmission arrived, if it and the last retransmission both did, one now and one when the data was
/// acknowledged: the retransmission took about the usual round trip.
pub(super) fn arrival_of_first(range: &Range, now: Instant, usual: Duration) -> Instant {
    let sent = range.last_sent().at;
    let is_usual = |arrival: Instant| arrival.since(sent).abs_diff(usual);
    if is_usual(now) < is_usual(range.delivered_at) { range.delivered_at } else { now }
}

/// Without SACK, each of so many ACKs without news answers a packet that arrived behind the hole at `acked`. Of the ranges that have
/// now `arrived`, those that were sent once needed as many; the others that were answered are marked as delivered by their first
/// transmission. If only some were, it is not known whether the rest was lost.
pub(super) fn count_answers(answers: u32, arrived: &[(u64, usize)], acked: u64, ranges: &mut Ranges) {
    let hole = ranges.at(ranges.locate(acked)).map(|range| range.first.frame);
    let behind: Vec<&[(u64, usize)]> = arrived
        .chunk_by(|(a, _), (b, _)| Range::frame_of(*a) == Range::frame_of(*b))
        .filter(|packet| hole != Some(Range::frame_of(packet[0].0)))
        .collect();
    let is_again = |index: usize| {
        ranges.at(index).is_some_and(|range| range.origin == Origin::Original && range.is_retransmitted())
    };
    let (again, once): (Vec<_>, Vec<_>) =
        behind.into_iter().partition(|packet| packet.iter().any(|(_, index)| is_again(*index)));
    let answered = (answers as usize).saturating_sub(once.len());
    for (i, (_, index)) in again.iter().enumerate().flat_map(|(i, packet)| packet.iter().map(move |range| (i, range))) {
        let Some(range) = ranges.at_mut(*index).filter(|range| range.is_retransmitted()) else { continue };
        if i < answered {
            range.delivery = Delivery::Clear;
        } else if answered > 0 {
            range.duplicates = range.duplicates.saturating_add(1);
        }
    }
}

/// Of the ranges that have now `arrived`, marks those that were sent again, but whose first packet has arrived: other bytes that only
/// this packet had are acknowledged at the same time. Packets that segmentation offload cuts arrive in parts.
pub(super) fn mark_arrived(arrived: &[(u64, usize)], ranges: &mut Ranges) {
    for packet in arrived.chunk_by(|(a, _), (b, _)| Range::frame_of(*a) == Range::frame_of(*b)) {
        let of_packet = || packet.iter().filter_map(|(_, index)| ranges.at(*index));
        let [Some(begin), Some(end)] = [
            of_packet().map(|range| range.start - u64::from(range.within)).min(),
            of_packet().map(|range| range.end).max(),
        ] else {
            continue;
        };
        if end - begin > LARGEST_WHOLE || of_packet().all(|range| !range.again.is_empty()) {
            continue;
        }
        for (_, index) in packet {
            if let Some(range) =
                ranges.at_mut(*index).filter(|range| !range.again.is_empty() && range.delivery == Delivery::Open)
            {
                range.delivery = Delivery::Clear;
            }
        }
    }
}
