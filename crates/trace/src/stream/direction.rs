//! One direction of a connection: its sequence numbers and the acknowledgments that come back for it.
//! Owned by [`super::Stream`], one for each direction.
//!
//! Called by `Stream::on_packet` after the handshake: `on_ack` of the other direction, then `on_packet` of the sender's own.

mod ending;
mod extent;
mod shifted;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::arrival::Arrival;
use super::data::Data;
use super::downstream::reports_duplicate;
use super::keep_alive::KeepAlives;
use super::known::SequenceState;
use super::log::{Finding, FindingSink};
use super::numbers::{Numbers, ORIGIN};
use super::window::{Closed, Window, WindowUpdate};
use crate::packet::{Flags, Packet, Segment, TooBig};
use crate::{Incident, Passed, PathPart};
use ending::MAX_AHEAD;

/// A window that is closed for less than this holds nobody back.
const MIN_CLOSED: Duration = Duration::from_millis(10);

/// What a SYN offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Offer {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) window_scale: Option<u8>,
    pub(crate) mss: Option<u16>,
}

/// One direction. Most directions of most connections have no data, so the state about data is kept in a box.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Direction {
    numbers: Numbers,
    known: SequenceState,
    /// The sequence number of the SYN, or of the byte before the first packet, as in Wireshark.
    first_seq: Option<u32>,
    /// The offset of the first data; of what the first ACK acknowledged, if no packet of this direction was captured.
    first_offset: u64,
    /// Bytes that were acknowledged in an earlier connection between the same ports, of which the SYN of this one was not captured.
    acknowledged_before: u64,
    /// Whether the capture began in the middle of this connection.
    begins: Begins,
    /// The limit of arrivals that are remembered, if there is one.
    most_arrivals: Option<usize>,
    /// What the SYN offers: none if it was not captured.
    syn: Option<Offer>,
    /// The window that the receiver of this direction allows.
    window: Window,
    keep_alives: KeepAlives,
    /// The end of the data, once a FIN was seen.
    fin: Option<u64>,
    /// The last packet that showed what was sent: an ACK, if no packet of this direction was captured.
    last: (u64, Instant),
    /// FINs that were sent again and not acknowledged.
    fins: KeepAlives,
    /// The round trip of the handshake to the receiver.
    bound: Option<Duration>,
    /// By how much the numbers of SACK blocks are higher than those of the data, if a firewall has changed these.
    sack_shift: Option<u32>,
    /// None before the first data, or the first incident.
    data: Option<Box<Data>>,
}

/// Whether holes may be older than the capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum Begins {
    /// No packet has passed.
    #[default]
    NotYet,
    /// It is not known yet what was sent before the capture began, until data up to here is acknowledged.
    Before(u64),
    /// All data that passes now was sent after the capture began.
    Known,
}

impl Direction {
    /// A packet of this direction; its ACK was passed to the other direction before. True if it is a probe that a timer sent.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "for each packet; 2 % of the instructions of an analysis")]
    pub(super) fn on_packet(&mut self, arrival: &Arrival<'_>, out: &mut FindingSink<'_>) -> bool {
        let segment = &arrival.packet.segment;
        let mut start = self.numbers.of(segment.seq);
        let is_control = segment.flags.is_control();
        if is_control && segment.flags.has(Flags::SYN) {
            self.on_syn(segment);
            start = self.numbers.of(segment.seq) + 1;
        }
        self.first_seq.get_or_insert(segment.seq.wrapping_sub(1));
        if is_control && segment.flags.has(Flags::RST) {
            self.on_reset(start, arrival); // its sequence number need not be part of the data
            return false;
        }
        let end = start + u64::from(segment.len);
        if self.known.highest == 0 {
            if segment.len == 1 && self.begins == Begins::NotYet && !segment.flags.has(Flags::FIN) {
                // Most likely a keep-alive with a byte from before the capture.
                self.begin(end);
                self.on_probe(arrival);
                self.numbers.reach(end);
                return true;
            }
            self.begin(start);
        }
        if segment.len <= 1 && start + 1 == self.known.highest && self.is_probe(arrival) {
            self.on_probe(arrival);
            return true;
        }
        if segment.len > 0 {
            self.on_data((start, end), arrival, out);
        } else if start > self.known.announced {
            (self.known.announced, self.last) = (start, (arrival.frame, arrival.now));
        }
        self.numbers.reach(end);
        if is_control && segment.flags.has(Flags::FIN) {
            if self.fin == Some(end) && segment.len == 0 {
                self.fins.on_keep_alive(arrival.frame, arrival.now);
            }
            // Some send it again with the number after it.
            if self.fin.is_none_or(|fin| fin + 1 != end || segment.len > 0) {
                self.fin = Some(end);
            }
            self.numbers.reach(end + 1);
        }
        false
    }

    fn on_syn(&mut self, segment: &Segment) {
        if self.first_seq.is_some_and(|first| first != segment.seq) && self.data.is_none() {
            // The end starts over with another sequence number.
            (self.numbers, self.known) = (
                Numbers::default(),
                SequenceState { far: self.known.far, near: self.known.near, ..SequenceState::default() },
            );
        }
        self.first_seq = Some(segment.seq);
        let (sack, timestamps) = (segment.sack_permitted, segment.timestamps.is_some());
        let (window_scale, mss) = (segment.window_scale, segment.mss);
        // The options that were not captured may be any.
        self.syn = (!segment.is_cut).then_some(Offer { sack, timestamps, window_scale, mss });
        self.known.may_report = sack || segment.is_cut;
        self.begins = Begins::Known;
    }

    /// The first packet of this direction.
    fn begin(&mut self, start: u64) {
        self.known.acked_at = Instant::ZERO;
        (self.known.highest, self.first_offset, self.known.announced) = (start, start, start);
        self.known.acked = self.known.acked.max(start);
        self.known.unseen_below = if self.begins == Begins::Known { start } else { self.known.acked };
        if let Some(data) = &mut self.data {
            data.begin_at(start); // after an earlier connection
        }
    }

    fn on_data(&mut self, (start, end): (u64, u64), arrival: &Arrival<'_>, out: &mut FindingSink<'_>) {
        let is_beyond = self.window.is_beyond(start);
        if is_beyond {
            self.window.on_probe(self.known.near.unwrap_or_default(), arrival.now);
        }
        let begins = self.begins;
        if begins != Begins::Known {
            self.on_first_data((start, end));
        }
        let Direction { known, window, bound, first_offset, most_arrivals, .. } = self;
        let new = || {
            // What is missing after the handshake had its time, too.
            let is_after_hole = begins == Begins::Known && start > *first_offset;
            let since = arrival.opened.filter(|_| is_after_hole).unwrap_or(arrival.now);
            Box::new(Data::new(*first_offset, known, *bound, since, *most_arrivals))
        };
        let data = self.data.get_or_insert_with(new);
        if !is_beyond {
            window.on_sent(end, data.largest(), known.near.unwrap_or_default(), arrival.now);
        }
        counted(data, out, |data, out| data.on_data((start, end), arrival, is_beyond, known, out));
        known.highest = known.highest.max(end);
        if end > known.announced {
            (known.announced, self.last) = (end, (arrival.frame, arrival.now));
        }
    }

    /// Data of a connection that is older than the capture. Until captured data is acknowledged, holes between packets may
    /// have been sent before the capture began. Called before [`Data::on_data`].
    fn on_first_data(&mut self, (start, end): (u64, u64)) {
        match self.begins {
            Begins::NotYet => self.begins = Begins::Before(end),
            Begins::Before(first) if self.known.acked >= first => self.begins = Begins::Known,
            Begins::Before(_) | Begins::Known => {}
        }
        self.known.is_beginning = self.begins != Begins::Known;
        if matches!(self.begins, Begins::Before(_)) && start > self.known.highest {
            self.known.unseen_below = self.known.unseen_below.max(start);
            if let Some(data) = &mut self.data {
                data.begin_at(start);
            }
        }
    }

    /// True if a segment of the last byte, or without data just before it, is a keep-alive or window probe: nothing is
    /// outstanding.
    fn is_probe(&self, arrival: &Arrival<'_>) -> bool {
        let Segment { flags, len, .. } = arrival.packet.segment;
        let is_control = flags.has(Flags::SYN) || flags.has(Flags::FIN);
        let sent = self.data.as_ref().map(|data| data.active().1);
        !is_control && self.known.acked >= self.known.highest && KeepAlives::is_one(len, sent, arrival.now)
    }

    fn on_probe(&mut self, arrival: &Arrival<'_>) {
        if self.window.is_closed() {
            self.window.on_probe(self.known.near.unwrap_or_default(), arrival.now);
        } else {
            self.keep_alives.on_keep_alive(arrival.frame, arrival.now);
        }
    }

    /// An acknowledgment for this direction's data: first the window, then the data, then `known`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "for each packet; 2 % of the instructions of an analysis")]
    pub(super) fn on_ack(&mut self, arrival: &Arrival<'_>, out: &mut FindingSink<'_>) {
        let segment = &arrival.packet.segment;
        // If no packet of this direction has been captured, offsets begin here.
        let ack = self.numbers.of(segment.ack);
        if self.known.highest == 0 {
            if self.known.heard == 0 {
                (self.first_offset, self.known.acked_at) = (ack, arrival.now);
            } else if ack > self.known.acked {
                self.last = (arrival.frame, arrival.now);
            }
            (self.known.acked, self.known.heard) = (self.known.acked.max(ack), ack.max(self.known.heard));
            self.numbers.reach(ack);
            return;
        }
        let is_answer = self.keep_alives.is_waiting();
        if is_answer {
            self.keep_alives.on_answer();
        }
        if ack > self.numbers.highest() {
            if !self.numbers.is_plausible_ack(ack) {
                return;
            }
            self.numbers.reach(ack);
            if self.begins == Begins::NotYet && ack == self.known.highest + 1 {
                // The first packet was a keep-alive, and had no data.
                self.known.unseen_below = ack;
            }
        }
        let (raw, highest, now) = (segment.window, self.known.highest, arrival.now);
        if ack >= self.known.acked && !self.window.follow(ack, arrival.window(), raw, highest, now) {
            self.on_window(ack, arrival, out);
        }
        if !is_answer && (self.data.is_some() || out.log.marks.is_some()) {
            self.on_ack_of_data(ack, arrival, out);
        }
        if ack > self.known.acked {
            (self.known.acked, self.known.acked_at) = (ack, arrival.now);
        }
        self.known.heard = self.known.heard.max(ack);
    }

    /// The part of [`Direction::on_ack`] for directions with data, or if marks are wanted.
    fn on_ack_of_data(&mut self, ack: u64, arrival: &Arrival<'_>, out: &mut FindingSink<'_>) {
        let segment = &arrival.packet.segment;
        let mut blocks = [(0, 0); 4];
        let mut count = segment.blocks().len();
        let is_shifted = segment.blocks().first().is_some_and(|first| self.numbers.is_far(first.0));
        if is_shifted {
            let known = self.shifted_blocks(ack, segment);
            (blocks, count) = known.map_or((blocks, 0), |blocks| (blocks, count));
        } else {
            for (block, into) in segment.blocks().iter().zip(&mut blocks) {
                *into = (self.numbers.of(block.0), self.numbers.of(block.1));
            }
        }
        let blocks = &blocks[..count];
        if out.log.marks.is_some() {
            mark_ack(arrival, ack, blocks, out);
        }
        if matches!(self.begins, Begins::Before(_)) {
            self.on_first_ack(ack, blocks);
        }
        if let Some(data) = &mut self.data {
            let reach = (ack, ack.min(self.known.highest));
            let is_bare = segment.len == 0 && !self.window.has_changed();
            let hides_blocks = segment.hidden_sack > 0 || is_shifted && count == 0;
            let blocks = (blocks, hides_blocks);
            counted(data, out, |data, out| data.on_ack(reach, blocks, is_bare, arrival, &self.known, out));
        }
    }

    /// The SYN of the other end does not acknowledge all data of this end's SYN, so that end has not taken the rest (RFC 7413 §4.2).
    /// Called after that SYN's own `on_packet`.
    #[cold]
    pub(super) fn on_answer_to_syn(&mut self, ack: u32) {
        let ack = self.numbers.of(ack);
        if let Some(data) = self.data.as_mut().filter(|_| ack < self.known.highest) {
            data.on_window_shrunk(ack);
        }
    }

    /// The SYN of the other end has a window of zero. Called after that SYN's own `on_packet`.
    pub(super) fn on_zero_in_syn(&mut self) {
        self.window.on_zero_in_syn();
    }

    /// An acknowledgment of a connection that is older than the capture: data beyond what has passed was sent before.
    #[cold]
    fn on_first_ack(&mut self, ack: u64, blocks: &[(u64, u64)]) {
        let reported = blocks.iter().map(|(_, right)| *right).fold(ack, u64::max);
        if reported > self.known.highest && reported - self.known.highest < MAX_AHEAD {
            self.known.unseen_below = self.known.unseen_below.max(reported);
            self.begins = Begins::Before(self.known.unseen_below);
            if let Some(data) = &mut self.data {
                data.begin_at(reported);
            }
        }
    }

    /// A router says, in `frame`, that a packet with data of this direction was too big.
    #[cold]
    pub(super) fn on_too_big(&mut self, too_big: &TooBig, frame: u64, out: &mut FindingSink<'_>) {
        let Packet { ip_id, segment, .. } = too_big.packet;
        let start = self.numbers.of(segment.seq);
        if let Some(data) = &mut self.data {
            let bytes = (start, start + u64::from(segment.len));
            counted(data, out, |data, out| data.on_too_big(bytes, ip_id, (frame, too_big.mtu), out));
        }
    }

    #[cold]
    fn on_window(&mut self, ack: u64, arrival: &Arrival<'_>, out: &mut FindingSink<'_>) {
        let is_last = self.fin.is_some() || arrival.packet.segment.flags.has(Flags::FIN);
        let is_zero = arrival.packet.segment.window == 0 && !is_last;
        let Arrival { frame, packet, .. } = *arrival;
        let (window, scale) = (arrival.window(), arrival.scale.unwrap_or(0));
        let is_new = ack > self.known.acked;
        let told = WindowUpdate { ack, is_new, window, is_zero, raw: packet.segment.window, scale, frame };
        let (opened, withdrawn) = self.window.on_ack(&told, self.known.highest, arrival.now);
        if let Some(closed) = opened {
            self.report_closed(&closed, out);
        }
        if let Some(data) = &mut self.data {
            if opened.is_some() {
                data.on_opened_window();
            }
            if is_zero {
                counted(data, out, |data, _| data.on_closed_window(ack));
            }
            if let Some(edge) = withdrawn {
                data.on_window_shrunk(edge);
            }
        }
    }

    #[cold]
    fn report_closed(&mut self, closed: &Closed, out: &mut FindingSink<'_>) {
        let what = Incident::WindowClosed;
        let (side, frame, at, count) = (PathPart::Connection, closed.frame, closed.since, closed.probes);
        let lasted = out.now.since(at);
        if lasted < MIN_CLOSED {
            return;
        }
        self.report(&Finding { what, side, frame, at, bytes: (0, 0), count, lasted }, out);
    }

    /// Reports an incident of the connection, even if no data passed.
    #[cold]
    pub(super) fn report(&mut self, finding: &Finding, out: &mut FindingSink<'_>) {
        let Direction { known, bound, first_offset, most_arrivals, .. } = self;
        let new = || Box::new(Data::new(*first_offset, known, *bound, out.now, *most_arrivals));
        self.data.get_or_insert_with(new);
        out.incident(finding);
    }

    /// The next packet is the first that counts: of those before, only what the handshake showed is known.
    pub(super) fn resume(&mut self) {
        let SequenceState { far, near, near_bound, may_report, .. } = self.known;
        *self = Direction {
            first_seq: self.first_seq,
            syn: self.syn.take(),
            known: SequenceState { far, near, near_bound, may_report, ..SequenceState::default() },
            bound: self.bound,
            most_arrivals: self.most_arrivals,
            ..Direction::default()
        };
    }

    /// Remembers fewer arrivals.
    pub(super) fn limit(&mut self, arrivals: usize) {
        self.most_arrivals = Some(arrivals);
        if let Some(data) = &mut self.data {
            data.limit(arrivals);
        }
    }

    /// Nothing more is expected soon: forgets old data and releases memory.
    pub(super) fn rest(&mut self, now: Instant, out: &mut FindingSink<'_>) {
        if let Some(data) = &mut self.data {
            counted(data, out, |data, out| data.rest(now, &self.known, out));
        }
    }

    /// A round trip between the capture point and the receiver, from the handshake or a timestamp.
    pub(super) fn note_far(&mut self, span: Duration, is_handshake: bool) {
        self.known.far = Some(self.known.far.map_or(span, |least| least.min(span)));
        if is_handshake {
            self.bound = Some(span);
        }
        // The SYN may have data (RFC 7413), or data was captured before the SYN-ACK.
        match &mut self.data {
            Some(data) if is_handshake => data.far_mut().on_handshake(span),
            Some(data) => data.far_mut().at_most(span),
            None => {}
        }
    }

    /// A round trip between the capture point and the sender, from the handshake or a timestamp.
    pub(super) fn note_near(&mut self, span: Duration, is_handshake: bool) {
        self.known.near = Some(self.known.near.map_or(span, |least| least.min(span)));
        let bound = self.known.near_bound.or(is_handshake.then_some(span));
        self.known.near_bound = bound.map(|bound| bound.min(span));
    }

    /// The shortest round trips between the capture point and the sender, and the receiver.
    pub(crate) fn least(&self) -> [Option<Duration>; 2] {
        [self.known.near, self.data.as_ref().map_or(self.known.far, |data| data.far().least())]
    }

    /// The shortest round trip between the two ends.
    pub(crate) fn whole_round_trip(&self) -> Option<Duration> {
        let [near, far] = self.least();
        Some(far? + near?)
    }

    /// True if this sequence number is far from all that has passed.
    #[inline]
    pub(super) fn is_far(&self, seq: u32) -> bool {
        self.numbers.is_far(seq)
    }

    /// True if a packet of this end with this segment has nothing new.
    #[cold]
    pub(super) fn has_passed(&mut self, segment: &Segment) -> bool {
        let is_control = segment.flags.has(Flags::SYN) || segment.flags.has(Flags::FIN);
        let end = self.numbers.of(segment.seq) + u64::from(segment.len) + u64::from(is_control);
        self.first_seq.is_some() && end <= self.numbers.highest()
    }

    /// True if the other end has acknowledged this before.
    #[cold]
    pub(super) fn has_acknowledged(&mut self, ack: u32) -> bool {
        self.numbers.of(ack) <= self.known.acked
    }

    /// The sequence number of the SYN, or of the byte before the first packet.
    pub(super) fn first_seq(&self) -> Option<u32> {
        self.first_seq
    }

    /// What the SYN offers: none if it was not captured.
    pub(crate) fn syn(&self) -> Option<Offer> {
        self.syn
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// None before the first data, or the first incident.
    pub(crate) fn data(&self) -> Option<&Data> {
        self.data.as_deref()
    }

    pub(crate) fn data_mut(&mut self) -> Option<&mut Data> {
        self.data.as_deref_mut()
    }

    /// True if captured data is not acknowledged.
    pub(super) fn is_outstanding(&self) -> bool {
        self.data.is_some() && self.known.acked < self.known.highest
    }

    /// True if the sender has sent a FIN.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some()
    }

    /// The number of ranges that are remembered.
    pub(super) fn memory(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.memory())
    }
}

/// Runs `act` and counts the ranges that it adds and forgets.
#[inline]
fn counted(data: &mut Data, out: &mut FindingSink<'_>, act: impl FnOnce(&mut Data, &mut FindingSink<'_>)) {
    let before = data.memory();
    act(data, out);
    out.log.remembered = out.log.remembered + data.memory() - before;
}

/// Reports an acknowledgment.
fn mark_ack(arrival: &Arrival<'_>, ack: u64, blocks: &[(u64, u64)], out: &mut FindingSink<'_>) {
    let edge = arrival.window().map(|window| (ack + u64::from(window)).saturating_sub(ORIGIN));
    out.mark(arrival.frame, (ack, ack), Passed::Ack { edge });
    if let Some(first) = blocks.first() {
        let what = if reports_duplicate(ack, blocks) { Passed::Duplicate } else { Passed::Sack };
        out.mark(arrival.frame, *first, what);
    }
}
