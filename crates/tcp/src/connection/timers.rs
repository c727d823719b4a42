//! The timers of a connection: the next deadline, and what to do then.

use std::cell::Cell;

use reknit_units::Instant;

use super::{CloseReason, Connection, State};
use crate::segment::{Flags, Segment};
use crate::sender::TimerVerdict;
use crate::seq::Offset;

/// The next deadline, computed once after each change.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Deadline(Cell<Option<Instant>>);

impl Deadline {
    /// The connection changes. Called by every function of the connection that can change a deadline.
    pub(super) fn forget(&self) {
        self.0.set(None);
    }
}

impl Connection {
    /// The next time at which [`Connection::on_timer`] has something to do.
    pub fn deadline(&self) -> Instant {
        let at = self.deadline.0.get().unwrap_or_else(|| self.next_deadline());
        debug_assert_eq!(at, self.next_deadline(), "a change was not noted");
        self.deadline.0.set(Some(at));
        at
    }

    fn next_deadline(&self) -> Instant {
        match self.state() {
            State::Closed | State::Listen => Instant::NEVER,
            State::SynSent | State::SynReceived => self.opening.expires().min(self.half_open_expires()),
            State::TimeWait => self.lifecycle.time_wait_expires().min(self.receiver.deadline()),
            _ => {
                let silence = self.keep_alive_expires().min(self.fin_wait_2_expires());
                self.sender.deadline().min(self.receiver.deadline()).min(silence)
            }
        }
    }

    /// Does what is due at `now`. Does nothing if nothing is due.
    pub fn on_timer(&mut self, now: Instant) {
        if self.deadline() > now {
            return;
        }
        self.deadline.forget();
        match self.state() {
            State::Closed | State::Listen => {}
            State::SynReceived if self.half_open_expires() <= now => self.listen_again(),
            State::SynSent | State::SynReceived => self.retransmit_syn(now),
            State::TimeWait if self.lifecycle.time_wait_expires() <= now => {
                self.lifecycle.finish(CloseReason::Finished);
            }
            _ => {
                if self.sender.on_timer(now) == TimerVerdict::GiveUp || self.fin_wait_2_expires() <= now {
                    self.lifecycle.finish(CloseReason::TimedOut);
                    return;
                }
                if self.keep_alive_expires() <= now {
                    self.probe_idle(now);
                }
                self.after_ack(now); // an ACK may have been processed in part
                self.flush(now);
            }
        }
    }

    fn keep_alive_expires(&self) -> Instant {
        match self.config.keep_alive {
            // "MUST only be sent when no sent data is outstanding" (RFC 9293 §3.8.4): otherwise the other timers are
            // responsible.
            Some(keep_alive) if self.is_synchronised() && self.sender.is_quiet() => self.silence.next_probe(keep_alive),
            _ => Instant::NEVER,
        }
    }

    /// When a peer that does not close has been silent for too long.
    pub(super) fn fin_wait_2_expires(&self) -> Instant {
        let waits = self.state() == State::FinWait2;
        if waits { self.silence.reaches(self.config.fin_wait_2_timeout) } else { Instant::NEVER }
    }

    /// A segment with an old sequence number and without data: a live peer answers it with an ACK.
    fn probe_idle(&mut self, now: Instant) {
        let Some(keep_alive) = self.config.keep_alive else { return };
        if !self.silence.may_probe(keep_alive) {
            self.lifecycle.finish(CloseReason::TimedOut);
            return;
        }
        let before = Offset(self.next_seq().0.saturating_sub(1));
        let probe = self.segment(now, before, Flags::ACK, 0, self.receiver.disclosure());
        self.out.push_back(probe);
    }

    /// Resets in answer to `segment`, which does not belong to this connection (RFC 9293 §3.10.7.1). In SYN-RECEIVED
    /// the options are already agreed on (RFC 7323 §3.2).
    pub(super) fn reset(&mut self, now: Instant, segment: &Segment) {
        let mut rst = reset_for(segment);
        if self.state() == State::SynReceived {
            rst.options.timestamps = self.timestamps(now);
        }
        self.out.push_back(rst);
    }
}

/// The RST that answers `segment` (RFC 9293 §3.10.7.1).
pub fn reset_for(segment: &Segment) -> Segment {
    if segment.flags.has(Flags::ACK) {
        Segment { seq: segment.ack, flags: Flags::RST, ..Segment::default() }
    } else {
        let ack = segment.seq.plus(segment.seq_len());
        Segment { ack, flags: Flags::RST | Flags::ACK, ..Segment::default() }
    }
}
