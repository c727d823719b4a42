//! Responses to losses and to spurious reductions: the window, what to send, and the timer.

use reknit_units::{Bytes, Duration, Instant, Rate, Segments};

use crate::config::Config;
use crate::facts::{AckFacts, Context, LostSegment, Snapshot, Spurious, Trigger, Window};
use crate::scoreboard::SegId;
use crate::seams::Plugin;

/// How to undo a spurious reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undo {
    /// The new window; None leaves it as it is.
    pub window: Option<Window>,
    /// A later verdict on the same reduction may undo more.
    pub stays_open: bool,
    /// The timer's back-off was spurious too.
    pub ends_back_off: bool,
    /// The reduction itself stays in force, so the congestion control keeps its state from after the reduction.
    pub stays_reduced: bool,
    /// Fast recovery goes on repairing what is marked lost, with the new window if there is one.
    pub goes_on: bool,
    /// What becomes of the marks of loss, unless recovery goes on.
    pub marks: LossMarks,
}

/// What becomes of the marks of loss after an undo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LossMarks {
    /// Segments that still wait to be retransmitted count as under way again.
    #[default]
    ClearWaiting,
    /// No segment is marked lost any more. Those that were retransmitted count twice until they are delivered.
    ClearAll,
    /// They stay: only the window was wrong.
    Keep,
}

impl From<Window> for Undo {
    fn from(window: Window) -> Undo {
        Undo { window: Some(window), ..Undo::default() }
    }
}

/// The window after a reduction turned out to be spurious.
pub trait SpuriousResponse: Plugin {
    /// What to do about it. `snapshot` is the window before the reduction.
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, spurious: Spurious, snapshot: &Snapshot) -> Undo;
}

/// A reduction of the window that is due.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// What triggers it.
    pub trigger: Trigger,
    /// The segment that is marked lost; the first outstanding one if none is.
    pub hole: SegId,
    /// The FlightSize that met congestion, without what limited transmit had added (RFC 5681 eq. 4).
    pub flight_size: Bytes,
}

/// What a loss verdict does to the window, and when.
pub trait LossResponse: Plugin {
    /// The window to continue with. None leaves it as it is (the loss is repaired all the same).
    ///
    /// `congestion` tells what the congestion control would do.
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window>;
}

/// How many segments fast recovery may send, and when it ends.
pub trait FastRecovery: Plugin {
    /// Recovery begins, to end with `cx.snd.recovery_window`, which the loss response chose; returns cwnd. `ack` is what
    /// set it off, none if a timer did.
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes;

    /// A further ACK arrived that did not end recovery; returns cwnd.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// `bytes` were sent in recovery.
    fn on_sent(&mut self, _bytes: Bytes) {}

    /// How many bytes may be sent now.
    fn allowance(&self, cx: &Context<'_>) -> Bytes;

    /// True if the ACK ends recovery. By the RFCs, when everything outstanding at its start is acknowledged.
    fn is_over(&self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        cx.snd.snd_una >= cx.snd.recover
    }

    /// cwnd when recovery is over.
    fn exit(&mut self, cx: &Context<'_>) -> Bytes;

    /// True if the ACK that ends recovery lets the window grow like any other; by the RFCs `exit` has the last word.
    fn grows_on_exit(&self) -> bool {
        false
    }

    /// True if the first retransmission that a verdict asks for goes out at once, even if the window has no room for it
    /// (RFC 6675 §5 step 4.3).
    fn retransmits_at_once(&self, _cx: &Context<'_>) -> bool {
        true
    }

    /// Asked on a partial ACK: does it restart the retransmission timer?
    fn restarts_timer(&mut self) -> bool {
        true
    }
}

/// What to do about data that may only seem lost, after the retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterTimeout {
    /// Give up what the detector gives up and retransmit it in slow start (RFC 5681 §3.1).
    Conventional,
    /// Retransmit only the first segment, hold nothing else lost, send nothing else, and wait for ACKs to tell more.
    Probe,
}

/// The next step of an undecided timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutStep {
    /// Nothing to do with this ACK.
    Pass,
    /// Send up to this many new segments whatever the window says, then continue with this cwnd.
    SendNew(Segments, Bytes),
    /// It was a loss: retransmit what was outstanding when the timer expired, in slow start from this cwnd.
    FallBack(Bytes),
    /// It was spurious.
    Spurious,
}

/// What to send after a retransmission timeout.
pub trait TimeoutRecovery: Plugin {
    /// The timer expired.
    fn on_timeout(&mut self, cx: &Context<'_>) -> AfterTimeout;

    /// cwnd to continue with, asked when it is known what the timeout gives up. None leaves it as the loss response chose.
    fn cwnd_after_marking(&self, _cx: &Context<'_>) -> Option<Bytes> {
        None
    }

    /// An ACK arrived while the timeout is undecided. The window does not grow meanwhile.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep;

    /// True if new data goes before retransmissions on this ACK, one of the time after a conventional timeout.
    fn sends_new_first(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        false
    }
}

/// The retransmission timeout.
pub trait RtoEstimator: Plugin {
    /// Learns from an ACK; true if it took a valid sample, which ends the back-off (RFC 6298 §5).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool;

    /// Learns from a sample that belongs to no ACK of data: the handshake's.
    fn on_sample(&mut self, config: &Config, rtt: Duration);

    /// The timeout before clamping and back-off; none before the first sample. [`Duration::MAX`] runs no timer.
    fn rto(&self) -> Option<Duration>;

    /// The smoothed round-trip time, none before the first sample.
    fn srtt(&self) -> Option<Duration>;

    /// True if the timer starts over when the first outstanding segment is retransmitted, so that the copy has its time.
    fn restarts_on_retransmission(&self) -> bool {
        false
    }

    /// True if the timer starts over on this ACK, which SACKs something but does not advance SND.UNA.
    fn restarts_on_sack(&self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> bool {
        false
    }
}

/// New data during disorder.
pub trait LimitedTransmit: Plugin {
    /// How large FlightSize may become. Asked on every ACK outside recovery while duplicates are counted or something
    /// is SACKed; values below cwnd change nothing.
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// True if cwnd limits the pipe, at any time, rather than FlightSize: then [`LimitedTransmit::flight_limit`] is not
    /// heard.
    fn spends_by_pipe(&self) -> bool {
        false
    }

    /// Disorder ended, for the reason given, or SND.UNA advanced within it. None leaves the window as it is; a window
    /// that is set here does not grow by the same ACK.
    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        None
    }
}

/// How disorder ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisorderEnd {
    /// SND.UNA advanced: the hole was filled before anything was marked lost.
    Advance,
    /// Fast recovery begins.
    Recovery,
    /// The retransmission timer expired.
    Timeout,
}

/// How what the window allows is spread over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// Payload per time.
    pub rate: Rate,
    /// Bytes that leave at once. At least a segment does.
    pub quantum: Bytes,
}

/// Growth and reduction of the window.
pub trait CongestionControl: Plugin {
    /// The window after an ACK that delivered something, outside fast recovery and while the window was in use.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window;

    /// From `now` on the window is not in use: the application, or the peer's window, holds the sender back. Until the
    /// next [`CongestionControl::on_ack`].
    fn on_unused_window(&mut self, _now: Instant) {}

    /// How often the SYN may be sent again before the first window is a single segment. By RFC 5681 §3.1 once is
    /// enough.
    fn tolerated_syn_losses(&self) -> u32 {
        0
    }

    /// ssthresh after a congestion signal (RFC 5681 eq. 4 and its relatives).
    fn ssthresh(&mut self, cx: &Context<'_>, reduction: &Reduction) -> Bytes;

    /// Keeps what a reduction is about to change; one state is kept.
    fn save(&mut self);

    /// Returns to the state that was kept, because the reduction was spurious.
    fn restore(&mut self, cx: &Context<'_>);

    /// How transmissions are spread over time, asked whenever something may be sent. None lets the window alone decide.
    fn pacing(&self, _cx: &Context<'_>) -> Option<Pacing> {
        None
    }

    /// True if [`AckFacts::rate`] is to be filled in. Asked once, when the connection begins.
    fn wants_rate_samples(&self) -> bool {
        false
    }

    /// True if it steers by a model of the path, which wants rate samples, rather than by losses. Then `on_ack` sets the
    /// window, on every ACK in every phase, and nobody else does: not the loss response, not fast recovery, not the response
    /// to spurious reductions. The window bounds the pipe in every phase. Of losses it hears by
    /// [`CongestionControl::on_lost`], of congestion events by [`CongestionControl::ssthresh`], whose answer is not used, and
    /// of spurious ones by [`CongestionControl::restore`]. After a timeout the window has room for one segment. Asked once,
    /// when the connection begins.
    fn steers_by_model(&self) -> bool {
        false
    }

    /// A segment was marked lost, by an ACK or a timer. Only one that wants rate samples is told.
    fn on_lost(&mut self, _cx: &Context<'_>, _lost: &LostSegment) {}

    /// Something is about to be sent after an idle time: nothing is in flight. Returns cwnd, none to leave it. Only one
    /// that steers by a model is told.
    fn on_restart(&mut self, _cx: &Context<'_>) -> Option<Bytes> {
        None
    }

    /// True while it sends less than it believes the path to carry. Rate samples of that time are marked as those of an
    /// application that has nothing to send.
    fn limits_itself(&self, _cx: &Context<'_>) -> bool {
        false
    }
}
