//! # reknit
//!
//! Our own. It keeps the speed of a path that reorders without being deaf to loss.
//!
//! **What it changes.** A hole is retransmitted when it has been open longer than late segments take to come on this
//! path, which is learned. The window is reduced later, when the retransmission has arrived and the original still has
//! not: a segment that was only late costs one spurious retransmission and no window.
//!
//! **State.** `lateness`: a histogram of how late segments come. `repairs`: at most 24 retransmissions whose cause is
//! not decided. `reduced_until`: everything below was outstanding at the last reduction.
//!
//! **Rules.** *Learn.* A segment is late by the time between the first SACK of data above it and its own arrival. The wait
//! is the lateness that all but 0.1 % of late segments stay below, with a margin while few were seen. Before the first
//! one it is a quarter of the round trip, and nothing once three segments are SACKed (as RFC 8985 §6.2).
//! *Repair.* A hole that is open for longer than the wait is retransmitted, the window stays. A retransmission is
//! retransmitted when it is overdue by the wait.
//! *Reduce.* A repair is decided when it is acknowledged and one and a half waits have passed since the hole opened (one
//! and a half round trips before the first late segment). If
//! the acknowledgment came sooner after the retransmission than any round trip takes, or a DSACK reported both copies,
//! the original has arrived: there was no loss, and its lateness is learned. Else the window is reduced, once for each
//! window of data, and fast recovery begins (PRR). More than ten undecided repairs, or one that is overdue, reduce at
//! once.
//! *Grow.* By bytes delivered, SACKed ones included; slow start holds while a repair is undecided. Sending goes by the pipe.
//! *Undo.* A reduction is undone when the segment that was blamed turns out to have arrived (`undo.rs`).
//! *Silence.* No retransmission timer runs. Two round trips and a wait without an ACK send a probe; after two probes
//! without an answer everything outstanding is lost, as at a timeout.
//!
//! **Departures.** None, as there is no paper. Timestamps are not offered: with them a retransmission makes the receiver
//! discard late originals (PAWS, RFC 7323 §5).
//!
//! **Reproduces.** Nothing.
//!
//! **Status.** Untested.

use std::sync::Arc;

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{Cause, Record, SegId};
use reknit_tcp::seams::{CongestionControl, LossDetector, Plugin, SenderPlugins, Verdicts, Why};
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lateness::Lateness;
use super::undo;
use crate::base::progress::Progress;
use crate::base::respond_at_once::{self, DecreaseOf};
use crate::base::{aimd, cubic, limited_transmit, newreno, no_timer, prr, rfc6298, spurious_response};
use crate::composition::Composition;
use crate::part::{Algorithm, Part, Shared};
use crate::rule::{NEEDS_SACK, Rule};
use crate::seam::Seam;
use crate::variant::{Side, Status, Variant};

/// The registry's entry.
pub(crate) const REKNIT: Variant = Variant {
    name: "reknit",
    aliases: &[],
    summary: "waits as long as late segments take on this path, reduces only for those that never come; CUBIC growth",
    source: "this project",
    side: Side::Sender,
    peer_needs: "SACK, better with DSACK",
    status: Status::Untested,
    compose: || composition(Arc::new(cubic::Config { progress: Progress::Delivered, ..cubic::Config::default() })),
};

/// The registry's entry.
pub(crate) const REKNIT_RENO: Variant = Variant {
    name: "reknit-reno",
    summary: "as reknit, with Reno growth",
    compose: || composition(Arc::new(aimd::Config { progress: Progress::Delivered })),
    ..REKNIT
};

fn composition(congestion_control: Shared<dyn CongestionControl>) -> Composition {
    Composition {
        loss_detector: Arc::new(Config::default()),
        spurious_detectors: vec![Arc::new(undo::Config {})],
        spurious_response: Arc::new(spurious_response::Config::Instant),
        loss_response: Arc::new(respond_at_once::Config { of: DecreaseOf::Cwnd }),
        fast_recovery: Arc::new(prr::Config::default()),
        rto_estimator: Arc::new(no_timer::Config {}),
        limited_transmit: Arc::new(limited_transmit::Config::Pipe),
        congestion_control,
        timestamps: Some(false),
        without_sack: Some(without_sack),
        ..Composition::default()
    }
}

/// Losses are found and repaired as by NewReno, with its timer.
fn without_sack(plugins: &mut SenderPlugins) {
    newreno::without_sack(plugins);
    plugins.rto_estimator = rfc6298::Config::default().build();
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Undecided repairs beyond which the window is reduced at once.
    #[schemars(range(min = 0, max = 1000))]
    pub max_undecided: usize,
    /// Slow start does not go on while a repair is undecided.
    pub holds_slow_start: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { max_undecided: 10, holds_slow_start: true }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "learned-lateness";
    const SOURCE: &'static str = include_str!("detector.rs");
    const RULES: &'static [Rule] = &[Rule::Only(Seam::Postponement, &[]), Rule::Waits, NEEDS_SACK];
}

impl Part<dyn LossDetector> for Config {
    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(LearnedLateness {
            config: self.clone(),
            lateness: Lateness::new(),
            min_rtt: Duration::MAX,
            repairs: Vec::new(),
            reduced_until: SegId::default(),
            look_again: Instant::NEVER,
            probe_at: Instant::NEVER,
            unanswered: 0,
        })
    }
}

/// Repairs that are remembered.
const MAX_REPAIRS: usize = 24;
/// Probes without an answer after which everything outstanding is lost.
const MAX_PROBES: u32 = 2;

/// A retransmission whose cause is not decided.
#[derive(Clone, Copy, Debug)]
struct Repair {
    id: SegId,
    /// When data above the hole first arrived.
    opened: Instant,
    retransmitted: Instant,
    /// Everything below was sent before it was: the window of data that its loss stands for.
    window_end: SegId,
    /// When one of the copies was acknowledged; [`Instant::NEVER`] before.
    delivered: Instant,
    /// It counts among the undecided; else it is kept to learn from.
    undecided: bool,
}

#[derive(Debug)]
struct LearnedLateness {
    config: Config,
    lateness: Lateness,
    min_rtt: Duration,
    /// Oldest first.
    repairs: Vec<Repair>,
    /// Everything below was sent before the loss was noticed that the last reduction answered.
    reduced_until: SegId,
    /// When the next hole has been open for too long, or the next repair is decided.
    look_again: Instant,
    probe_at: Instant,
    unanswered: u32,
}

impl LearnedLateness {
    /// How long a hole may be open.
    fn wait(&self, cx: &Context<'_>) -> Duration {
        match self.lateness.wait() {
            Some(wait) => wait,
            None if cx.board.sacked().segments >= Segments(3) => Duration::ZERO,
            None => cx.snd.srtt.unwrap_or_default() / 4,
        }
    }

    /// How long an overdue retransmission, or a hole whose repair was not acknowledged, is waited for.
    fn patience(&self, cx: &Context<'_>) -> Duration {
        let srtt = cx.snd.srtt.unwrap_or(cx.config.initial_rto);
        srtt + self.wait(cx).max(srtt / 2)
    }

    /// How long after the opening of a hole its segment is certainly lost.
    fn sure(&self, cx: &Context<'_>) -> Duration {
        let srtt = cx.snd.srtt.unwrap_or_default();
        self.lateness.wait().unwrap_or(srtt).max(srtt / 4) * 3 / 2
    }

    /// Learns from what this ACK delivers for the first time.
    fn learn(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        self.min_rtt = self.min_rtt.min(ack.rtt.unwrap_or(Duration::MAX));
        for &id in ack.newly {
            let Some(record) = cx.board.get(id) else { continue };
            if record.transmissions > 1 {
                self.on_repair_delivered(cx, id, record);
                continue;
            }
            // An undo, or a full window, may have kept back the retransmission.
            self.repairs.retain(|repair| repair.id != id);
            if record.first_above < cx.now {
                self.lateness.learn(cx.now.since(record.first_above));
            }
        }
        for segment in ack.dsack.iter().flat_map(|dsack| dsack.segments) {
            if segment.reports + 1 == segment.transmissions {
                self.on_all_arrived(cx, segment.id);
            }
        }
    }

    /// A segment that was sent again has arrived: which copy?
    fn on_repair_delivered(&mut self, cx: &Context<'_>, id: SegId, record: &Record) {
        let original = record.transmissions == 2 && cx.now.since(record.last_sent) < self.min_rtt;
        let Some(i) = self.repairs.iter().position(|repair| repair.id == id) else { return };
        if original {
            let repair = self.repairs.remove(i);
            self.lateness.learn(cx.now.since(repair.opened));
        } else {
            self.repairs[i].delivered = cx.now;
        }
    }

    /// All copies of a segment have arrived, so it was late.
    fn on_all_arrived(&mut self, cx: &Context<'_>, id: SegId) {
        let Some(i) = self.repairs.iter().position(|repair| repair.id == id) else { return };
        let repair = self.repairs.remove(i);
        // The copy that came second is the retransmission, if it could be; then the first ACK was the original's.
        let srtt = cx.snd.srtt.unwrap_or_default();
        let second_is_repair = cx.now.since(repair.retransmitted) < srtt * 5 / 4;
        let arrived = if second_is_repair && repair.delivered.is_set() { repair.delivered } else { cx.now };
        self.lateness.learn(arrived.since(repair.opened));
    }

    /// Retransmits what is overdue.
    fn repair(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let (wait, patience) = (self.wait(cx), self.patience(cx));
        for (id, record) in cx.board.in_send_order() {
            let first = record.transmissions == 1;
            let overdue = if !first {
                record.last_sent + patience
            } else if record.first_above.is_set() {
                record.first_above + wait
            } else {
                return;
            };
            if overdue > cx.now {
                self.look_again = self.look_again.min(overdue);
                return;
            }
            verdicts.repair(id);
            if first {
                self.remember(Repair {
                    id,
                    opened: record.first_above,
                    retransmitted: cx.now,
                    window_end: cx.board.next_id(),
                    delivered: Instant::NEVER,
                    undecided: id >= self.reduced_until,
                });
            }
        }
    }

    fn remember(&mut self, repair: Repair) {
        if self.repairs.len() == MAX_REPAIRS {
            self.repairs.remove(0);
        }
        self.repairs.push(repair);
    }

    /// Reduces the window for a repair that was needed.
    fn decide(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let patience = self.patience(cx);
        let sure = self.sure(cx);
        let undecided = self.repairs.iter().filter(|repair| repair.undecided).count();
        let mut lost = None;
        for repair in self.repairs.iter_mut().filter(|repair| repair.undecided) {
            let answered = if repair.delivered.is_set() { repair.delivered } else { repair.retransmitted + patience };
            let due = answered.max(repair.opened + sure);
            if due <= cx.now || undecided > self.config.max_undecided {
                lost = lost.or(Some((repair.id, repair.window_end)));
                repair.undecided = false;
            } else {
                self.look_again = self.look_again.min(due);
            }
        }
        if let Some((hole, window_end)) = lost {
            self.reduce(hole, window_end, verdicts);
        }
    }

    /// Once for each window of data.
    fn reduce(&mut self, hole: SegId, window_end: SegId, verdicts: &mut Verdicts) {
        verdicts.event(hole);
        self.reduced_until = window_end;
        self.repairs.iter_mut().for_each(|repair| repair.undecided &= repair.id >= window_end);
    }

    fn judge(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.look_again = Instant::NEVER;
        self.repair(cx, verdicts);
        self.decide(cx, verdicts);
        if cx.board.is_empty() {
            self.look_again = Instant::NEVER; // what is undecided waits for the next data
        }
    }

    /// Twice as long after each probe.
    fn schedule_probe(&mut self, cx: &Context<'_>) {
        let srtt = cx.snd.srtt.unwrap_or(cx.config.initial_rto);
        let silence = (srtt * 2 + self.wait(cx)).max(cx.config.min_rto) * (1 << self.unanswered.min(10));
        self.probe_at = if cx.board.is_empty() { Instant::NEVER } else { cx.now + silence.min(cx.config.max_rto) };
    }

    /// Nothing was heard for long.
    fn on_silence(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.unanswered += 1;
        self.schedule_probe(cx);
        if self.unanswered <= MAX_PROBES {
            verdicts.probe();
            return;
        }
        for (id, _) in cx.board.in_send_order() {
            verdicts.lost(id, Why::Deadline);
        }
        let first = cx.board.first();
        if self.unanswered == MAX_PROBES + 1 {
            self.reduce(first, cx.board.next_id(), verdicts);
        }
        verdicts.collapse(cx.now);
    }
}

impl Plugin for LearnedLateness {
    fn heap_size(&self) -> usize {
        self.repairs.capacity() * size_of::<Repair>()
    }
}

impl LossDetector for LearnedLateness {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        self.learn(cx, ack);
        if !ack.newly.is_empty() {
            self.unanswered = 0;
        }
        self.schedule_probe(cx);
        self.judge(cx, verdicts);
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        self.judge(cx, verdicts);
        if self.probe_at <= cx.now {
            self.on_silence(cx, verdicts);
        }
    }

    fn deadline(&self) -> Instant {
        self.look_again.min(self.probe_at)
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: Cause) {
        if !self.probe_at.is_set() {
            self.schedule_probe(cx);
        }
    }

    fn holds_growth(&self, cx: &Context<'_>) -> bool {
        self.config.holds_slow_start && cx.snd.in_slow_start() && self.repairs.iter().any(|repair| repair.undecided)
    }
}
