//! Segments leave: headers for what the sender wants sent, acknowledgments that are owed.

use reknit_units::{Bytes, Instant};

use super::{Connection, State};
use crate::scoreboard::Cause;
use crate::segment::{Ecn, Flags, MAX_OPTIONS_LEN, Options, Segment, TIMESTAMPS_LEN, Timestamps};
use crate::sender::Outgoing;
use crate::seq::Offset;

/// What a connection wants of its owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// Send this segment. Payload octets are those of the stream from [`Connection::position_sent`] of its number.
    Send(Segment),
    /// Call [`Connection::on_timer`] then, if nothing happens before.
    WakeAt(Instant),
    /// Nothing will happen without a segment or the application.
    Idle,
}

impl Connection {
    /// What to do next. Call until it is not [`Output::Send`] any more.
    pub fn poll(&mut self, now: Instant) -> Output {
        if self.dirty && self.is_synchronised() {
            self.dirty = false;
            self.sender.transmit(now, false);
            self.flush(now);
        }
        if let Some(segment) = self.out.pop_front() {
            return Output::Send(segment);
        }
        let deadline = self.deadline();
        if deadline.is_set() { Output::WakeAt(deadline) } else { Output::Idle }
    }

    /// Turns what the sender wants sent into segments, then acknowledges if that is still owed.
    pub(super) fn flush(&mut self, now: Instant) {
        for i in 0..self.sender.outbox.len() {
            let outgoing = self.sender.outbox[i];
            let segment = self.data_segment(now, outgoing);
            self.out.push_back(segment);
        }
        self.sender.outbox.clear();
        let may_ack = self.is_synchronised() || self.state == State::SynReceived;
        if may_ack && self.receiver.owes_pure_ack(now) {
            let mut segment = self.header(now, self.next_seq(), Flags::ACK);
            segment.options.sack = self.receiver.take_sack(self.sack_room(0));
            self.receiver.on_ack_sent(true);
            self.out.push_back(segment);
        }
    }

    fn data_segment(&mut self, now: Instant, outgoing: Outgoing) -> Segment {
        let end = outgoing.start + Bytes(u64::from(outgoing.len));
        let fin = self.sender.fin().is_some_and(|fin| fin < end);
        let mut flags = Flags::ACK;
        if end >= self.sender.written() {
            flags |= Flags::PSH;
        }
        if fin {
            flags |= Flags::FIN;
        }
        // Only new data announces a reduction and is ECN-capable: not what was sent before, nor a probe of a closed window
        // (RFC 3168 §6.1.2, §6.1.5, §6.1.6).
        let is_new = outgoing.cause != Cause::WindowProbe && !outgoing.again;
        if is_new && std::mem::take(&mut self.sender.send_cwr) {
            flags |= Flags::CWR;
        }
        let mut segment = self.header(now, outgoing.start, flags);
        segment.len = (outgoing.len - u32::from(fin)) as u16;
        if self.handshake.ecn && is_new {
            segment.ecn = Ecn::Capable0;
        }
        // A full-sized segment has no room; the pure ACK that disorder calls for carries the blocks then.
        segment.options.sack = self.receiver.take_sack(self.sack_room(segment.len));
        self.receiver.on_ack_sent(false);
        segment
    }

    /// Blocks that fit beside the other options and a payload of `len` octets.
    fn sack_room(&self, len: u16) -> usize {
        let timestamps = if self.handshake.timestamps { TIMESTAMPS_LEN } else { 0 };
        let payload_left = usize::from(self.agreed_mss()).saturating_sub(usize::from(len) + timestamps);
        (MAX_OPTIONS_LEN - timestamps).min(payload_left).saturating_sub(4) / 8
    }

    /// A header at `start` that acknowledges everything received.
    pub(super) fn header(&mut self, now: Instant, start: Offset, flags: Flags) -> Segment {
        let mut flags = flags;
        if self.ecn_echo && self.state != State::SynSent {
            flags |= Flags::ECE;
        }
        self.last_ack_sent = self.receiver.rcv_nxt();
        Segment {
            seq: start.to_wire(self.identity.isn),
            ack: self.receiver.rcv_nxt().to_wire(self.receiver.irs()),
            window: self.receiver.announce(),
            flags,
            options: Options {
                timestamps: self
                    .handshake
                    .timestamps
                    .then(|| Timestamps { val: self.timestamp(now), ecr: self.ts_recent }),
                ..Options::default()
            },
            ..Segment::default()
        }
    }
}
