//! The progress of the handshake: the distance to each end, and connections that do not open. `Stream::on_packet` calls
//! `on_packet` for each packet, after copies were skipped and before either direction sees it. Owned by [`super::Stream`].

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::Incident;
use crate::packet::{Flags, Segment};

/// SYNs without an answer for less than this are not reported.
const MIN_SILENCE: Duration = Duration::from_millis(900);

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
    pub(super) client: usize,
    pub(super) syns: u32,
    /// The first SYN.
    pub(super) frame: u64,
    pub(super) began: Instant,
}

impl Handshake {
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
                *self = Handshake { state: State::Syn, client: end, syns: 1, frame, began: now, seq: segment.seq };
            }
            State::Syn if end == self.client => {
                if is_syn && !is_ack {
                    (self.syns, self.seq) = (self.syns + 1, segment.seq);
                } else if !flags.has(Flags::RST) {
                    self.state = State::Over; // the SYN-ACK was not captured
                }
            }
            State::Syn if is_syn && is_ack => {
                self.state = State::SynAck(now);
                return self.opened(now);
            }
            State::Syn if is_ack && segment.ack != self.seq.wrapping_add(1) => return HandshakeEvidence::Stray,
            State::Syn if flags.has(Flags::RST) => {
                self.state = State::Over;
                return HandshakeEvidence::Failed(self.failure(Incident::Refused));
            }
            State::SynAck(at) if end == self.client && !is_syn && is_ack => {
                self.state = State::Over;
                return HandshakeEvidence::Distance(now.since(at));
            }
            // A repeated SYN-ACK: it is not known which one is answered.
            State::SynAck(_) if is_syn => self.state = State::Over,
            _ => self.state = State::Over, // packets are missing
        }
        HandshakeEvidence::Nothing
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
        Failure { what, client: self.client, syns: self.syns, frame: self.frame, began: self.began }
    }

    /// True if it is over or was not captured.
    pub(super) fn is_over(&self) -> bool {
        !matches!(self.state, State::Syn)
    }

    /// The capture ends. Called before the directions finish.
    pub(super) fn finish(&mut self, now: Instant) -> Option<Failure> {
        let is_silent = self.state == State::Syn && now.since(self.began) >= MIN_SILENCE;
        self.state = State::Over;
        is_silent.then(|| self.failure(Incident::NoAnswerToSyn))
    }
}
