//! Builds segments: headers for the sender's data, and pending acknowledgments.

use reknit_units::{Bytes, Instant};

use super::{Connection, State};
use crate::scoreboard::SendReason;
use crate::seams::{PiggybackLimit, TimedAck};
use crate::segment::{Ecn, Flags, MAX_OPTIONS_LEN, Options, Segment, TIMESTAMPS_LEN};
use crate::sender::Outgoing;
use crate::seq::Offset;

/// What a connection asks its owner to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this segment. Its payload is the part of the stream from [`Connection::position_sent`] of its sequence
    /// number.
    Send(Segment),
    /// Call [`Connection::on_timer`] at this time, if nothing happens before.
    WakeAt(Instant),
    /// Nothing to do until a segment arrives or the application acts.
    Idle,
}

impl Connection {
    /// Returns what to do next. Call it until it no longer returns [`Output::Send`].
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(segment) = self.poll_segment(now) {
            return Output::Send(segment);
        }
        let deadline = self.deadline();
        if deadline.is_set() { Output::WakeAt(deadline) } else { Output::Idle }
    }

    /// Returns the next segment to send. Call it until there is none; [`Connection::deadline`] says then when to continue.
    #[inline]
    pub fn poll_segment(&mut self, now: Instant) -> Option<Segment> {
        self.send_written(now);
        let segment = self.out.pop_front()?;
        if self.out.is_empty() {
            self.out.clear(); // reuse the start of the ring, which is in the cache
        }
        Some(segment)
    }

    /// Sends what the application has written since the last transmission, and the FIN if it has closed.
    #[inline]
    pub(super) fn send_written(&mut self, now: Instant) {
        if self.dirty && self.is_synchronised() {
            self.send_now(now);
        }
    }

    fn send_now(&mut self, now: Instant) {
        self.dirty = false;
        self.sender.transmit_written(now);
        self.flush(now);
    }

    /// Builds segments for what the sender wants to send, then the ACKs of the ACK policy that are due, then a pure ACK if one
    /// is still pending.
    pub(super) fn flush(&mut self, now: Instant) {
        self.deadline.forget();
        for i in 0..self.sender.outbox.len() {
            let outgoing = self.sender.outbox[i];
            let segment = self.data_segment(outgoing);
            self.out.push_back(segment);
        }
        self.sender.outbox.clear();
        if self.is_synchronised() || self.state() == State::SynReceived {
            while let Some(TimedAck { ack, sack }) = self.receiver.take_timed_ack(now) {
                self.send_ack(now, PiggybackLimit { ack, sack });
            }
            if self.receiver.needs_pure_ack(now) {
                self.receiver.on_ack_sent(true);
                self.send_ack(now, self.receiver.disclosure());
            }
        }
    }

    fn send_ack(&mut self, now: Instant, disclosure: PiggybackLimit) {
        let mut segment = self.segment(now, self.next_seq(), Flags::ACK, 0, disclosure);
        for support in &mut self.receiver.plugins.header_support {
            support.annotate_ack(self.peer_timestamp.last_ack_sent(), &mut segment.options.experiment);
        }
        self.out.push_back(segment);
    }

    fn data_segment(&mut self, outgoing: Outgoing) -> Segment {
        let end = outgoing.start + Bytes(u64::from(outgoing.len));
        let fin = self.sender.fin().is_some_and(|fin| fin < end);
        let len = (outgoing.len - u32::from(fin)) as u16;
        let mut flags = Flags::ACK;
        if len > 0 && (outgoing.push || end >= self.sender.queued()) {
            flags |= Flags::PSH;
        }
        if fin {
            flags |= Flags::FIN;
        }
        // Only new data carries CWR and is ECN-capable, but not retransmissions and probes of a closed window (RFC 3168
        // §6.1.2, §6.1.5, §6.1.6).
        let is_new = outgoing.cause != SendReason::WindowProbe && !outgoing.again && outgoing.len > u32::from(fin);
        if is_new && self.sender.take_cwr() {
            flags |= Flags::CWR;
        }
        let mut segment = self.segment(outgoing.stamped, outgoing.start, flags, len, self.receiver.disclosure());
        if self.negotiation.ecn() && is_new {
            segment.ecn = Ecn::Ect0;
        }
        for support in &mut self.receiver.plugins.header_support {
            support.annotate_data(outgoing.again, &mut segment.options.experiment);
        }
        self.receiver.on_ack_sent(false);
        segment
    }

    /// The number of SACK blocks that fit next to the other options and a payload of `len` bytes. A FIN without payload
    /// has the same options as data.
    fn sack_room(&self, flags: Flags, len: u16) -> usize {
        let timestamps = if self.negotiation.timestamps() { TIMESTAMPS_LEN } else { 0 };
        let features = self.negotiation.features();
        let is_data = len > 0 || flags.has(Flags::FIN);
        let others = timestamps + if is_data { features.data_len() } else { features.ack_len() };
        let payload_left = usize::from(self.agreed_mss()).saturating_sub(usize::from(len) + others);
        (MAX_OPTIONS_LEN - others).min(payload_left).saturating_sub(4) / 8
    }

    /// A segment with `len` bytes of payload that acknowledges what `disclosure` allows. A full-sized segment has no
    /// room for SACK blocks; they go into the pure ACK that follows after disorder.
    pub(super) fn segment(
        &mut self,
        now: Instant,
        start: Offset,
        flags: Flags,
        len: u16,
        disclosure: PiggybackLimit,
    ) -> Segment {
        let ack = disclosure.ack.max(self.peer_timestamp.last_ack_sent());
        self.peer_timestamp.on_ack_sent(ack);
        let reports = disclosure.sack && self.receiver.has_sack_news();
        let sack_room = if reports { self.sack_room(flags, len) } else { 0 };
        Segment {
            seq: start.to_wire(self.identity.isn),
            ack: ack.to_wire(self.receiver.irs()),
            window: self.receiver.advertise_window(ack),
            len,
            flags: self.ecn_echo.mark(flags),
            options: Options {
                timestamps: self.timestamps(now),
                sack: self.receiver.take_sack(sack_room),
                ..Options::default()
            },
            ..Segment::default()
        }
    }
}
