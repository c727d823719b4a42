//! The facts that plug-ins can use. The engine computes them once per event.

use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::config::Config;
use crate::experiment::{ExperimentalOption, Features};
use crate::scoreboard::{Duplicate, Scoreboard, SegId};
use crate::seq::Offset;

/// The phase of the sender's loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Phase {
    /// No sign of loss.
    #[default]
    Open,
    /// Duplicate ACKs arrive, but no loss has been detected yet.
    Disorder,
    /// Fast recovery (RFC 6675 §5).
    Recovery,
    /// After a retransmission timeout, until everything that was outstanding then is acknowledged.
    Loss,
}

/// The two variables of congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow start threshold.
    pub ssthresh: Bytes,
}

/// The state variables of the sending side, with their RFC names. Plug-ins read them. Only the sender writes them, through the
/// functions of `sender/state.rs`.
#[derive(Clone, PartialEq, Debug)]
pub struct SendState {
    /// Oldest unacknowledged byte (RFC 9293 §3.3.1).
    pub snd_una: Offset,
    /// Next byte to be sent for the first time.
    pub snd_nxt: Offset,
    /// The peer's receive window.
    pub snd_wnd: Bytes,
    /// Largest window the peer has offered.
    pub max_snd_wnd: Bytes,
    /// Sender maximum segment size: payload bytes of a full-sized segment (RFC 5681 §2).
    pub smss: Bytes,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow start threshold.
    pub ssthresh: Bytes,
    /// The window that the current or the last recovery is meant to end with.
    pub recovery_window: Bytes,
    /// The last reduction, while it can still turn out to be spurious.
    pub snapshot: Option<Snapshot>,
    /// A reduction that is made now may be undone if it turns out to be spurious.
    pub may_undo: bool,
    /// The phase of loss recovery.
    pub phase: Phase,
    /// `RecoveryPoint` or `recover`: no new fast retransmit before it is acknowledged (RFC 6675 §5, RFC 6582 §3.2).
    pub recover: Offset,
    /// Duplicate ACKs since the last cumulative advance.
    pub dup_acks: Segments,
    /// The number of duplicates that indicates a loss; it does not change during recovery.
    pub dup_thresh: Segments,
    /// Bytes in flight that limited transmit has sent in this episode.
    pub limited_transmit: Bytes,
    /// FlightSize at the beginning of the current or last disorder; limited transmit may replace it by a later value.
    pub flight_before_disorder: Bytes,
    /// Until this time a postponement delays the fast retransmit, so verdicts of the detector would have no effect.
    pub postponed_until: Instant,
    /// Until this time neither the window nor the timeout changes.
    pub frozen_until: Instant,
    /// The RTT of the handshake; none if a SYN was retransmitted.
    pub handshake_rtt: Option<Duration>,
    /// Smoothed round-trip time (RFC 6298); none before the first sample.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, clamped, without back-off.
    pub rto: Duration,
    /// When the retransmission timer expires.
    pub rto_expires: Instant,
    /// When pacing allows the next burst.
    pub next_send_time: Instant,
    /// True if there is unsent data that fits the peer's window.
    pub can_send_new: bool,
    /// True if both ends agreed on SACK.
    pub sack: bool,
    /// True if both ends agreed on timestamps.
    pub timestamps: bool,
    /// True if both ends agreed on ECN.
    pub ecn: bool,
    /// The experimental features that both ends agreed on.
    pub features: Features,
}

impl SendState {
    /// The variables before anything has been sent.
    pub fn new(config: &Config) -> SendState {
        let smss = Bytes(u64::from(config.mss));
        SendState {
            snd_una: Offset::SYN,
            snd_nxt: Offset::SYN,
            snd_wnd: Bytes::ZERO,
            max_snd_wnd: Bytes::ZERO,
            smss,
            cwnd: config.initial_window.of(smss),
            ssthresh: Bytes::MAX,
            recovery_window: Bytes::MAX,
            snapshot: None,
            may_undo: true,
            phase: Phase::Open,
            recover: Offset::SYN,
            dup_acks: Segments::ZERO,
            dup_thresh: Segments(3),
            limited_transmit: Bytes::ZERO,
            flight_before_disorder: Bytes::ZERO,
            postponed_until: Instant::ZERO,
            frozen_until: Instant::ZERO,
            handshake_rtt: None,
            srtt: None,
            rto: config.initial_rto,
            rto_expires: Instant::NEVER,
            next_send_time: Instant::ZERO,
            can_send_new: false,
            sack: false,
            timestamps: false,
            ecn: false,
            features: Features::NONE,
        }
    }

    /// `FlightSize`: bytes sent and not cumulatively acknowledged (RFC 5681 §2).
    pub fn flight_size(&self) -> Bytes {
        self.snd_nxt.since(self.snd_una)
    }

    /// The window with another cwnd.
    pub fn window_with(&self, cwnd: Bytes) -> Window {
        Window { cwnd, ssthresh: self.ssthresh }
    }

    /// True in slow start (RFC 5681 §3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What every hook gets: the time, the configuration, the state and the scoreboard, all read-only.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The time of the event.
    pub now: Instant,
    /// The connection's options.
    pub config: &'a Config,
    /// The send side's variables.
    pub snd: &'a SendState,
    /// The outstanding segments.
    pub board: &'a Scoreboard,
}

/// A DSACK report (RFC 2883): the receiver received some bytes more than once.
#[derive(Clone, Copy, Debug)]
pub struct Dsack<'a> {
    /// First byte reported.
    pub left: Offset,
    /// One past the last byte reported.
    pub right: Offset,
    /// The segments that the report covers completely and that are still remembered.
    pub segments: &'a [Duplicate],
    /// True if nothing was SACKed and the report begins at SND.UNA: a whole window of ACKs was lost (RFC 3708 §3).
    pub ack_loss: bool,
}

/// A measured reordering event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reordering {
    /// The segment that arrived late.
    pub segment: SegId,
    /// How many segments the receiver was ahead when it arrived (RR-TCP §4.1).
    pub length: Segments,
}

/// The tick of the timestamp clock (RFC 7323 §5.4 allows 1 ms to 1 s).
pub const TIMESTAMP_TICK: Duration = Duration::from_millis(1);

/// What one acknowledgment reports.
#[derive(Clone, Debug)]
pub struct AckFacts<'a> {
    /// The cumulative acknowledgment of this segment.
    pub ack: Offset,
    /// SND.UNA before it.
    pub una_before: Offset,
    /// FlightSize before it.
    pub flight_before: Bytes,
    /// True if it acknowledges less than an earlier ACK, so it was overtaken. Its SACK blocks are still used.
    pub stale: bool,
    /// Segments ACKed or SACKed for the first time: first the cumulatively acknowledged ones in order, then the SACKed
    /// ones, block by block and therefore not in order.
    pub newly: &'a [SegId],
    /// How many of these were SACKed.
    pub newly_sacked: Segments,
    /// Bytes ACKed or SACKed for the first time.
    pub delivered: Bytes,
    /// The highest segment ACKed or SACKed so far, this ACK included.
    pub highest: Option<SegId>,
    /// True if this is a duplicate ACK: with SACK, one that SACKs something new (RFC 6675 §2); without SACK, by RFC
    /// 5681 §2.
    pub duplicate: bool,
    /// A DSACK report, if the segment carried one.
    pub dsack: Option<Dsack<'a>>,
    /// When the echoed timestamp was set, rounded down to the tick of the timestamp clock ([`TIMESTAMP_TICK`]).
    pub echoed: Option<Instant>,
    /// ECN echo.
    pub ece: bool,
    /// The experimental option.
    pub experiment: ExperimentalOption,
    /// The reordering that this ACK reveals.
    pub reordering: Option<Reordering>,
    /// RTT of the newest of the newly delivered segments that were sent only once.
    pub rtt: Option<Duration>,
    /// The sample for the RTO estimator, as often as the configuration asks for one.
    pub rtt_sample: Option<Duration>,
    /// The delivery rate, if the congestion control asks for it.
    pub rate: Option<RateSample>,
}

impl AckFacts<'_> {
    /// How far SND.UNA advanced.
    pub fn advance(&self) -> Bytes {
        self.ack.since(self.una_before)
    }

    /// True if SND.UNA advanced.
    pub fn advances(&self) -> bool {
        self.ack > self.una_before
    }
}

/// A sample of the delivery rate (`RS` of draft-ietf-ccwg-bbr §4.1.2.3), computed on every ACK.
///
/// It covers the time from the transmission of the newest delivered segment until now. The fields that do not depend on
/// a segment are always valid: `total_delivered`, `prior_in_flight`, `newly_lost`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateSample {
    /// Bytes delivered since the connection began (`C.delivered`).
    pub total_delivered: Bytes,
    /// Bytes in flight before this ACK.
    pub prior_in_flight: Bytes,
    /// Bytes marked lost by this ACK. Valid after the loss detector has run.
    pub newly_lost: Bytes,
    /// `C.delivered` when the segment was sent; none if the ACK delivers nothing.
    pub prior_delivered: Option<Bytes>,
    /// Bytes delivered since then.
    pub delivered: Bytes,
    /// The time that this took; none if there is no valid sample.
    pub interval: Option<Duration>,
    /// Bytes in flight when the segment was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Bytes that had been marked lost when the segment was sent.
    pub lost_before: Bytes,
    /// Bytes marked lost since then. Valid after the loss detector has run.
    pub lost: Bytes,
    /// The application sent less than the path might have carried.
    pub is_app_limited: bool,
    /// The segment was sent more than once.
    pub is_retransmission: bool,
    /// The window was full at some time in the previous round trip.
    pub is_cwnd_limited: bool,
}

/// A segment that was marked lost, with what a model of the path needs to know about it (`P` of draft-ietf-ccwg-bbr
/// §5.5.10.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSegment {
    /// The segment.
    pub segment: SegId,
    /// Its size.
    pub size: Bytes,
    /// Bytes in flight when it was sent, itself included.
    pub tx_in_flight: Bytes,
    /// Bytes marked lost since it was sent, itself included.
    pub lost: Bytes,
    /// The application sent less than the path might have carried.
    pub is_app_limited: bool,
    /// Bytes delivered since the connection began.
    pub total_delivered: Bytes,
}

impl RateSample {
    /// The delivery rate, if the sample is valid.
    pub fn rate(&self) -> Option<Rate> {
        self.interval.map(|interval| Rate::of(self.delivered, interval))
    }
}

/// What caused a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trigger {
    /// The loss detector: fast retransmit.
    FastRetransmit,
    /// The retransmission timer.
    Timeout,
    /// A tail loss probe repaired a loss (RFC 8985 §7.4).
    Probe,
    /// ECN echo (RFC 3168 §6.1.2).
    Ecn,
}

/// The window before the last reduction. It is kept until the next reduction, so that it can be restored.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Snapshot {
    /// What caused the reduction.
    pub trigger: Trigger,
    /// When it happened.
    pub at: Instant,
    /// cwnd before it.
    pub cwnd: Bytes,
    /// ssthresh before it.
    pub ssthresh: Bytes,
    /// FlightSize before it, without what limited transmit had added.
    pub flight_size: Bytes,
    /// Duplicate ACKs that had arrived by then.
    pub dup_acks: Segments,
    /// The first segment that was marked lost.
    pub hole: SegId,
    /// SND.NXT at that time.
    pub snd_nxt: Offset,
    /// Retransmissions since then.
    pub retransmitted: u32,
    /// The window stays reduced, even if the reduction turns out to be spurious.
    pub is_final: bool,
}

/// Which reduction was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spurious {
    /// The fast retransmit.
    FastRetransmit,
    /// The timeout, detected before the ACK of the retransmission.
    Timeout,
    /// The timeout, detected by the ACK of the retransmission.
    LateTimeout,
}

/// A change in the sender's loss recovery. Every plug-in of the sender is notified of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEvent {
    /// Fast recovery begins.
    EnterRecovery,
    /// Fast recovery, or the time after a timeout, ends normally.
    LeaveRecovery,
    /// The retransmission timer expired. `expired` is the RTO, including its back-off.
    Timeout {
        /// The RTO that expired.
        expired: Duration,
        /// True for the first of several expiries without an ACK in between.
        first: bool,
    },
    /// A reduction turned out to be spurious; the response follows.
    Spurious(Spurious),
}
