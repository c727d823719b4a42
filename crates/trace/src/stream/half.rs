//! One direction of a stream: its sequence numbers, and the acknowledgments that come back for it.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::after::reports_duplicate;
use super::data::{Data, Known};
use super::ranges::{Range, Sighting};
use crate::journey::{Departure, Outcome};
use crate::packet::{Flags, Packet};
use crate::{Event, Journey, Mark, Passed, Side, Verdict};

/// Where offsets begin, so that data from before the first captured packet has one too.
const ORIGIN: u64 = 1 << 32;
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
    /// Ranges that all directions together remember.
    pub(crate) remembered: usize,
}

impl Log {
    /// True if there is nothing to pass on.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.journeys.as_ref().is_none_or(Vec::is_empty)
    }
}

/// Where the verdicts of one direction go.
pub(super) struct Out<'a> {
    pub(super) stream: u32,
    pub(super) end: u8,
    pub(super) now: Instant,
    pub(super) log: &'a mut Log,
}

impl Out<'_> {
    /// Reports when the data of `range` was sent, for the first time or again, and what became of that packet.
    pub(super) fn travelled(&mut self, side: Side, range: &Range, sent: Departure, outcome: Outcome, is_again: bool) {
        let (stream, end, len) = (self.stream, self.end, (range.end - range.start) as u32);
        let settled = match outcome {
            Outcome::Arrived(at) => range.delivered_at.max(at),
            Outcome::Lost | Outcome::Unknown => range.delivered_at,
        };
        if let Some(journeys) = &mut self.log.journeys {
            journeys.push(Journey { stream, end, side, sent, outcome, is_again, settled, len });
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
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Offsets {
    /// The sequence number at [`ORIGIN`].
    base: Option<u32>,
    /// At least [`ORIGIN`].
    highest: u64,
}

impl Default for Offsets {
    fn default() -> Offsets {
        Offsets { base: None, highest: ORIGIN }
    }
}

impl Offsets {
    #[inline]
    fn of(&mut self, seq: u32) -> u64 {
        let base = *self.base.get_or_insert(seq);
        // The lower half of ORIGIN is zero.
        let ahead = seq.wrapping_sub(base.wrapping_add(self.highest as u32)).cast_signed();
        self.highest.wrapping_add_signed(ahead.into())
    }
}

/// What a SYN offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) window_scale: Option<u8>,
    pub(crate) mss: Option<u16>,
}

/// One direction. Most directions of most connections have no data, so what is about data is kept apart.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Half {
    offsets: Offsets,
    known: Known,
    /// The sequence number of the SYN, or of the first packet.
    pub(crate) first_seq: Option<u32>,
    /// Acknowledged bytes that were never captured.
    pub(crate) missed: u64,
    /// Where the data began.
    first_offset: u64,
    /// Arrivals that are remembered, if they are limited.
    most_arrivals: Option<usize>,
    /// What the SYN offers: none if it was not captured.
    pub(crate) syn: Option<Offer>,
    /// None before the first data.
    pub(crate) data: Option<Box<Data>>,
}

impl Half {
    /// A packet of this direction. Acknowledges nothing; that is the other direction's matter.
    pub(super) fn on_packet(&mut self, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let segment = &arrival.packet.segment;
        self.first_seq.get_or_insert(segment.seq);
        let mut start = self.offsets.of(segment.seq);
        if segment.flags.has(Flags::SYN) {
            let (sack, timestamps) = (segment.sack_permitted, segment.timestamps.is_some());
            let (window_scale, mss) = (segment.window_scale, segment.mss);
            self.syn = Some(Offer { sack, timestamps, window_scale, mss });
            self.known.may_report = sack;
            start += 1;
        }
        let end = start + u64::from(segment.len);
        if segment.flags.has(Flags::RST) {
            return; // its sequence number need not be part of the data
        }
        let known = &mut self.known;
        if known.highest == 0 {
            (known.highest, known.acked, self.first_offset) = (start, known.acked.max(start), start);
        }
        // A keep-alive repeats the last byte, if it has any data.
        let is_keep_alive = segment.len <= 1 && start + 1 == known.acked;
        if segment.len > 0 && !is_keep_alive {
            let new = || Box::new(Data::new(self.first_offset, known, arrival.now, self.most_arrivals));
            let data = self.data.get_or_insert_with(new);
            counted(data, out, |data, out| data.on_data((start, end), arrival, known, out));
            known.highest = known.highest.max(end);
        }
        self.offsets.highest = self.offsets.highest.max(end);
        if segment.flags.has(Flags::FIN) {
            self.offsets.highest = self.offsets.highest.max(end + 1);
        }
    }

    /// An acknowledgment for this direction's data.
    pub(super) fn on_ack(&mut self, arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let segment = &arrival.packet.segment;
        // If no packet of this direction has been captured, offsets begin here.
        let ack = self.offsets.of(segment.ack);
        if self.known.highest == 0 {
            self.known.acked = self.known.acked.max(ack);
            self.offsets.highest = self.offsets.highest.max(ack);
            return;
        }
        let beyond = self.offsets.highest.max(self.known.highest);
        if ack > beyond {
            self.missed += ack - beyond;
            self.offsets.highest = ack;
        }
        if self.data.is_some() || out.log.marks.is_some() {
            self.on_ack_of_data((ack, beyond), arrival, out);
        }
        self.known.acked = self.known.acked.max(ack);
    }

    /// The same if there is data, or somebody wants to know. `beyond`: the end of the data.
    fn on_ack_of_data(&mut self, (ack, beyond): (u64, u64), arrival: &Arrival<'_>, out: &mut Out<'_>) {
        let segment = &arrival.packet.segment;
        let mut blocks = [(0, 0); 4];
        for (block, into) in segment.blocks().iter().zip(&mut blocks) {
            *into = (self.offsets.of(block.0), self.offsets.of(block.1));
        }
        let blocks = &blocks[..segment.blocks().len()];
        if out.log.marks.is_some() {
            mark_ack(arrival, ack, blocks, out);
        }
        if let Some(data) = &mut self.data {
            let reach = (ack, ack.min(beyond));
            counted(data, out, |data, out| data.on_ack(reach, blocks, arrival, &self.known, out));
        }
    }

    /// Data begins with the next packet.
    pub(super) fn resume(&mut self) {
        self.known.highest = 0;
        (self.missed, self.data) = (0, None);
    }

    /// Remembers fewer arrivals.
    pub(super) fn limit(&mut self, arrivals: usize) {
        self.most_arrivals = Some(arrivals);
        if let Some(data) = &mut self.data {
            data.limit(arrivals);
        }
    }

    /// The capture ends: decides what can be decided.
    pub(super) fn finish(&mut self, out: &mut Out<'_>) {
        if let Some(data) = &mut self.data {
            counted(data, out, |data, out| data.finish(&self.known, out));
        }
    }

    /// Nothing more is expected soon: forgets what is old, and gives back memory.
    pub(super) fn rest(&mut self, now: Instant, out: &mut Out<'_>) {
        if let Some(data) = &mut self.data {
            counted(data, out, |data, out| data.rest(now, &self.known, out));
        }
    }

    /// A round trip between the point of capture and the receiver.
    pub(super) fn note_far(&mut self, span: Duration) {
        self.known.far = Some(self.known.far.map_or(span, |least| least.min(span)));
        if let Some(data) = &mut self.data {
            data.far.at_most(span);
        }
    }

    /// A round trip between the point of capture and the sender.
    pub(super) fn note_near(&mut self, span: Duration) {
        self.known.near = Some(self.known.near.map_or(span, |least| least.min(span)));
    }

    /// The shortest round trips between the point of capture and the sender, and the receiver.
    pub(crate) fn least(&self) -> [Option<Duration>; 2] {
        [self.known.near, self.data.as_ref().map_or(self.known.far, |data| data.far.least())]
    }

    /// The shortest round trip between the two ends.
    pub(crate) fn whole_round_trip(&self) -> Option<Duration> {
        let [near, far] = self.least();
        Some(far? + near?)
    }

    /// Bytes that the other end has acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.known.acked.min(self.known.highest).saturating_sub(self.first_offset)
    }

    /// Ranges that are remembered.
    pub(super) fn memory(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.ranges.len())
    }
}

/// Does something with the data, and counts the ranges that it adds and forgets.
#[inline]
fn counted(data: &mut Data, out: &mut Out<'_>, act: impl FnOnce(&mut Data, &mut Out<'_>)) {
    let before = data.ranges.len();
    act(data, out);
    out.log.remembered = out.log.remembered + data.ranges.len() - before;
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
