//! One TCP connection.

mod after;
mod before;
mod bill;
mod copies;
mod data;
mod disorder;
mod half;
mod order;
mod place;
mod ranges;
mod round_trip;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::packet::{Endpoint, Flags, Packet};
pub(crate) use bill::Bill;
use copies::{Copies, Seen};
pub(crate) use data::Data;
pub(crate) use disorder::Disorder;
use half::{Arrival, Out};
pub(crate) use half::{Half, Log, Offer};
pub use place::{Confidence, Place};
use round_trip::Echoes;

/// A connection without packets for this long is silent.
const SILENCE: Duration = Duration::from_secs(1);
/// After this, nothing is left to forget.
const LONG_SILENCE: Duration = Duration::from_secs(31);

/// The progress of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Handshake {
    None,
    /// A SYN passed; its sender.
    Syn(usize, Instant),
    SynAck(usize, Instant),
    Over,
}

/// A connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Stream {
    /// As `tcp.stream` in Wireshark.
    pub(crate) number: u32,
    /// The sender of the first packet, and its receiver.
    pub(crate) ends: [Endpoint; 2],
    /// What each of them sent.
    pub(crate) halves: [Half; 2],
    echoes: [Echoes; 2],
    copies: [Copies; 2],
    handshake: Handshake,
    /// TTLs of the first packet of each end.
    ttl: [Option<u8>; 2],
    /// A FIN or RST passed.
    is_closing: bool,
    /// It has been silent for long, and has forgotten all it can.
    is_at_rest: bool,
    pub(crate) packets: u64,
    pub(crate) last: Instant,
}

impl Stream {
    pub(crate) fn new(number: u32, packet: &Packet, now: Instant) -> Stream {
        Stream {
            number,
            ends: [packet.source, packet.destination],
            halves: <[Half; 2]>::default(),
            echoes: <[Echoes; 2]>::default(),
            copies: <[Copies; 2]>::default(),
            handshake: Handshake::None,
            ttl: [None; 2],
            is_closing: false,
            is_at_rest: false,
            packets: 0,
            last: now,
        }
    }

    /// True if `packet` begins another connection between the same ports, as Wireshark decides it.
    pub(crate) fn is_replaced_by(&self, packet: &Packet) -> bool {
        let flags = packet.segment.flags;
        if !flags.has(Flags::SYN) {
            return false;
        }
        let known = self.halves[self.end(packet)].first_seq;
        let is_other = known.is_some_and(|first| first != packet.segment.seq);
        is_other || !flags.has(Flags::ACK) && known.is_some() && self.is_closing
    }

    /// The index of the packet's sender. The ports tell, unless they are equal.
    #[inline]
    fn end(&self, packet: &Packet) -> usize {
        let ([a, b], source) = (&self.ends, &packet.source);
        usize::from(if a.port == b.port { source != a } else { source.port != a.port })
    }

    /// A packet of this connection. `most_ranges`: ranges of data that each direction may remember.
    pub(crate) fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant, most_ranges: usize, log: &mut Log) {
        let end = self.end(packet);
        let now = now.max(self.last); // clocks are set back now and then
        self.last = now;
        self.packets += 1;
        self.is_at_rest = false;
        let copy = self.copies[end].look(packet);
        if copy == Seen::LeftOut {
            return;
        }
        self.ttl[end].get_or_insert(packet.ttl);
        let flags = packet.segment.flags;
        self.is_closing |= flags.has(Flags::FIN) || flags.has(Flags::RST);
        if copy == Seen::New {
            self.on_handshake(end, flags, now);
        }
        self.on_timestamps(end, packet, now);
        let window = if log.marks.is_some() { self.window(end, packet) } else { None };
        let arrival = Arrival { now, frame, packet, window, most_ranges };
        let stream = self.number;
        if flags.has(Flags::ACK) && !flags.has(Flags::RST) {
            let mut out = Out { stream, end: 1 - end as u8, now, log };
            self.halves[1 - end].on_ack(&arrival, &mut out);
        }
        let mut out = Out { stream, end: end as u8, now, log };
        self.halves[end].on_packet(&arrival, &mut out);
    }

    /// The window that `packet` allows, bytes; none if the handshake, which scales it (RFC 7323 §2.2), was not captured.
    fn window(&self, end: usize, packet: &Packet) -> Option<u32> {
        let scales = [end, 1 - end].map(|end| self.halves[end].syn.map(|syn| syn.window_scale));
        let window = u32::from(packet.segment.window);
        match scales {
            _ if packet.segment.flags.has(Flags::SYN) => Some(window),
            [Some(Some(own)), Some(Some(_))] => Some(window << own),
            [Some(_), Some(_)] => Some(window),
            _ => None,
        }
    }

    /// The handshake gives the distance to each end.
    fn on_handshake(&mut self, end: usize, flags: Flags, now: Instant) {
        let next = match (self.handshake, flags.has(Flags::SYN), flags.has(Flags::ACK)) {
            (Handshake::Over, ..) => return,
            (Handshake::None, true, false) => Handshake::Syn(end, now),
            (Handshake::Syn(client, at), true, true) if client != end => {
                self.note_distance(end, now.since(at));
                Handshake::SynAck(client, now)
            }
            (Handshake::SynAck(client, at), false, true) if client == end => {
                self.note_distance(end, now.since(at));
                Handshake::Over
            }
            _ => Handshake::Over, // packets are missing or repeated
        };
        self.handshake = next;
    }

    /// An echo of a timestamp gives the distance to the end that echoes it.
    fn on_timestamps(&mut self, end: usize, packet: &Packet, now: Instant) {
        let Some((value, echo)) = packet.segment.timestamps else { return };
        self.echoes[end].on_value(value, now);
        if packet.segment.flags.has(Flags::ACK)
            && let Some(span) = self.echoes[1 - end].since(echo, now)
        {
            self.note_distance(end, span);
        }
    }

    /// A round trip between the point of capture and `end`.
    fn note_distance(&mut self, end: usize, span: Duration) {
        self.halves[end].note_near(span);
        self.halves[1 - end].note_far(span);
    }

    /// Where the data of `end` was captured.
    pub(crate) fn place(&self, end: usize) -> (Place, Confidence) {
        let [near, far] = self.halves[end].least();
        place::infer(near, far, [self.ttl[end], self.ttl[1 - end]])
    }

    /// If no packet has passed for a while, forgets what is old.
    pub(crate) fn rest(&mut self, now: Instant, log: &mut Log) {
        if self.is_at_rest || now.since(self.last) < SILENCE {
            return;
        }
        // Older data is remembered for longer, so it may take another visit.
        self.is_at_rest = now.since(self.last) > LONG_SILENCE;
        self.echoes = Default::default();
        self.copies.iter_mut().for_each(Copies::rest);
        for end in 0..2 {
            let mut out = Out { stream: self.number, end: end as u8, now, log };
            self.halves[end].rest(now, &mut out);
        }
    }

    /// True if it has been silent, and nothing is left to forget.
    pub(crate) fn has_nothing_to_do(&self, now: Instant) -> bool {
        let silent = now.since(self.last);
        silent > LONG_SILENCE || silent > SILENCE && self.memory() == 0
    }

    /// Packets that were left out because they had been captured before.
    pub(crate) fn copies(&self) -> u64 {
        self.copies.iter().map(|copies| copies.left_out).sum()
    }

    /// True if most packets that `end` sent were captured more than once.
    pub(crate) fn is_doubled(&self, end: usize) -> bool {
        self.copies[end].is_doubled()
    }

    /// Bytes that were acknowledged, but never captured.
    pub(crate) fn missed(&self) -> u64 {
        self.halves.iter().map(|half| half.missed).sum()
    }

    /// Time passes without packets: decides what can be decided by now.
    pub(crate) fn on_tick(&mut self, now: Instant, log: &mut Log) {
        for end in 0..2 {
            let mut out = Out { stream: self.number, end: end as u8, now, log };
            self.halves[end].rest(now, &mut out);
        }
    }

    /// A packet passes that does not count, with these flags.
    pub(crate) fn pass_by(&mut self, flags: Flags) {
        self.is_closing |= flags.has(Flags::FIN) || flags.has(Flags::RST);
    }

    /// The packets so far do not count, except what the handshake says.
    pub(crate) fn resume(&mut self) {
        self.packets = 0;
        self.halves.iter_mut().for_each(Half::resume);
    }

    /// Remembers at most this many arrivals of each direction.
    pub(crate) fn limit(&mut self, arrivals: usize) {
        self.halves.iter_mut().for_each(|half| half.limit(arrivals));
    }

    /// A FIN or RST passed.
    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The capture ends: decides what can be decided.
    pub(crate) fn finish(&mut self, log: &mut Log) {
        for end in 0..2 {
            let mut out = Out { stream: self.number, end: end as u8, now: self.last, log };
            self.halves[end].finish(&mut out);
        }
    }

    /// Ranges that are remembered.
    pub(crate) fn memory(&self) -> usize {
        self.halves.iter().map(Half::memory).sum()
    }
}
