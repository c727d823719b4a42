//! Decides which segments are lost, from what was learned about how late segments arrive. The rules are in
//! `variant.rs`.

use reknit_recovery::{Decisions, FROM_1_MS, Nanos, Rounds, Terms};
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{Duplicate, SegId, SegmentRecord, SendReason};
use reknit_tcp::seams::{LateAcks, LossDetector, LossDetectorTraits, LossReason, Plugin, Seam, Verdicts};
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::silence::Silence;
use crate::requirement::{NEEDS_SACK, Requirement};

/// After this many probes without an answer, everything outstanding is marked lost.
const MAX_PROBES: u32 = 2;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LearnedLatenessConfig {
    /// The window is reduced at once if there are more undecided retransmissions than this.
    #[schemars(range(min = 0, max = 1000))]
    pub max_undecided: u32,
    /// After a reduction because of `max_undecided`, losses of everything sent before it belong to the same congestion
    /// event.
    pub bursts_are_one_event: bool,
    /// Reduce the window at once if most of the recent retransmissions were needed.
    pub learns_outcomes: bool,
    /// Slow start pauses while a retransmission is undecided.
    pub holds_slow_start: bool,
    /// Slow start pauses for an undecided retransmission only if the window has more segments than this, or the RTTs show a
    /// queue.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub hold_above: u32,
    /// Retransmissions carry the timestamp of the first transmission, if timestamps were negotiated.
    pub repeats_timestamps: bool,
}

impl Default for LearnedLatenessConfig {
    fn default() -> LearnedLatenessConfig {
        LearnedLatenessConfig {
            max_undecided: 10,
            bursts_are_one_event: true,
            learns_outcomes: true,
            holds_slow_start: true,
            hold_above: 32,
            repeats_timestamps: true,
        }
    }
}

impl Algorithm<dyn LossDetector> for LearnedLatenessConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::Postponement, &[]), Requirement::Waits, NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(LearnedLateness {
            config: self.clone(),
            decisions: None,
            rounds: Rounds::new(),
            min_rtt: Duration::MAX,
            look_again: Instant::NEVER,
            silence: Silence::new(),
            newest: Newest { sent: Instant::ZERO, acked: Instant::NEVER },
            gives_up: false,
        })
    }
}

#[derive(Clone, Debug)]
struct LearnedLateness {
    config: LearnedLatenessConfig,
    /// None before the first late segment or retransmission.
    decisions: Option<Box<Decisions<FROM_1_MS>>>,
    rounds: Rounds<8>,
    min_rtt: Duration,
    /// When the next segment will have been missing for too long, or the next repair is decided.
    look_again: Instant,
    silence: Silence,
    newest: Newest,
    /// Everything outstanding is being marked lost, in parts.
    gives_up: bool,
}

/// The latest retransmission known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sent: Instant,
    acked: Instant,
}

/// A receiver that acknowledges too early makes the round-trip time zero. Each of its ACKs must not release a
/// retransmission.
const MIN_PATIENCE: Duration = Duration::from_millis(1);
/// Transmissions of a segment after which the time to the next doubles.
const AT_EQUAL_INTERVALS: u16 = 5;

/// How long after a retransmission the next one follows: `patience`, doubled each time once several were lost.
fn again_after(cx: &Context<'_>, transmissions: u16, patience: Duration) -> Duration {
    let doublings = transmissions.saturating_sub(AT_EQUAL_INTERVALS).min(10);
    (patience * (1 << doublings)).min(cx.config.max_rto.max(patience))
}

fn nanos(time: Instant) -> Nanos {
    Nanos(time.as_nanos())
}

fn instant(time: Nanos) -> Instant {
    Instant::from_nanos(time.0)
}

impl LearnedLateness {
    fn decisions(&mut self) -> &mut Decisions<FROM_1_MS> {
        self.decisions.get_or_insert_default()
    }

    fn learned_wait(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.decisions.as_deref()?.lateness.wait()?.0))
    }

    fn learn_lateness(&mut self, lateness: Duration) {
        self.decisions().lateness.learn(Nanos(lateness.as_nanos()));
    }

    /// When a segment was first missing: when data above it was SACKed, or a retransmission that was sent later arrived,
    /// or one and a half round trips after it was sent if either has happened since, whichever was earlier.
    fn missed(&self, cx: &Context<'_>, id: SegId, record: &SegmentRecord) -> Instant {
        let overtaken = (record.first_sent < self.newest.sent).then_some(self.newest.acked);
        let Some(first) = cx.board.first_above(id).into_iter().chain(overtaken).min() else { return Instant::NEVER };
        let srtt = cx.snd.srtt.unwrap_or(cx.config.initial_rto);
        first.min(record.first_sent + srtt * 3 / 2)
    }

    /// How long a segment may be missing.
    fn wait(&self, cx: &Context<'_>) -> Duration {
        match self.learned_wait() {
            Some(wait) => wait,
            None if cx.board.sacked().segments >= Segments(3) => Duration::ZERO,
            None => cx.snd.srtt.unwrap_or_default() / 4,
        }
    }

    /// How long to wait for the acknowledgment of a retransmission.
    fn patience(&self, cx: &Context<'_>) -> Duration {
        let srtt = cx.snd.srtt.unwrap_or(cx.config.initial_rto);
        (srtt + self.wait(cx).max(srtt / 2)).max(MIN_PATIENCE)
    }

    /// A segment that has been missing for this long is certainly lost.
    fn sure(&self, cx: &Context<'_>) -> Duration {
        let srtt = cx.snd.srtt.unwrap_or_default();
        self.learned_wait().unwrap_or(srtt).max(srtt / 4) * 3 / 2
    }

    /// How long to wait before a probe.
    fn silence(&self, cx: &Context<'_>) -> Duration {
        cx.snd.srtt.unwrap_or(cx.config.initial_rto) * 3 / 2 + self.wait(cx)
    }

    /// Learns from what this ACK delivers for the first time.
    fn learn(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        self.min_rtt = self.min_rtt.min(ack.rtt.unwrap_or(Duration::MAX));
        for &id in ack.newly {
            let Some(record) = cx.board.get(id) else { continue };
            if record.transmissions > 1 {
                self.on_repair_acked(cx, id, record);
                continue;
            }
            // It may have been marked but not retransmitted, because the window was full.
            self.on_original(cx, id);
            if let Some(first_above) = cx.board.first_above(id).filter(|first_above| *first_above < cx.now) {
                self.learn_lateness(cx.now.since(first_above));
            }
        }
        for segment in ack.dsack.iter().flat_map(|dsack| dsack.segments) {
            if segment.reports + 1 == segment.transmissions {
                self.on_all_arrived(cx, segment);
            }
        }
    }

    /// A retransmitted segment has been acknowledged: decides whether the original had arrived.
    fn on_repair_acked(&mut self, cx: &Context<'_>, id: SegId, record: &SegmentRecord) {
        if record.transmissions > 2 || cx.now.since(record.last_sent) >= self.min_rtt {
            if let Some(decisions) = &mut self.decisions {
                decisions.on_acked(nanos(cx.now), id.0);
            }
            if record.last_sent > self.newest.sent {
                self.newest = Newest { sent: record.last_sent, acked: cx.now };
            }
        } else if let Some(opened) = self.on_original(cx, id) {
            self.learn_lateness(cx.now.since(opened));
        }
    }

    /// All copies of a segment have arrived, so it was late.
    fn on_all_arrived(&mut self, cx: &Context<'_>, segment: &Duplicate) {
        let Some(opened) = self.on_original(cx, segment.id) else { return };
        // If the retransmission can have arrived by now, it was the second copy, and the first acknowledgment was for
        // the original.
        let srtt = cx.snd.srtt.unwrap_or_default();
        let second_is_repair = cx.now.since(segment.last_sent) < srtt * 5 / 4;
        let arrived = segment.delivered.filter(|_| second_is_repair).unwrap_or(cx.now);
        self.learn_lateness(arrived.since(opened));
    }

    /// The original of `id` has arrived. Returns since when the segment was missing, if it was marked for repair.
    fn on_original(&mut self, cx: &Context<'_>, id: SegId) -> Option<Instant> {
        self.decisions.as_deref_mut()?.on_original(nanos(cx.now), id.0).map(instant)
    }

    /// Undoes reductions that were spurious.
    fn withdraw(&mut self, verdicts: &mut Verdicts) {
        if let Some(decisions) = &mut self.decisions {
            decisions.undo_spurious(|hole| verdicts.withdraw(SegId(hole)));
        }
    }

    /// Retransmits what is overdue.
    fn repair(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let (wait, patience) = (self.wait(cx), self.patience(cx));
        for (id, record) in cx.board.in_send_order() {
            let is_first = record.transmissions == 1;
            let missed = self.missed(cx, id, record);
            if is_first && !missed.is_set() {
                return;
            }
            let overdue = if is_first {
                missed + wait
            } else {
                record.last_sent + again_after(cx, record.transmissions, patience)
            };
            if overdue > cx.now {
                self.look_again = self.look_again.min(overdue);
                if record.transmissions <= AT_EQUAL_INTERVALS {
                    return; // so are all that were sent later
                }
                continue;
            }
            if verdicts.is_full() {
                self.look_again = cx.now;
                return;
            }
            verdicts.repair(id);
            if is_first {
                self.remember(cx, id, missed);
            }
        }
    }

    fn remember(&mut self, cx: &Context<'_>, id: SegId, missed: Instant) {
        let queue = self.rounds.had_queue(id.0);
        let known = if queue { missed + cx.snd.srtt.unwrap_or_default() } else { missed };
        let event_end = cx.board.first_sent_after(known);
        self.decisions().on_retransmitted(nanos(cx.now), id.0, nanos(missed), event_end.0);
    }

    /// Decides repairs, and reduces the window for the first that was needed.
    fn decide(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if !self.decisions.as_ref().is_some_and(|decisions| decisions.is_undecided()) {
            return;
        }
        let terms = Terms {
            patience: Nanos(self.patience(cx).as_nanos()),
            sure: Nanos(self.sure(cx).as_nanos()),
            at_once: !cx.snd.may_undo,
            learns_outcomes: self.config.learns_outcomes,
            max_undecided: self.config.max_undecided,
        };
        let Some(decisions) = &mut self.decisions else { return };
        let decided = decisions.decide(nanos(cx.now), &terms);
        self.look_again = self.look_again.min(instant(decided.look_again));
        if let Some(cause) = decided.cause {
            let one_event = decided.is_burst && self.config.bursts_are_one_event;
            let event_end = if one_event { cx.board.next_id() } else { SegId(cause.event_end()) };
            self.reduce(SegId(cause.first), event_end, verdicts);
        }
    }

    fn reduce(&mut self, hole: SegId, event_end: SegId, verdicts: &mut Verdicts) {
        verdicts.event(hole);
        self.decisions().reduce(hole.0, event_end.0);
    }

    fn judge(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.look_again = Instant::NEVER;
        self.withdraw(verdicts);
        self.repair(cx, verdicts);
        self.decide(cx, verdicts);
        if cx.board.is_empty() {
            self.look_again = Instant::NEVER; // undecided repairs wait for the next data
        }
    }

    /// The probes were not answered: marks everything lost.
    fn give_up(&mut self, cx: &Context<'_>, is_first: bool, verdicts: &mut Verdicts) {
        self.gives_up = false;
        for (id, _) in cx.board.in_send_order() {
            if verdicts.is_full() {
                (self.gives_up, self.look_again) = (true, cx.now);
                break;
            }
            verdicts.lost(id, LossReason::Deadline);
        }
        if is_first {
            self.reduce(cx.board.first(), cx.board.next_id(), verdicts);
            self.decisions().settle_all();
        }
        verdicts.collapse(cx.now);
    }
}

impl Plugin for LearnedLateness {
    fn heap_size(&self) -> usize {
        self.decisions.as_deref().map_or(0, size_of_val)
    }

    fn show(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(wait) = self.learned_wait() {
            show("wait_ms", wait.as_secs_f64() * 1e3);
        }
    }
}

impl LossDetector for LearnedLateness {
    fn traits(&self) -> LossDetectorTraits {
        LossDetectorTraits {
            withdraws: true,
            repeats_timestamps: self.config.repeats_timestamps,
            late_acks: LateAcks::All,
            ..LossDetectorTraits::default()
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let rtt = ack.rtt.map(|rtt| Nanos(rtt.as_nanos()));
        self.rounds.on_ack(ack.highest.map(|id| id.0), rtt, cx.board.next_id().0);
        self.gives_up &= ack.newly.is_empty();
        self.learn(cx, ack);
        let silence = self.silence(cx);
        self.silence.on_ack(cx, !ack.newly.is_empty(), silence);
        self.judge(cx, verdicts);
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.judge(cx, verdicts);
        let silence = self.silence(cx);
        match self.silence.on_timer(cx, silence) {
            Some(probes) if probes > MAX_PROBES => self.give_up(cx, probes == MAX_PROBES + 1, verdicts),
            Some(_) => verdicts.probe(),
            None if self.gives_up => self.give_up(cx, false, verdicts),
            None => {}
        }
    }

    fn deadline(&self) -> Instant {
        self.look_again.min(self.silence.deadline())
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: SendReason) {
        let silence = self.silence(cx);
        self.silence.on_sent(cx, silence);
    }

    fn holds_growth(&self, cx: &Context<'_>) -> bool {
        self.config.holds_slow_start
            && cx.snd.in_slow_start()
            && (cx.snd.cwnd > cx.snd.smss * u64::from(self.config.hold_above) || self.rounds.shows_queue())
            && self.decisions.as_deref().is_some_and(Decisions::is_undecided)
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::scoreboard::Scoreboard;

    use super::*;
    use crate::base::given;

    #[test]
    fn the_time_to_the_next_retransmission_doubles_at_last() {
        let (config, board) = (reknit_tcp::Config::default(), Scoreboard::default());
        let snd = given::state();
        let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
        let millis = |n: u16| again_after(&cx, n, Duration::from_millis(30)).as_millis();
        assert_eq!([1, 2, 5, 6, 7, 8].map(millis), [30, 30, 30, 60, 120, 240]);
        assert_eq!(millis(u16::MAX), 30 << 10);
    }
}
