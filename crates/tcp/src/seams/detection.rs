//! Loss detection: which segments are lost, how much evidence is needed, and whether a loss was spurious.

use reknit_units::{Instant, Segments};

use crate::facts::{AckFacts, Context, Spurious};
use crate::scoreboard::{AT_ONCE, SegId, SendReason};
use crate::seams::Plugin;

/// Why a segment is marked lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossReason {
    /// Enough duplicate ACKs (RFC 5681 §3.2).
    Duplicates,
    /// Enough SACKed above it (RFC 6675 §4, `IsLost`).
    SackedAbove,
    /// A partial ACK indicates it (RFC 6582 §3.2).
    PartialAck,
    /// A segment sent later was delivered, and the reordering window has passed since (RFC 8985 §6).
    Overtaken,
    /// Its own deadline passed.
    Deadline,
    /// The simulator reported it.
    Reported,
}

/// The decisions of a loss detector.
#[derive(Debug, Default)]
pub struct Verdicts {
    pub(crate) lost: Vec<(SegId, LossReason)>,
    pub(crate) originals_lost: Vec<SegId>,
    pub(crate) repairs: Vec<SegId>,
    pub(crate) event: Option<SegId>,
    pub(crate) withdrawn: Vec<SegId>,
    pub(crate) collapse: Option<Instant>,
    pub(crate) probe: bool,
    pub(crate) probe_repaired_loss: bool,
}

impl Verdicts {
    /// The latest transmission of `id` did not arrive. Outside an episode, the first such verdict starts one.
    pub fn lost(&mut self, id: SegId, why: LossReason) {
        self.lost.push((id, why));
    }

    /// The first transmission of `id` did not arrive; it was retransmitted speculatively, and that copy is in flight.
    pub fn original_lost(&mut self, id: SegId) {
        self.originals_lost.push(id);
    }

    /// The latest transmission of `id` also did not arrive, in a congestion event that has already been responded to:
    /// it is retransmitted, but no new episode starts.
    pub fn repair(&mut self, id: SegId) {
        self.repairs.push(id);
    }

    /// The reduction for `hole` ([`Verdicts::event`]) was spurious, even if others have followed it: the window becomes what
    /// it would be without it. Only for detectors whose reductions stay open ([`LossDetectorTraits::withdraws`]).
    pub fn withdraw(&mut self, hole: SegId) {
        self.withdrawn.push(hole);
    }

    /// So much is lost that the window restarts from one segment, and nothing is sent before `until`.
    pub fn collapse(&mut self, until: Instant) {
        self.collapse = Some(until);
    }

    /// The loss of `hole` is a separate congestion event: it starts an episode in any phase of the sender.
    pub fn event(&mut self, hole: SegId) {
        self.event = Some(hole);
    }

    /// Send a probe: new data if possible, else retransmit the last segment (RFC 8985 §7.3).
    pub fn probe(&mut self) {
        self.probe = true;
    }

    /// The probe repaired a loss that was not detected otherwise: respond once, as to any other loss (RFC 8985 §7.4).
    pub fn probe_repaired_loss(&mut self) {
        self.probe_repaired_loss = true;
    }

    /// True if it decides nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let is_marked = !(self.lost.is_empty() && self.originals_lost.is_empty() && self.repairs.is_empty());
        let is_event = self.event.is_some() || !self.withdrawn.is_empty() || self.collapse.is_some();
        !is_marked && !is_event && !self.probe && !self.probe_repaired_loss
    }

    /// True if so much is marked lost that the rest should wait for another event: a detector then sets its deadline to
    /// now, and continues when [`LossDetector::on_timer`] is called.
    pub fn is_full(&self) -> bool {
        self.lost.len() + self.repairs.len() >= AT_ONCE
    }

    /// The segments marked lost so far.
    pub fn marked(&self) -> impl Iterator<Item = SegId> {
        self.lost.iter().map(|(id, _)| *id)
    }
}

/// Which pure ACKs are still read although PAWS rejects their older timestamps (RFC 7323 §5): others have overtaken
/// them, and their SACK blocks may be news.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LateAcks {
    /// None, as RFC 7323 requires.
    #[default]
    Discard,
    /// Duplicate ACKs that are at most 1.2 RTO late and do not open the window, as in Linux.
    Duplicates,
    /// Those that are at most 8 s late. Sequence numbers wrap in that time only above 4 Gbit/s.
    All,
}

/// What never changes about a loss detector. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LossDetectorTraits {
    /// The retransmission timer does not expire while [`LossDetector::deadline`] is set, because both are the same timer, as
    /// in Linux (`linux-rack`).
    pub holds_rto: bool,
    /// Reductions stay open, so that [`Verdicts::withdraw`] can undo each of the last few (`learned-lateness`, which learns
    /// late whether a loss was one).
    pub withdraws: bool,
    /// Retransmissions carry the timestamp of the first transmission, or the newest that the peer has echoed, so that a
    /// receiver does not discard the originals of later segments as old duplicates (PAWS, RFC 7323 §5). Echoed timestamps then
    /// measure nothing (`learned-lateness`, to which a late original is the evidence).
    pub repeats_timestamps: bool,
    /// Which ACKs are read although PAWS rejects them (`linux-rack`, `learned-lateness`).
    pub late_acks: LateAcks,
    /// [`LossDetector::on_loss_report`] must be called with what the network lost, which only a simulator can do (`oracle`).
    pub needs_loss_reports: bool,
    /// Recovery may also retransmit holes that are not marked lost when there is nothing else to send (RFC 6675 §4, `NextSeg`
    /// rules 3 and 4; `sacked-above`, `delayed-response`).
    pub retransmits_on_suspicion: bool,
}

/// Which segments are lost, or when to look again.
pub trait LossDetector: Plugin {
    /// What never changes about it.
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits::default()
    }

    /// Decides which outstanding segments are lost. Called once per ACK, after the update of the scoreboard. Outside
    /// recovery, any loss starts recovery, unless a postponement delays it.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts);

    /// Decides again because [`LossDetector::deadline`] has passed or a postponement has ended. Afterwards the deadline must
    /// be in the future, unless the verdicts are full.
    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts);

    /// When to call [`LossDetector::on_timer`]; [`Instant::NEVER`] if only an ACK can change the decision.
    fn deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// A segment was sent or retransmitted.
    fn on_sent(&mut self, _cx: &Context<'_>, _id: SegId, _cause: SendReason) {}

    /// True if the window must not grow now, because it is not yet known whether something was lost. Called on each ACK outside
    /// recovery. Only `learned-lateness` needs it: it retransmits before it decides that a segment is lost.
    fn holds_growth(&self, _cx: &Context<'_>) -> bool {
        false
    }

    /// The network has lost the latest transmission of `id`, and its acknowledgment would have arrived by now. Only `oracle`
    /// needs it: no other sender knows what the network lost.
    fn on_loss_report(&mut self, _cx: &Context<'_>, _id: SegId, _verdicts: &mut Verdicts) {}

    /// True if nothing may be retransmitted before the next ACK or timer, only new data sent. Linux does so after a partial
    /// ACK that shows a late original.
    fn holds_retransmissions(&self) -> bool {
        false
    }

    /// True if the retransmission timeout that just fired means that `id` is lost too. RFC 6298 §5.4 mentions only the
    /// first segment; classic TCP marks everything lost.
    fn lost_at_timeout(&self, _cx: &Context<'_>, _id: SegId) -> bool {
        true
    }
}

/// The number of duplicates that indicates a loss.
pub trait DupThresh: Plugin {
    /// Updates the threshold after an ACK. Called before loss detection, which then uses the newest threshold.
    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) {}

    /// The threshold, in segments. Called on every ACK outside recovery.
    fn dup_thresh(&self, cx: &Context<'_>) -> Segments;
}

/// Whether a triggered fast retransmit may go ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryEntry {
    /// Now.
    Now,
    /// Not before this time, and only if the hole is still open then.
    At(Instant),
}

/// How much longer to wait after the detector has found a loss. If there are several, the latest time applies.
pub trait Postponement: Plugin {
    /// Called when the detector first marks `hole` lost.
    fn may_enter(&mut self, cx: &Context<'_>, hole: SegId) -> RecoveryEntry;

    /// Processes an ACK. Only `time-delayed` needs it: it learns from ACKs how long late segments take.
    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) {}
}

/// What never changes about a detector of spurious reductions. Read when the plug-ins of a connection are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SpuriousDetectorTraits {
    /// Reductions stay open, so that [`SpuriousDetector::earlier`] can undo each of the last few (`dsack`, if its parameter
    /// `open` is above 1).
    pub judges_earlier: bool,
}

/// Whether the last reduction was spurious.
pub trait SpuriousDetector: Plugin {
    /// What never changes about it.
    fn traits(&self) -> SpuriousDetectorTraits {
        SpuriousDetectorTraits::default()
    }

    /// A segment was retransmitted.
    fn on_retransmitted(&mut self, cx: &Context<'_>, id: SegId, cause: SendReason);

    /// Processes an ACK, and decides whether the last reduction (`cx.snd.snapshot`), if there is one, was spurious. The
    /// first decision of an episode applies.
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious>;

    /// The hole of a reduction before the last one that the ACK has proven spurious. Called after each ACK while reductions are
    /// open. Only `dsack` needs it: a DSACK may come after the next reduction; timestamps and F-RTO prove something about the
    /// last one only.
    fn earlier(&mut self) -> Option<SegId> {
        None
    }

    /// Until when neither the window nor the timeout may change: losses are repaired, but there is no reduction, back-off or
    /// growth. Called after each ACK. Only `door` needs it: TCP-DOOR disables congestion control for a time after reordering.
    fn frozen_until(&self) -> Instant {
        Instant::ZERO
    }
}
