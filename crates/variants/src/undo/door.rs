//! # TCP-DOOR
//!
//! Wang, Zhang: Improving TCP Performance over Mobile Ad-Hoc Networks with Out-of-Order Detection and Response. ACM
//! `MobiHoc` 2002; as described by Leung, Li, Yang (survey §5.1.2).
//!
//! **What it changes.** Both ends number their packets in addition to TCP's own numbers, so that reordering is detected
//! in both directions. It is taken as a sign of a route change. For a while, losses are repaired but do not reduce the
//! window, and a recent reduction is undone.
//!
//! **State.** Data sender: `sent`, the number of transmissions so far (TPSN). Data receiver: `max_tpsn`; `overtaken`,
//! reordering not reported yet; `repetition`, how often the same acknowledgment was sent (ADSN). Data sender, for ACKs:
//! `max_adsn` for the current SND.UNA; `newest_arrived`, when the latest segment known to have arrived was sent;
//! `frozen_until`, and `run_began` of the current run of freezes.
//!
//! **Rules.**
//! - 1: every data segment carries its TPSN.
//! - 2: a segment with a TPSN below the highest was overtaken; the next ACK reports that.
//! - 3: every ACK carries its ADSN.
//! - 4: reordering is detected by an ACK that reports it, by an ACK below SND.UNA, or by an ACK at SND.UNA with an ADSN
//!   below the highest. Without the option, reports are replaced by timestamps: reordering is detected when SND.UNA
//!   advances by a segment that was sent before another one that had already arrived.
//! - 5: after reordering is detected, window and timeout do not change for t1 (`freeze`).
//! - 6: a reduction made within the last t2 is undone at once (`instant`).
//!
//! **Departures.** Both responses are on; the survey (§5.1.2) says that a source can do either, and ascribes its results to
//! the freeze (§7.2). It speaks of recovery "during congestion avoidance"; here a reduction is undone in any phase, also in
//! fast recovery and in slow start after a timeout. On its path (§7) the undo makes the whole difference: with `freeze` alone TCP-DOOR is as slow as SACK. The
//! layout of the option, t1 = SRTT and t2 = RTO are our choice: the survey gives none of them.
//! While frozen, the window does not grow either. A run of freezes lasts at most eight times t1, and the next begins
//! after one SRTT of normal operation: the survey (§5.1.2) warns of congestion collapse if everything is reordered. A
//! duplicate made by the network counts as reordered. Only ACKs without data carry the fields of rules 2 and 3.
//!
//! **Status.** Partial: the survey names t1 and t2 and gives no values, which decide how much is frozen and undone; nor
//! the layout of the option, which does not matter. With timestamps, PAWS (RFC 7323 §5) drops an ACK
//! that was overtaken by one of a later tick before rule 4 sees it; reports about data segments are not affected.

use reknit_tcp::experiment::{AckOrdinal, ExperimentalOption, Features};
use reknit_tcp::facts::{AckFacts, Context, Spurious, TIMESTAMP_TICK, Trigger};
use reknit_tcp::scoreboard::{SegId, SendReason};
use reknit_tcp::seams::{HeaderSupport, HeaderSupportTraits, Plugin, RxFacts, SpuriousDetector};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

/// A run of freezes lasts at most this many times t1.
const LONGEST_RUN: u64 = 8;

/// Which of the two responses to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Respond {
    /// Both `freeze` and `instant`.
    #[default]
    Both,
    /// Freeze window and timeout.
    Freeze,
    /// Undo a recent reduction.
    Instant,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DoorConfig {
    /// Which of the two responses to use.
    pub respond: Respond,
    /// t1, for how long window and timeout do not change. Default: SRTT.
    pub t1: Option<Duration>,
    /// t2, the maximum age of a reduction that is undone. Default: RTO.
    pub t2: Option<Duration>,
}

impl Algorithm<dyn SpuriousDetector> for DoorConfig {
    fn build(&self) -> Box<dyn SpuriousDetector> {
        Box::new(Door {
            config: self.clone(),
            max_adsn: None,
            newest_arrived: Instant::ZERO,
            frozen_until: Instant::ZERO,
            run_began: Instant::ZERO,
        })
    }
}

#[derive(Clone, Debug)]
struct Door {
    config: DoorConfig,
    max_adsn: Option<u8>,
    newest_arrived: Instant,
    frozen_until: Instant,
    run_began: Instant,
}

impl Door {
    /// Rule 4. All parts are evaluated, because each updates its state.
    fn is_overtaking(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let ack_overtaken = ack.stale || self.ordinal_is_behind(ack);
        let data_overtaken = self.arrived_behind(cx, ack);
        let has_ordinals = cx.snd.features.has(Features::ORDINALS);
        let told = ack.experiment.ack_ordinal.is_some_and(|ordinal| ordinal.overtaken);
        ack_overtaken || if has_ordinals { told } else { data_overtaken }
    }

    /// The ADSN, modulo 256, of an ACK at SND.UNA.
    fn ordinal_is_behind(&mut self, ack: &AckFacts<'_>) -> bool {
        if ack.advances() {
            self.max_adsn = None;
        }
        let Some(adsn) = ack.experiment.ack_ordinal.filter(|_| !ack.stale).map(|ordinal| ordinal.repetition) else {
            return false;
        };
        let max = self.max_adsn.unwrap_or(adsn);
        let behind = adsn.wrapping_sub(max).cast_signed() < 0;
        self.max_adsn = Some(if behind { max } else { adsn });
        behind
    }

    /// The echoed timestamp is that of the segment by which SND.UNA advances (RFC 7323 §4.3).
    fn arrived_behind(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let newest_before = self.newest_arrived;
        for record in ack.newly.iter().filter_map(|id| cx.board.get(*id)).filter(|r| r.transmissions == 1) {
            self.newest_arrived = self.newest_arrived.max(record.first_sent.floor_to(TIMESTAMP_TICK));
        }
        ack.advances() && ack.echoed.is_some_and(|echoed| echoed < newest_before)
    }

    /// Rule 5.
    fn freeze(&mut self, cx: &Context<'_>) {
        let srtt = cx.snd.srtt.unwrap_or(cx.snd.rto);
        let t1 = self.config.t1.unwrap_or(srtt);
        if cx.now >= self.frozen_until + srtt {
            self.run_began = cx.now;
        }
        self.frozen_until = (cx.now + t1).min(self.run_began + t1 * LONGEST_RUN);
    }

    /// Rule 6.
    fn undoes_recent(&self, cx: &Context<'_>) -> Option<Spurious> {
        let t2 = self.config.t2.unwrap_or(cx.snd.rto);
        let recent = cx.snd.snapshot.as_ref().filter(|snapshot| cx.now.since(snapshot.at) <= t2)?;
        Some(match recent.trigger {
            Trigger::Timeout => Spurious::Timeout,
            Trigger::FastRetransmit | Trigger::Probe | Trigger::Ecn => Spurious::FastRetransmit,
        })
    }
}

impl Plugin for Door {}

impl SpuriousDetector for Door {
    fn on_retransmitted(&mut self, _cx: &Context<'_>, _id: SegId, _cause: SendReason) {}

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Spurious> {
        if !self.is_overtaking(cx, ack) {
            return None;
        }
        if self.config.respond != Respond::Instant {
            self.freeze(cx);
        }
        if self.config.respond == Respond::Freeze { None } else { self.undoes_recent(cx) }
    }

    fn frozen_until(&self) -> Instant {
        self.frozen_until
    }
}

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OrdinalsConfig {}

impl Algorithm<dyn HeaderSupport> for OrdinalsConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Feature(Features::ORDINALS), "reordering is detected by timestamps")]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Ordinals::default())
    }
}

#[derive(Clone, Debug, Default)]
struct Ordinals {
    /// TPSN of the next data segment.
    sent: u16,
    max_tpsn: Option<u16>,
    overtaken: bool,
    /// What the last ACK acknowledged.
    last_ack: Option<Offset>,
    repetition: u8,
}

impl Plugin for Ordinals {}

impl HeaderSupport for Ordinals {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::ORDINALS)
    }

    /// Rule 1.
    fn annotate_data(&mut self, _again: bool, experiment: &mut ExperimentalOption) {
        experiment.transmission = Some(self.sent);
        self.sent = self.sent.wrapping_add(1);
    }

    /// Rule 2. The report is kept until an ACK is sent.
    fn on_data(&mut self, rx: &RxFacts<'_>) {
        let Some(tpsn) = rx.experiment.transmission else { return };
        let max = self.max_tpsn.unwrap_or(tpsn);
        let behind = tpsn.wrapping_sub(max).cast_signed() < 0;
        self.max_tpsn = Some(if behind { max } else { tpsn });
        self.overtaken |= behind;
    }

    /// Rule 3.
    fn annotate_ack(&mut self, ack: Offset, experiment: &mut ExperimentalOption) {
        self.repetition = if self.last_ack == Some(ack) { self.repetition.wrapping_add(1) } else { 0 };
        self.last_ack = Some(ack);
        let overtaken = std::mem::take(&mut self.overtaken);
        experiment.ack_ordinal = Some(AckOrdinal { repetition: self.repetition, overtaken });
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::scoreboard::Scoreboard;

    use super::*;
    use crate::base::given;

    const MS: Duration = Duration::from_millis(1);

    /// Whether a sender with an SRTT of 100 ms is frozen, every 10 ms, if segments are overtaken all the time.
    fn frozen_at() -> Vec<bool> {
        let board = Scoreboard::default();
        let config = reknit_tcp::Config::default();
        let snd = reknit_tcp::facts::SendState { srtt: Some(MS * 100), ..given::state() };
        let ordinal = AckOrdinal { repetition: 0, overtaken: true };
        let experiment = ExperimentalOption { ack_ordinal: Some(ordinal), ..ExperimentalOption::default() };
        let snd = reknit_tcp::facts::SendState { features: Features::ORDINALS, ..snd };
        let mut door = Door {
            config: DoorConfig::default(),
            max_adsn: None,
            newest_arrived: Instant::ZERO,
            frozen_until: Instant::ZERO,
            run_began: Instant::ZERO,
        };
        let times = (100..200).map(|n| Instant::ZERO + MS * 10 * n);
        times
            .map(|now| {
                let cx = Context { now, config: &config, snd: &snd, board: &board };
                assert_eq!(door.on_ack(&cx, &AckFacts { experiment, ..given::ack() }), None);
                now < door.frozen_until()
            })
            .collect()
    }

    #[test]
    fn persistent_reordering_does_not_freeze_for_ever() {
        let frozen = frozen_at();
        // Eight times t1, one SRTT of normal operation, and again.
        assert!(frozen[..80].iter().all(|frozen| *frozen));
        assert!(frozen[80..90].iter().all(|frozen| !frozen));
        assert!(frozen[90..].iter().all(|frozen| *frozen));
    }
}
