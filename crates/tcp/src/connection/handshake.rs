//! Opening a connection: SYN segments and the negotiation of options (RFC 9293 §3.5, RFC 7323 §2 and §3.2, RFC 2018 §2,
//! RFC 3168 §6.1.1).

use reknit_units::{Bytes, Duration, Instant};

use super::{Connection, Event, State};
use crate::config::Config;
use crate::experiment::{Experiment, Features};
use crate::facts::TIMESTAMP_TICK;
use crate::segment::{Flags, Options, Segment, TIMESTAMPS_LEN, Timestamps};
use crate::sender::Agreed;
use crate::seq::{Offset, SeqNum};

/// Maximum segment size of a peer that announces none (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest window shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

/// The state of the handshake, and the options agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    /// When our SYN is retransmitted.
    pub(super) expires: Instant,
    first_sent: Instant,
    pub(super) retries: u32,
    /// Our SYN was retransmitted, so its round-trip time is ambiguous (Karn's algorithm).
    pub(super) ambiguous: bool,
    /// The connection was opened passively: if the SYN-ACK is refused, it returns to LISTEN.
    pub(super) passive: bool,
    /// The MSS that the peer's SYN announced.
    pub(super) peer_mss: u16,
    /// The largest segment that the path is known to carry.
    pub(super) path_mss: u16,
    peer_shift: Option<u8>,
    pub(super) timestamps: bool,
    sack: bool,
    pub(super) ecn: bool,
    /// The experimental features that we offer; after the handshake, those that both ends support.
    pub(super) features: Features,
    /// Shift of the windows that the peer sends.
    pub(super) snd_shift: u8,
}

impl Handshake {
    pub(super) fn new(config: &Config, offered: Features) -> Handshake {
        Handshake {
            expires: Instant::NEVER,
            first_sent: Instant::NEVER,
            retries: 0,
            ambiguous: false,
            passive: false,
            peer_mss: DEFAULT_MSS,
            path_mss: u16::MAX,
            peer_shift: None,
            timestamps: config.timestamps,
            sack: config.sack,
            ecn: config.ecn,
            features: offered,
            snd_shift: 0,
        }
    }

    /// Notes the options of the peer's SYN; options that it does not offer are off.
    fn on_syn(&mut self, segment: &Segment, min_mss: u16) {
        let options = &segment.options;
        self.peer_mss = options.mss.unwrap_or(DEFAULT_MSS).max(min_mss);
        self.peer_shift = options.window_scale.map(|shift| shift.min(MAX_SHIFT));
        self.timestamps &= options.timestamps.is_some();
        self.sack &= options.sack_permitted;
        self.features = self.features.and(options.experiment.features.unwrap_or(Features::NONE));
        self.agree_on_ecn(segment);
    }

    /// An active opener sets ECE and CWR, and its peer answers with ECE alone. Any SYN with other flags, even a
    /// retransmitted one, turns ECN off (RFC 3168 §6.1.1).
    pub(super) fn agree_on_ecn(&mut self, syn: &Segment) {
        self.ecn &= syn.flags.has(Flags::ECE) && (syn.flags.has(Flags::CWR) != syn.flags.has(Flags::ACK));
    }
}

impl Connection {
    /// Sends the SYN, or the SYN-ACK if the peer's SYN has arrived; also retransmits it.
    pub(super) fn send_syn(&mut self, now: Instant) {
        let answering = self.state == State::SynReceived;
        let mut flags = Flags::SYN;
        if answering {
            flags |= Flags::ACK;
        }
        if self.handshake.ecn {
            flags |= if answering { Flags::ECE } else { Flags::ECE | Flags::CWR };
        }
        let offer_scale = !answering || self.handshake.peer_shift.is_some();
        let options = Options {
            mss: Some(self.config.mss),
            window_scale: offer_scale.then(|| self.config.window_shift()),
            sack_permitted: self.handshake.sack,
            timestamps: self
                .handshake
                .timestamps
                .then(|| Timestamps { val: self.timestamp(now), ecr: if answering { self.ts_recent } else { 0 } }),
            experiment: Experiment {
                features: Some(self.handshake.features).filter(|features| !features.is_empty()),
                ..Experiment::default()
            },
            ..Options::default()
        };
        let ack = if answering { self.receiver.rcv_nxt().to_wire(self.receiver.irs()) } else { SeqNum(0) };
        let window = self.receiver.announce_on_syn(self.expected_len(answering));
        self.out.push_back(Segment { seq: self.identity.isn, ack, window, flags, options, ..Segment::default() });
        if !self.handshake.first_sent.is_set() {
            self.handshake.first_sent = now;
        }
        let rto = self.config.initial_rto * (1 << self.handshake.retries.min(16));
        self.handshake.expires = now + rto.min(self.config.max_rto);
        if answering {
            self.last_ack_sent = self.receiver.rcv_nxt();
        }
    }

    /// When a passive open gives up waiting for the acknowledgment of its SYN-ACK.
    pub(super) fn half_open_expires(&self) -> Instant {
        let is_half_open = self.state == State::SynReceived && self.handshake.passive;
        if is_half_open { self.handshake.first_sent + self.config.half_open_timeout } else { Instant::NEVER }
    }

    /// The SYN was not answered in time (RFC 9293 §3.8.1, RFC 6298 §5.7).
    pub(super) fn retransmit_syn(&mut self, now: Instant) {
        if now.since(self.handshake.first_sent) >= self.config.user_timeout {
            self.finish(super::CloseReason::TimedOut);
            return;
        }
        self.handshake.retries += 1;
        self.handshake.ambiguous = true;
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
            self.transition(Event::SynArrives);
            self.handshake.passive = true;
            self.send_syn(now);
        }
    }

    /// Returns to LISTEN: a RST has refused the SYN-ACK of a passive open (RFC 9293 §3.10.7.4), or it
    /// was not acknowledged in time.
    pub(super) fn listen_again(&mut self) {
        self.handshake = Handshake::new(&self.config, super::offered(&self.receiver.plugins.header_support));
        self.sender.forget_syn_timeouts();
        self.transition(Event::ListenAgain);
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
                self.finish(super::CloseReason::Refused);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) || !(acks_syn || self.config.simultaneous_open) {
            return;
        }
        self.take_peers_syn(now, segment);
        if acks_syn {
            self.establish(now, segment);
            self.receiver.owe_now();
        } else {
            // Simultaneous open: the SYNs crossed on the way.
            self.transition(Event::SynArrives);
            self.handshake.ambiguous = true;
            self.send_syn(now);
        }
    }

    /// The peer answered the SYN with an ACK for an earlier connection, which the RST ends. Now the SYN can succeed, and need
    /// not wait for its timer (Linux does the same, `tcp_rcv_synsent_state_process`). Only once: the ACK may be forged.
    fn send_syn_after_reset(&mut self, now: Instant) {
        if !self.handshake.ambiguous {
            self.handshake.ambiguous = true;
            self.send_syn(now);
        }
    }

    /// How much data a segment of the peer can have. Before its SYN has arrived, it is not known whether it will send
    /// timestamps.
    fn expected_len(&self, answering: bool) -> Bytes {
        let options = if answering && self.handshake.timestamps { TIMESTAMPS_LEN } else { 0 };
        Bytes(u64::from(self.config.mss).saturating_sub(options as u64))
    }

    /// The SYN was answered before the connection existed.
    pub(super) fn take_answered_syn(&mut self, now: Instant, syn: &Segment) {
        self.take_peers_syn(now, syn);
        self.transition(Event::SynArrives);
        self.handshake.passive = true;
        self.handshake.ambiguous = true;
        self.handshake.first_sent = now;
        self.handshake.expires = now + self.config.initial_rto;
        self.receiver.announce_on_syn(self.expected_len(true));
        self.last_ack_sent = self.receiver.rcv_nxt();
    }

    fn take_peers_syn(&mut self, now: Instant, segment: &Segment) {
        self.receiver.synchronise(segment.seq);
        self.handshake.on_syn(segment, self.config.min_mss);
        if let Some(timestamps) = segment.options.timestamps {
            self.ts_recent = timestamps.val;
            self.ts_recent_at = now;
        }
    }

    /// Our SYN is acknowledged, and the negotiated options take effect. Data and FIN may be sent.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment) {
        let handshake = self.handshake;
        // Either both ends scale their windows or neither does (RFC 7323 §2.2).
        let our_shift = if handshake.peer_shift.is_some() { self.config.window_shift() } else { 0 };
        self.handshake.snd_shift = handshake.peer_shift.unwrap_or(0);
        let header_support = &mut self.receiver.plugins.header_support;
        header_support.retain(|support| handshake.features.has(support.features()));
        let duplicate_reports = header_support.iter().map(|support| support.duplicate_reports()).max();
        self.receiver.establish(our_shift, handshake.sack, duplicate_reports.unwrap_or(1));
        let wnd = self.scaled_window(segment);
        let seq = self.receiver.offset(segment.seq).unwrap_or(Offset::SYN);
        let rtt = (!handshake.ambiguous).then(|| now.since(handshake.first_sent));
        self.receiver_rtt = rtt;
        self.sender.establish(
            now,
            Agreed {
                smss: self.smss(),
                wnd,
                wl: (seq, Offset::DATA),
                rtt,
                sack: handshake.sack,
                timestamps: handshake.timestamps,
                ecn: handshake.ecn,
                features: handshake.features,
            },
        );
        self.sender.note_lost_syns(handshake.retries);
        self.handshake.expires = Instant::NEVER;
        self.transition(Event::SynAcked);
        if self.sender.fin().is_some() {
            self.transition(Event::Close);
        }
        self.keep_alive.on_segment(now);
        self.dirty = true;
    }

    /// The peer's window. In a SYN it is not scaled (RFC 7323 §2.2).
    pub(super) fn scaled_window(&self, segment: &Segment) -> Bytes {
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { self.handshake.snd_shift };
        Bytes(u64::from(segment.window) << shift)
    }

    /// The largest segment, options included, that both ends accept.
    pub(super) fn agreed_mss(&self) -> u16 {
        self.config.mss.min(self.handshake.peer_mss).min(self.handshake.path_mss)
    }

    /// The timestamp clock: milliseconds plus the connection's offset (RFC 7323 §5.4).
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_nanos() / TIMESTAMP_TICK.as_nanos()) as u32).wrapping_add(self.identity.timestamp_offset)
    }

    /// The timestamps option for a segment with an ACK, if both ends agreed on it.
    pub(super) fn timestamps(&self, now: Instant) -> Option<Timestamps> {
        self.handshake.timestamps.then(|| Timestamps { val: self.timestamp(now), ecr: self.ts_recent })
    }

    /// The age of the timestamp that `ecr` echoes.
    pub(super) fn since_timestamp(&self, now: Instant, ecr: u32) -> Option<Duration> {
        let elapsed = self.timestamp(now).wrapping_sub(ecr);
        // A timestamp from before our SYN or from the future does not belong to a segment of ours.
        let age = TIMESTAMP_TICK * u64::from(elapsed);
        let ours = age <= now.since(self.handshake.first_sent) + TIMESTAMP_TICK;
        (elapsed < 1 << 31 && ours).then_some(age)
    }
}
