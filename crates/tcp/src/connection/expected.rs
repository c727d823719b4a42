//! The fast path of an expected segment. In ESTABLISHED, a segment is expected if its only flags are ACK and PSH, its timestamp
//! is not older than the newest (if timestamps were agreed on), and it is
//! - an ACK without data, with or without SACK blocks: SEG.SEQ = RCV.NXT and SND.UNA <= SEG.ACK <= SND.NXT, or
//! - data, completely within the window (in order or not), at an end whose application has neither written nor closed:
//!   SEG.ACK = SND.UNA, no SACK blocks, and the peer has sent no FIN.
//!
//! [`Connection::on_segment`] asks for each segment, after the timers that are due, whether it is expected; then the checks of
//! [`super::input`] are not needed, because it passes all of them, nor the processing of the ACK and FIN of data, which bring nothing
//! new. [`super::output`] sends what it causes. Tests compare it with the slow path ([`crate::proof`]).

use reknit_units::{Bytes, Instant};

use super::{Connection, State};
use crate::proof::{self, FastPath};
use crate::receiver::Delivery;
use crate::segment::{Flags, Segment};
use crate::sender::WindowUpdate;
use crate::seq::Offset;

/// An expected segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expected {
    /// Data from here on.
    Data { start: Offset },
    /// An acknowledgment of everything below `ack`.
    Ack { ack: Offset },
}

impl Connection {
    /// What the segment is, if it is expected.
    pub(super) fn expected(&self, now: Instant, segment: &Segment) -> Option<Expected> {
        let is_plain = segment.flags | Flags::PSH == Flags::ACK | Flags::PSH; // PSH or not
        if !is_plain || self.state() != State::Established || proof::takes_slow_path() {
            return None;
        }
        let (rcv_nxt, snd) = (self.receiver.rcv_nxt(), &self.sender.state);
        let start = self.receiver.offset(segment.seq)?;
        let ack = snd.snd_una.nearest(segment.ack, self.identity.isn)?;
        if start < rcv_nxt || !self.has_current_timestamp(now, segment) {
            return None;
        }
        if segment.len == 0 {
            let is_acceptable = start == rcv_nxt && ack >= snd.snd_una && ack <= snd.snd_nxt;
            return is_acceptable.then_some(Expected::Ack { ack });
        }
        let repeats_last_ack = ack == snd.snd_una && segment.options.sack.is_empty();
        let only_receives = repeats_last_ack && self.sender.only_receives();
        let fits = self.receiver.has_room_until(start + Bytes(u64::from(segment.len)));
        (only_receives && fits).then_some(Expected::Data { start })
    }

    /// True if the timestamp is not older than the newest, or if timestamps were not agreed on.
    fn has_current_timestamp(&self, now: Instant, segment: &Segment) -> bool {
        match segment.options.timestamps {
            Some(timestamps) if self.negotiation.timestamps() => !self.peer_timestamp.is_older(now, timestamps.val, 0),
            _ => !self.negotiation.timestamps(),
        }
    }

    /// Processes it.
    pub(super) fn on_expected(&mut self, now: Instant, segment: &Segment, expected: Expected) -> Option<Delivery> {
        match expected {
            Expected::Ack { ack } => {
                proof::note_fast_path(FastPath::Ack);
                let start = self.receiver.rcv_nxt();
                if self.on_acceptable_ack(now, segment, start, ack).has_passed() {
                    self.note_timestamp(now, segment, start);
                }
                None
            }
            Expected::Data { start } => {
                proof::note_fast_path(FastPath::Data);
                self.silence.end(now);
                if self.sender.repeats_timestamps() {
                    self.note_echo(now, segment);
                }
                let update =
                    WindowUpdate { seq: start, ack: self.sender.state.snd_una, wnd: self.scaled_window(segment) };
                self.sender.on_repeated_ack(now, update);
                self.note_timestamp(now, segment, start);
                self.note_congestion(segment);
                self.note_receiver_rtt(now, segment);
                self.deliver(now, segment, start, start + Bytes(u64::from(segment.len)))
            }
        }
    }
}
