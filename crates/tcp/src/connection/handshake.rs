//! Opening a connection (RFC 9293 §3.5): the three-way handshake. [`Opening`] has its timer, [`Negotiation`] what the ends
//! agree on.

use reknit_units::{Bytes, Duration, Instant};

use super::negotiation::Negotiation;
use super::opening::Opening;
use super::{Connection, Event, State};
use crate::experiment::ExperimentalOption;
use crate::facts::TIMESTAMP_TICK;
use crate::segment::{Flags, Options, Segment, TIMESTAMPS_LEN, Timestamps};
use crate::sender::Negotiated;
use crate::seq::{Offset, SeqNum};

impl Connection {
    /// Sends the SYN, or the SYN-ACK if the peer's SYN has arrived; also retransmits it.
    pub(super) fn send_syn(&mut self, now: Instant) {
        let answering = self.state() == State::SynReceived;
        let mut flags = Flags::SYN;
        if answering {
            flags |= Flags::ACK;
        }
        if self.negotiation.ecn() {
            flags |= if answering { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
        let offer_scale = !answering || self.negotiation.scales();
        let options = Options {
            mss: Some(self.config.mss),
            window_scale: offer_scale.then(|| self.config.window_shift()),
            sack_permitted: self.negotiation.sack(),
            timestamps: self.negotiation.timestamps().then(|| Timestamps {
                val: self.timestamp(now),
                ecr: if answering { self.peer_timestamp.recent() } else { 0 },
            }),
            experiment: ExperimentalOption {
                features: Some(self.negotiation.features()).filter(|features| !features.is_empty()),
                ..ExperimentalOption::default()
            },
            ..Options::default()
        };
        let ack = if answering { self.receiver.rcv_nxt().to_wire(self.receiver.irs()) } else { SeqNum(0) };
        let window = self.receiver.advertise_on_syn(self.expected_len(answering));
        self.out.push_back(Segment { seq: self.identity.isn, ack, window, flags, options, ..Segment::default() });
        self.opening.on_syn_sent(now, &self.config);
        if answering {
            self.peer_timestamp.on_ack_sent(self.receiver.rcv_nxt());
        }
    }

    /// When a passive open gives up waiting for the acknowledgment of its SYN-ACK.
    pub(super) fn half_open_expires(&self) -> Instant {
        let is_half_open = self.state() == State::SynReceived && self.opening.is_passive();
        if is_half_open { self.opening.first_sent() + self.config.half_open_timeout } else { Instant::NEVER }
    }

    /// The SYN was not answered in time (RFC 9293 §3.8.1, RFC 6298 §5.7).
    pub(super) fn retransmit_syn(&mut self, now: Instant) {
        if now.since(self.opening.first_sent()) >= self.config.user_timeout {
            self.lifecycle.finish(super::CloseReason::TimedOut);
            return;
        }
        self.opening.on_timeout();
        self.sender.syn_timed_out();
        self.send_syn(now);
    }

    /// RFC 9293 §3.10.7.2, in LISTEN.
    pub(super) fn on_segment_in_listen(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            self.reset(now, segment);
        } else if segment.flags.has(Flags::SYN) {
            self.take_peers_syn(now, segment);
            self.lifecycle.transition(Event::SynArrives);
            self.opening.set_passive();
            self.send_syn(now);
        }
    }

    /// Returns to LISTEN: a RST has refused the SYN-ACK of a passive open (RFC 9293 §3.10.7.4), or it
    /// was not acknowledged in time.
    pub(super) fn listen_again(&mut self) {
        self.opening = Opening::new();
        self.negotiation = Negotiation::new(&self.config, super::offered(&self.receiver.plugins.header_support));
        self.sender.forget_syn_timeouts();
        self.lifecycle.transition(Event::ListenAgain);
        self.out.clear();
    }

    /// RFC 9293 §3.10.7.3, in SYN-SENT.
    pub(super) fn on_segment_in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acks_syn = segment.flags.has(Flags::ACK) && segment.ack == self.identity.isn.plus(1);
        if segment.flags.has(Flags::ACK) && !acks_syn {
            if !segment.flags.has(Flags::RST) {
                self.reset(now, segment);
                self.send_syn_after_reset(now);
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            if acks_syn {
                self.lifecycle.finish(super::CloseReason::Refused);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) || !(acks_syn || self.config.simultaneous_open) {
            return;
        }
        self.take_peers_syn(now, segment);
        if acks_syn {
            self.establish(now, segment);
            self.receiver.ack_now();
        } else {
            // Simultaneous open: the SYNs crossed on the way.
            self.lifecycle.transition(Event::SynArrives);
            self.opening.set_ambiguous();
            self.send_syn(now);
        }
    }

    /// The peer answered the SYN with an ACK for an earlier connection, which the RST ends. Now the SYN can succeed, and need
    /// not wait for its timer (Linux does the same, `tcp_rcv_synsent_state_process`). Only once: the ACK may be forged.
    fn send_syn_after_reset(&mut self, now: Instant) {
        if !self.opening.is_ambiguous() {
            self.opening.set_ambiguous();
            self.send_syn(now);
        }
    }

    /// How much data a segment of the peer can have. Before its SYN has arrived, it is not known whether it will send
    /// timestamps.
    fn expected_len(&self, answering: bool) -> Bytes {
        let options = if answering && self.negotiation.timestamps() { TIMESTAMPS_LEN } else { 0 };
        Bytes(u64::from(self.config.mss).saturating_sub(options as u64))
    }

    /// The SYN was answered before the connection existed.
    pub(super) fn take_answered_syn(&mut self, now: Instant, syn: &Segment) {
        self.take_peers_syn(now, syn);
        self.lifecycle.transition(Event::SynArrives);
        self.opening.on_answered_syn(now, &self.config);
        self.receiver.advertise_on_syn(self.expected_len(true));
        self.peer_timestamp.on_ack_sent(self.receiver.rcv_nxt());
    }

    fn take_peers_syn(&mut self, now: Instant, segment: &Segment) {
        self.receiver.synchronise(segment.seq);
        self.negotiation.on_syn(segment, self.config.min_mss);
        if let Some(timestamps) = segment.options.timestamps {
            self.peer_timestamp.on_syn(now, timestamps.val);
        }
    }

    /// Our SYN is acknowledged, and the negotiated options take effect. Data and FIN may be sent.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        // Either both ends scale their windows or neither does (RFC 7323 §2.2).
        let our_shift = if self.negotiation.scales() { self.config.window_shift() } else { 0 };
        self.negotiation.begin_to_scale();
        let agreed = self.negotiation;
        let header_support = &mut self.receiver.plugins.header_support;
        header_support.retain(|support| agreed.features().has(support.traits().features));
        let duplicate_reports = header_support.iter().map(|support| support.traits().duplicate_reports).max();
        self.receiver.establish(our_shift, agreed.sack(), duplicate_reports.unwrap_or(1));
        let wnd = self.scaled_window(segment);
        let seq = self.receiver.offset(segment.seq).unwrap_or(Offset::SYN);
        let rtt = self.opening.round_trip(now);
        self.receiver_rtt.establish(rtt);
        self.sender.establish(
            now,
            Negotiated {
                smss: self.smss(),
                wnd,
                wl: (seq, Offset::DATA),
                rtt,
                sack: agreed.sack(),
                timestamps: agreed.timestamps(),
                ecn: agreed.ecn(),
                features: agreed.features(),
            },
        );
        self.sender.note_lost_syns(self.opening.retries());
        self.opening.complete();
        self.lifecycle.transition(Event::SynAcked);
        if self.sender.fin().is_some() {
            self.lifecycle.transition(Event::Close);
        }
        self.silence.end(now);
        self.dirty = true;
    }

    /// The peer's window. In a SYN it is not scaled (RFC 7323 §2.2).
    pub(super) fn scaled_window(&self, segment: &Segment) -> Bytes {
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { self.negotiation.snd_shift() };
        Bytes(u64::from(segment.window) << shift)
    }

    /// The largest segment, options included, that both ends accept.
    pub(super) fn agreed_mss(&self) -> u16 {
        self.negotiation.mss(&self.config)
    }

    /// The timestamp clock: milliseconds plus the connection's offset (RFC 7323 §5.4).
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / TIMESTAMP_TICK.as_nanos()) as u32).wrapping_add(self.identity.timestamp_offset)
    }

    /// The timestamps option for a segment with an ACK, if both ends agreed on it.
    pub(super) fn timestamps(&self, now: Instant) -> Option<Timestamps> {
        self.negotiation
            .timestamps()
            .then(|| Timestamps { val: self.timestamp(now), ecr: self.peer_timestamp.recent() })
    }

    /// The age of the timestamp that `ecr` echoes.
    pub(super) fn since_timestamp(&self, now: Instant, ecr: u32) -> Option<Duration> {
        let elapsed = self.timestamp(now).wrapping_sub(ecr);
        // A timestamp from before our SYN or from the future does not belong to a segment of ours.
        let age = TIMESTAMP_TICK * u64::from(elapsed);
        let ours = age <= now.since(self.opening.first_sent()) + TIMESTAMP_TICK;
        (elapsed < 1 << 31 && ours).then_some(age)
    }
}
