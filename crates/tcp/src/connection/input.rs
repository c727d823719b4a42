//! Arrival of a segment in a synchronised state (RFC 9293 §3.10.7.4, with the changes of RFC 5961 and RFC 7323 §5).

use reknit_units::{Bytes, Duration, Instant};

use super::{CloseReason, Connection, Event, State};
use crate::config::Paws;
use crate::experiment::ExperimentalOption;
use crate::facts::TIMESTAMP_TICK;
use crate::proof;
use crate::receiver::{Arrived, Delivery};
use crate::seams::LateAcks;
use crate::segment::{Flags, Segment};
use crate::sender::{AckInput, SackReport};
use crate::seq::Offset;

/// The age up to which [`LateAcks::All`] reads ACKs.
const LATEST_ACK: Duration = Duration::from_secs(8);

/// Whether the segment has passed a check. If not, the rest of it is not processed.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    Passed,
    Failed,
}

impl Check {
    pub(super) fn has_passed(self) -> bool {
        self == Check::Passed
    }
}

impl Connection {
    /// Processes a segment. If part of its payload is new, returns which part and its position in the stream; the
    /// caller keeps the bytes.
    ///
    /// A timer that is due at `now` fires first, so that an event and a timer at the same time always have the same
    /// order.
    pub fn on_segment(&mut self, now: Instant, segment: &Segment) -> Option<Delivery> {
        proof::compare(self, |connection| connection.process(now, segment))
    }

    fn process(&mut self, now: Instant, segment: &Segment) -> Option<Delivery> {
        self.on_timer(now);
        let delivery = match self.expected(now, segment) {
            Some(expected) => self.on_expected(now, segment, expected),
            None => self.on_slow_path(now, segment),
        };
        self.flush(now);
        self.send_written(now); // data that waited for the handshake goes out first
        delivery
    }

    fn on_slow_path(&mut self, now: Instant, segment: &Segment) -> Option<Delivery> {
        match self.state() {
            State::Closed if segment.flags.has(Flags::RST) => {}
            State::Closed => self.reset(now, segment),
            State::Listen => self.on_segment_in_listen(now, segment),
            State::SynSent => self.on_segment_in_syn_sent(now, segment),
            _ => return self.on_segment_synchronised(now, segment),
        }
        None
    }

    fn on_segment_synchronised(&mut self, now: Instant, segment: &Segment) -> Option<Delivery> {
        let Some(start) = self.receiver.offset(segment.seq) else {
            // Nothing is acceptable before the peer's SYN (RFC 5961 §4.2 asks for an answer even to a SYN).
            if !segment.flags.has(Flags::RST) {
                self.challenge(now);
            }
            return None;
        };
        let end = start + Bytes(u64::from(segment.seq_len()));
        if self.check_acceptable(now, segment, start, end) == Check::Failed
            || self.check_rst(now, segment, start) == Check::Failed
            || self.check_syn(now, segment) == Check::Failed
            || self.process_ack(now, segment, start) == Check::Failed
        {
            return None;
        }
        self.note_timestamp(now, segment, start);
        self.note_congestion(segment);
        self.note_receiver_rtt(now, segment);
        let delivery = self.process_data(now, segment, start, end);
        self.process_fin(now);
        delivery
    }

    /// First check: PAWS and the window. An unacceptable segment is answered and dropped.
    fn check_acceptable(&mut self, now: Instant, segment: &Segment, start: Offset, end: Offset) -> Check {
        if segment.flags.has(Flags::SYN) && self.state() == State::SynReceived && start == Offset::SYN {
            self.on_syn_again(now, segment, start);
            return Check::Failed;
        }
        if self.lacks_timestamps(segment) {
            return Check::Failed;
        }
        let old = !segment.flags.has(Flags::RST) && self.fails_paws(now, segment);
        if old && self.reads_late_ack(segment, start) {
            let _ = self.process_ack(now, segment, start);
            return Check::Failed;
        }
        if old {
            let stats = &mut self.receiver.stats;
            stats.paws_discards += u64::from(segment.len > 0);
            stats.paws_discarded_acks += u64::from(segment.is_pure_ack());
        } else if self.receiver.accepts(start, end) {
            return Check::Passed;
        }
        if segment.flags.has(Flags::RST) {
            return Check::Failed;
        }
        if segment.flags.has(Flags::SYN) {
            self.challenge(now);
            return Check::Failed;
        }
        if !old && start == self.receiver.rcv_nxt() {
            self.note_congestion(segment); // a probe of a closed window (RFC 3168 §6.1.6)
        }
        let duplicate = !old && end > start && end <= self.receiver.rcv_nxt();
        if duplicate && self.may_be_retransmission(segment, start) {
            self.on_duplicate(now, segment, start, end);
        } else if segment.is_pure_ack() && !old && start < self.receiver.rcv_nxt() {
            // It was overtaken by a later segment. Its SACK blocks may still be new; only a keep-alive needs an answer.
            if start + Bytes(1) == self.receiver.rcv_nxt() {
                self.challenge(now);
            }
            let _ = self.process_ack(now, segment, start);
        } else if old && end > start && start < self.receiver.rcv_nxt() && self.may_be_retransmission(segment, start) {
            self.receiver.on_discarded(start, end);
        } else if old && self.config.paws == Paws::Linux {
            self.answer_as_linux(now, segment, start, end);
        } else {
            self.challenge(now);
        }
        Check::Failed
    }

    /// PAWS has discarded the segment, and nothing it carries is a duplicate. Data is always answered, unless it cannot come
    /// from the peer; Linux answers that too. A pure ACK that was overtaken is not answered.
    fn answer_as_linux(&mut self, now: Instant, segment: &Segment, start: Offset, end: Offset) {
        let is_near = start < self.receiver.rcv_nxt() || self.receiver.accepts(start, end);
        if segment.len > 0 && is_near && self.may_be_retransmission(segment, start) {
            self.receiver.ack_now();
        } else if segment.len > 0 || start >= self.receiver.rcv_nxt() {
            self.challenge(now);
        }
    }

    /// True if the peer may have sent this old data again because it does not know that it has arrived. Such a segment
    /// begins within a window below RCV.NXT, and its acknowledgment is acceptable. Others come from long ago, or from
    /// an attacker who guesses numbers; only a limited number of them is answered.
    fn may_be_retransmission(&self, segment: &Segment, start: Offset) -> bool {
        start + self.config.receive_buffer_size() >= self.receiver.rcv_nxt() && self.acceptable_ack(segment).is_some()
    }

    /// Data that arrived before arrives again. The ACK reports it as a duplicate.
    fn on_duplicate(&mut self, now: Instant, segment: &Segment, start: Offset, end: Offset) {
        self.silence.end(now);
        if end >= self.peer_timestamp.last_ack_sent() {
            self.note_timestamp(now, segment, start); // the ACK of this segment was lost
        }
        self.deliver(now, segment, start, end);
        // Only a retransmission of the FIN itself restarts TIME-WAIT (RFC 9293 §3.10.7.4, eighth check).
        let is_fin = segment.flags.has(Flags::FIN) && end == self.receiver.rcv_nxt();
        if is_fin && self.state() == State::TimeWait {
            self.start_time_wait(now);
        }
    }

    /// The peer's SYN arrived again in SYN-RECEIVED: our answer was lost, or this is the peer's SYN-ACK of a
    /// simultaneous open.
    fn on_syn_again(&mut self, now: Instant, segment: &Segment, start: Offset) {
        self.negotiation.agree_on_ecn(segment);
        if segment.flags.has(Flags::ACK) {
            if self.process_ack(now, segment, start) == Check::Passed {
                self.receiver.ack_now();
            }
        } else {
            self.opening.set_ambiguous();
            self.send_syn(now);
        }
    }

    /// RFC 7323 §3.2: once timestamps are agreed on, a segment without them is dropped silently, unless it is a RST. A SYN
    /// is always challenged (RFC 5961 §4.2). Linux accepts all: some middleboxes remove the option.
    fn lacks_timestamps(&self, segment: &Segment) -> bool {
        let drops = self.negotiation.timestamps() && self.config.paws == Paws::Rfc7323;
        let needs = drops && !segment.flags.has_any(Flags::RST | Flags::SYN);
        needs && segment.options.timestamps.is_none()
    }

    /// RFC 7323 §5.3: a segment with an older timestamp than TS.Recent is an old duplicate, unless TS.Recent itself is
    /// outdated (§5.5).
    fn fails_paws(&self, now: Instant, segment: &Segment) -> bool {
        let tolerated = match self.config.paws {
            Paws::Rfc7323 => 0,
            Paws::Linux => 1,
        };
        let timestamps = segment.options.timestamps.filter(|_| self.negotiation.timestamps());
        timestamps.is_some_and(|timestamps| self.peer_timestamp.is_older(now, timestamps.val, tolerated))
    }

    /// True if a pure ACK with an older timestamp is only late (see [`LateAcks`]).
    fn reads_late_ack(&self, segment: &Segment, start: Offset) -> bool {
        let Some(timestamps) = segment.options.timestamps.filter(|_| segment.is_pure_ack()) else { return false };
        let sender = &self.sender.state;
        let limit = match self.sender.traits.loss_detector.late_acks {
            LateAcks::Discard => return false,
            LateAcks::Duplicates => {
                let wnd = self.scaled_window(segment);
                let repeats =
                    start == self.receiver.rcv_nxt() && segment.ack == sender.snd_una.to_wire(self.identity.isn);
                if !repeats || wnd > sender.snd_wnd || wnd == Bytes::ZERO {
                    return false;
                }
                sender.rto * 6 / 5
            }
            LateAcks::All => LATEST_ACK,
        };
        self.peer_timestamp.age(timestamps.val) <= limit
    }

    /// RFC 7323 §4.3, after all checks.
    pub(super) fn note_timestamp(&mut self, now: Instant, segment: &Segment, start: Offset) {
        if let Some(timestamps) = segment.options.timestamps.filter(|_| self.negotiation.timestamps()) {
            self.peer_timestamp.note(now, start, timestamps.val);
        }
    }

    /// Second check, RFC 5961 §3.2: only a RST with exactly the expected sequence number resets.
    fn check_rst(&mut self, now: Instant, segment: &Segment, start: Offset) -> Check {
        if !segment.flags.has(Flags::RST) {
            return Check::Passed;
        }
        if start != self.receiver.rcv_nxt() {
            self.challenge(now);
            return Check::Failed;
        }
        match self.state() {
            State::SynReceived if self.opening.is_passive() => self.listen_again(),
            State::SynReceived => self.lifecycle.finish(CloseReason::Refused),
            // It answers an old duplicate of ours; stay in TIME-WAIT (RFC 1337 §3).
            State::TimeWait => {}
            // In CLOSING and LAST-ACK too. RFC 9293 §3.10.7.4 does not require it, but otherwise the application would
            // not know that the peer may not have received everything.
            _ => self.lifecycle.finish(CloseReason::Reset),
        }
        Check::Failed
    }

    /// Fourth check, RFC 5961 §4.2: a SYN with any sequence number is not acceptable in this state.
    fn check_syn(&mut self, now: Instant, segment: &Segment) -> Check {
        if !segment.flags.has(Flags::SYN) {
            return Check::Passed;
        }
        self.challenge(now);
        Check::Failed
    }

    /// Fifth check: the ACK field.
    fn process_ack(&mut self, now: Instant, segment: &Segment, start: Offset) -> Check {
        if !segment.flags.has(Flags::ACK) {
            return Check::Failed;
        }
        if self.state() == State::SynReceived {
            if segment.ack != self.identity.isn.plus(1) {
                self.reset(now, segment);
                return Check::Failed;
            }
            self.establish(now, segment);
        }
        let Some(ack) = self.acceptable_ack(segment) else {
            self.challenge(now);
            return Check::Failed;
        };
        self.on_acceptable_ack(now, segment, start, ack)
    }

    /// Steps 1 to 10 of the ACK pipeline.
    pub(super) fn on_acceptable_ack(&mut self, now: Instant, segment: &Segment, start: Offset, ack: Offset) -> Check {
        self.silence.end(now);
        let echo_age = self.note_echo(now, segment);
        let input = AckInput {
            ack,
            seq: start,
            wnd: self.scaled_window(segment),
            pure: segment.is_pure_ack(),
            sack: SackReport::read(&segment.options.sack, ack, self.identity.isn, self.sender.state.snd_nxt),
            echo_age: echo_age.filter(|_| !self.sender.repeats_timestamps()),
            // On a segment with data, the option describes the data.
            experiment: if segment.is_pure_ack() { segment.options.experiment } else { ExperimentalOption::default() },
            ece: self.negotiation.ecn() && segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::SYN),
        };
        self.sender.on_ack(now, &input);
        if self.sender.has_detected_optimistic_ack() {
            self.end_with_reset(now, CloseReason::OptimisticAck);
            return Check::Failed;
        }
        self.after_ack(now);
        Check::Passed
    }

    /// The age of the echoed timestamp, which is noted if retransmissions depend on it.
    pub(super) fn note_echo(&mut self, now: Instant, segment: &Segment) -> Option<Duration> {
        let echo = segment.options.timestamps.map(|t| t.ecr).filter(|_| self.negotiation.timestamps())?;
        let age = self.since_timestamp(now, echo)?;
        if self.sender.repeats_timestamps() {
            self.sender.note_echo(now.floor_to(TIMESTAMP_TICK) - age);
        }
        Some(age)
    }

    /// RFC 5961 §5.2: the acknowledgment as an offset, unless it is of something that was never sent, or older than the
    /// largest window.
    fn acceptable_ack(&self, segment: &Segment) -> Option<Offset> {
        let snd = &self.sender.state;
        let ack = snd.snd_una.nearest(segment.ack, self.identity.isn).filter(|_| segment.flags.has(Flags::ACK))?;
        (ack <= snd.snd_nxt && ack + snd.max_snd_wnd >= snd.snd_una).then_some(ack)
    }

    /// State changes when our FIN is acknowledged.
    pub(super) fn after_ack(&mut self, now: Instant) {
        let is_news = self.sender.fin_is_acked() && self.state().after(Event::FinAcked).is_some();
        if !is_news {
            return;
        }
        self.lifecycle.transition(Event::FinAcked);
        match self.state() {
            State::TimeWait => self.start_time_wait(now),
            State::Closed => self.lifecycle.finish(CloseReason::Finished),
            _ => {}
        }
    }

    /// A receiver of data measures the round-trip time by the timestamps that the peer echoes, once for each.
    pub(super) fn note_receiver_rtt(&mut self, now: Instant, segment: &Segment) {
        let measures = self.negotiation.timestamps() && segment.len > 0;
        let Some(echo) = segment.options.timestamps.map(|t| t.ecr).filter(|_| measures) else { return };
        if self.receiver_rtt.is_new(echo)
            && let Some(rtt) = self.since_timestamp(now, echo)
        {
            self.receiver_rtt.measure(rtt);
        }
    }

    pub(super) fn note_congestion(&mut self, segment: &Segment) {
        if self.negotiation.ecn() && segment.len > 0 {
            self.ecn_echo.on_data(segment);
        }
    }

    /// Seventh check: the segment text.
    fn process_data(&mut self, now: Instant, segment: &Segment, start: Offset, end: Offset) -> Option<Delivery> {
        if end == start || self.state() == State::Closed {
            return None;
        }
        self.deliver(now, segment, start, end)
    }

    pub(super) fn deliver(&mut self, now: Instant, segment: &Segment, start: Offset, end: Offset) -> Option<Delivery> {
        let arrived = Arrived {
            now,
            start,
            end,
            fin: segment.flags.has(Flags::FIN),
            push: segment.flags.has(Flags::PSH),
            timestamp: segment.options.timestamps.map(|t| t.val).filter(|_| self.negotiation.timestamps()),
            experiment: &segment.options.experiment,
            rtt: self.receiver_rtt.get(),
        };
        self.receiver.on_data(&arrived)
    }

    /// Eighth check: the FIN, once everything before it has arrived. The ACK policy decides when it is acknowledged.
    fn process_fin(&mut self, now: Instant) {
        let is_news = self.receiver.fin_received() && self.state().after(Event::FinArrives).is_some();
        if !is_news {
            return;
        }
        self.lifecycle.transition(Event::FinArrives);
        if self.state() == State::TimeWait {
            self.start_time_wait(now);
        }
    }

    fn start_time_wait(&mut self, now: Instant) {
        self.lifecycle.wait_until(now + self.config.time_wait);
    }

    /// Sends a challenge ACK, with a rate limit (RFC 5961 §7).
    fn challenge(&mut self, now: Instant) {
        if self.challenges.allow(now, self.config.paws) {
            self.receiver.ack_now();
        }
    }
}
