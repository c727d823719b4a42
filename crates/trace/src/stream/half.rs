//! One direction of a stream: its data, and the acknowledgments that come back for it.

use std::cmp::Ordering;

use reknit_units::{Duration, Instant};

use super::after::{After, reports_duplicate};
use super::before::{Before, Marks};
use super::bill::Rounds;
use super::disorder;
use super::order::Clock;
use super::ranges::{Again, Delivery, Origin, Range, Ranges, Sighting};
use super::round_trip::RoundTrip;
use crate::journey::Departure;
use crate::packet::{Flags, Packet, Segment};
use crate::{Event, Journey, Mark, Passed, Reason, Side, Verdict, Why};

/// Where offsets begin, so that data from before the first captured packet has one too.
const ORIGIN: u64 = 1 << 32;
/// How long acknowledged data is remembered at least: reports of duplicates and late originals may still come.
const LEAST_MEMORY: Duration = Duration::from_secs(1);
/// And at most.
const MOST_MEMORY: Duration = Duration::from_secs(30);

/// What is known about a packet when its data is processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) now: Instant,
    pub(super) frame: u64,
    pub(super) packet: &'a Packet,
    /// The window that it allows, bytes; none if its scale is not known.
    pub(super) window: Option<u32>,
    /// Ranges that one direction may remember.
    pub(super) most_ranges: usize,
}

/// What has been found out, and is not passed on yet.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) events: Vec<Event>,
    /// None if nobody needs them.
    pub(crate) journeys: Option<Vec<Journey>>,
    /// The same.
    pub(crate) marks: Option<Vec<Mark>>,
}

/// Where the verdicts of one direction go.
pub(super) struct Out<'a> {
    pub(super) stream: u32,
    pub(super) end: u8,
    pub(super) now: Instant,
    pub(super) log: &'a mut Log,
}

impl Out<'_> {
    /// Reports when the data of `range` was sent and when it arrived.
    pub(super) fn travelled(&mut self, side: Side, range: &Range, sent: Departure, arrived: Option<Instant>) {
        let (stream, end, len) = (self.stream, self.end, (range.end - range.start) as u32);
        let settled = range.delivered_at.max(arrived.unwrap_or(range.delivered_at));
        if let Some(journeys) = &mut self.log.journeys {
            journeys.push(Journey { stream, end, side, sent, arrived, settled, len });
        }
    }

    /// Reports what passes now.
    pub(super) fn mark(&mut self, frame: u64, (from, to): (u64, u64), what: Passed) {
        let (stream, end, at) = (self.stream, self.end, self.now);
        if let Some(marks) = &mut self.log.marks {
            let [from, to] = [from, to].map(|offset| offset.saturating_sub(ORIGIN));
            marks.push(Mark { stream, end, frame, at, from, to, what });
        }
    }

    /// Reports the verdict on the packet that was seen as `seen`, which carries the bytes of `range`.
    pub(super) fn tell(&mut self, side: Side, seen: Sighting, range: (u64, u64), verdict: Verdict) {
        let event = Event {
            stream: self.stream,
            end: self.end,
            side,
            frame: seen.frame,
            at: seen.at,
            decided: self.now,
            offset: range.0.saturating_sub(ORIGIN),
            len: (range.1 - range.0) as u32,
            verdict,
        };
        // The pieces of a packet that has been split have the same history.
        let same = |other: &Event| {
            (other.frame, other.side, other.end) == (event.frame, side, event.end)
                && std::mem::discriminant(&other.verdict) == std::mem::discriminant(&verdict)
        };
        if !self.log.events.last().is_some_and(same) {
            self.log.events.push(event);
        }
    }
}

/// Converts sequence numbers, which wrap, to offsets.
#[derive(Clone, Copy, Debug, Default)]
struct Offsets {
    /// The sequence number at [`ORIGIN`].
    base: Option<u32>,
    highest: u64,
}

impl Offsets {
    fn of(&mut self, seq: u32) -> u64 {
        let base = *self.base.get_or_insert(seq);
        let highest = self.highest.max(ORIGIN);
        let ahead = seq.wrapping_sub(base.wrapping_add((highest - ORIGIN) as u32)).cast_signed();
        highest.saturating_add_signed(ahead.into())
    }
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Half {
    offsets: Offsets,
    pub(super) ranges: Ranges,
    /// The end of the data that has been seen.
    pub(super) highest: u64,
    /// Everything before it is acknowledged.
    pub(super) acked: u64,
    /// The sequence number of the SYN, or of the first packet.
    pub(crate) first_seq: Option<u32>,
    /// The largest payload: a segment, or several if the host combines them.
    pub(crate) largest: u32,
    /// Packets with data, and their bytes.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Acknowledged bytes that were never captured.
    pub(crate) missed: u64,
    /// When data was seen first and last.
    pub(crate) active: Option<(Instant, Instant)>,
    /// Where the data began.
    first_offset: u64,
    pub(crate) clock: Clock,
    /// Round trips between the point of capture and the receiver, and the sender.
    pub(crate) far: RoundTrip,
    pub(crate) near: RoundTrip,
    pub(crate) before: Before,
    pub(crate) after: After,
    pub(crate) rounds: Rounds,
    /// The SYN's options: none if it was not captured.
    pub(crate) syn: Option<Segment>,
}

impl Half {
    /// A packet of this direction. Acknowledges nothing; that is the other direction's matter.
    pub(super) fn on_packet(&mut self, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let segment = &arrival.packet.segment;
        self.first_seq.get_or_insert(segment.seq);
        let mut start = self.offsets.of(segment.seq);
        if segment.flags.has(Flags::SYN) {
            self.syn = Some(*segment);
            start += 1;
        }
        let end = start + u64::from(segment.len);
        if segment.flags.has(Flags::RST) {
            return; // its sequence number need not be part of the data
        }
        if self.highest == 0 {
            (self.highest, self.acked, self.first_offset) = (start, self.acked.max(start), start);
            self.ranges.floor = start;
            self.before.begin(start);
        }
        // A keep-alive repeats the last byte, if it has any data.
        let is_keep_alive = segment.len <= 1 && start + 1 == self.acked;
        if segment.len > 0 && !is_keep_alive {
            self.on_data(start, end, arrival, out);
        }
        self.offsets.highest = self.offsets.highest.max(end);
        if segment.flags.has(Flags::FIN) {
            self.offsets.highest = self.offsets.highest.max(end + 1);
        }
    }

    fn on_data(&mut self, start: u64, end: u64, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let packet = arrival.packet;
        let segment = &packet.segment;
        let tsval = segment.timestamps.map(|(value, _)| value);
        let seen = Sighting { at: arrival.now, frame: arrival.frame, tsval, ip_id: packet.ip_id };
        self.packets += 1;
        self.bytes += u64::from(segment.len);
        self.largest = self.largest.max(segment.len);
        let first = self.active.map_or(arrival.now, |(first, _)| first);
        self.active = Some((first, arrival.now));
        if start >= self.highest {
            self.clock.on_new(&seen);
        }
        if end <= self.ranges.floor {
            self.on_forgotten(start, end, seen, out);
            return;
        }
        let marks = Marks { clock: &self.clock, round_trip: self.whole_round_trip() };
        let origin = self.before.on_data((start, end), seen, &mut self.ranges, marks, out);
        self.rounds.on_data(segment.len, arrival.now, self.whole_round_trip());
        let is_again = self.note(start.max(self.ranges.floor), end, seen, origin, out);
        let is_retransmission = is_again || origin == Origin::Repair;
        if is_retransmission {
            self.rounds.on_retransmission(arrival.frame);
        }
        out.mark(arrival.frame, (start, end), if is_retransmission { Passed::Retransmission } else { Passed::Data });
        self.before.advance(&self.ranges, self.highest.max(end), arrival.now);
        self.highest = self.highest.max(end);
        self.after.on_sent(arrival.now);
        // Two at a time: the number of ranges falls if the limit has been lowered.
        for _ in 0..2 {
            if self.ranges.len() > arrival.most_ranges {
                self.forget_one(out);
            }
        }
    }

    /// Data that was acknowledged so long ago that its packets are forgotten.
    fn on_forgotten(&mut self, start: u64, end: u64, seen: Sighting, out: &mut Out<'_>) {
        out.tell(Side::Here, seen, (start, end), Verdict::Unknown(Reason::Forgotten));
        let verdict =
            if end <= self.acked { Verdict::Spurious(Why::Timeout) } else { Verdict::Unknown(Reason::Forgotten) };
        out.tell(Side::After, seen, (start, end), verdict);
    }

    /// Adds the packet to the ranges that it carries. True if it is a retransmission of bytes that have passed.
    fn note(&mut self, start: u64, end: u64, seen: Sighting, origin: Origin, out: &mut Out<'_>) -> bool {
        let mut is_again = false;
        let mut at = start;
        let mut index = self.ranges.locate(at);
        while at < end {
            let existing = self.ranges.at(index).map(|range| (range.start, range.end));
            match existing {
                Some((from, to)) if from <= at => {
                    index = self.ranges.narrow(index, at, end);
                    is_again |= self.note_again(index, seen, out);
                    at = to.min(end);
                }
                next => {
                    let to = next.map_or(end, |(from, _)| from.min(end));
                    let is_acked = to <= self.acked;
                    let range = Range {
                        start: at,
                        end: to,
                        first: seen,
                        within: (at - start) as u32,
                        origin,
                        delivery: if is_acked { Delivery::Clear } else { Delivery::Open },
                        delivered_at: seen.at,
                        duplicates: 0,
                        place_here: self.before.place(origin),
                        place_there: disorder::NONE,
                        again: Vec::new(),
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
    fn note_again(&mut self, index: usize, seen: Sighting, out: &mut Out<'_>) -> bool {
        const MOST: usize = 64;
        let why = self.after.why(&self.ranges, index, (self.acked, self.highest), seen.at, &self.far);
        let Some(range) = self.ranges.at_mut(index) else { return false };
        let mut again = Again { seen, why, is_told: false };
        let is_copy = self.clock.is_copy(&range.last_sent(), &seen);
        let is_late = self.clock.order(&seen, &range.first).is_some_and(Ordering::is_lt);
        if range.is_delivered() && !is_copy {
            again.is_told = true;
            out.tell(Side::After, seen, (range.start, range.end), Verdict::Spurious(why));
        }
        if range.again.len() < MOST {
            range.again.push(again);
        }
        !is_copy && !is_late
    }

    /// An acknowledgment for this direction's data.
    pub(super) fn on_ack(&mut self, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let segment = &arrival.packet.segment;
        if self.offsets.base.is_none() {
            // No packet of this direction has been captured: offsets begin here.
            self.offsets.base = Some(segment.ack);
            self.offsets.highest = ORIGIN;
        }
        let ack = self.offsets.of(segment.ack);
        if self.highest == 0 {
            self.acked = self.acked.max(ack);
            self.offsets.highest = self.offsets.highest.max(ack);
            return;
        }
        let beyond = self.offsets.highest.max(self.highest);
        if ack > beyond {
            self.missed += ack - beyond;
            self.offsets.highest = ack;
        }
        let mut blocks = [(0, 0); 4];
        let mut offsets = self.offsets;
        for (block, into) in segment.blocks().iter().zip(&mut blocks) {
            *into = (offsets.of(block.0), offsets.of(block.1));
        }
        let blocks = &blocks[..segment.blocks().len()];
        self.before.on_ack(ack.min(beyond), &self.ranges, arrival.now);
        mark_ack(arrival, ack, blocks, out);
        let echo = segment.timestamps.map(|(_, echo)| echo);
        let mut view = super::after::View {
            ranges: &mut self.ranges,
            acked: self.acked,
            round_trip: &mut self.far,
            now: arrival.now,
        };
        self.after.on_ack(ack, blocks, echo, &mut view, out);
        self.acked = self.acked.max(ack);
        self.forget(arrival.now, out);
    }

    /// Forgets data that was acknowledged long ago.
    fn forget(&mut self, now: Instant, out: &mut Out<'_>) {
        let memory = ((self.far.smoothed() + self.near.smoothed()) * 8)
            .max(self.before.latest() * 2)
            .max(self.after.latest() * 2);
        let memory = memory.max(LEAST_MEMORY).min(MOST_MEMORY);
        let is_old = |range: &Range| range.is_delivered() && now.since(range.delivered_at) > memory;
        while self.ranges.front().is_some_and(is_old) {
            self.forget_one(out);
        }
    }

    /// Time passes without packets.
    pub(super) fn on_tick(&mut self, now: Instant, out: &mut Out<'_>) {
        self.forget(now, out);
    }

    /// Remembers fewer arrivals.
    pub(super) fn limit(&mut self, arrivals: usize) {
        self.before.reordering.limit(arrivals);
        self.after.reordering.limit(arrivals);
    }

    fn forget_one(&mut self, out: &mut Out<'_>) {
        if let Some(range) = self.ranges.pop_front() {
            self.before.settle(&range, &self.clock, out);
            self.after.settle(&range, self.syn.is_some_and(|syn| syn.sack_permitted), out);
        }
    }

    /// The capture ends: decides what can be decided.
    pub(super) fn finish(&mut self, out: &mut Out<'_>) {
        while self.ranges.len() > 0 {
            self.forget_one(out);
        }
        self.before.finish(out.now);
        self.after.finish(out.now);
    }

    /// The shortest round trip between the two ends.
    pub(crate) fn whole_round_trip(&self) -> Option<Duration> {
        Some(self.far.least()? + self.near.least()?)
    }

    /// Bytes that the other end has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acked.min(self.highest).saturating_sub(self.first_offset)
    }

    pub(super) fn memory(&self) -> usize {
        self.ranges.len()
    }
}

/// Reports an acknowledgment.
fn mark_ack(arrival: &Arrival<'_>, ack: u64, blocks: &[(u64, u64)], out: &mut Out<'_>) {
    let edge = arrival.window.map(|window| (ack + u64::from(window)).saturating_sub(ORIGIN));
    out.mark(arrival.frame, (ack, ack), Passed::Ack { edge });
    if let Some(first) = blocks.first() {
        let what = if reports_duplicate(ack, blocks) { Passed::Duplicate } else { Passed::Sack };
        out.mark(arrival.frame, *first, what);
    }
}
