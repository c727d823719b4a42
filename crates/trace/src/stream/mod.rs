//! One TCP connection. `Streams` (capture files) and `Watcher` (live traffic) call [`Stream::on_packet`] for each packet,
//! which takes these steps: `copies`, `handshake`, the ACK in the other direction, the sender's direction, timestamps, RST.
//!
//! Each module uses only those above it, and its fields are private:
//!
//! | module | job |
//! |---|---|
//! | `numbers`, `sighting`, `arrival`, `window`, `keep_alive`, `stall`, `rounds`, `disorder`, `copies`, `place`, `handshake`, `known`, `rests` | one thing each |
//! | `ranges` | which bytes passed, in which packets |
//! | `round_trip`, `clock`, `cause` | times, marks in headers, and what made the sender retransmit |
//! | `sample` | some packets, by which the rate of the bottleneck is estimated |
//! | `log`, `pieces` | the output: one event for each packet, however many ranges it carries |
//! | `upstream`, `downstream` | what happened on each side of the capture point |
//! | `data` | both sides of one direction's data: owns `ranges`, lends them to both sides and settles them |
//! | `direction` | sequence numbers, the window, and the start and end of one direction |
//! | this file | the connection: which direction a packet belongs to |

mod arrival;
mod cause;
mod clock;
mod copies;
mod data;
mod direction;
mod disorder;
mod downstream;
mod handshake;
mod keep_alive;
mod known;
mod log;
mod numbers;
mod pieces;
mod place;
mod ranges;
mod rests;
mod round_trip;
mod rounds;
mod sample;
mod sighting;
mod stall;
mod strays;
mod upstream;
mod window;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::packet::{Endpoint, Flags, Packet, TooBig};
use crate::{Event, Incident, PathPart, Verdict};
use arrival::Arrival;
use copies::{Copies, Seen};
pub(crate) use data::Data;
pub(crate) use direction::{Direction, Offer};
pub(crate) use disorder::Disorder;
use handshake::{Failure, Handshake, HandshakeEvidence};
pub(crate) use log::Log;
use log::{Finding, FindingSink};
pub use place::{CapturePoint, Confidence};
pub(crate) use rests::Rests;
use rests::Silence;
use round_trip::Echoes;
pub(crate) use rounds::Reductions;
pub(crate) use strays::Strays;

/// A connection without packets for this long is silent.
const SILENCE: Duration = Duration::from_secs(1);
/// After this time, nothing is left to forget.
const LONG_SILENCE: Duration = Duration::from_secs(31);

/// A connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    /// As `tcp.stream` in Wireshark.
    pub(crate) number: u32,
    /// The sender of the first packet and its receiver.
    pub(crate) ends: [Endpoint; 2],
    /// What each of them sent.
    directions: [Direction; 2],
    echoes: [Echoes; 2],
    copies: [Copies; 2],
    handshake: Handshake,
    /// TTLs of the first packet of each end.
    ttl: [Option<u8>; 2],
    /// The window scale shifts of both ends; none if a SYN was not captured.
    scales: Option<[u8; 2]>,
    /// A FIN or RST passed.
    is_closing: bool,
    /// A RST passed.
    is_reset: bool,
    /// Events about duplicates that either the network or the capture made, which is not known yet.
    held: Vec<Event>,
    /// None as long as there are none.
    strays: Option<Box<Strays>>,
    silence: Silence,
    rests: Rests,
    pub(crate) packets: u64,
    pub(crate) last: Instant,
}

impl Stream {
    pub(crate) fn new(number: u32, packet: &Packet, now: Instant) -> Stream {
        Stream {
            number,
            ends: [packet.source, packet.destination],
            directions: <[Direction; 2]>::default(),
            echoes: <[Echoes; 2]>::default(),
            copies: <[Copies; 2]>::default(),
            handshake: Handshake::default(),
            ttl: [None; 2],
            scales: None,
            is_closing: false,
            is_reset: false,
            held: Vec::new(),
            strays: None,
            silence: Silence::None,
            rests: Rests::default(),
            packets: 0,
            last: now,
        }
    }

    /// True if `packet` opens another connection between the same ports, by Wireshark's rule.
    pub(crate) fn is_replaced_by(&self, packet: &Packet) -> bool {
        let flags = packet.segment.flags;
        let known = self.directions[self.end(packet)].first_seq();
        flags.has(Flags::SYN) && !flags.has(Flags::ACK) && known.is_some_and(|first| first != packet.segment.seq)
    }

    /// The index of the packet's sender: by its port, or by its address if both ports are equal.
    #[inline]
    fn end(&self, packet: &Packet) -> usize {
        let ([a, b], source) = (&self.ends, &packet.source);
        usize::from(if a.port == b.port { source != a } else { source.port != a.port })
    }

    /// A packet of this connection. `most_ranges`: how many ranges of data each direction may remember.
    pub(crate) fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant, most_ranges: usize, log: &mut Log) {
        let end = self.end(packet);
        if now <= self.last && self.repeats_past(end, packet, now) {
            return;
        }
        let now = now.max(self.last); // clocks may be set back
        if self.directions[end].is_far(packet.segment.seq) && self.is_foreign(end, packet, now, log) {
            return;
        }
        self.last = now;
        self.packets += 1;
        self.silence = Silence::None;
        let copy = self.copies[end].look(packet, self.ttl[end], now);
        if copy == Seen::LeftOut {
            return;
        }
        self.ttl[end].get_or_insert(packet.ttl);
        let known = log.events.len();
        if copy == Seen::New && self.on_handshake(end, packet, frame, now, log) == HandshakeEvidence::Stray {
            return;
        }
        let segment = &packet.segment;
        let flags = segment.flags;
        let is_control = flags.is_control();
        self.is_closing |= is_control && !flags.has(Flags::SYN);
        let scale = self.scales.map(|scales| scales[end]);
        let opened = self.handshake.began();
        let arrival = Arrival { now, frame, packet, scale, most_ranges, opened };
        if is_control && flags.has(Flags::RST) {
            self.directions[1 - end].on_reset_by_receiver();
        } else if flags.has(Flags::ACK) {
            let mut out = FindingSink { stream: self.number, end: 1 - end as u8, now, log };
            self.directions[1 - end].on_ack(&arrival, &mut out);
        }
        let mut out = FindingSink { stream: self.number, end: end as u8, now, log };
        let was_idle = segment.len > 0 && !self.directions[end].is_outstanding();
        let is_probe = self.directions[end].on_packet(&arrival, &mut out);
        let longest = match (is_probe, was_idle) {
            (true, _) => Duration::ZERO,
            (_, true) => SILENCE,
            _ => Duration::MAX,
        };
        self.on_timestamps(end, packet, now, longest);
        if is_control && flags.has(Flags::SYN) {
            self.scales = self.scales();
            if flags.has(Flags::ACK) {
                self.directions[1 - end].on_answer_to_syn(segment.ack);
            }
            if segment.window == 0 {
                self.directions[1 - end].on_zero_in_syn();
            }
        } else if is_control && flags.has(Flags::RST) {
            self.on_reset(end, frame, now, log);
        }
        if log.events.len() > known || !self.held.is_empty() {
            self.hold(end, known, log);
        }
    }

    /// A router says, in `frame`, that a packet of this connection was too big.
    #[cold]
    pub(crate) fn on_too_big(&mut self, too_big: &TooBig, frame: u64, now: Instant, log: &mut Log) {
        let end = self.end(&too_big.packet);
        let mut out = FindingSink { stream: self.number, end: end as u8, now: now.max(self.last), log };
        self.directions[end].on_too_big(too_big, frame, &mut out);
    }

    /// The window scale shifts (RFC 7323 §2.2), if both SYNs were captured.
    fn scales(&self) -> Option<[u8; 2]> {
        let [a, b] = [0, 1].map(|end| self.directions[end].syn().map(|syn| syn.window_scale));
        Some(a?.zip(b?).map_or([0; 2], |(a, b)| [a, b]))
    }

    /// The segment size that the receiver of each direction announced.
    fn mss(&self) -> [Option<u16>; 2] {
        [1, 0].map(|end: usize| self.directions[end].syn().and_then(|syn| syn.mss))
    }

    /// The handshake shows the distance to each end, or fails. The second step, after `Copies::look`.
    #[inline]
    fn on_handshake(
        &mut self,
        end: usize,
        packet: &Packet,
        frame: u64,
        now: Instant,
        log: &mut Log,
    ) -> HandshakeEvidence {
        let is_other = self.directions[end].first_seq().is_some_and(|first| first != packet.segment.seq);
        if is_other && self.handshake.is_second_answer(&packet.segment) {
            return HandshakeEvidence::Stray;
        }
        let shows = self.handshake.on_packet(end, &packet.segment, frame, now);
        match shows {
            HandshakeEvidence::Distance(span) => self.note_distance(end, span, true),
            HandshakeEvidence::Failed(failure) => self.report_failure(&failure, now, log),
            HandshakeEvidence::Nothing | HandshakeEvidence::Stray => {}
        }
        shows
    }

    #[cold]
    fn report_failure(&mut self, failure: &Failure, now: Instant, log: &mut Log) {
        let Failure { what, end, count, frame, began: at } = *failure;
        self.is_reset |= what == Incident::Refused;
        let mut out = FindingSink { stream: self.number, end: end as u8, now, log };
        let (side, bytes, lasted) = (PathPart::Connection, (0, 0), now.since(at));
        self.directions[end].report(&Finding { what, side, frame, at, bytes, count, lasted }, &mut out);
    }

    /// `end` resets the connection: the last step. After a FIN this is a normal close, not an incident.
    #[cold]
    fn on_reset(&mut self, end: usize, frame: u64, now: Instant, log: &mut Log) {
        if self.is_reset || !self.handshake.is_over() {
            return;
        }
        self.is_reset = true;
        let mss = self.mss();
        for (of, direction) in self.directions.iter_mut().enumerate() {
            let mut out = FindingSink { stream: self.number, end: of as u8, now, log };
            direction.on_end(mss[of], &mut out);
        }
        if self.directions[1 - end].is_finished() {
            self.directions[end].forget_tail(); // nobody waits for it
        }
        let [own, other] = [&self.directions[end], &self.directions[1 - end]];
        // Nothing of the other end's data was taken.
        let is_refused = other.is_outstanding() && !other.is_finished() && other.acknowledged() == 0;
        if own.is_finished() && !is_refused || other.is_finished() && !other.is_outstanding() {
            return;
        }
        let is_about_other = other.data().is_some() && (own.data().is_none() || other.is_outstanding());
        let about = if is_about_other { 1 - end } else { end };
        let what = if about == end { Incident::Reset } else { Incident::ResetByReceiver };
        let mut out = FindingSink { stream: self.number, end: about as u8, now, log };
        let (side, bytes, count, lasted) = (PathPart::Connection, (0, 0), 1, Duration::ZERO);
        self.directions[about].report(&Finding { what, side, frame, at: now, bytes, count, lasted }, &mut out);
    }

    /// Holds back duplicates that `end` sent, from event `known` on, until it is known whether the capture made them.
    #[cold]
    fn hold(&mut self, end: usize, known: usize, log: &mut Log) {
        if self.copies[end].is_undecided() {
            let is_copy = |event: &Event| usize::from(event.end) == end && event.verdict == Verdict::Duplicated;
            self.held.extend(log.events.extract_if(known.., |event| is_copy(event)));
        } else {
            self.release(end, log);
        }
    }

    fn release(&mut self, end: usize, log: &mut Log) {
        let is_doubled = self.copies.iter().any(Copies::is_doubled);
        let of_end = self.held.extract_if(.., |event| usize::from(event.end) == end);
        log.events.extend(of_end.filter(|_| !is_doubled));
    }

    /// An echoed timestamp shows the distance to the end that echoes it, unless it took `longest` or longer: then a timer
    /// has sent the packet, or the application after a pause. Called after both directions have seen the packet.
    fn on_timestamps(&mut self, end: usize, packet: &Packet, now: Instant, longest: Duration) {
        let Some((value, echo)) = packet.segment.timestamps else { return };
        self.echoes[end].on_value(value, now);
        if packet.segment.flags.has(Flags::ACK)
            && let Some(span) = self.echoes[1 - end].since(echo, now)
            && span < longest
        {
            self.note_distance(end, span, false);
        }
    }

    /// A round trip between the capture point and `end`.
    fn note_distance(&mut self, end: usize, span: Duration, is_handshake: bool) {
        self.directions[end].note_near(span, is_handshake);
        self.directions[1 - end].note_far(span, is_handshake);
    }

    /// What `end` sent.
    pub(crate) fn direction(&self, end: usize) -> &Direction {
        &self.directions[end]
    }

    pub(crate) fn data_mut(&mut self, end: usize) -> Option<&mut Data> {
        self.directions[end].data_mut()
    }

    /// Where the data of `end` was captured.
    pub(crate) fn place(&self, end: usize) -> (CapturePoint, Confidence) {
        let [near, far] = self.directions[end].least();
        place::infer(near, far, [self.ttl[end], self.ttl[1 - end]])
    }

    /// If no packet has passed for a while, forgets old data. Called when `Streams` visits the connection, after this packet of the
    /// capture.
    pub(crate) fn rest(&mut self, packet: u64, now: Instant, log: &mut Log) {
        if self.silence == Silence::Long || now.since(self.last) < SILENCE {
            return;
        }
        let (remembered, is_first) = (self.memory(), self.silence == Silence::None);
        // Older data is remembered for longer, so it may take another visit.
        self.silence = if now.since(self.last) > LONG_SILENCE { Silence::Long } else { Silence::Short };
        self.echoes = Default::default();
        self.copies.iter_mut().for_each(Copies::rest);
        for end in 0..2 {
            let mut out = FindingSink { stream: self.number, end: end as u8, now, log };
            self.directions[end].rest(now, &mut out);
        }
        if is_first || self.memory() < remembered {
            self.rests.add(packet, &mut log.rests);
        }
    }

    /// When it has rested.
    pub(crate) fn rests(&self) -> &Rests {
        &self.rests
    }

    /// True if it has been silent and nothing is left to forget.
    pub(crate) fn has_nothing_to_do(&self, now: Instant) -> bool {
        let silent = now.since(self.last);
        silent > LONG_SILENCE || silent > SILENCE && self.memory() == 0
    }

    /// Packets that were skipped because they had been captured before.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.iter().map(|copies| copies.left_out).sum()
    }

    /// Bytes that were acknowledged, but never captured.
    pub(crate) fn missed(&self) -> u64 {
        self.directions.iter().map(|direction| direction.data().map_or(0, Data::missed)).sum()
    }

    /// Called about once a second by `Watcher`, with or without packets: decides what can be decided by now.
    pub(crate) fn on_tick(&mut self, now: Instant, log: &mut Log) {
        for end in 0..2 {
            let mut out = FindingSink { stream: self.number, end: end as u8, now, log };
            self.directions[end].rest(now, &mut out);
        }
    }

    /// A packet outside the time span that is analysed. Called instead of [`Stream::on_packet`], except for SYNs.
    pub(crate) fn pass_by(&mut self, flags: Flags) {
        self.is_closing |= flags.has(Flags::FIN) || flags.has(Flags::RST);
    }

    /// The packets so far do not count, except for the handshake. Called before the first packet that counts.
    pub(crate) fn resume(&mut self) {
        self.packets = 0;
        self.handshake.resume();
        self.echoes = Default::default();
        self.directions.iter_mut().for_each(Direction::resume);
    }

    /// Remembers at most this many arrivals of each direction.
    pub(crate) fn limit(&mut self, arrivals: usize) {
        self.directions.iter_mut().for_each(|direction| direction.limit(arrivals));
    }

    /// A FIN or RST passed.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The capture ends at `now`: decides what can be decided. Later packets of the file belong to other connections and say nothing
    /// about this one, so its times end with its last packet.
    pub(crate) fn finish(&mut self, now: Instant, log: &mut Log) {
        if let Some((failure, at)) = self.handshake.finish(self.last, now.max(self.last)) {
            self.report_failure(&failure, at, log);
        }
        for (end, mss) in self.mss().into_iter().enumerate() {
            let mut out = FindingSink { stream: self.number, end: end as u8, now: self.last, log };
            self.directions[end].finish(self.is_reset, mss, &mut out);
            self.release(end, log);
        }
    }

    /// Counts the runs of lost packets that have not ended. Called once the events of `finish` are counted.
    pub(crate) fn end_runs(&mut self) {
        for data in self.directions.iter_mut().filter_map(Direction::data_mut) {
            data.tallies.iter_mut().flatten().for_each(|tally| tally.end_run());
        }
    }

    /// The number of ranges that are remembered.
    pub(crate) fn memory(&self) -> usize {
        self.directions.iter().map(Direction::memory).sum()
    }
}
