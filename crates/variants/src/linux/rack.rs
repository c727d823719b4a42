//! Loss detection as implemented in Linux: RACK-TLP (RFC 8985), with a reordering window that grows in steps and a
//! learned degree of reordering.
//!
//! **Differences from [`crate::time::rack`].**
//! - 1: the reordering window is a quarter of the minimum RTT times `steps`, at most SRTT. Until reordering has been
//!   seen, it is zero in recovery, after a timeout, and once the number of SACKed segments reaches the learned degree
//!   ([`super::reordering`]; RFC 8985 §6.2 step 4 uses 3).
//! - 2: `steps` grows by one for each round trip with a DSACK, up to 255. A DSACK counts only after the first
//!   reordering has been seen, not for a probe, and only up to the number of retransmissions. After 16 recoveries
//!   without such a DSACK, `steps` falls back to 1; a recovery undone by a DSACK adds one to that number.
//! - 3: the RTT is that of the last segment that an ACK delivers, not of the segment that was sent last.
//! - 4: a retransmission that is acknowledged cumulatively counts only if the echoed timestamp does not belong to an
//!   earlier transmission.
//! - 5: there is one timer. While the reordering timer runs, the retransmission timer does not. The reordering timer
//!   expires 2 ms later than in RFC 8985 (observed), and it has the ticks of the kernel, like the
//!   probe timeout.
//! - 6: after a timeout, the loss of a retransmission begins a recovery.
//! - 7: the probe timeout is 2 SRTT plus 2 ms, or plus 200 ms if a single segment is in flight.
//! - 8: at a timeout, segments are overdue without a reordering window.
//! - 9: a partial ACK whose timestamp belongs to an original transmission marks nothing lost while retransmissions are
//!   in flight, and retransmits nothing: only new data is sent (observed).
//! - 10: a duplicate ACK that PAWS rejects is read if it is at most 1.2 RTO late, unless it opens the window.
//! - 11: an ACK marks segments lost only if something has been delivered since the last look that is not ambiguous (rule
//!   4, and step 2 of RFC 8985 §6.2), or if it undoes a reduction. If it advances SND.UNA and marks nothing, the
//!   retransmission timer replaces the reordering timer.
//! - 12: a partial ACK whose timestamp belongs to an original transmission shows reordering, also if it undoes the
//!   reduction ([`super::undo`]).
//! - 13: a segment that was marked lost is not looked at again before it is retransmitted, even if an undo removes the
//!   mark: then only the retransmission timer finds it (observed). Departure: this holds for the 256 lowest such
//!   segments, so that the work for each ACK is bounded.
//! - 14: the RTT of the handshake is a sample of the minimum RTT, often the lowest, because a SYN is small.

use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent, TIMESTAMP_TICK};
use reknit_tcp::scoreboard::{SegId, SegmentRecord, SendReason};
use reknit_tcp::seams::{LateAcks, LossDetector, LossDetectorTraits, Plugin, Seam, Verdicts};
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::probe::Probe;
use super::reordering::lowest_overtaken;
use super::ticks::expiry;
use super::undo::{FirstRetransmission, duplicated};
use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};
use crate::time::overtaking::{Overtaking, WindowedMin};

/// The largest number of steps of the reordering window.
const MAX_STEPS: u64 = 255;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxRackConfig {
    /// Recoveries without a DSACK after which the reordering window falls back to one step.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub persist: u32,
    /// The window of the minimum RTT (`tcp_min_rtt_wlen`).
    pub min_rtt_window: Duration,
    /// Added to the reordering timer and to the probe timeout.
    pub slack: Duration,
    /// How long the peer may delay the ACK of a single segment (`tcp_rto_min_us`).
    pub max_ack_delay: Duration,
    /// Send tail loss probes (`tcp_early_retrans`).
    pub tlp: bool,
}

impl Default for LinuxRackConfig {
    fn default() -> LinuxRackConfig {
        LinuxRackConfig {
            persist: 16,
            min_rtt_window: Duration::from_secs(300),
            slack: Duration::from_millis(2),
            max_ack_delay: Duration::from_millis(200),
            tlp: true,
        }
    }
}

impl Algorithm<dyn LossDetector> for LinuxRackConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::Postponement, &[]), Requirement::Waits, NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Rack {
            overtaking: Overtaking::default(),
            highest: None,
            min_rtt: WindowedMin::new(self.min_rtt_window),
            steps: Steps::new(),
            reordering_seen: false,
            reo_timer: Instant::NEVER,
            may_begin: false,
            waits: false,
            advanced: false,
            undone_partly: false,
            first: FirstRetransmission::default(),
            probe: Probe::new(),
            config: self.clone(),
        })
    }
}

/// Rule 2: the reordering window in quarters of the smallest RTT.
#[derive(Clone, Debug)]
struct Steps {
    quarters: u64,
    /// Recoveries left until the window falls back to one step.
    persist: u32,
    /// A DSACK requests one more step.
    asked: bool,
    /// When the window last grew.
    grown: Instant,
    retransmitted: u64,
    reported: u64,
    undone: bool,
}

impl Steps {
    fn new() -> Steps {
        Steps {
            quarters: 1,
            persist: 0,
            asked: false,
            grown: Instant::ZERO,
            retransmitted: 0,
            reported: 0,
            undone: false,
        }
    }

    fn on_dsack(&mut self, reported: Segments, counts: bool) {
        self.reported += u64::from(reported.0);
        self.asked |= counts && self.reported <= self.retransmitted;
    }

    /// An ACK delivers data, of which the last sent was sent at `sent`.
    fn adapt(&mut self, now: Instant, sent: Instant, persist: u32) {
        self.asked &= sent >= self.grown;
        if std::mem::take(&mut self.asked) {
            self.quarters = (self.quarters + 1).min(MAX_STEPS);
            self.persist = persist;
            self.grown = now;
        } else if self.persist == 0 {
            self.quarters = 1;
        }
    }
}

/// In recovery, the ACK does not end it.
fn is_partial(cx: &Context<'_>) -> bool {
    cx.snd.phase == Phase::Recovery && cx.snd.snd_una < cx.snd.recover
}

#[derive(Clone, Debug)]
struct Rack {
    config: LinuxRackConfig,
    overtaking: Overtaking,
    /// The highest segment delivered before the current ACK.
    highest: Option<SegId>,
    min_rtt: WindowedMin,
    steps: Steps,
    reordering_seen: bool,
    reo_timer: Instant,
    /// An episode has just ended: segments that are still marked lost begin the next.
    may_begin: bool,
    /// Rule 9: the last ACK lets only new data be sent.
    waits: bool,
    /// Rule 11: there is a reason to look for losses.
    advanced: bool,
    /// The current ACK is partial, and undoes the reduction.
    undone_partly: bool,
    first: FirstRetransmission,
    probe: Probe,
}

impl Rack {
    /// Rules 3, 4 and 14.
    fn update_latest(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if let Some(rtt) = cx.snd.handshake_rtt.filter(|_| self.min_rtt.get().is_none()) {
            self.min_rtt.update(cx.now - ack.rtt.unwrap_or_default(), rtt);
        }
        let first = cx.board.first();
        let (sacked, acked) = (ack.newly.iter().filter(|id| **id >= first), ack.newly.iter().filter(|id| **id < first));
        // The kernel reads the SACK blocks before the cumulative field.
        for &id in sacked.chain(acked) {
            if let Some(record) = cx.board.get(id).filter(|record| !self.is_ambiguous(cx, ack, id, record)) {
                self.advanced = true;
                self.overtaking.rtt = cx.now.since(record.last_sent);
                self.overtaking.deliver(id, record);
            }
        }
        if let Some(rtt) = ack.rtt {
            self.min_rtt.update(cx.now, rtt);
        }
    }

    fn is_ambiguous(&self, cx: &Context<'_>, ack: &AckFacts<'_>, id: SegId, record: &SegmentRecord) -> bool {
        if record.transmissions == 1 {
            return false;
        }
        let covered = id < cx.board.first();
        let answers_earlier = ack.echoed.is_some_and(|at| at < record.last_sent.floor_to(TIMESTAMP_TICK));
        let too_early = self.min_rtt.get().is_some_and(|min| cx.now.since(record.last_sent) < min);
        (covered && answers_earlier) || too_early
    }

    /// Rules 2 and 12.
    fn adapt_steps(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, answers_original: bool) {
        if let Some(dsack) = &ack.dsack {
            let of_probe = self.probe.end_seq() == Some(dsack.right);
            self.steps.on_dsack(duplicated(cx, dsack), self.reordering_seen && !of_probe);
            if std::mem::take(&mut self.steps.undone) {
                self.steps.persist = (self.steps.persist + 1).min(self.config.persist);
            }
        }
        self.reordering_seen |= answers_original || lowest_overtaken(cx, ack, self.highest).is_some();
        self.highest = self.highest.max(ack.highest);
        let newest = ack.newly.iter().filter_map(|id| cx.board.get(*id)).map(|record| record.last_sent).max();
        if let Some(sent) = newest {
            self.steps.adapt(cx.now, sent, self.config.persist);
        }
    }

    /// A partial ACK whose timestamp belongs to an original transmission.
    fn answers_original(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        (self.undone_partly || is_partial(cx)) && ack.advances() && self.first.is_later_than(ack)
    }

    /// Rule 1.
    fn reo_wnd(&self, cx: &Context<'_>) -> Duration {
        let in_episode = matches!(cx.snd.phase, Phase::Recovery | Phase::Loss);
        if !self.reordering_seen && (in_episode || cx.board.sacked().segments >= cx.snd.dup_thresh) {
            return Duration::ZERO;
        }
        let window = self.min_rtt.get().unwrap_or_default() / 4 * self.steps.quarters;
        window.min(cx.snd.srtt.unwrap_or(window))
    }

    fn detect_loss(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.advanced = false;
        let patience = self.overtaking.rtt + self.reo_wnd(cx);
        let overdue = self.overtaking.judge(cx, patience, verdicts);
        self.overtaking.set_aside(verdicts.marked()); // rule 13
        self.reo_timer = expiry(cx.now, if overdue.is_set() { overdue + self.config.slack } else { overdue });
        if cx.snd.phase == Phase::Loss {
            let again = verdicts.marked().find(|id| cx.board.get(*id).is_some_and(SegmentRecord::is_retransmitted));
            if let Some(hole) = again {
                verdicts.event(hole); // rule 6
            }
        }
    }

    fn begin_next_episode(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if std::mem::take(&mut self.may_begin)
            && let Some(hole) = cx.board.lowest_lost()
        {
            verdicts.event(hole);
        }
    }

    /// Rule 7.
    fn schedule_probe(&mut self, cx: &Context<'_>) {
        if self.config.tlp {
            let single = cx.board.sent().segments == Segments(1);
            let more = if single { self.config.max_ack_delay } else { self.config.slack };
            self.probe.schedule(cx, cx.snd.srtt.map_or(cx.config.initial_rto, |srtt| srtt * 2 + more));
        }
    }
}

impl LossDetector for Rack {
    /// Rule 5: one timer.
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits { holds_rto: true, late_acks: LateAcks::Duplicates, ..LossDetectorTraits::default() }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let answers_original = self.answers_original(cx, ack);
        self.undone_partly = false;
        self.first.on_ack(cx);
        self.overtaking.retire(cx.board.first());
        self.update_latest(cx, ack);
        self.adapt_steps(cx, ack, answers_original);
        self.begin_next_episode(cx, verdicts);
        // Rule 9: while retransmissions are in flight, such an ACK neither undoes a reduction nor marks segments lost.
        self.waits = answers_original && cx.board.retransmitted().segments > Segments::ZERO;
        if self.advanced && !self.waits {
            self.detect_loss(cx, verdicts);
        } else if ack.advances() {
            self.reo_timer = Instant::NEVER; // rule 11
        }
        self.probe.on_ack(ack, verdicts);
        if ack.advances() || !ack.newly.is_empty() {
            self.schedule_probe(cx);
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.waits = false;
        self.probe.on_timer(cx.now, verdicts);
        self.detect_loss(cx, verdicts);
    }

    fn deadline(&self) -> Instant {
        self.reo_timer.min(self.probe.pto())
    }

    /// Rule 9.
    fn holds_retransmissions(&self) -> bool {
        self.waits
    }

    fn on_sent(&mut self, cx: &Context<'_>, id: SegId, cause: SendReason) {
        let again = cx.board.get(id).is_some_and(|record| record.transmissions > 1);
        self.steps.retransmitted += u64::from(again);
        self.overtaking.take_back(id);
        if again && !matches!(cause, SendReason::Probe | SendReason::WindowProbe) {
            self.first.note(cx.now);
        }
        match cause {
            SendReason::Probe => self.probe.on_sent(cx, again),
            SendReason::New if self.probe.end_seq().is_none() => self.schedule_probe(cx),
            _ => {}
        }
    }

    /// Rule 8.
    fn lost_at_timeout(&self, cx: &Context<'_>, id: SegId) -> bool {
        let overdue = |record: &SegmentRecord| record.last_sent + self.overtaking.rtt <= cx.now;
        id == cx.board.first() || cx.board.get(id).is_some_and(overdue)
    }
}

impl Plugin for Rack {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.waits = false;
        match event {
            RecoveryEvent::EnterRecovery => {
                self.probe.end();
                self.first.begin(cx);
            }
            RecoveryEvent::Timeout { .. } => {
                self.probe.end();
                self.overtaking.look_again();
            }
            RecoveryEvent::LeaveRecovery => {
                self.steps.persist = self.steps.persist.saturating_sub(1);
                self.may_begin = true;
            }
            RecoveryEvent::Spurious(_) => {
                self.undone_partly = is_partial(cx);
                self.advanced = true; // rule 11
                self.steps.undone = true;
                self.overtaking.look_again();
                self.may_begin = true;
            }
        }
    }
}
