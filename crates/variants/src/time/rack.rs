//! # RACK-TLP
//!
//! Cheng, Cardwell, Dukkipati, Jha: The RACK-TLP Loss Detection Algorithm for TCP. RFC 8985, 2021. With the proportional rate
//! reduction of RFC 9937 and the CUBIC of RFC 9438.
//!
//! **What it changes.** Losses are detected by time instead of by counting. A segment is lost when one that was sent
//! later has been delivered and a reordering window has passed since. A tail loss probe causes an ACK that reveals
//! losses at the end of a flight.
//!
//! **State.** The latest delivered transmission (`xmit_ts`, `end_seq`) with its `rtt`; `fack`; a windowed `min_rtt`;
//! whether reordering has been seen; the multiplier of the reordering window and how long it persists; the probe.
//!
//! **Rules.** §6.2 steps 1 to 5 on each ACK, §6.3 at a timeout, §7.2 to §7.4 for the probe. Each function names its
//! step.
//!
//! **Departures.** In addition to RFC 8985 the variant uses PRR, CUBIC, undo by DSACK, and limited transmit by the
//! pipe, which sends new data for everything that has left the network. Step 5 needs the longest remaining time of all
//! candidates; that is the time of the most recently sent one, so the others are not visited. Undo is bounded, because the receiver may
//! lie (`bounded`).
//!
//! **Status.** Faithful.

use crate::algorithm::Algorithm;
use crate::requirement::{NEEDS_SACK, Requirement};
use crate::time::overtaking::{Overtaking, Transmission, WindowedMin};
use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent, TIMESTAMP_TICK};
use reknit_tcp::scoreboard::{SegId, SegmentRecord, SendReason};
use reknit_tcp::seams::{LossDetector, Plugin, Seam, Verdicts};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What brings the multiplier of the reordering window back to 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PersistCounts {
    /// Recoveries without a DSACK (§6.2 step 4).
    #[default]
    Recoveries,
    /// ACKs for new data outside recovery, as in gVisor.
    Acks,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RackConfig {
    /// The reordering window is `min_rtt` divided by this, times the multiplier (§6.2 step 4).
    #[schemars(range(min = 1, max = 1000))]
    pub reo_wnd_divisor: u64,
    /// Recoveries without a DSACK after which the multiplier falls back to 1 (§6.2 step 4).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub reo_wnd_persist: u32,
    /// What `reo_wnd_persist` counts.
    pub persist_counts: PersistCounts,
    /// How long the peer may delay an ACK (§7.2).
    pub max_ack_delay: Duration,
    /// The window of the minimum RTT (§6.1 does not specify it; Linux uses 300 s).
    pub min_rtt_window: Duration,
    /// Send tail loss probes (§7).
    pub tlp: bool,
}

impl Default for RackConfig {
    fn default() -> RackConfig {
        RackConfig {
            reo_wnd_divisor: 4,
            reo_wnd_persist: 16,
            persist_counts: PersistCounts::Recoveries,
            max_ack_delay: Duration::from_millis(25),
            min_rtt_window: Duration::from_secs(300),
            tlp: true,
        }
    }
}

impl Algorithm<dyn LossDetector> for RackConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::Postponement, &[]), Requirement::Waits, NEEDS_SACK]
    }

    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Rack {
            overtaking: Overtaking::default(),
            fack: Offset::SYN,
            min_rtt: WindowedMin::new(self.min_rtt_window),
            reordering_seen: false,
            reo_wnd_mult: 1,
            reo_wnd_persist: self.reo_wnd_persist,
            dsack_round: None,
            reo_timer: Instant::NEVER,
            left_episode: false,
            probe: Probe { pto: Instant::NEVER, end_seq: None, is_retrans: false, rtt_since_last: true },
            config: self.clone(),
        })
    }
}

#[derive(Clone, Debug)]
struct Probe {
    /// When the probe timeout expires.
    pto: Instant,
    /// `TLP.end_seq`: SND.NXT when the probe was sent; `None` if no probe is outstanding.
    end_seq: Option<Offset>,
    /// `TLP.is_retrans`.
    is_retrans: bool,
    /// An RTT has been measured since the last probe (§7.3).
    rtt_since_last: bool,
}

#[derive(Clone, Debug)]
struct Rack {
    config: RackConfig,
    overtaking: Overtaking,
    fack: Offset,
    min_rtt: WindowedMin,
    reordering_seen: bool,
    reo_wnd_mult: u32,
    reo_wnd_persist: u32,
    dsack_round: Option<Offset>,
    reo_timer: Instant,
    /// A recovery has just ended normally.
    left_episode: bool,
    probe: Probe,
}

fn in_recovery(cx: &Context<'_>) -> bool {
    matches!(cx.snd.phase, Phase::Recovery | Phase::Loss)
}

impl Rack {
    /// §6.2 steps 1 and 2: the minimum RTT, and the delivered segment that was sent last.
    fn update_latest(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if let Some(rtt) = ack.rtt {
            self.min_rtt.update(cx.now, rtt);
            self.probe.rtt_since_last = true;
        }
        let delivered = ack.newly.iter().filter_map(|id| Some((*id, cx.board.get(*id)?)));
        let certain = delivered.filter(|(_, record)| !self.is_ambiguous(cx, ack, record));
        if let Some((id, last)) = certain.max_by_key(|(_, record)| Transmission::of(record)) {
            self.overtaking.rtt = cx.now.since(last.last_sent);
            self.overtaking.deliver(id, last);
        }
    }

    /// §6.2 step 2: if a retransmitted segment is acknowledged too early, the ACK is not for the retransmission.
    fn is_ambiguous(&self, cx: &Context<'_>, ack: &AckFacts<'_>, record: &SegmentRecord) -> bool {
        let echo_is_older = ack.echoed.is_some_and(|at| at < record.last_sent.floor_to(TIMESTAMP_TICK));
        let rtt = cx.now.since(record.last_sent);
        record.transmissions > 1 && (echo_is_older || self.min_rtt.get().is_some_and(|min| rtt < min))
    }

    /// §6.2 step 3: an original that arrives below `fack` was overtaken. Segments delivered by the same ACK do not
    /// overtake each other.
    fn detect_reordering(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let before = self.fack;
        for record in ack.newly.iter().filter_map(|id| cx.board.get(*id)) {
            self.reordering_seen |= record.end() < before && record.transmissions == 1;
            self.fack = self.fack.max(record.end());
        }
    }

    /// §6.2 step 4, the adaptation: one step up per round trip with a DSACK.
    fn adapt_reo_wnd(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        if self.dsack_round.is_some_and(|round| cx.snd.snd_una >= round) {
            self.dsack_round = None;
        }
        if ack.dsack.is_some() && self.dsack_round.is_none() {
            self.dsack_round = Some(cx.snd.snd_nxt);
            self.reo_wnd_mult += 1;
            self.reo_wnd_persist = self.config.reo_wnd_persist;
        }
    }

    /// §6.2 step 4, at the end of a recovery: the multiplier may fall back to 1.
    fn decay_reo_wnd(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// §6.2 step 4: how long an overtaken segment may still arrive. Zero if reordering has never been seen and a loss
    /// is likely.
    fn reo_wnd(&self, cx: &Context<'_>) -> Duration {
        if !self.reordering_seen && (in_recovery(cx) || cx.board.sacked().segments >= cx.snd.dup_thresh) {
            return Duration::ZERO;
        }
        let min_rtt = self.min_rtt.get().unwrap_or_default();
        let window = min_rtt * u64::from(self.reo_wnd_mult) / self.config.reo_wnd_divisor;
        window.min(cx.snd.srtt.unwrap_or(window))
    }

    /// §6.2 step 5: marks overdue segments lost that were sent before the latest delivered one, and sets the timer for
    /// the others.
    fn detect_loss(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        let patience = self.overtaking.rtt + self.reo_wnd(cx);
        self.reo_timer = self.overtaking.judge(cx, patience, verdicts);
    }

    /// §6.2 step 5, last sentence: segments marked lost in an episode that they did not cause begin the next one.
    fn begin_next_episode(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if std::mem::take(&mut self.left_episode)
            && let Some(hole) = cx.board.lowest_lost()
        {
            verdicts.event(hole);
        }
    }

    /// §7.2: when to probe. Only while nothing is SACKed and the sender is not in recovery.
    fn schedule_probe(&mut self, cx: &Context<'_>) {
        self.probe.pto = Instant::NEVER;
        let idle = cx.board.is_empty() || cx.snd.phase != Phase::Open || cx.board.sacked().segments > Segments::ZERO;
        if !self.config.tlp || !cx.snd.sack || idle {
            return;
        }
        let single = cx.board.sent().segments == Segments(1);
        let pto = match cx.snd.srtt {
            Some(srtt) if single => srtt * 2 + self.config.max_ack_delay,
            Some(srtt) => srtt * 2,
            None => Duration::from_secs(1),
        };
        let rto = if cx.snd.rto_expires.is_set() { cx.snd.rto_expires } else { cx.now + cx.snd.rto };
        self.probe.pto = (cx.now + pto).min(rto);
    }

    fn end_probe(&mut self) {
        self.probe.pto = Instant::NEVER;
        self.probe.end_seq = None;
    }

    /// §7.4.2: what an ACK shows about the probe.
    fn process_probe_ack(&mut self, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        let Some(end_seq) = self.probe.end_seq.filter(|end_seq| ack.ack >= *end_seq) else { return };
        let reported = ack.dsack.is_some_and(|dsack| dsack.right == end_seq);
        let silent = !ack.advances() && ack.newly.is_empty() && ack.dsack.is_none();
        if !self.probe.is_retrans || reported {
            self.probe.end_seq = None;
        } else if ack.ack > end_seq {
            self.probe.end_seq = None;
            verdicts.probe_repaired_loss();
        } else if silent {
            self.probe.end_seq = None;
        }
    }
}

impl LossDetector for Rack {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, verdicts: &mut Verdicts) {
        self.update_latest(cx, ack);
        self.detect_reordering(cx, ack);
        self.adapt_reo_wnd(cx, ack);
        if self.config.persist_counts == PersistCounts::Acks && ack.advances() && !in_recovery(cx) {
            self.decay_reo_wnd();
        }
        self.begin_next_episode(cx, verdicts);
        self.detect_loss(cx, verdicts);
        self.process_probe_ack(ack, verdicts);
        if ack.advances() || !ack.newly.is_empty() {
            self.schedule_probe(cx);
        }
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if self.probe.pto <= cx.now {
            self.probe.pto = Instant::NEVER;
            if self.probe.end_seq.is_none() && self.probe.rtt_since_last {
                verdicts.probe();
            }
        }
        self.detect_loss(cx, verdicts);
    }

    fn deadline(&self) -> Instant {
        self.reo_timer.min(self.probe.pto)
    }

    fn on_sent(&mut self, cx: &Context<'_>, id: SegId, cause: SendReason) {
        match cause {
            SendReason::Probe => {
                self.probe.end_seq = Some(cx.snd.snd_nxt);
                self.probe.is_retrans = cx.board.get(id).is_some_and(|r| r.transmissions > 1);
                self.probe.rtt_since_last = false;
            }
            SendReason::New if self.probe.end_seq.is_none() => self.schedule_probe(cx),
            _ => {}
        }
    }

    /// §6.3: at a timeout the first segment and all overdue segments are lost.
    fn lost_at_timeout(&self, cx: &Context<'_>, id: SegId) -> bool {
        let patience = self.overtaking.rtt + self.reo_wnd(cx);
        id == cx.board.first() || cx.board.get(id).is_some_and(|r| r.last_sent + patience <= cx.now)
    }
}

impl Plugin for Rack {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::EnterRecovery => self.end_probe(),
            RecoveryEvent::Timeout { .. } => {
                self.end_probe();
                self.overtaking.look_again();
            }
            RecoveryEvent::LeaveRecovery => {
                if self.config.persist_counts == PersistCounts::Recoveries && self.dsack_round.is_none() {
                    self.decay_reo_wnd();
                }
                self.left_episode = true;
            }
            // Segments marked lost count as in flight again.
            RecoveryEvent::Spurious(_) => self.overtaking.look_again(),
        }
    }
}
