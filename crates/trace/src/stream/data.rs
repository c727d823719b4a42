//! The data of one direction: what happened to it before and after it was captured.

use std::cmp::Ordering;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::after::{After, View};
use super::before::{Before, Marks};
use super::bill::Rounds;
use super::disorder;
use super::half::{Arrival, Out};
use super::order::Clock;
use super::ranges::{Again, Delivery, Origin, Range, Ranges, Repeats, Sighting};
use super::round_trip::RoundTrip;
use crate::tally::Tally;
use crate::{Passed, Reason, Side, Verdict, Why};

/// How long acknowledged data is remembered at least: reports of duplicates and late originals may still come.
const LEAST_MEMORY: Duration = Duration::from_secs(1);
/// And at most.
const MOST_MEMORY: Duration = Duration::from_secs(30);

/// What the direction knows beside its data.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Known {
    /// Everything before it is acknowledged.
    pub(super) acked: u64,
    /// The end of the data that has been seen; zero before the first packet.
    pub(super) highest: u64,
    /// The shortest round trips to the receiver, without those that data has shown, and to the sender.
    pub(super) far: Option<Duration>,
    pub(super) near: Option<Duration>,
    /// The handshake allows reports of duplicates.
    pub(super) may_report: bool,
}

/// The data of one direction.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(super) ranges: Ranges,
    /// The largest payload: a segment, or several if the host combines them.
    pub(crate) largest: u32,
    /// Packets, and their bytes.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// When data was seen first and last.
    pub(crate) active: (Instant, Instant),
    clock: Clock,
    /// Round trips between the point of capture and the receiver.
    pub(crate) far: RoundTrip,
    pub(crate) before: Before,
    pub(crate) after: After,
    pub(crate) rounds: Rounds,
    /// The verdicts by the side of the point of capture; none if there are none.
    pub(crate) tallies: [Option<Box<Tally>>; 3],
}

impl Data {
    /// The data begins at `start`.
    pub(super) fn new(start: u64, known: &Known, now: Instant, most_arrivals: Option<usize>) -> Data {
        let mut far = RoundTrip::default();
        if let Some(least) = known.far {
            far.at_most(least);
        }
        let mut data = Data {
            ranges: Ranges::starting_at(start),
            largest: 0,
            packets: 0,
            bytes: 0,
            active: (now, now),
            clock: Clock::default(),
            far,
            before: Before::default(),
            after: After::default(),
            rounds: Rounds::default(),
            tallies: Default::default(),
        };
        if let Some(most) = most_arrivals {
            data.limit(most);
        }
        data.before.begin(start);
        data.before.on_ack(known.acked, &data.ranges, now);
        data
    }

    /// Remembers fewer arrivals.
    pub(super) fn limit(&mut self, arrivals: usize) {
        self.before.reordering.limit(arrivals);
        self.after.reordering.limit(arrivals);
    }

    fn whole_round_trip(&self, known: &Known) -> Option<Duration> {
        Some(self.far.least()? + known.near?)
    }

    /// A packet with the bytes from `start` to `end`.
    pub(super) fn on_data(
        &mut self,
        (start, end): (u64, u64),
        arrival: &Arrival<'_>,
        known: &Known,
        out: &mut Out<'_>,
    ) {
        let packet = arrival.packet;
        let segment = &packet.segment;
        let tsval = segment.timestamps.map(|(value, _)| value);
        let seen = Sighting::new(arrival.now, arrival.frame, tsval, packet.ip_id);
        self.packets += 1;
        self.bytes += u64::from(segment.len);
        self.largest = self.largest.max(segment.len);
        self.active.1 = arrival.now;
        if start >= known.highest {
            self.clock.on_new(&seen);
        }
        if end <= self.ranges.floor {
            Self::on_forgotten((start, end), seen, known, out);
            return;
        }
        let round_trip = self.whole_round_trip(known);
        let origin = if self.before.on_next(start, arrival.now) {
            Origin::Original
        } else {
            let receiver = self.after.receiver(known.acked, self.far.least());
            let marks = Marks { clock: &self.clock, round_trip, receiver };
            self.before.on_earlier_data((start, end), seen, &mut self.ranges, marks, out)
        };
        self.rounds.on_data(segment.len, arrival.now, round_trip);
        let is_again = self.note((start.max(self.ranges.floor), end), seen, origin, known, out);
        let is_retransmission = is_again || origin == Origin::Repair;
        if is_retransmission {
            self.rounds.on_retransmission(arrival.frame);
        }
        out.mark(arrival.frame, (start, end), if is_retransmission { Passed::Retransmission } else { Passed::Data });
        self.before.advance(start, &self.ranges, known.highest.max(end), arrival.now);
        self.after.on_sent(arrival.now);
        // Two at a time: the number of ranges falls if the limit has been lowered.
        for _ in 0..2 {
            if self.ranges.len() > arrival.most_ranges
                && let Some(range) = self.ranges.pop_front_if(|_| true)
            {
                self.settle(&range, known, out);
            }
        }
    }

    /// Data that was acknowledged so long ago that its packets are forgotten.
    fn on_forgotten(range: (u64, u64), seen: Sighting, known: &Known, out: &mut Out<'_>) {
        out.tell(Side::Here, seen, range, Verdict::Unknown(Reason::Forgotten));
        let verdict =
            if range.1 <= known.acked { Verdict::Spurious(Why::Timeout) } else { Verdict::Unknown(Reason::Forgotten) };
        out.tell(Side::After, seen, range, verdict);
    }

    /// Adds the packet to the ranges that it carries. True if it is a retransmission of bytes that have passed.
    fn note(
        &mut self,
        (start, end): (u64, u64),
        seen: Sighting,
        origin: Origin,
        known: &Known,
        out: &mut Out<'_>,
    ) -> bool {
        let mut is_again = false;
        let mut at = start;
        let mut index = if at >= self.ranges.end() { self.ranges.len() } else { self.ranges.locate(at) };
        while at < end {
            let existing = self.ranges.at(index).map(|range| (range.start, range.end));
            match existing {
                Some((from, to)) if from <= at => {
                    index = self.ranges.narrow(index, at, end);
                    is_again |= self.note_again(index, seen, known, out);
                    at = to.min(end);
                }
                next => {
                    let to = next.map_or(end, |(from, _)| from.min(end));
                    let is_acked = to <= known.acked;
                    let place_here = self.before.place(origin);
                    let range = || Range {
                        start: at,
                        end: to,
                        first: seen,
                        within: (at - start) as u32,
                        origin,
                        delivery: if is_acked { Delivery::Clear } else { Delivery::Open },
                        delivered_at: seen.at,
                        duplicates: 0,
                        place_here,
                        place_there: disorder::NONE,
                        again: Repeats::default(),
                    };
                    self.ranges.insert(index, range);
                    at = to;
                }
            }
            index += 1;
        }
        is_again
    }

    /// Bytes that had passed already. True if they are retransmitted, and neither a copy nor late.
    fn note_again(&mut self, index: usize, seen: Sighting, known: &Known, out: &mut Out<'_>) -> bool {
        const MOST: usize = 64;
        let why = self.after.why(&self.ranges, index, (known.acked, known.highest), seen.at, &self.far);
        let Some(range) = self.ranges.at_mut(index) else { return false };
        let is_copy = self.clock.is_copy(&range.last_sent(), &seen);
        let is_late = self.clock.order(&seen, &range.first).is_some_and(Ordering::is_lt);
        let is_retransmission = !is_copy && !is_late;
        if range.is_delivered() && is_retransmission {
            out.tell(Side::After, seen, (range.start, range.end), Verdict::Spurious(why));
        }
        if range.again.len() < MOST {
            range.again.push(Again { seen, why, is_copy, is_told: range.is_delivered() || !is_retransmission });
        }
        is_retransmission
    }

    /// An acknowledgment of everything before `ack`, of which the bytes before `captured` may have been captured.
    pub(super) fn on_ack(
        &mut self,
        (ack, captured): (u64, u64),
        blocks: &[(u64, u64)],
        arrival: &Arrival<'_>,
        known: &Known,
        out: &mut Out<'_>,
    ) {
        self.before.on_ack(captured, &self.ranges, arrival.now);
        let echo = arrival.packet.segment.timestamps.map(|(_, echo)| echo);
        let mut view =
            View { ranges: &mut self.ranges, acked: known.acked, round_trip: &mut self.far, now: arrival.now };
        self.after.on_ack(ack, blocks, echo, &mut view, out);
        self.forget(arrival.now, known, out);
    }

    /// Forgets data that was acknowledged long ago.
    fn forget(&mut self, now: Instant, known: &Known, out: &mut Out<'_>) {
        let memory = ((self.far.smoothed() + known.near.unwrap_or_default()) * 8)
            .max(self.before.latest() * 2)
            .max(self.after.latest() * 2);
        let memory = memory.max(LEAST_MEMORY).min(MOST_MEMORY);
        // Before data that is only SACKed there is a hole, whose packets may still come.
        let is_acked = |range: &Range| range.is_delivered() && range.end <= known.acked;
        let is_old = |range: &Range| is_acked(range) && now.since(range.delivered_at) > memory;
        while let Some(range) = self.ranges.pop_front_if(is_old) {
            self.settle(&range, known, out);
        }
    }

    /// Nothing passes for a while: forgets what is old, and gives back memory.
    pub(super) fn rest(&mut self, now: Instant, known: &Known, out: &mut Out<'_>) {
        self.forget(now, known, out);
        self.shrink();
    }

    fn shrink(&mut self) {
        self.ranges.shrink();
        self.before.reordering.shrink();
        self.after.reordering.shrink();
        self.after.shrink();
    }

    /// A range is forgotten: decides what can be decided.
    fn settle(&mut self, range: &Range, known: &Known, out: &mut Out<'_>) {
        if range.origin == Origin::Original {
            self.before.reordering.forget(range.start);
            self.after.reordering.forget(range.order());
        }
        self.before.settle(range, &self.clock, out);
        self.after.settle(range, known.may_report, out);
    }

    /// The capture ends.
    pub(super) fn finish(&mut self, known: &Known, out: &mut Out<'_>) {
        while let Some(range) = self.ranges.pop_front_if(|_| true) {
            self.settle(&range, known, out);
        }
        self.before.finish(out.now);
        self.after.finish(out.now);
        self.shrink();
    }
}
