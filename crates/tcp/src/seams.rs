//! The seams: small traits with facts in and decisions out, one for each question on which published algorithms differ.
//!
//! The engine asks in a fixed order on every ACK (see `sender/ack.rs`); a plug-in never writes the scoreboard or the
//! window. Detecting a loss, responding to it and undoing the response are separate questions, so any answer to one
//! combines with any answer to another. Hooks named `on_…` notify; nouns and questions answer. A default body stands
//! only where doing nothing is right for most algorithms.

use std::fmt::Debug;

use reknit_units::{Bytes, Duration, Instant, Segments};

use crate::config::Config;
use crate::experiment::{Experiment, Features};
use crate::facts::{AckFacts, Context, Snapshot, Spurious, Trigger, Turn, Window};
use crate::scoreboard::{Cause, SegId};
use crate::seq::Offset;

/// Why a segment is held lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Enough duplicate ACKs (RFC 5681 §3.2).
    Duplicates,
    /// Enough SACKed above it (RFC 6675 §4, `IsLost`).
    SackedAbove,
    /// A partial ACK points at it (RFC 6582 §3.2).
    PartialAck,
    /// A segment sent later was delivered and time has passed since (RFC 8985 §6).
    Overtaken,
    /// Its own deadline passed.
    Deadline,
}

/// What a loss detector concluded.
#[derive(Debug, Default)]
pub struct Verdicts {
    pub(crate) lost: Vec<(SegId, Why)>,
    pub(crate) originals_lost: Vec<SegId>,
    pub(crate) repairs: Vec<SegId>,
    pub(crate) event: Option<SegId>,
    pub(crate) collapse: Option<Instant>,
    pub(crate) probe: bool,
    pub(crate) probe_repaired_loss: bool,
}

impl Verdicts {
    /// The latest transmission of `id` did not arrive. Outside an episode the first such verdict begins one.
    pub fn lost(&mut self, id: SegId, why: Why) {
        self.lost.push((id, why));
    }

    /// The first transmission of `id` did not arrive; it was sent again on suspicion, and that copy is under way.
    pub fn original_lost(&mut self, id: SegId) {
        self.originals_lost.push(id);
    }

    /// The latest transmission of `id` did not arrive either, in a congestion event that was answered before: it is
    /// repaired, and nothing begins.
    pub fn repair(&mut self, id: SegId) {
        self.repairs.push(id);
    }

    /// So much is lost that the window starts over from one segment, and nothing is sent before `until`.
    pub fn collapse(&mut self, until: Instant) {
        self.collapse = Some(until);
    }

    /// The loss of `hole` is a congestion event of its own: it begins an episode wherever the sender stands.
    pub fn event(&mut self, hole: SegId) {
        self.event = Some(hole);
    }

    /// Send a probe: new data if possible, else the last segment again (RFC 8985 §7.3).
    pub fn probe(&mut self) {
        self.probe = true;
    }

    /// The probe repaired a loss without anyone noticing: respond once as to any loss (RFC 8985 §7.4).
    pub fn probe_repaired_loss(&mut self) {
        self.probe_repaired_loss = true;
    }

    pub(crate) fn clear(&mut self) {
        self.lost.clear();
        self.originals_lost.clear();
        self.repairs.clear();
        self.event = None;
        self.collapse = None;
        self.probe = false;
        self.probe_repaired_loss = false;
    }
}

/// Which segments are lost, or when to look again.
pub trait LossDetector: Debug + Send {
    /// Judges the outstanding segments. Once per ACK, after the scoreboard took it in; outside recovery any verdict
    /// starts it (if the postponements agree).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts);

    /// Judges again because [`LossDetector::deadline`] passed or a postponement ran out. Afterwards the deadline lies in
    /// the future.
    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts);

    /// When to look again, [`Instant::NEVER`] if only an ACK can tell more.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// A segment was sent, for the first time or again.
    fn on_sent(&mut self, _cx: &Context<'_>, _id: SegId, _cause: Cause) {}

    /// True if recovery may also resend holes that are not held lost when there is nothing else to send (RFC 6675 §4,
    /// `NextSeg` rules 3 and 4).
    fn resends_on_suspicion(&self) -> bool {
        false
    }

    /// True if the retransmission timeout that just fired means that `id` is lost too (RFC 6298 §5.4 speaks of the
    /// first segment only; classic TCP gives up everything).
    fn lost_at_timeout(&self, _cx: &Context<'_>, _id: SegId) -> bool {
        true
    }

    /// A turn in the connection's recovery: state that belongs to one episode ends here.
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn);
}

/// How many duplicates mean loss.
pub trait DupThresh: Debug + Send {
    /// Learns from an ACK. Before loss detection, so that it is judged by the newest threshold.
    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) {}

    /// The threshold, in segments. Asked on every ACK outside recovery.
    fn dup_thresh(&self, cx: &Context<'_>) -> Segments;

    /// What it has learned about reordering, for a later connection to the same peer.
    fn history(&self) -> Option<ReorderingHistory> {
        None
    }

    /// Begins with what an earlier connection to the same peer has learned.
    fn begin_with(&mut self, _history: &ReorderingHistory) {}

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// What a connection has learned about reordering on the way to a peer.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReorderingHistory {
    /// Reordering lengths and when they were measured, oldest first.
    pub events: Vec<(Instant, Segments)>,
    /// The share of them that a threshold should cover.
    pub coverage: f64,
}

/// Whether a triggered fast retransmit may go ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Now.
    Now,
    /// Not before this moment, and only if the hole is still open then.
    At(Instant),
}

/// How much longer to wait once the evidence is in.
pub trait Postponement: Debug + Send {
    /// Asked when the detector first holds `hole` lost.
    fn may_enter(&mut self, cx: &Context<'_>, hole: SegId) -> Entry;

    /// Learns from an ACK.
    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) {}

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// Whether the last reduction was needless.
pub trait SpuriousDetector: Debug + Send {
    /// A segment was sent again.
    fn on_resent(&mut self, cx: &Context<'_>, id: SegId, cause: Cause);

    /// Learns from an ACK, and judges the last reduction (`cx.snd.snapshot`) if there is one. The first verdict of an
    /// episode counts.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious>;

    /// Until when neither window nor timeout may change: losses are repaired, but nothing is reduced, backed off or
    /// grown. Asked after each ACK.
    fn frozen_until(&self) -> Instant {
        Instant::ZERO
    }

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn);
}

/// What becomes of a needless reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Undo {
    /// The new window; None leaves it as it is.
    pub window: Option<Window>,
    /// A later verdict on the same reduction may undo more.
    pub stays_open: bool,
    /// The timer's back-off was needless too.
    pub ends_back_off: bool,
    /// The reduction itself stands, so the congestion control keeps what it made of it.
    pub stays_reduced: bool,
    /// Fast recovery goes on repairing what is held lost, with the new window if there is one.
    pub goes_on: bool,
}

impl From<Window> for Undo {
    fn from(window: Window) -> Undo {
        Undo { window: Some(window), ..Undo::default() }
    }
}

/// The window after the news that a reduction was needless.
pub trait SpuriousResponse: Debug + Send {
    /// What to do about it. `snapshot` is the window before the reduction.
    fn respond(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, spurious: Spurious, snapshot: &Snapshot) -> Undo;

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// A reduction of the window that is due.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// What sets it off.
    pub trigger: Trigger,
    /// The segment that is held lost; the first outstanding one if none is.
    pub hole: SegId,
    /// The FlightSize that met congestion, without what limited transmit had added (RFC 5681 eq. 4).
    pub flight_size: Bytes,
}

/// What a loss verdict does to the window, and when.
pub trait LossResponse: Debug + Send {
    /// The window to continue with. None leaves it as it is (the loss is repaired all the same).
    ///
    /// `congestion` tells what the congestion control would do.
    fn respond(
        &mut self,
        cx: &Context<'_>,
        reduction: &Reduction,
        congestion: &mut dyn CongestionControl,
    ) -> Option<Window>;

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// How fast recovery spends the window, and when it is over.
pub trait FastRecovery: Debug + Send {
    /// Recovery begins, to end with `cx.snd.recovery_window`, which the loss response chose; returns cwnd. `ack` is what
    /// set it off, none if a timer did.
    fn enter(&mut self, cx: &Context<'_>, ack: Option<&AckFacts<'_>>) -> Bytes;

    /// A further ACK arrived that did not end recovery; returns cwnd.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// `bytes` were sent in recovery.
    fn on_sent(&mut self, _bytes: Bytes) {}

    /// How many octets may be sent now.
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
    fn resends_at_once(&self, _cx: &Context<'_>) -> bool {
        true
    }

    /// Asked on a partial ACK: does it restart the retransmission timer?
    fn restarts_timer(&mut self) -> bool {
        true
    }

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// What to do about data that may only seem lost, after the retransmission timer expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterTimeout {
    /// Give up what the detector gives up and resend it in slow start (RFC 5681 §3.1).
    Conventional,
    /// Resend only the first segment, hold nothing else lost, send nothing else, and wait for ACKs to tell more.
    Probe,
}

/// The next step of an undecided timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutStep {
    /// Nothing to do with this ACK.
    Pass,
    /// Send up to this many new segments whatever the window says, then continue with this cwnd.
    SendNew(Segments, Bytes),
    /// It was a loss: resend what was outstanding when the timer expired, in slow start from this cwnd.
    FallBack(Bytes),
    /// It was spurious.
    Spurious,
}

/// What to send after a retransmission timeout.
pub trait TimeoutRecovery: Debug + Send {
    /// The timer expired.
    fn on_timeout(&mut self, cx: &Context<'_>) -> AfterTimeout;

    /// An ACK arrived while the timeout is undecided. The window does not grow meanwhile.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> TimeoutStep;

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// The retransmission timeout.
pub trait RtoEstimator: Debug + Send {
    /// Learns from an ACK; true if it took a valid sample, which ends the back-off (RFC 6298 §5).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool;

    /// Learns from a sample that belongs to no ACK of data: the handshake's.
    fn on_sample(&mut self, config: &Config, rtt: Duration);

    /// The timeout before clamping and back-off; none before the first sample. [`Duration::MAX`] runs no timer.
    fn rto(&self) -> Option<Duration>;

    /// The smoothed round-trip time, none before the first sample.
    fn srtt(&self) -> Option<Duration>;

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// New data during disorder.
pub trait LimitedTransmit: Debug + Send {
    /// How large FlightSize may become. Asked on every ACK outside recovery while duplicates are counted or something
    /// is SACKed; values below cwnd change nothing.
    fn flight_limit(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes;

    /// Disorder ended, for the reason given, or SND.UNA advanced within it. None leaves the window as it is; a window
    /// that is set here does not grow by the same ACK.
    fn on_disorder_end(&mut self, _cx: &Context<'_>, _end: DisorderEnd) -> Option<Window> {
        None
    }

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// How disorder ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DisorderEnd {
    /// SND.UNA advanced: the hole was filled before anything was held lost.
    Advance,
    /// Fast recovery begins.
    Recovery,
    /// The retransmission timer expired.
    Timeout,
}

/// Growth and reduction of the window.
pub trait CongestionControl: Debug + Send {
    /// The window after an ACK that delivered something, outside fast recovery and while the window was in use.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window;

    /// From `now` on the window is not in use: the application, or the peer's window, holds the sender back. Until the
    /// next [`CongestionControl::on_ack`].
    fn on_unused_window(&mut self, _now: Instant) {}

    /// ssthresh after a congestion signal (RFC 5681 eq. 4 and its relatives).
    fn ssthresh(&mut self, cx: &Context<'_>, reduction: &Reduction) -> Bytes;

    /// Keeps what a reduction is about to change; one state is kept.
    fn save(&mut self);

    /// Returns to the state that was kept, because the reduction was needless.
    fn restore(&mut self, cx: &Context<'_>);

    /// A turn in the connection's recovery.
    fn on_turn(&mut self, _cx: &Context<'_>, _turn: Turn) {}
}

/// How a data segment fits what the receiver has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is the next one and nothing is missing.
    InOrder,
    /// It leaves a gap below it.
    OutOfOrder,
    /// It fills a gap, wholly or in part.
    FillsGap,
    /// It brings nothing new.
    Duplicate,
}

/// What the receiver knows when a data segment arrived.
#[derive(Clone, Copy, Debug)]
pub struct RxFacts<'a> {
    /// The moment.
    pub now: Instant,
    /// The connection's options.
    pub config: &'a Config,
    /// How the segment fits.
    pub arrival: Arrival,
    /// First octet of the segment.
    pub start: Offset,
    /// One past its last octet.
    pub end: Offset,
    /// Next octet expected, after this segment.
    pub rcv_nxt: Offset,
    /// One past the highest octet received.
    pub highest: Offset,
    /// True if something is still missing below `highest`.
    pub gaps: bool,
    /// The longest segment so far: the estimate of the peer's segment size (RFC 5681 §4.2).
    pub rmss: Bytes,
    /// True if it carries a FIN.
    pub fin: bool,
    /// How much more the peer may send.
    pub window: Bytes,
    /// The peer's timestamp on it (RFC 7323 §3).
    pub timestamp: Option<u32>,
    /// What the experimental option says.
    pub experiment: &'a Experiment,
    /// What routers on the way say they have dropped: where the lowest and the highest such segment begins.
    pub dropped: Option<(Offset, Offset)>,
    /// The round-trip time as a receiver knows it: from the handshake, later from echoed timestamps.
    pub rtt: Option<Duration>,
}

/// When to acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AckAction {
    /// At once.
    Now,
    /// With the next segment that is sent anyway, or at this moment.
    By(Instant),
    /// The policy acknowledges it itself, when its own [`AckPolicy::deadline`] comes.
    Withhold,
}

/// An acknowledgment that a policy has timed itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimedAck {
    /// What it acknowledges: at most RCV.NXT, and not less than was acknowledged before.
    pub ack: Offset,
    /// True if it reports what has arrived above (SACK), as of the moment when it is sent.
    pub sack: bool,
}

/// What segments may tell that leave for other reasons: those with data, window updates, answers to probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disclosure {
    /// The most that they may acknowledge.
    pub ack: Offset,
    /// True if they may report what has arrived above.
    pub sack: bool,
}

impl Disclosure {
    /// Everything.
    pub const FULL: Disclosure = Disclosure { ack: Offset::MAX, sack: true };
}

/// The receiver's acknowledgment policy.
pub trait AckPolicy: Debug + Send {
    /// A data segment arrived.
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction;

    /// Everything that may be disclosed has been acknowledged.
    fn on_ack_sent(&mut self);

    /// When [`AckPolicy::on_timer`] wants to be called, [`Instant::NEVER`] if nothing is withheld.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// The deadline has come: the acknowledgment to send now. Called again until there is none or the deadline lies in
    /// the future.
    fn on_timer(&mut self, _now: Instant) -> Option<TimedAck> {
        None
    }

    /// What segments that leave for other reasons may tell meanwhile.
    fn disclosure(&self) -> Disclosure {
        Disclosure::FULL
    }
}

/// What travels beyond the standard options. In use only if the peer has offered the same features.
pub trait HeaderSupport: Debug + Send {
    /// What both ends must know.
    fn features(&self) -> Features;

    /// A segment with data leaves, `again` if its octets were sent before.
    fn annotate_data(&mut self, _again: bool, _experiment: &mut Experiment) {}

    /// A segment with data arrived.
    fn on_data(&mut self, _rx: &RxFacts<'_>) {}

    /// A pure ACK of everything below `ack` leaves.
    fn annotate_ack(&mut self, _ack: Offset, _experiment: &mut Experiment) {}

    /// How many ACKs report each duplicate (RFC 2883 §4: one).
    fn duplicate_reports(&self) -> u32 {
        1
    }
}

/// One algorithm for each seam: what makes a connection a variant.
#[derive(Debug)]
pub struct Plugins {
    /// The sender's.
    pub sender: SenderPlugins,
    /// Replaces those of them that need SACK, if the peer does not do it; none if none needs it.
    pub without_sack: Option<fn(&mut SenderPlugins)>,
    /// When the receiver acknowledges.
    pub ack_policy: Box<dyn AckPolicy>,
    /// What travels beyond the standard options.
    pub header_support: Vec<Box<dyn HeaderSupport>>,
}

/// One algorithm for each seam of the sender.
#[derive(Debug)]
pub struct SenderPlugins {
    /// Which segments are lost.
    pub loss_detector: Box<dyn LossDetector>,
    /// How many duplicates mean loss.
    pub dup_thresh: Box<dyn DupThresh>,
    /// How much longer to wait; all must agree.
    pub postponements: Vec<Box<dyn Postponement>>,
    /// Whether the last reduction was needless; the first verdict counts.
    pub spurious_detectors: Vec<Box<dyn SpuriousDetector>>,
    /// The window after such news.
    pub spurious_response: Box<dyn SpuriousResponse>,
    /// The window after a loss.
    pub loss_response: Box<dyn LossResponse>,
    /// How fast recovery spends the window.
    pub fast_recovery: Box<dyn FastRecovery>,
    /// What to send after a timeout.
    pub timeout_recovery: Box<dyn TimeoutRecovery>,
    /// The retransmission timeout.
    pub rto_estimator: Box<dyn RtoEstimator>,
    /// New data during disorder.
    pub limited_transmit: Box<dyn LimitedTransmit>,
    /// Growth and reduction of the window.
    pub congestion_control: Box<dyn CongestionControl>,
}

impl SenderPlugins {
    /// Tells every plug-in about a turn.
    pub(crate) fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        self.loss_detector.on_turn(cx, turn);
        self.dup_thresh.on_turn(cx, turn);
        for postponement in &mut self.postponements {
            postponement.on_turn(cx, turn);
        }
        for detector in &mut self.spurious_detectors {
            detector.on_turn(cx, turn);
        }
        self.spurious_response.on_turn(cx, turn);
        self.loss_response.on_turn(cx, turn);
        self.fast_recovery.on_turn(cx, turn);
        self.timeout_recovery.on_turn(cx, turn);
        self.rto_estimator.on_turn(cx, turn);
        self.limited_transmit.on_turn(cx, turn);
        self.congestion_control.on_turn(cx, turn);
    }
}
