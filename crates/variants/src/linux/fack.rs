//! Loss detection as in Linux before RACK: forward acknowledgment (FACK; Mathis, Mahdavi, SIGCOMM 1996) until reordering
//! is seen, then SACKed segments are counted; with early retransmit (RFC 5827) and tail loss probes.
//!
//! **Rules** (Linux 3.18, `net/ipv4/tcp_input.c`).
//! - 1 (`tcp_time_to_recover`): recovery begins when more segments than the degree of reordering lie between SND.UNA and
//!   the highest SACKed segment, both included, whether they are SACKed or not.
//! - 2 (`tcp_update_reordering`): once a segment has been late by more than the degree, this ends for the connection.
//!   Then recovery begins when as many segments as the degree are SACKed.
//! - 3 (same function as rule 1): recovery also begins if no more segments are outstanding than the degree, at least
//!   half of them and three are SACKed, and nothing new can be sent.
//! - 4 (`tcp_update_scoreboard`, `tcp_mark_head_lost`): with FACK a segment is lost if the highest SACKed segment is at
//!   least the degree above it, otherwise if at least as many segments above it are SACKed. The first one is lost when
//!   recovery begins, and with FACK on every duplicate ACK in recovery.
//! - 5 (`tcp_pause_early_retransmit`): if fewer than four segments are outstanding, something is SACKed and nothing new
//!   can be sent, recovery begins a quarter of SRTT later, at least 2 ms, unless another ACK arrives before. The first
//!   late segment of the connection ends this.
//! - 6 (`tcp_mark_lost_retrans`): with FACK a retransmission is lost if something sent after it is SACKed.
//! - 7 (`tcp_try_undo_partial`): as rule 9 of [`super::rack`].
//! - 8 (`tcp_enter_loss`): a timeout marks everything lost that is not SACKed.
//! - 9 (`tcp_schedule_loss_probe`): the probe timeout is 2 SRTT, at least 10 ms; if a single segment is outstanding, also
//!   at least 1.5 SRTT plus 200 ms.
//! - 10: there is one timer, with the ticks of the kernel. While that of rule 5 or 9 runs, the retransmission timer does
//!   not.
//!
//! **Departures.** That nothing new can be sent means here that there is no data, or no room for it in the peer's window;
//! Linux also considers cwnd. Like all detectors that retransmit holes while there is nothing else to send (`NextSeg` rule
//! 3 of RFC 6675), this one also sends the rescue of rule 4.

use std::collections::VecDeque;

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent};
use reknit_tcp::scoreboard::{SegId, SegmentRecord, SendReason};
use reknit_tcp::seams::{LateAcks, LossDetector, LossDetectorTraits, LossReason, Plugin, Seam, Verdicts};
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::Probe;
use super::reordering::{Degree, LinuxReorderingConfig};
use super::ticks::expiry;
use super::undo::FirstRetransmission;
use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};

/// Rule 3.
const MIN_SACKED: Segments = Segments(3);
/// Rule 5: early retransmit is for fewer outstanding segments.
const FEW: Segments = Segments(4);

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxFackConfig {
    /// The degree of reordering, which also grows during recovery here; as that of the threshold, `linux-reordering`.
    pub reordering: LinuxReorderingConfig,
    /// Rule 1 applies until reordering is seen (`tcp_fack`).
    pub fack: bool,
    /// Rule 5 applies until reordering is seen (`tcp_early_retrans`).
    pub early_retransmit: bool,
    /// The least time that early retransmit waits.
    pub early_delay: Duration,
    /// The least probe timeout.
    pub min_pto: Duration,
    /// How long the peer may delay the ACK of a single segment (`TCP_DELACK_MAX`).
    pub max_ack_delay: Duration,
}

/// The largest degree (`TCP_MAX_REORDERING`).
const MAX_REORDERING: Segments = Segments(127);

impl Default for LinuxFackConfig {
    fn default() -> LinuxFackConfig {
        LinuxFackConfig {
            reordering: LinuxReorderingConfig { max: MAX_REORDERING, ..LinuxReorderingConfig::default() },
            fack: true,
            early_retransmit: true,
            early_delay: Duration::from_millis(2),
            min_pto: Duration::from_millis(10),
            max_ack_delay: Duration::from_millis(200),
        }
    }
}

impl Algorithm<dyn LossDetector> for LinuxFackConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::Postponement, &[]), Requirement::Waits, NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Detector {
            degree: Degree::new(self.reordering.clone()),
            fack: self.fack,
            early: self.early_retransmit,
            early_timer: Instant::NEVER,
            frontier: None,
            go_on: Instant::NEVER,
            resent: VecDeque::new(),
            may_begin: false,
            waits: false,
            first: FirstRetransmission::default(),
            probe: Probe::new(),
            config: self.clone(),
        })
    }
}

/// Everything below `next` has been examined in this recovery; `above` segments are SACKed at or above it.
#[derive(Clone, Copy, Debug)]
struct Frontier {
    next: SegId,
    above: Segments,
}

/// A retransmission, and the first new segment that was sent after it.
#[derive(Clone, Copy, Debug)]
struct Resent {
    segment: SegId,
    followed_by: SegId,
}

#[derive(Clone, Debug)]
struct Detector {
    config: LinuxFackConfig,
    /// The engine keeps the threshold constant during recovery; Linux does not.
    degree: Degree,
    /// Rule 2: FACK is in use.
    fack: bool,
    /// Rule 5: early retransmit is in use.
    early: bool,
    early_timer: Instant,
    frontier: Option<Frontier>,
    /// When to go on with the frontier, if there was too much to mark at once.
    go_on: Instant,
    /// Rule 6, in the order of transmission.
    resent: VecDeque<Resent>,
    /// An episode has just ended: segments that are still marked lost begin the next.
    may_begin: bool,
    /// Rule 7: the last ACK lets only new data be sent.
    waits: bool,
    first: FirstRetransmission,
    probe: Probe,
}

fn in_episode(cx: &Context<'_>) -> bool {
    matches!(cx.snd.phase, Phase::Recovery | Phase::Loss)
}

impl Detector {
    fn degree(&self, cx: &Context<'_>) -> Segments {
        if cx.snd.phase == Phase::Recovery { self.degree.learned() } else { cx.snd.dup_thresh }
    }

    /// Rules 2 and 5. What shows reordering and undoes the reduction at once, only the threshold has learned.
    fn learn(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let before = self.degree.learned();
        let distance = self.degree.learn(cx, ack);
        if cx.snd.phase != Phase::Recovery {
            self.degree.raise(cx.snd.dup_thresh);
        }
        self.early &= distance.is_none() && self.degree.learned() == before;
        self.fack &= distance.is_none_or(|distance| distance <= before) && self.degree.learned() == before;
    }

    /// Rules 1 to 3.
    fn is_triggered(&self, cx: &Context<'_>) -> bool {
        let Some(highest) = cx.board.highest_sacked() else { return false };
        let (degree, sacked) = (self.degree(cx), cx.board.sacked().segments);
        let outstanding = cx.board.sent().segments;
        let enough = if self.fack { highest.beyond(cx.board.first()) >= degree } else { sacked >= degree };
        let limited =
            outstanding <= degree && sacked >= Segments(outstanding.0 / 2).max(MIN_SACKED) && !cx.snd.can_send_new;
        enough || limited
    }

    /// Rule 5: when recovery begins early, or never.
    fn early_retransmit(&self, cx: &Context<'_>, ece: bool) -> Instant {
        let sacked = cx.board.sacked().segments;
        let outstanding = cx.board.sent().segments;
        let none_in_flight = cx.board.retransmitted().segments == Segments::ZERO;
        let few = outstanding > sacked && outstanding < FEW && sacked > Segments::ZERO;
        if !(self.early && few && none_in_flight) || cx.snd.can_send_new {
            return Instant::NEVER;
        }
        let delay = cx.snd.srtt.map(|srtt| (srtt / 4).max(self.config.early_delay)).filter(|_| !ece);
        delay.map(|delay| cx.now + delay).filter(|at| *at < cx.snd.rto_expires).map_or(cx.now, |at| expiry(cx.now, at))
    }

    /// Recovery begins. The first segment is lost in any case (rule 4).
    fn begin(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let first = cx.board.first();
        verdicts.lost(first, LossReason::Duplicates);
        self.frontier = Some(Frontier { next: first.next(), above: cx.board.sacked().segments });
        self.advance(cx, verdicts);
    }

    /// Updates the frontier with what an ACK in recovery changed above it.
    fn update(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let first = cx.board.first();
        match &mut self.frontier {
            Some(frontier) if frontier.next > first => {
                frontier.above += Segments(ack.newly.iter().filter(|id| **id >= frontier.next).count() as u32);
            }
            frontier => *frontier = Some(Frontier { next: first, above: cx.board.sacked().segments }),
        }
    }

    /// Rule 4: moves the frontier up over every segment that is SACKed or lost.
    fn advance(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.go_on = Instant::NEVER;
        let degree = self.degree(cx);
        let (Some(frontier), Some(highest)) = (&mut self.frontier, cx.board.highest_sacked()) else { return };
        while let Some(record) = cx.board.get(frontier.next) {
            let enough = if self.fack { highest.beyond(frontier.next) >= degree } else { frontier.above >= degree };
            if !enough {
                return;
            }
            if verdicts.is_full() {
                self.go_on = cx.now;
                return;
            }
            if record.is_sacked() {
                frontier.above -= Segments(1);
            } else {
                mark(frontier.next, record, verdicts);
            }
            frontier.next = frontier.next.next();
        }
    }

    /// An ACK in recovery.
    fn continue_recovery(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        self.update(cx, ack);
        if self.waits {
            return;
        }
        self.find_lost_retransmissions(cx, verdicts);
        if self.fack
            && !ack.advances()
            && let Some(first) = cx.board.get(cx.board.first())
        {
            mark(cx.board.first(), first, verdicts); // rule 4
        }
        self.advance(cx, verdicts);
    }

    /// Rule 6.
    fn find_lost_retransmissions(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let highest = cx.board.highest_sacked();
        while let Some(resent) = self.resent.front().copied().filter(|resent| Some(resent.followed_by) <= highest) {
            let in_flight = cx.board.get(resent.segment).is_some_and(SegmentRecord::is_retransmitted);
            if self.fack && in_flight {
                if verdicts.is_full() {
                    return;
                }
                verdicts.lost(resent.segment, LossReason::Overtaken);
            }
            self.resent.pop_front();
        }
    }

    fn begin_next_episode(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if std::mem::take(&mut self.may_begin)
            && let Some(hole) = cx.board.lowest_lost()
        {
            verdicts.event(hole);
        }
    }

    /// Rule 9.
    fn schedule_probe(&mut self, cx: &Context<'_>) {
        let Some(srtt) = cx.snd.srtt else { return };
        let timeout = (srtt * 2).max(self.config.min_pto);
        let single = srtt + srtt / 2 + self.config.max_ack_delay;
        let is_single = cx.board.sent().segments == Segments(1);
        self.probe.schedule(cx, if is_single { timeout.max(single) } else { timeout });
    }
}

/// Marks an outstanding segment lost, unless it is known to be.
fn mark(id: SegId, record: &SegmentRecord, verdicts: &mut Verdicts) {
    if record.is_lost() {
        return;
    }
    if record.is_retransmitted() {
        verdicts.original_lost(id); // that copy is in flight
    } else if record.is_open() {
        verdicts.lost(id, LossReason::SackedAbove);
    }
}

impl LossDetector for Detector {
    /// Rule 10.
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits {
            holds_rto: true,
            late_acks: LateAcks::Duplicates,
            retransmits_on_suspicion: true,
            ..LossDetectorTraits::default()
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let partial = cx.snd.phase == Phase::Recovery && cx.snd.snd_una < cx.snd.recover && ack.advances();
        let in_flight = cx.board.retransmitted().segments > Segments::ZERO;
        self.waits = partial && self.first.is_later_than(ack) && in_flight; // rule 7
        self.first.on_ack(cx);
        self.learn(cx, ack);
        self.early_timer = Instant::NEVER;
        self.begin_next_episode(cx, verdicts);
        match cx.snd.phase {
            Phase::Recovery => self.continue_recovery(cx, ack, verdicts),
            Phase::Open | Phase::Disorder if self.is_triggered(cx) => self.begin(cx, verdicts),
            Phase::Open | Phase::Disorder => {
                self.early_timer = self.early_retransmit(cx, ack.ece);
                if self.early_timer <= cx.now {
                    self.begin(cx, verdicts);
                }
            }
            Phase::Loss => {}
        }
        self.probe.on_ack(ack, verdicts);
        if ack.advances() || !ack.newly.is_empty() {
            self.schedule_probe(cx);
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.waits = false;
        self.probe.on_timer(cx.now, verdicts);
        if self.go_on <= cx.now {
            self.advance(cx, verdicts);
        }
        if self.early_timer <= cx.now {
            self.early_timer = Instant::NEVER;
            if !in_episode(cx) && !cx.board.is_empty() {
                self.begin(cx, verdicts);
            }
        }
    }

    fn deadline(&self) -> Instant {
        self.early_timer.min(self.probe.pto()).min(self.go_on)
    }

    /// Rule 7.
    fn holds_retransmissions(&self) -> bool {
        self.waits
    }

    fn on_sent(&mut self, cx: &Context<'_>, id: SegId, cause: SendReason) {
        let again = cx.board.get(id).is_some_and(|record| record.transmissions > 1);
        if again && !matches!(cause, SendReason::Probe | SendReason::WindowProbe) {
            self.first.note(cx.now);
            if cx.snd.phase == Phase::Recovery {
                self.resent.push_back(Resent { segment: id, followed_by: cx.board.next_id() });
            }
        }
        match cause {
            SendReason::Probe => self.probe.on_sent(cx, again),
            SendReason::New if self.probe.end_seq().is_none() => self.schedule_probe(cx),
            _ => {}
        }
    }
}

impl Plugin for Detector {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.waits = false;
        self.early_timer = Instant::NEVER;
        self.degree.on_recovery_event(cx, event);
        match event {
            RecoveryEvent::EnterRecovery => {
                self.probe.end();
                self.first.begin(cx);
            }
            RecoveryEvent::Timeout { .. } => self.probe.end(),
            RecoveryEvent::LeaveRecovery | RecoveryEvent::Spurious(_) => self.may_begin = true,
        }
        if event != RecoveryEvent::EnterRecovery {
            (self.frontier, self.go_on) = (None, Instant::NEVER);
            self.resent.clear();
        }
    }

    fn heap_size(&self) -> usize {
        self.resent.capacity() * size_of::<Resent>()
    }
}
