//! Responses to losses and to spurious reductions: the window, what to send, and the timer.

use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::config::Config;
use crate::facts::{AckFacts, Context, LostSegment, Snapshot, Spurious, Trigger, Window};
use crate::scoreboard::SegId;
use crate::seams::Plugin;

/// How to undo a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undo {
    /// The new window. None leaves it unchanged.
    pub window: Option<Window>,
    /// A later verdict on the same reduction may undo more.
    pub stays_open: bool,
    /// The timer's back-off was spurious too.
    pub ends_back_off: bool,
    /// The reduction itself remains, so the congestion control keeps its state from after the reduction.
    pub stays_reduced: bool,
    /// Fast recovery continues to retransmit what is marked lost, with the new window if there is one.
    pub continues_recovery: bool,
    /// The ACK that proves it may also let the window grow.
    pub grows: bool,
    /// What to do with the loss marks, unless recovery continues.
    pub marks: LossMarks,
}

/// What to do with the loss marks after an undo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossMarks {
    /// Segments that have not been retransmitted yet count as in flight again.
    #[default]
    ClearWaiting,
    /// All loss marks are removed. Segments that were retransmitted count twice until they are delivered.
    ClearAll,
    /// The marks remain: only the window was wrong.
    Keep,
}

impl From<Window> for Undo {
    fn from(window: Window) -> Undo {
        Undo { window: Some(window), ..Undo::default() }
    }
}

/// The window after a reduction turned out to be spurious.
pub trait SpuriousResponse: Plugin {
    /// How to respond. `snapshot` is the window before the reduction.
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, spurious: Spurious, snapshot: &Snapshot) -> Undo;
}

/// Which reductions may be undone. The evidence that a reduction was spurious comes from the receiver, and a misbehaving
/// receiver gains from each undo.
pub trait UndoLimit: Plugin {
    /// True if a reduction that is made now may be undone later. Called after the RTT of each ACK has been measured and
    /// before loss detection; the answer is [`SendState::may_undo`] until the next ACK.
    ///
    /// [`SendState::may_undo`]: crate::facts::SendState::may_undo
    fn may_undo(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool;

    /// The window has been reduced. Only `bounded` needs it: when it has made a reduction final, it counts the undos in a row
    /// from zero again.
    fn on_reduced(&mut self, _cx: &Context<'_>, _trigger: Trigger) {}
}

/// A reduction of the window that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// Its cause.
    pub trigger: Trigger,
    /// The segment that is marked lost, or the first outstanding one if none is.
    pub hole: SegId,
    /// FlightSize at the time of the congestion, without what limited transmit had added (RFC 5681 eq. 4).
    pub flight_size: Bytes,
}

/// How and when a loss changes the window.
pub trait LossResponse: Plugin {
    /// The window to continue with. None leaves it unchanged; the loss is still repaired.
    ///
    /// `congestion` provides the reduction of the congestion control.
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window>;
}

/// What never changes about a fast recovery. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FastRecoveryTraits {
    /// The window may also grow on the ACK that ends recovery. In the RFCs it is set by [`FastRecovery::exit`] alone
    /// (`linux-prr`, and `outstanding`, whose recovery is a state without a window).
    pub grows_on_exit: bool,
    /// The allowance also holds when nothing is left in the network. By default one segment is then retransmitted in any
    /// case, since no ACK may ever make room for it (`counted-pipe`, which stalls as its paper says).
    pub may_stall: bool,
    /// With SACK, the first retransmission needs room in the window, too. In the RFCs it is sent at once (RFC 6675 §5 step 4.3;
    /// `outstanding`, which TCP-PR limits by its window alone).
    pub first_retransmission_waits: bool,
}

/// How many segments fast recovery may send, and when it ends.
pub trait FastRecovery: Plugin {
    /// What never changes about it.
    fn traits(&self) -> FastRecoveryTraits {
        FastRecoveryTraits::default()
    }

    /// Recovery begins. It should end with `cx.snd.recovery_window`, which the loss response has set. Returns cwnd.
    /// `ack` is the ACK that started recovery, none if a timer did.
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes;

    /// An ACK arrived that did not end recovery. Returns cwnd.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// `bytes` were sent in recovery.
    fn on_sent(&mut self, _bytes: Bytes) {}

    /// How many bytes may be sent now.
    fn allowance(&self, cx: &Context<'_>) -> Bytes;

    /// True if the ACK ends recovery. In the RFCs, it does when everything that was outstanding at its start is
    /// acknowledged.
    fn is_over(&self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        cx.snd.snd_una >= cx.snd.recover
    }

    /// cwnd when recovery is over.
    fn exit(&mut self, cx: &Context<'_>) -> Bytes;

    /// True if this partial ACK restarts the retransmission timer. Called once on each. Only `deflate` needs it: by RFC 6582 §4
    /// ("Impatient"), only the first partial ACK restarts the timer, so that a window with many losses is left to a timeout.
    fn restarts_timer(&mut self) -> bool {
        true
    }
}

/// What to do after the retransmission timer expired, about data that may not be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterTimeout {
    /// Mark as lost what the detector says, and retransmit it in slow start (RFC 5681 §3.1).
    Conventional,
    /// Retransmit only the first segment, mark nothing else lost, send nothing else, and wait for further ACKs.
    Probe,
}

/// The next step of an undecided timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutStep {
    /// This ACK decides nothing.
    Pass,
    /// Send up to this many new segments regardless of the window, then continue with this cwnd.
    SendNew(Segments, Bytes),
    /// The timeout was genuine: retransmit what was outstanding when the timer expired, in slow start from this cwnd.
    FallBack(Bytes),
    /// The timeout was spurious.
    Spurious,
}

/// What to send after a retransmission timeout.
pub trait TimeoutRecovery: Plugin {
    /// The timer expired.
    fn on_timeout(&mut self, cx: &Context<'_>) -> AfterTimeout;

    /// cwnd to continue with, after the segments have been marked lost. None leaves it as the loss response set it. Only
    /// `linux-frto` needs it: Linux sets cwnd from the pipe, which is known only after marking.
    fn cwnd_after_marking(&self, _cx: &Context<'_>) -> Option<Bytes> {
        None
    }

    /// An ACK arrived while the timeout is undecided. The window does not grow in the meantime.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep;

    /// True if new data is sent before retransmissions on this ACK. Called after a conventional timeout. Only `linux-frto` needs it:
    /// Linux retransmits while it tests whether the timeout was spurious, and the test needs new data.
    fn sends_new_first(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        false
    }
}

/// What never changes about an estimator of the timeout. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtoEstimatorTraits {
    /// The timer restarts when the first outstanding segment is retransmitted, so that the retransmission gets a full RTO
    /// (`linux-rto`, and `rfc6298` if its parameter says so).
    pub restarts_on_retransmission: bool,
}

/// The retransmission timeout.
pub trait RtoEstimator: Plugin {
    /// What never changes about it.
    fn traits(&self) -> RtoEstimatorTraits {
        RtoEstimatorTraits::default()
    }

    /// Processes an ACK. True if it contained a valid sample, which ends the back-off (RFC 6298 §5).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool;

    /// Processes a sample that does not come from an ACK of data: that of the handshake.
    fn on_sample(&mut self, config: &Config, rtt: Duration);

    /// The timeout before clamping and back-off; none before the first sample.
    fn rto(&self) -> Option<Duration>;

    /// False if no timer runs; the loss detector's timer then replaces it everywhere. Used by `no-timer` and TCP-PR.
    fn has_timer(&self) -> bool {
        true
    }

    /// The smoothed round-trip time; none before the first sample.
    fn srtt(&self) -> Option<Duration>;

    /// The mean deviation of the round-trip time (RFC 6298 §2: RTTVAR); none before the first sample, or if the estimator
    /// keeps none.
    fn rttvar(&self) -> Option<Duration> {
        None
    }

    /// When the timer expires if it is set at `now`. Only `linux-rto` needs it: the timers of the kernel have ticks, so they are
    /// late.
    fn expires(&self, now: Instant, timeout: Duration) -> Instant {
        now + timeout
    }

    /// True if the timer restarts on this ACK, which SACKs something but does not advance SND.UNA. Only `linux-rto` needs it:
    /// Linux restarts the timer if data sent after the first segment was delivered late, because the path is then slow.
    fn restarts_on_sack(&self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        false
    }
}

/// What never changes about a limited transmit. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitedTransmitTraits {
    /// cwnd always limits the pipe instead of FlightSize; [`LimitedTransmit::flight_limit`] is then not used
    /// (`linux-in-flight`: Linux counts packets in flight).
    pub spends_by_pipe: bool,
    /// [`LimitedTransmit::flight_limit`] limits FlightSize during disorder also if it is below cwnd (`ancr`, which sends less
    /// than the window allows).
    pub caps_window: bool,
    /// Segments that the burst limit holds back follow at the rate of one window for each round trip when no ACK comes before,
    /// as long as no more is SACKed than is in the pipe (`pipe` and `pairs`, if their parameter says so).
    pub spreads_bursts: bool,
}

/// New data during disorder.
pub trait LimitedTransmit: Plugin {
    /// What never changes about it.
    fn traits(&self) -> LimitedTransmitTraits {
        LimitedTransmitTraits::default()
    }

    /// The largest value that FlightSize may reach. Called on every ACK outside recovery while duplicates are counted
    /// or something is SACKed. Values below cwnd have no effect, unless the trait [`LimitedTransmitTraits::caps_window`]
    /// says otherwise.
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// How many segments of new data leave together, if fewer wait for the next ACK; none if each is sent as soon as
    /// there is room. Not asked if less than two segments of data are left. `since` is the time since the last
    /// transmission.
    fn batch(&self, _cx: &Context<'_>, _since: Duration) -> Option<Batch> {
        None
    }

    /// Disorder ended for the given reason, or SND.UNA advanced during it. None leaves the window unchanged; a window
    /// that is set here does not grow on the same ACK.
    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        None
    }

    /// What replaces [`flight_before_disorder`](crate::facts::SendState::flight_before_disorder) after SND.UNA advanced during
    /// disorder that goes on. Only `ancr` needs it: under permanent reordering disorder never ends, and the window grows
    /// meanwhile.
    fn newer_flight(&self) -> Option<Bytes> {
        None
    }
}

/// Segments that leave together. Two or more leave as one packet, which segmentation offload divides: the last segment
/// has PSH, and may end where the peer's window ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch {
    /// Nothing is sent if there is room for fewer.
    pub least: Segments,
    /// With more room than this, the question is asked again for the rest.
    pub most: Segments,
}

/// Why disorder ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisorderEnd {
    /// SND.UNA advanced: the hole was filled before anything was marked lost.
    Advance,
    /// Fast recovery begins.
    Recovery,
    /// The retransmission timer expired.
    Timeout,
}

/// How transmissions are spread over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Payload per time.
    pub rate: Rate,
    /// Bytes that may be sent at once; at least one segment.
    pub quantum: Bytes,
    /// A retransmission ends the burst: segmentation offload sends adjacent segments only.
    pub repairs_alone: bool,
}

/// What never changes about a congestion control. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CongestionControlTraits {
    /// [`AckFacts::rate`] must be computed (`bbr`, `bbr1`).
    pub wants_rate_samples: bool,
    /// Delivery-rate samples also count the duplicates that a DSACK reports: the path has carried them (`bbr1`, as in Linux).
    pub counts_duplicates: bool,
    /// A model of the path, which needs rate samples, sets the window, and losses do not (`bbr`, `bbr1`). Then `on_ack` sets the
    /// window on every ACK in every phase; the loss response, fast recovery and the response to spurious reductions do not
    /// change it. The window limits the pipe in every phase. Losses are reported through [`CongestionControl::on_lost`],
    /// congestion events through [`CongestionControl::ssthresh`] (the returned value is not used), and spurious ones through
    /// [`CongestionControl::restore`]. After a timeout the window has room for one segment.
    pub steers_by_model: bool,
    /// How many times the SYN may be retransmitted before the initial window is reduced to one segment. In RFC 5681 §3.1
    /// one retransmission is enough (`linux-cubic`: one more).
    pub tolerated_syn_losses: u32,
    /// In slow start the window is in use, and may grow, if more than half of it is in flight (`linux-cubic`). In RFC 7661 §4
    /// it is in use if nearly all of it is.
    pub half_is_use_in_slow_start: bool,
}

/// Growth and reduction of the window.
pub trait CongestionControl: Plugin {
    /// What never changes about it.
    fn traits(&self) -> CongestionControlTraits {
        CongestionControlTraits::default()
    }

    /// The window after an ACK that delivered something, outside fast recovery and while the window was in use.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window;

    /// From `now` until the next [`CongestionControl::on_ack`] the window is not in use: the application or the peer's
    /// window limits the sender.
    fn on_unused_window(&mut self, _now: Instant) {}

    /// ssthresh after a congestion signal (RFC 5681 eq. 4 and similar rules).
    fn ssthresh(&mut self, cx: &Context<'_>, reduction: &Reduction) -> Bytes;

    /// Keeps what a reduction is about to change; one state is kept.
    fn save(&mut self);

    /// Restores the saved state, because the reduction was spurious.
    fn restore(&mut self, cx: &Context<'_>);

    /// An earlier reduction was spurious, and cwnd was raised accordingly. Without that reduction, cwnd would have been `before`
    /// at the last remaining one. Only `cubic` needs it: its curve begins at the window before the last reduction.
    fn on_earlier_undone(&mut self, _cx: &Context<'_>, _before: Bytes) {}

    /// How transmissions are spread over time. Called whenever something may be sent. With None, only the window limits
    /// them.
    fn pacing(&self, _cx: &Context<'_>) -> Option<Pacing> {
        None
    }

    /// A segment was marked lost by an ACK or a timer. Called only if it wants rate samples. Only `bbr` needs it: version 3 has
    /// bounds set by losses, each judged when it is detected.
    fn on_lost(&mut self, _cx: &Context<'_>, _lost: &LostSegment) {}

    /// Something is about to be sent after an idle time, with nothing in flight. Returns cwnd; None leaves it
    /// unchanged. Called only if it steers by a model.
    fn on_restart(&mut self, _cx: &Context<'_>) -> Option<Bytes> {
        None
    }

    /// True while it sends less than it estimates the path to carry. Rate samples from this time are marked as
    /// application-limited.
    fn limits_itself(&self, _cx: &Context<'_>) -> bool {
        false
    }
}
