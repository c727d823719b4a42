//! What happened to the data upstream of the capture point, by the order in which packets pass: loss, reordering, copies.
//! Owned by [`super::data`].
//!
//! Called by [`super::data`]: for each packet with data `on_next`, then `on_earlier_data` unless it is the next data, then
//! `advance`; for each acknowledgment `on_ack`, before [`super::downstream`]; `decide` when a range is forgotten.

use std::cmp::Ordering;

use reknit_path::Reordering;
use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::clock::Clock;
use super::disorder::{self, Disorder};
use super::log::FindingSink;
use super::pieces::{Pieces, TransmissionVerdict};
use super::ranges::{Delivery, Origin, Range, Ranges, Repeat};
use super::sighting::CapturedSegment;
use crate::transit::{Departure, PacketFate};
use crate::{PathPart, RetransmitReason, UnknownReason, Verdict};

/// An original is looked for among this many ranges above a hole.
const MAX_NEIGHBOURS: usize = 256;
/// Retransmission timers are longer than this (Linux: at least 200 ms), and fast retransmits usually faster.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(190);

/// The time that a host may take to answer, on top of the round trip.
const SLOW_HOST: Duration = Duration::from_millis(5);
/// How long a host may delay an ACK (RFC 9293 §3.8.6.3).
const LONGEST_DELAY: Duration = Duration::from_millis(500);

/// The state of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Upstream {
    /// The end of the data without holes.
    frontier: u64,
    highest: u64,
    waiting_since: Option<Instant>,
    /// When the last hole was filled, and the end of the data captured by then.
    complete_since: Option<Instant>,
    complete_to: u64,
    /// How long data waited behind holes.
    waited: Duration,
    /// Packets in their order of arrival, without retransmissions.
    pub(crate) reordering: Reordering,
    pub(crate) disorder: Disorder,
    latest: Duration,
}

/// The evidence that distinguishes an original from its retransmission. Made by `Data::on_earlier_data` for each such packet; the
/// clock is that of `Data`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks<'a> {
    pub(super) clock: &'a Clock,
    pub(super) timing: Timing,
    pub(super) receiver: Receiver,
    /// The receiver has acknowledged or SACKed all bytes of the packet.
    pub(super) is_there: bool,
    /// Data before this may have been sent before the capture began.
    pub(super) unseen_below: u64,
}

/// The shortest round trip between the two ends so far, and its known lower bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) round_trip: Option<Duration>,
    pub(super) bound: Option<Duration>,
}

/// What is known about the receiver. Made by `After::receiver` for one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiver {
    /// It has everything before this.
    pub(super) acked: u64,
    pub(super) last_ack: Option<Instant>,
    /// The shortest round trip between it and the capture point.
    pub(super) round_trip: Option<Duration>,
}

impl Receiver {
    /// True if it has not received bytes that passed as `seen`, although no earlier bytes were missing since `complete`: it has
    /// acknowledged other data in the meantime, or has been silent for longer than an ACK may be delayed.
    fn has_missed(&self, seen: &CapturedSegment, complete: Instant, now: Instant) -> bool {
        let answer = self.answer();
        let waited = |until: Instant| until.since(seen.at.max(complete));
        let is_due =
            |answer| self.last_ack.is_some_and(|ack| waited(ack) > answer) || waited(now) > answer + LONGEST_DELAY;
        !seen.is_stale() && answer.is_some_and(is_due)
    }

    /// True if it has not answered a packet that passed as `seen` and filled a hole, which calls for an ACK at once (RFC 5681 §4.2).
    fn has_ignored(&self, seen: &CapturedSegment, now: Instant) -> bool {
        let is_silent = self.last_ack.is_none_or(|ack| ack < seen.at);
        is_silent && self.answer().is_some_and(|answer| now.since(seen.at) > answer)
    }

    /// It has acknowledged `ack` in answer to a packet that filled a hole, but not the data that had passed before that packet.
    /// Called after `After::on_ack` of the same acknowledgment.
    #[cold]
    pub(super) fn note_missing(&self, ack: u64, ranges: &mut Ranges, now: Instant) {
        let index = ranges.locate(ack);
        let filled_at = index.checked_sub(1).and_then(|before| ranges.at(before)).map(|range| range.last_sent().at);
        let Some((filled_at, answer)) = filled_at.zip(self.answer()) else { return };
        let Some(range) = ranges.at_mut(index).filter(|range| range.start == ack) else { return };
        let passed = range.last_sent().at;
        if range.delivery == Delivery::Open && passed < filled_at && now.since(passed) > answer {
            range.delivery = Delivery::Missing;
        }
    }

    /// The longest time it takes to answer, unless it delays its ACK.
    fn answer(&self) -> Option<Duration> {
        self.round_trip.map(|round_trip| round_trip * 2 + SLOW_HOST)
    }
}

impl Timing {
    /// True if no retransmission could have been triggered within this time.
    fn is_too_soon(self, span: Duration) -> bool {
        self.bound.is_some_and(|bound| span < bound.mul_f64(0.8))
    }

    /// True if packets with equal headers were sent together. A retransmission comes at least a round trip later, and the
    /// shortest round trip so far is a safe measure of it.
    fn equal_means_together(self, clock: &Clock) -> bool {
        self.round_trip.is_some_and(|round_trip| clock.tells_apart(round_trip.mul_f64(0.8)))
    }
}

/// The class of a packet that is not the next data: it fills a hole, or repeats bytes that have passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Earlier {
    New(Origin),
    Repeat(Repeat),
}

impl Upstream {
    /// The data begins at `start`. Called once, before the first packet.
    pub(super) fn begin(&mut self, start: u64) {
        (self.frontier, self.highest) = (start, start);
    }

    /// True if a packet whose bytes begin at `start` has the next data, as most packets do; it is then counted as an arrival.
    #[inline]
    pub(super) fn on_next(&mut self, start: u64, now: Instant) -> bool {
        let is_next = start >= self.highest;
        if is_next {
            self.reordering.on_arrival(start, now);
        }
        is_next
    }

    /// A packet with the bytes from `start` to `end` that is not the next data. Returns the origin of its new bytes, or the kind
    /// of repeat if it has none. Called after `on_next` returned false, before the packet is added to `ranges`.
    pub(super) fn on_earlier_data(
        &mut self,
        (start, end): (u64, u64),
        seen: CapturedSegment,
        ranges: &mut Ranges,
        marks: Marks<'_>,
        out: &mut FindingSink<'_>,
    ) -> Earlier {
        if ranges.have((start.max(ranges.floor()), end)) {
            return Earlier::Repeat(self.on_repeat((start, end), seen, ranges, marks, out));
        }
        let origin = origin(start, seen, ranges, marks.clock, marks.timing);
        match origin {
            Origin::Repair | Origin::Unclear if marks.is_there => return Earlier::New(Origin::Acknowledged),
            // It may be the first transmission, or repeat one from before the capture began.
            Origin::Original | Origin::Repair if start < marks.unseen_below => {
                out.report(PathPart::Upstream, seen, (start, end), Verdict::Unknown(UnknownReason::BeforeCapture));
                return Earlier::New(Origin::Unclear);
            }
            Origin::Original if marks.is_there => {} // the capture does not have them in the order of passing
            Origin::Original => self.report_late((start, end), seen, out),
            Origin::Unclear => {
                out.report(PathPart::Upstream, seen, (start, end), Verdict::Unknown(UnknownReason::SameHeaders));
            }
            _ => {}
        }
        Earlier::New(origin)
    }

    fn report_late(&mut self, range: (u64, u64), seen: CapturedSegment, out: &mut FindingSink<'_>) {
        if let Some(late) = self.reordering.on_arrival(range.0, seen.at) {
            self.latest = self.latest.max(late.late);
            out.report(PathPart::Upstream, seen, range, Verdict::Reordered { packets: late.extent, late: late.late });
        }
    }

    /// A packet whose bytes have all passed already.
    fn on_repeat(
        &mut self,
        bytes: (u64, u64),
        seen: CapturedSegment,
        ranges: &mut Ranges,
        marks: Marks<'_>,
        out: &mut FindingSink<'_>,
    ) -> Repeat {
        let index = ranges.locate(bytes.0);
        let Some(range) = ranges.at(index) else { return Repeat::Unclear };
        let first = range.first;
        // A copy has the same length, so its bytes are one range or several, but not a part of one.
        let is_whole = range.start == bytes.0 && range.end <= bytes.1;
        let copies = |other: &CapturedSegment| marks.clock.is_copy(other, &seen);
        let is_copy = copies(&first) || range.again.iter().any(|again| copies(&again.seen));
        let is_soon = marks.timing.is_too_soon(seen.at.since(range.last_sent().at));
        if is_copy && (marks.timing.equal_means_together(marks.clock) || is_soon) {
            out.report(PathPart::Upstream, seen, bytes, Verdict::Duplicated);
            return Repeat::Copy;
        }
        match marks.clock.order(&seen, &first) {
            Some(Ordering::Less) if range.origin == Origin::Repair => {
                self.on_earlier(index, bytes, seen, ranges, marks, out);
                Repeat::Late
            }
            None | Some(Ordering::Greater) if self.has_not_arrived(range, &marks.receiver, seen.at) => {
                let is_needed = range.delivery == Delivery::Missing || range.start <= marks.receiver.acked;
                if is_needed { Repeat::Replacement } else { Repeat::Waiting }
            }
            Some(Ordering::Greater) => Repeat::Retransmission,
            None | Some(Ordering::Equal) if range.origin == Origin::Original && is_another(range, bytes, &seen) => {
                Repeat::Retransmission
            }
            None | Some(Ordering::Equal) if is_soon => {
                out.report(PathPart::Upstream, seen, bytes, Verdict::Duplicated);
                Repeat::Copy
            }
            _ if !is_whole => Repeat::Retransmission,
            _ => Repeat::Unclear,
        }
    }

    /// True if the bytes were captured, but the receiver does not have them.
    fn has_not_arrived(&self, range: &Range, receiver: &Receiver, now: Instant) -> bool {
        let complete = self.complete_since.unwrap_or(range.first.at);
        let has_missed = || receiver.has_missed(&range.last_sent(), complete, now);
        match range.delivery {
            Delivery::Missing => true,
            Delivery::Open if range.origin == Origin::Repair && range.start <= receiver.acked => {
                receiver.has_ignored(&range.last_sent(), now)
            }
            Delivery::Open | Delivery::Refused => self.waiting_since.is_none() && has_missed(),
            Delivery::Clear | Delivery::Likely { .. } => false,
        }
    }

    /// A packet that was sent before the one that filled the hole, which was therefore not needed.
    fn on_earlier(
        &mut self,
        index: usize,
        bytes: (u64, u64),
        seen: CapturedSegment,
        ranges: &mut Ranges,
        marks: Marks<'_>,
        out: &mut FindingSink<'_>,
    ) {
        let is_original = origin(bytes.0, seen, ranges, marks.clock, marks.timing) == Origin::Original;
        let index = ranges.narrow(index, bytes.0, bytes.1);
        let Some(range) = ranges.at_mut(index) else { return };
        if is_original {
            range.origin = Origin::Overtaken;
            range.place_here = self.reordering.arrived() as u32;
            self.report_late(bytes, seen, out);
        } else {
            range.first = seen; // a retransmission too, and now the earliest
        }
    }

    /// True if `ack` does not cover all data that had passed when the last hole was filled.
    #[inline]
    pub(super) fn leaves_out(&self, ack: u64) -> bool {
        ack < self.complete_to && self.waiting_since.is_none()
    }

    /// True if data before `start` is missing.
    #[inline]
    pub(super) fn is_early(&self, start: u64) -> bool {
        start > self.frontier
    }

    /// The place of the packet that has just passed in the order of arrival. Called after `on_next` or `on_earlier_data`.
    pub(super) fn place(&self, origin: Origin) -> u32 {
        let is_counted = origin == Origin::Original;
        if is_counted { (self.reordering.arrived() as u32).wrapping_sub(1) } else { disorder::NONE }
    }

    /// Updates the frontier after a packet whose first byte is `start`. Called after the packet was added to `ranges`. True if the
    /// receiver has acknowledged data before the packet that has not passed.
    pub(super) fn advance(&mut self, start: u64, ranges: &Ranges, (acked, highest): (u64, u64), now: Instant) -> bool {
        let is_complete = self.frontier == self.highest;
        let is_next = is_complete && (start == self.frontier || ranges.last_begins_at(self.frontier));
        self.highest = highest;
        let is_gap = !is_next && acked.min(start) > self.frontier;
        self.frontier = if is_next { highest } else { ranges.contiguous_from(self.frontier.max(acked.min(start))) };
        self.note_waiting(now);
        is_gap
    }

    /// The receiver has everything before `ack`, captured or not. True if some of it had not passed.
    pub(super) fn on_ack(&mut self, ack: u64, ranges: &Ranges, now: Instant) -> bool {
        let is_ahead = ack > self.frontier;
        if is_ahead {
            self.frontier = ranges.contiguous_from(ack);
            self.note_waiting(now);
        }
        is_ahead
    }

    /// Holes before `start` do not count: that data may have been sent before the capture began.
    pub(super) fn skip_to(&mut self, start: u64, ranges: &Ranges) {
        if start > self.frontier {
            self.frontier = ranges.contiguous_from(start);
            self.waiting_since = None;
        }
    }

    fn note_waiting(&mut self, now: Instant) {
        if self.frontier < self.highest {
            self.waiting_since.get_or_insert(now);
        } else if let Some(since) = self.waiting_since.take() {
            self.waited += now.since(since);
            (self.complete_since, self.complete_to) = (Some(now), self.highest);
        }
    }

    /// The verdict on a range that is being forgotten, before [`super::downstream`]'s: if its original has not come by now, it was
    /// lost.
    pub(super) fn decide(&mut self, range: &Range, clock: &Clock, pieces: &mut Pieces, out: &mut FindingSink<'_>) {
        self.disorder.on_settled(range.place_here, range.first.frame);
        let bytes = (range.start, range.end);
        let stamp = |seen: &CapturedSegment| seen.tsval().map_or(Departure::Unknown, Departure::Stamp);
        match range.origin {
            Origin::Original => {
                out.travelled(
                    PathPart::Upstream,
                    range,
                    stamp(&range.first),
                    PacketFate::Arrived(range.first.at),
                    false,
                );
            }
            Origin::Repair => {
                pieces.add(PathPart::Upstream, &range.first, bytes, TransmissionVerdict::Lost(None));
                out.travelled(PathPart::Upstream, range, Departure::Unknown, PacketFate::Lost, false);
            }
            Origin::Overtaken => {
                let sightings = range.again.iter().map(|again| &again.seen);
                let first = sightings.min_by(|a, b| clock.order(a, b).unwrap_or(Ordering::Equal));
                if let Some(first) = first {
                    let why = why(clock.between(first.tsval(), range.first.tsval()));
                    pieces.add(PathPart::Upstream, &range.first, bytes, TransmissionVerdict::Spurious(why));
                    out.travelled(PathPart::Upstream, range, stamp(first), PacketFate::Arrived(first.at), false);
                }
            }
            Origin::Acknowledged => {
                pieces.add(
                    PathPart::AtCapturePoint,
                    &range.first,
                    bytes,
                    TransmissionVerdict::Spurious(RetransmitReason::Unknown),
                );
                pieces.add(
                    PathPart::Downstream,
                    &range.first,
                    bytes,
                    TransmissionVerdict::Spurious(RetransmitReason::Unknown),
                );
            }
            Origin::Unclear => {}
        }
    }

    /// How long data has waited by `now`, the wait that is not over included.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        self.waited + self.waiting_since.map_or(Duration::ZERO, |since| now.since(since))
    }

    pub(super) fn finish(&mut self, now: Instant) {
        self.disorder.finish();
        (self.waited, self.waiting_since) = (self.waited(now), None);
    }

    /// How late the latest packet was.
    pub(super) fn latest(&self) -> Duration {
        self.latest
    }
}

/// Decides whether the receiver needed the retransmissions that passed after the first transmission of `range`. Called last when
/// a range is forgotten.
pub(super) fn decide_repeats(
    range: &Range,
    clock: &Clock,
    (keeps_order, reported): (bool, usize),
    pieces: &mut Pieces,
) {
    let bytes = (range.start, range.end);
    let last_needed = range.again.iter().rposition(|again| again.what == Repeat::Replacement);
    // The receiver has reported so many duplicates, so at most the others did not reach it. Without SACK, these are assumed.
    let reported = if keeps_order { reported } else { 0 };
    let most_lost = range.again.len().saturating_sub(reported);
    let needed = last_needed.map_or(0, |last| last + 1).min(most_lost);
    let mut earlier = range.first;
    for (i, again) in range.again.iter().enumerate().filter(|(_, again)| again.what.is_sent_again()) {
        match again.what {
            // If it needed a later retransmission, it did not have an earlier one either.
            _ if i < needed => {
                let by = Some(again.seen.frame);
                let is_discarded = earlier.is_early() && !keeps_order;
                let ruling =
                    if is_discarded { TransmissionVerdict::Discarded(by) } else { TransmissionVerdict::Lost(by) };
                pieces.add(PathPart::AtCapturePoint, &earlier, bytes, ruling);
                pieces.add(PathPart::AtCapturePoint, &again.seen, bytes, TransmissionVerdict::Needed);
            }
            Repeat::Waiting if most_lost > 0 => {
                pieces.add(
                    PathPart::AtCapturePoint,
                    &earlier,
                    bytes,
                    TransmissionVerdict::Unknown(UnknownReason::NotAcknowledged),
                );
                pieces.add(PathPart::AtCapturePoint, &again.seen, bytes, TransmissionVerdict::Needed);
            }
            // It is not known whether the receiver has any of them.
            _ if !range.is_delivered() => {
                pieces.add(
                    PathPart::AtCapturePoint,
                    &again.seen,
                    bytes,
                    TransmissionVerdict::Unknown(UnknownReason::NotAcknowledged),
                );
            }
            // A copy that the network made comes sooner.
            Repeat::Unclear if most_lost > 0 || again.seen.at.since(earlier.at) < SHORTEST_TIMEOUT => {
                pieces.add(
                    PathPart::AtCapturePoint,
                    &again.seen,
                    bytes,
                    TransmissionVerdict::Unknown(UnknownReason::SameHeaders),
                );
            }
            _ => {
                let why = why(clock.between(range.first.tsval(), again.seen.tsval()));
                pieces.add(PathPart::AtCapturePoint, &again.seen, bytes, TransmissionVerdict::Spurious(why));
            }
        }
        earlier = again.seen;
    }
}

/// Whether a packet that fills a hole is late or a retransmission. Originals are sent in the order of their bytes, so a packet that
/// was sent after an original with later bytes is a retransmission.
pub(super) fn origin(start: u64, seen: CapturedSegment, ranges: &Ranges, clock: &Clock, timing: Timing) -> Origin {
    let Some(above) = original_above(start, ranges) else { return Origin::Unclear };
    match clock.order(&seen, &above.first) {
        Some(Ordering::Less) => Origin::Original,
        Some(Ordering::Greater) => Origin::Repair,
        Some(Ordering::Equal) if timing.equal_means_together(clock) => Origin::Original,
        _ if timing.is_too_soon(seen.at.since(above.first.at)) => Origin::Original,
        _ => Origin::Unclear,
    }
}

/// True if a packet with these bytes cannot be a copy of one that carried `range`: it begins elsewhere, or has another IP
/// identification.
fn is_another(range: &Range, bytes: (u64, u64), seen: &CapturedSegment) -> bool {
    let mut ids =
        std::iter::once(&range.first).chain(range.again.iter().map(|again| &again.seen)).map(CapturedSegment::ip_id);
    bytes.0 > range.start - u64::from(range.within) || seen.ip_id().is_some() && ids.all(|id| id != seen.ip_id())
}

/// The next original with later bytes than `start`.
fn original_above(start: u64, ranges: &Ranges) -> Option<&Range> {
    let index = ranges.locate(start);
    let above = (index..index + MAX_NEIGHBOURS).map_while(|i| ranges.at(i));
    above.skip_while(|range| range.start <= start).find(|range| range.origin == Origin::Original)
}

/// What made the sender retransmit, by the time since the earlier transmission.
fn why(apart: Option<Duration>) -> RetransmitReason {
    if apart.is_some_and(|apart| apart < SHORTEST_TIMEOUT) {
        RetransmitReason::FastRetransmit
    } else {
        RetransmitReason::Unknown
    }
}
