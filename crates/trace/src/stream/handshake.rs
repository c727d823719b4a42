//! The progress of the handshake: the distance to each end, and connections that do not open. `Stream::on_packet` calls
//! `on_packet` for each packet, after copies were skipped and before either direction sees it. Owned by [`super::Stream`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::Incident;
use crate::packet::{Flags, Segment};

/// SYNs without an answer for less than this are not reported.
const MIN_SILENCE: Duration = Duration::from_millis(900);
/// The retransmission timer of a SYN runs at least this long (RFC 6298 §2.1).
const MIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A SYN has less data than this, and its own number.
const MAX_SYN_DATA: u32 = 1 << 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
enum State {
    #[default]
    None,
    /// One or more SYNs passed.
    Syn,
    /// When a SYN-ACK passed.
    SynAck(Instant),
    Over,
}

/// The handshake of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Handshake {
    state: State,
    client: usize,
    syns: u32,
    syn_acks: u32,
    /// The first SYN.
    frame: u64,
    began: Instant,
    /// The sequence number of the newest SYN.
    seq: u32,
}

/// What a packet shows about the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HandshakeEvidence {
    Nothing,
    /// How long the sender of the packet took to answer.
    Distance(Duration),
    /// The packet belongs to an earlier connection between the same ports (challenge ACK, RFC 5961 §4) and is ignored.
    Stray,
    /// The connection did not open, or needed several SYNs.
    Failed(Failure),
}

/// A handshake that failed or needed several SYNs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Failure {
    pub(super) what: Incident,
    /// The end whose packets failed.
    pub(super) end: usize,
    /// SYNs, or retransmissions of the SYN-ACK.
    pub(super) count: u32,
    /// The first SYN.
    pub(super) frame: u64,
    pub(super) began: Instant,
}

impl Handshake {
    /// When the first SYN passed, if it was captured.
    #[inline]
    pub(super) fn began(&self) -> Option<Instant> {
        (self.began > Instant::ZERO).then_some(self.began)
    }

    /// A packet from `end` passes.
    #[inline]
    pub(super) fn on_packet(&mut self, end: usize, segment: &Segment, frame: u64, now: Instant) -> HandshakeEvidence {
        if self.state == State::Over { HandshakeEvidence::Nothing } else { self.next(end, segment, frame, now) }
    }

    #[cold]
    fn next(&mut self, end: usize, segment: &Segment, frame: u64, now: Instant) -> HandshakeEvidence {
        let flags = segment.flags;
        let (is_syn, is_ack) = (flags.has(Flags::SYN), flags.has(Flags::ACK));
        match self.state {
            State::None if is_syn && !is_ack => {
                *self = Handshake {
                    state: State::Syn,
                    client: end,
                    syns: 1,
                    syn_acks: 0,
                    frame,
                    began: now,
                    seq: segment.seq,
                };
            }
            State::Syn if end == self.client => {
                if is_syn && !is_ack {
                    (self.syns, self.seq) = (self.syns + 1, segment.seq);
                } else if !flags.has(Flags::RST) {
                    self.state = State::Over; // the SYN-ACK was not captured
                }
            }
            // The SYN may have data (RFC 7413).
            State::Syn if is_syn && is_ack && !(1..=MAX_SYN_DATA).contains(&segment.ack.wrapping_sub(self.seq)) => {
                return HandshakeEvidence::Stray;
            }
            State::Syn if is_syn && is_ack => {
                (self.state, self.syn_acks) = (State::SynAck(now), 1);
                return self.opened(now);
            }
            State::Syn if is_ack && segment.ack != self.seq.wrapping_add(1) => return HandshakeEvidence::Stray,
            State::Syn if flags.has(Flags::RST) => {
                self.state = State::Over;
                return HandshakeEvidence::Failed(self.failure(Incident::Refused));
            }
            State::SynAck(at) if end == self.client && !is_syn && is_ack => {
                self.state = State::Over;
                // If the SYN-ACK was repeated, it is not known which one is answered.
                if self.syn_acks == 1 {
                    return HandshakeEvidence::Distance(now.since(at));
                }
            }
            State::SynAck(_) if is_syn => self.syn_acks += u32::from(end != self.client),
            _ => self.state = State::Over, // packets are missing
        }
        HandshakeEvidence::Nothing
    }

    /// The packets that follow are not those after the last one.
    pub(super) fn resume(&mut self) {
        if self.state != State::None {
            self.state = State::Over;
        }
    }

    fn opened(&self, now: Instant) -> HandshakeEvidence {
        let took = now.since(self.began);
        if self.syns == 1 {
            HandshakeEvidence::Distance(took)
        } else if took >= MIN_SILENCE {
            HandshakeEvidence::Failed(self.failure(Incident::SlowOpening))
        } else {
            HandshakeEvidence::Nothing
        }
    }

    fn failure(&self, what: Incident) -> Failure {
        Failure { what, end: self.client, count: self.syns, frame: self.frame, began: self.began }
    }

    /// True if a SYN-ACK answers the SYN again after the client has accepted another one: it belongs to another connection.
    pub(super) fn is_second_answer(&self, segment: &Segment) -> bool {
        let is_answer = segment.flags.has(Flags::SYN) && segment.flags.has(Flags::ACK);
        is_answer && self.state == State::Over && self.syn_acks > 0 && segment.ack == self.seq.wrapping_add(1)
    }

    /// True if it is over or was not captured.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.state, State::Syn)
    }

    /// The capture ends at `now`, after the connection's `last` packet. Called before the directions finish. Returns a failure and
    /// when it was certain: the timer of the last SYN expires after a second, or after as long as all SYNs before it took.
    pub(super) fn finish(&mut self, last: Instant, now: Instant) -> Option<(Failure, Instant)> {
        let expired = (last + last.since(self.began).max(MIN_TIMEOUT)).min(now);
        let is_silent = expired.since(self.began) >= MIN_SILENCE;
        let failure = match std::mem::replace(&mut self.state, State::Over) {
            State::Syn if is_silent => self.failure(Incident::NoAnswerToSyn),
            State::SynAck(at) if self.syn_acks > 1 && is_silent => {
                let count = self.syn_acks - 1;
                Failure { what: Incident::NoAnswer, end: 1 - self.client, count, frame: self.frame, began: at }
            }
            _ => return None,
        };
        Some((failure, expired))
    }
}
