//! # SACK-based loss recovery
//!
//! Blanton, Allman, Wang, Jarvinen, Kojo, Nishida: A Conservative Loss Recovery Algorithm Based on Selective
//! Acknowledgment (SACK) for TCP. RFC 6675, 2012.
//!
//! **What it changes.** A segment is lost when enough data above it has been SACKed. During recovery the sender limits
//! the estimated number of bytes in the network (`pipe`) instead of inflating the window.
//!
//! **State.** The detector keeps a frontier: every segment below it has been examined in this recovery. While the
//! threshold is fixed, the SACKed data above a position can only grow, so the frontier only moves up and no segment is
//! examined twice.
//!
//! **Rules.** Trigger (§5): `DupAcks >= DupThresh` or `IsLost(HighACK + 1)`. `IsLost` (§4): `DupThresh` discontiguous
//! SACKed ranges above the segment, or more than `(DupThresh - 1) * SMSS` SACKed bytes. `NextSeg` and `SetPipe` are in
//! the engine.
//!
//! **Departures.** None by default. `start = "repeated-acks"` starts recovery as ns-2 does. `guard = "er"` adds Early
//! Retransmit (RFC 5827, segment-based): if fewer than four segments are outstanding and there is nothing new to send, it
//! is enough that all but one are SACKed. It is off by default, because some variants learn from timeouts.
//!
//! **ns-2.** `Agent/TCP/Sack1` is this variant with `start = "repeated-acks"` and `retransmit = "any-hole"`.
//!
//! **Status.** Faithful.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_tcp::seams::{FastRecovery, LossDetector, LossDetectorTraits, LossReason, Plugin, Verdicts};
use reknit_units::{Bytes, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::reno::in_episode;
use crate::requirement::{NEEDS_SACK, Requirement};

/// What to do when too few segments are outstanding to reach the threshold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// Wait for the retransmission timer.
    #[default]
    Off,
    /// Early Retransmit (RFC 5827).
    Er,
}

/// What starts recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// `DupThresh` duplicate ACKs, or `IsLost` of the first outstanding segment (RFC 6675 §5).
    #[default]
    Rfc6675,
    /// `DupThresh` ACKs in a row that do not advance SND.UNA, as in ns-2's `Sack1`. By RFC 6675, an ACK that advances it
    /// and reports a hole is a duplicate too, and if ACKs are lost or reordered, `IsLost` is true after fewer of them.
    RepeatedAcks,
}

/// Parameters of the detector.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SackedAboveConfig {
    /// What starts recovery.
    pub start: Start,
    /// What to do when too few segments are outstanding to reach the threshold.
    pub guard: Guard,
}

impl Algorithm<dyn LossDetector> for SackedAboveConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(SackedAbove::new(self.clone()))
    }
}

/// Everything below `next` has been examined; `above` bytes are SACKed at or above it.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    next: SegId,
    above: Bytes,
}

/// The detector. Other detectors use it once recovery has begun.
#[derive(Clone, Debug)]
pub(crate) struct SackedAbove {
    config: SackedAboveConfig,
    frontier: Option<Frontier>,
    /// When to go on with the frontier, if there was too much to mark at once.
    go_on: Instant,
    /// Retransmissions below this from before the last undo are still in flight; they are no new evidence.
    excused: SegId,
    /// ACKs since SND.UNA last advanced that repeat it and report something new.
    repeated: Segments,
}

impl SackedAbove {
    pub(crate) fn new(config: SackedAboveConfig) -> SackedAbove {
        SackedAbove { config, frontier: None, go_on: Instant::NEVER, excused: SegId(0), repeated: Segments::ZERO }
    }

    /// §5: the trigger.
    fn is_triggered(&self, cx: &Context<'_>) -> bool {
        if cx.now < cx.snd.postponed_until {
            return false; // saves examining the window on every ACK
        }
        let first = cx.board.first();
        if first < self.excused && cx.board.get(first).is_some_and(SegmentRecord::is_retransmitted) {
            return false;
        }
        let enough = match self.config.start {
            Start::Rfc6675 => {
                let first_is_lost = is_lost(cx, first, cx.board.sacked().bytes);
                cx.snd.dup_acks >= cx.snd.dup_thresh || first_is_lost
            }
            Start::RepeatedAcks => self.repeated >= cx.snd.dup_thresh,
        };
        enough || self.early_retransmit(cx)
    }

    fn count_repeated(&mut self, ack: &AckFacts<'_>) {
        if ack.advances() {
            self.repeated = Segments::ZERO;
        } else if ack.duplicate && !ack.stale {
            self.repeated += Segments(1);
        }
    }

    /// RFC 5827 §3.2, segment-based.
    fn early_retransmit(&self, cx: &Context<'_>) -> bool {
        let outstanding = cx.board.sent().segments;
        self.config.guard == Guard::Er
            && !cx.snd.can_send_new
            && outstanding > Segments(1)
            && outstanding < Segments(4)
            && cx.board.sacked().segments >= outstanding - Segments(1)
    }

    /// Which part of the trigger applied.
    fn why(cx: &Context<'_>) -> LossReason {
        if cx.snd.dup_acks >= cx.snd.dup_thresh { LossReason::Duplicates } else { LossReason::SackedAbove }
    }

    /// Begins recovery. The first segment is marked lost whatever `IsLost` returns, and the frontier starts above it.
    pub(crate) fn begin(&mut self, cx: &Context<'_>, why: LossReason, verdicts: &mut Verdicts) {
        let first = cx.board.first();
        verdicts.lost(first, why);
        self.frontier = Some(Frontier { next: first.next(), above: cx.board.sacked().bytes });
        self.advance(cx, verdicts);
    }

    /// Updates the frontier with what an ACK in recovery changed above it.
    fn update(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let Some(frontier) = &mut self.frontier else { return };
        let first = cx.board.first();
        if frontier.next <= first {
            *frontier = Frontier { next: first, above: cx.board.sacked().bytes };
            return;
        }
        for id in ack.newly.iter().filter(|id| **id >= frontier.next) {
            let record = cx.board.get(*id);
            frontier.above += record.map_or(Bytes::ZERO, |r| Bytes(u64::from(r.len)));
        }
    }

    /// Moves the frontier up over every segment that is SACKed or lost.
    fn advance(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.go_on = Instant::NEVER;
        let Some(frontier) = &mut self.frontier else { return };
        while let Some(record) = cx.board.get(frontier.next) {
            if verdicts.is_full() {
                self.go_on = cx.now;
                return;
            }
            if record.is_sacked() {
                let above = frontier.above - Bytes(u64::from(record.len));
                if above == Bytes::ZERO {
                    return; // no segment above can be lost
                }
                frontier.above = above;
            } else if is_lost(cx, frontier.next, frontier.above) {
                if record.is_retransmitted() {
                    verdicts.original_lost(frontier.next); // retransmitted by rule 3 before it was marked lost
                } else if record.is_open() {
                    verdicts.lost(frontier.next, LossReason::SackedAbove);
                }
            } else {
                return;
            }
            frontier.next = frontier.next.next();
        }
    }
}

/// RFC 6675 §4, `IsLost`, for a hole with `above` SACKed bytes above it.
fn is_lost(cx: &Context<'_>, hole: SegId, above: Bytes) -> bool {
    let dup_thresh = cx.snd.dup_thresh;
    above > (dup_thresh - Segments(1)).of(cx.snd.smss) || has_runs_above(cx, hole, dup_thresh, above)
}

/// True if at least `wanted` discontiguous runs are SACKed above `hole`. If there are too few SACKed bytes, this can
/// only be true with segments smaller than SMSS, so the runs are seldom counted.
fn has_runs_above(cx: &Context<'_>, hole: SegId, wanted: Segments, above: Bytes) -> bool {
    if above == Bytes::ZERO || cx.board.sacked_runs() < wanted.0 || cx.board.short_sacked() == 0 {
        return false;
    }
    let mut runs = 0;
    let mut at = hole;
    while let Some(next) = cx.board.next_unsacked(at.next()) {
        runs += u32::from(next > at.next());
        if runs >= wanted.0 || cx.board.highest_sacked() <= Some(next) {
            return runs >= wanted.0;
        }
        at = next;
    }
    runs + 1 >= wanted.0
}

impl LossDetector for SackedAbove {
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits { retransmits_on_suspicion: true, ..LossDetectorTraits::default() }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        self.count_repeated(ack);
        match cx.snd.phase {
            Phase::Disorder if self.is_triggered(cx) => self.begin(cx, SackedAbove::why(cx), verdicts),
            Phase::Recovery => {
                self.update(cx, ack);
                self.advance(cx, verdicts);
            }
            Phase::Open | Phase::Disorder | Phase::Loss => {}
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if self.go_on <= cx.now {
            self.advance(cx, verdicts);
        } else if !in_episode(cx) && self.is_triggered(cx) && !cx.board.is_empty() {
            self.begin(cx, SackedAbove::why(cx), verdicts);
        }
    }

    fn deadline(&self) -> Instant {
        self.go_on
    }
}

impl Plugin for SackedAbove {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::EnterRecovery => {}
            RecoveryEvent::LeaveRecovery | RecoveryEvent::Timeout { .. } => {
                (self.frontier, self.go_on) = (None, Instant::NEVER);
                self.repeated = Segments::ZERO;
            }
            // A spurious reduction may be detected while the recovery continues.
            RecoveryEvent::Spurious(_) => (self.excused, self.go_on) = (cx.board.next_id(), Instant::NEVER),
        }
    }
}

/// Parameters of the recovery: none.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PipeConfig {}

impl Algorithm<dyn FastRecovery> for PipeConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn FastRecovery> {
        Box::new(Pipe)
    }
}

/// §5 steps 4 and C: send while `cwnd - pipe >= 1 SMSS`.
#[derive(Clone, Debug)]
struct Pipe;

impl Plugin for Pipe {}

impl FastRecovery for Pipe {
    fn enter(&mut self, cx: &Context<'_>, _ack: Option<&AckFacts<'_>>) -> Bytes {
        cx.snd.cwnd
    }

    fn on_ack(&mut self, cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        cx.snd.cwnd
    }

    fn allowance(&self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd - cx.board.pipe().bytes
    }

    fn exit(&mut self, cx: &Context<'_>) -> Bytes {
        cx.snd.cwnd.min(cx.snd.recovery_window)
    }
}
