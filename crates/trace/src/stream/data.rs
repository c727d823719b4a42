//! The data of one direction: what happened to it upstream and downstream of the capture point.
//! Owned by [`super::direction`], from the first data on.
//!
//! Called by [`super::direction`]: `on_data` for each packet with data, before [`SequenceState`] advances; `on_ack` for each
//! acknowledgment of it, after the window and before [`SequenceState`].

mod breaks;
mod holes;
mod retransmission;
mod too_big;

use std::cmp::Ordering;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::arrival::Arrival;
use super::clock::Clock;
use super::downstream::{Acknowledgment, DecisionContext, Downstream, View};
use super::known::SequenceState;
use super::log::FindingSink;
use super::pieces::Pieces;
use super::ranges::{Delivery, Origin, Range, Ranges, Repeat, Repeats, Resighting};
use super::round_trip::RoundTrip;
use super::rounds::Rounds;
use super::sample::Sample;
use super::sighting::CapturedSegment;
use super::stall::StallDetector;
use super::upstream::{Earlier, Marks, Timing, Upstream, decide_repeats};
use crate::packet::Packet;
use crate::tally::VerdictCounts;
use crate::{Passed, PathPart, SIDES, UnknownReason, Verdict};

/// Acknowledged data is remembered for at least this time: DSACKs and late originals may still come.
const MIN_MEMORY: Duration = Duration::from_secs(1);
/// Acknowledged data is forgotten after at most this time.
const MAX_MEMORY: Duration = Duration::from_secs(30);
/// The most further sightings of a range that are remembered.
const MAX_REPEATS: usize = 64;
/// An ACK and the data that it acknowledges may be captured in the wrong order within this time.
const DISORDER: Duration = Duration::from_millis(1);

/// The data of one direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Data {
    ranges: Ranges,
    /// The largest payload: more than a segment if the capture has packets of segmentation offload (TSO, GRO).
    largest: u32,
    /// The largest payload when everything was last acknowledged.
    largest_settled: u32,
    /// Packets and their bytes.
    packets: u64,
    bytes: u64,
    /// Bytes that were acknowledged, but never captured.
    missed: u64,
    /// How often data was acknowledged that had not been captured.
    gaps: u64,
    /// The largest packet that fits through the path, bytes, as ICMP messages say.
    path_mtu: Option<u32>,
    /// When data was seen first and last.
    active: (Instant, Instant),
    clock: Clock,
    /// Round trips between the capture point and the receiver.
    far: RoundTrip,
    pub(crate) upstream: Upstream,
    pub(crate) downstream: Downstream,
    stall_detector: StallDetector,
    pieces: Pieces,
    pub(crate) rounds: Rounds,
    pub(crate) sample: Sample,
    /// The verdicts on each side of the capture point; none if there are none.
    pub(crate) tallies: [Option<Box<VerdictCounts>>; SIDES.len()],
}

impl Data {
    /// The data begins at `start`.
    pub(super) fn new(
        start: u64,
        known: &SequenceState,
        bound: Option<Duration>,
        now: Instant,
        most_arrivals: Option<usize>,
    ) -> Data {
        let mut far = RoundTrip::default();
        if let Some(bound) = bound {
            far.on_handshake(bound);
        }
        if let Some(least) = known.far {
            far.at_most(least);
        }
        let mut data = Data {
            ranges: Ranges::starting_at(start),
            largest: 0,
            largest_settled: 0,
            packets: 0,
            bytes: 0,
            missed: 0,
            gaps: 0,
            path_mtu: None,
            active: (now, now),
            clock: Clock::default(),
            far,
            upstream: Upstream::default(),
            downstream: Downstream::default(),
            stall_detector: StallDetector::default(),
            pieces: Pieces::default(),
            rounds: Rounds::default(),
            sample: Sample::default(),
            tallies: Default::default(),
        };
        if let Some(most) = most_arrivals {
            data.limit(most);
        }
        data.upstream.begin(start.max(known.acked));
        data
    }

    pub(crate) fn largest(&self) -> u32 {
        self.largest
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that were acknowledged, but never captured.
    pub(crate) fn missed(&self) -> u64 {
        self.missed
    }

    /// The largest packet that fits through the path, bytes, as ICMP messages say.
    pub(crate) fn path_mtu(&self) -> Option<u32> {
        self.path_mtu
    }

    /// When data was seen first and last.
    pub(crate) fn active(&self) -> (Instant, Instant) {
        self.active
    }

    /// Round trips between the capture point and the receiver.
    pub(crate) fn far(&self) -> &RoundTrip {
        &self.far
    }

    pub(super) fn far_mut(&mut self) -> &mut RoundTrip {
        &mut self.far
    }

    /// The number of ranges that are remembered.
    pub(super) fn memory(&self) -> usize {
        self.ranges.len()
    }

    /// Limits how many arrivals are remembered for reordering extents.
    pub(super) fn limit(&mut self, arrivals: usize) {
        self.upstream.reordering.limit(arrivals);
        self.downstream.reordering.limit(arrivals);
    }

    /// The approximate share of packets that the capture missed.
    fn loss(&self) -> f64 {
        self.gaps as f64 / self.packets.max(1) as f64
    }

    fn round_trip(&self, known: &SequenceState) -> Option<Duration> {
        Some(self.far.least()? + known.near?)
    }

    fn timing(&self, known: &SequenceState) -> Timing {
        let bound = self.far.bound().zip(known.near_bound).map(|(far, near)| far + near);
        Timing { round_trip: self.round_trip(known), bound }
    }

    /// A packet with the bytes from `start` to `end`. `is_beyond`: it begins beyond the window, so the receiver refuses it.
    pub(super) fn on_data(
        &mut self,
        (start, end): (u64, u64),
        arrival: &Arrival<'_>,
        is_beyond: bool,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let packet = arrival.packet;
        let segment = &packet.segment;
        let tsval = segment.timestamps.map(|(value, _)| value);
        let mut seen = CapturedSegment::new(arrival.now, arrival.frame, tsval, packet.ip_id);
        seen.note(self.is_stale(tsval), self.upstream.is_early(start));
        if known.is_beginning {
            seen.note_beginning();
        }
        if known.acked >= known.highest {
            self.largest_settled = self.largest;
        }
        self.packets += 1;
        self.bytes += u64::from(segment.len);
        self.largest = self.largest.max(segment.len);
        self.active.1 = arrival.now;
        if start >= known.highest {
            self.clock.on_new(&seen);
        }
        let round_trip = self.round_trip(known);
        if end <= self.ranges.floor() {
            self.report_forgotten((start, end), seen, known, out);
            return;
        }
        let is_next = self.upstream.on_next(start, arrival.now);
        self.rounds.on_data(segment.len, arrival.now, round_trip);
        let is_retransmission = if is_next && !is_beyond && start >= self.ranges.end() && end > known.acked {
            let place = self.upstream.place(Origin::Original);
            let new = || Range::new((start, end), seen, 0, Origin::Original, Delivery::Open, place);
            self.ranges.insert(self.ranges.len(), new);
            false
        } else {
            self.on_other_data((start, end), seen, (is_next, is_beyond), known, out)
        };
        if is_retransmission {
            let undecided_from = || self.ranges.first_frame().min(self.pieces.first_frame());
            self.rounds.on_retransmission(arrival.frame, undecided_from);
            self.stall_detector.on_retransmission(arrival.frame, arrival.now);
        }
        if end > known.acked {
            self.stall_detector.on_sent(end > known.highest, arrival.frame, arrival.now);
        }
        out.mark(arrival.frame, (start, end), if is_retransmission { Passed::Retransmission } else { Passed::Data });
        let is_gap = self.upstream.advance(start, &self.ranges, (known.acked, known.highest.max(end)), arrival.now);
        self.gaps += u64::from(is_gap && known.acked >= known.unseen_below);
        self.forget_beyond(arrival.most_ranges, known, out);
    }

    /// Decides the first ranges if there are more than `most`.
    #[inline]
    fn forget_beyond(&mut self, most: usize, known: &SequenceState, out: &mut FindingSink<'_>) {
        // Two at a time: the number of ranges falls if the limit has been lowered.
        for _ in 0..2 {
            if self.ranges.len() > most
                && let Some(forgotten) = self.ranges.pop_front_if(|_| true)
            {
                self.decide(&forgotten, known, out);
            }
        }
    }

    /// True if the receiver has echoed a newer timestamp.
    #[inline]
    fn is_stale(&self, tsval: Option<u32>) -> bool {
        tsval.zip(self.downstream.echo()).is_some_and(|(value, echo)| echo.wrapping_sub(value).cast_signed() > 0)
    }

    /// Data that is out of order, beyond the window or already received. True if it is a retransmission.
    #[cold]
    fn on_other_data(
        &mut self,
        (start, end): (u64, u64),
        seen: CapturedSegment,
        (is_next, is_beyond): (bool, bool),
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) -> bool {
        let earlier =
            if is_next { Earlier::New(Origin::Original) } else { self.on_earlier_data((start, end), seen, known, out) };
        let delivery = if is_beyond { Delivery::Refused } else { Delivery::Open };
        let is_retransmission = self.note((start.max(self.ranges.floor()), end), seen, earlier, delivery, known, out);
        is_retransmission || matches!(earlier, Earlier::New(Origin::Repair | Origin::Acknowledged))
    }

    fn on_earlier_data(
        &mut self,
        bytes: (u64, u64),
        seen: CapturedSegment,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) -> Earlier {
        let index = self.ranges.locate(bytes.0);
        let is_refused = |range: &Range| range.delivery == Delivery::Refused && range.start <= bytes.0;
        if self.ranges.at(index).is_some_and(is_refused) {
            return Earlier::Repeat(Repeat::Retransmission);
        }
        let receiver = self.downstream.receiver(known.acked, self.far.least());
        let is_there = bytes.1 <= known.acked || self.downstream.has_sacked(bytes.0, bytes.1);
        let (clock, timing, unseen_below) = (&self.clock, self.timing(known), known.unseen_below);
        let marks = Marks { clock, timing, receiver, is_there, unseen_below };
        self.upstream.on_earlier_data(bytes, seen, &mut self.ranges, marks, out)
    }

    /// Adds the packet to the ranges that it carries. True if it retransmits bytes that have passed. Called after `earlier` was
    /// decided by the order, before `Upstream::advance`.
    fn note(
        &mut self,
        (start, end): (u64, u64),
        seen: CapturedSegment,
        earlier: Earlier,
        delivery: Delivery,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) -> bool {
        let (origin, what) = match earlier {
            Earlier::New(origin) => (origin, None),
            Earlier::Repeat(what) => (Origin::Original, Some(what)),
        };
        let mut is_retransmission = false;
        let mut at = start;
        let mut index = if at >= self.ranges.end() { self.ranges.len() } else { self.ranges.locate(at) };
        while at < end {
            let existing = self.ranges.at(index).map(|range| (range.start, range.end));
            match existing {
                Some((from, to)) if from <= at => {
                    index = self.ranges.narrow(index, at, end);
                    is_retransmission |= self.note_again(index, seen, what, delivery, known);
                    at = to.min(end);
                }
                next => {
                    let to = next.map_or(end, |(from, _)| from.min(end));
                    let is_acked = to <= known.acked;
                    if is_acked {
                        self.note_uncaptured((at, to), seen, known, out);
                    }
                    let delivery = if is_acked { Delivery::Clear } else { delivery };
                    let place = self.upstream.place(origin);
                    let new = || Range::new((at, to), seen, (at - start) as u32, origin, delivery, place);
                    self.ranges.insert(index, new);
                    at = to;
                }
            }
            index += 1;
        }
        is_retransmission
    }

    /// Bytes that had passed already. True if they are retransmitted, not a copy and not late.
    fn note_again(
        &mut self,
        index: usize,
        seen: CapturedSegment,
        what: Option<Repeat>,
        delivery: Delivery,
        known: &SequenceState,
    ) -> bool {
        let Some(range) = self.ranges.at_mut(index) else { return false };
        if range.delivery == Delivery::Refused {
            // The receiver refused it the first time, as the sender knows.
            (range.first, range.delivery, range.again) = (seen, delivery, Repeats::default());
            return false;
        }
        let why = self.downstream.causes.why(range, (known.acked, known.highest), seen.at, &self.far);
        let is_copy = self.clock.is_copy(&range.last_sent(), &seen);
        let is_late = self.clock.order(&seen, &range.first).is_some_and(Ordering::is_lt);
        let what = if is_copy {
            Repeat::Copy
        } else if is_late {
            Repeat::Late
        } else {
            what.unwrap_or(Repeat::Retransmission)
        };
        if range.again.len() < MAX_REPEATS {
            range.again.push(Resighting { seen, why, what });
        }
        what.is_sent_again()
    }

    /// Bytes that had been acknowledged when they were captured: their first transmission was not captured.
    #[cold]
    fn note_uncaptured(
        &mut self,
        bytes: (u64, u64),
        seen: CapturedSegment,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        if bytes.0 >= known.unseen_below && seen.at.since(known.acked_at) > DISORDER {
            self.report_uncaptured(bytes, seen, out);
        }
    }

    /// Missing data before `start` may have been sent before the capture began. Called before `on_data` or `on_ack` of the
    /// packet that shows it.
    #[cold]
    pub(super) fn begin_at(&mut self, start: u64) {
        self.upstream.skip_to(start, &self.ranges);
    }

    /// An acknowledgment of everything before `ack`; of that, the bytes before `captured` may have been captured. Further SACK
    /// blocks may be unknown.
    pub(super) fn on_ack(
        &mut self,
        (ack, captured): (u64, u64),
        (blocks, hides_blocks): (&[(u64, u64)], bool),
        is_bare: bool,
        arrival: &Arrival<'_>,
        known: &SequenceState,
        out: &mut FindingSink<'_>,
    ) {
        let is_gap = self.upstream.on_ack(captured, &self.ranges, arrival.now) && known.acked >= known.unseen_below;
        self.gaps += u64::from(is_gap);
        let echo = arrival.packet.segment.timestamps.map(|(_, echo)| echo);
        let may_have_stalled = self.stall_detector.may_have_stalled(arrival.now);
        let timeout = may_have_stalled.then(|| self.far.shortest_timeout());
        let Packet { ip_id, ref segment, .. } = *arrival.packet;
        let (is_copy, missing_since) = self.downstream.on_packet(ip_id, segment.len, arrival.now);
        let (ranges, round_trip) = (&mut self.ranges, &mut self.far);
        let SequenceState { acked, heard, unseen_below, .. } = *known;
        let mut view = View { ranges, acked, heard, unseen_below, round_trip, now: arrival.now, missing_since };
        let acknowledgment = Acknowledgment { ack, blocks, echo, is_bare, hides_blocks, is_copy };
        let has_progressed = self.downstream.on_ack(&acknowledgment, &mut view, out);
        if has_progressed {
            self.on_progress((ack, is_gap), timeout, arrival, known, out);
        }
        self.forget(arrival.now, known, out);
    }

    /// Forgets data that was acknowledged long ago: the last step of `on_ack`, and when nothing passes.
    fn forget(&mut self, now: Instant, known: &SequenceState, out: &mut FindingSink<'_>) {
        // Data that is only SACKed is above a hole, whose packets may still come.
        let is_acked = |range: &Range| range.is_delivered() && range.end <= known.acked;
        let is_old = |range: &Range, memory| is_acked(range) && now.since(range.delivered_at) > memory;
        if !self.ranges.at(0).is_some_and(|oldest| is_old(oldest, MIN_MEMORY)) {
            return; // the usual case
        }
        let memory = ((self.far.smoothed() + known.near.unwrap_or_default()) * 8)
            .max(self.upstream.latest() * 2)
            .max(self.downstream.latest() * 2);
        let memory = memory.max(MIN_MEMORY).min(MAX_MEMORY);
        while let Some(forgotten) = self.ranges.pop_front_if(|range| is_old(range, memory)) {
            self.decide(&forgotten, known, out);
        }
    }

    /// Nothing passes for a while: forgets old data and releases memory.
    pub(super) fn rest(&mut self, now: Instant, known: &SequenceState, out: &mut FindingSink<'_>) {
        self.forget(now, known, out);
        self.shrink();
    }

    fn shrink(&mut self) {
        self.ranges.shrink();
        self.upstream.reordering.shrink();
        self.downstream.reordering.shrink();
        self.downstream.shrink();
    }

    /// Reaches the verdicts on a range that has just been removed. The bytes from `missing_from` to the range never passed.
    #[inline]
    fn decide(&mut self, (range, missing_from): &(Range, u64), known: &SequenceState, out: &mut FindingSink<'_>) {
        if *missing_from < range.start {
            self.settle_hole((*missing_from, range.start), &range.first, known, out);
        }
        if range.origin == Origin::Original {
            self.upstream.reordering.forget(range.start);
            self.downstream.reordering.forget(range.order());
        }
        self.sample.on_settled(range, &mut out.log.sampled);
        if range.is_plain() && self.pieces.is_empty() && out.log.transits.is_none() && !self.downstream.has_doubts() {
            let frame = range.first.frame;
            self.upstream.disorder.on_settled(range.place_here, frame);
            self.downstream.disorder.on_settled(range.place_there, frame);
            return;
        }
        if !range.is_plain() {
            self.sample.open();
        }
        self.upstream.decide(range, &self.clock, &mut self.pieces, out);
        let with = DecisionContext { known, loss: self.loss(), round_trip: &self.far };
        self.downstream.decide(range, &with, &mut self.pieces, out);
        if range.again.is_empty() || !range.is_delivered() && self.downstream.given_up().is_some() {
            // Nothing was sent again, or it was not answered, which has been reported.
        } else if range.start >= known.unseen_below {
            let keeps_order = self.downstream.keeps_order(known.may_report);
            // Without DSACKs, duplicates are guessed from ACKs without news.
            let reported = if self.downstream.duplicates > 0 { usize::from(range.duplicates) } else { 0 };
            decide_repeats(range, &self.clock, (keeps_order, reported), &mut self.pieces);
        } else if range.is_retransmitted() {
            let verdict = Verdict::Unknown(UnknownReason::BeforeCapture);
            for side in [PathPart::AtCapturePoint, PathPart::Downstream] {
                out.report(side, range.last_sent(), (range.start, range.end), verdict);
            }
        }
        if !self.pieces.is_empty() {
            self.pieces.touch(range);
            self.pieces.on_settled(out);
        }
    }

    /// The capture ends.
    pub(super) fn finish(&mut self, known: &SequenceState, out: &mut FindingSink<'_>) {
        self.report_unrepaired(known, out);
        while let Some(forgotten) = self.ranges.pop_front_if(|_| true) {
            self.decide(&forgotten, known, out);
        }
        self.pieces.finish(out);
        self.upstream.finish(out.now);
        self.downstream.finish(out.now);
        self.shrink();
    }
}
