//! # Oracle
//!
//! Not an algorithm but an upper bound: what a sender could reach on a path that reorders if it knew what happened to
//! each packet. Only the simulator knows that, so these variants run only in simulations.
//!
//! **What it changes.** The sender does not infer losses. The simulator reports each lost packet at the time when its
//! acknowledgment would have arrived: one smoothed round-trip time after it was sent. Duplicate ACKs and time since
//! transmission do not mark segments lost, and there is no retransmission timer.
//!
//! **State.** When to probe if no ACKs arrive, how many probes have not been answered, and when recovery began.
//!
//! **Rules.**
//! - A loss outside recovery reduces the window and begins recovery with PRR. Recovery ends, and growth resumes, when
//!   everything that was outstanding at that time has been acknowledged, so each window of data causes at most one
//!   reduction.
//! - A loss in recovery is retransmitted. If the segment was sent more than a round trip after the reduction, that was
//!   not enough, and the loss causes another. Otherwise a window that the path cannot hold would stay as it is while
//!   every retransmission of the first hole meets a full queue.
//! - The window grows by the bytes delivered, including SACKed ones, and limits the pipe.
//! - Growth and reduction are those of CUBIC (`oracle`) or Reno (`oracle-reno`). With `oracle-bbr` and `oracle-bbr1`, a
//!   model of the path sets the window and the rate (`bbr`, `bbr1`), and is told about each loss.
//! - After two round trips without an ACK a probe is sent, like a tail loss probe, because the ACKs may have been lost.
//!
//! **Departures.** Timestamps are not offered. With them, a retransmission that fills the first hole makes the receiver
//! discard late originals (PAWS, RFC 7323 §5), which would add losses.
//!
//! **Reproduces.** Nothing. On paths with random loss it is not a strict bound: a sender that leaves slow start later
//! can be faster.
//!
//! **Status.** Faithful.

use std::sync::Arc;

use reknit_tcp::facts::{AckFacts, Context, Phase, Turn};
use reknit_tcp::scoreboard::{Cause, SegId};
use reknit_tcp::seams::{LossDetector, Plugin, Verdicts, Why};
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::silence::Silence;
use crate::base::{delivery_clocked, newreno};
use crate::bbr;
use crate::composition::Composition;
use crate::part::{Algorithm, Part, Shared};
use crate::rule::Rule;
use crate::seam::Seam;
use crate::variant::{Side, Status, Variant};

/// The registry entry: the bound for senders with CUBIC growth.
pub(crate) const ORACLE: Variant = Variant {
    name: "oracle",
    aliases: &["oracle-cubic"],
    summary: "upper bound, in simulation only: the simulator reports each real loss to the sender; CUBIC growth",
    source: "docs/reference/matrix.md",
    side: Side::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    compose: || composition(delivery_clocked::with_cubic),
};

/// The registry entry: the bound for senders with Reno growth.
pub(crate) const ORACLE_RENO: Variant = Variant {
    name: "oracle-reno",
    summary: "upper bound, in simulation only: the simulator reports each real loss to the sender; Reno growth",
    aliases: &[],
    compose: || composition(delivery_clocked::with_reno),
    ..ORACLE
};

/// The registry entry: what `bbr` reaches if nothing but real losses counts as loss.
pub(crate) const ORACLE_BBR: Variant = Variant {
    name: "oracle-bbr",
    summary: "bbr that the simulator tells about each real loss, in simulation only",
    aliases: &[],
    compose: || composition(with_bbr),
    ..ORACLE
};

/// The registry entry: the same with version 1.
pub(crate) const ORACLE_BBR1: Variant = Variant {
    name: "oracle-bbr1",
    summary: "bbr1 that the simulator tells about each real loss, in simulation only",
    aliases: &[],
    compose: || composition(with_bbr1),
    ..ORACLE
};

fn with_bbr(loss_detector: Shared<dyn LossDetector>) -> Composition {
    delivery_clocked::with(loss_detector, Arc::new(bbr::v3::Config::default()))
}

fn with_bbr1(loss_detector: Shared<dyn LossDetector>) -> Composition {
    delivery_clocked::with(loss_detector, Arc::new(bbr::v1::Config::default()))
}

fn composition(with: fn(Shared<dyn LossDetector>) -> Composition) -> Composition {
    Composition {
        timestamps: Some(false),
        without_sack: Some(newreno::recovery_without_sack),
        ..with(Arc::new(Config {}))
    }
}

/// Parameters of the detector: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "oracle";
    const SOURCE: &'static str = include_str!("oracle.rs");
    const ABOUT: &'static str = "The simulator reports each loss";
    const RULES: &'static [Rule] = &[Rule::Only(Seam::Postponement, &[])];
}

impl Part<dyn LossDetector> for Config {
    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Oracle { silence: Silence::new(), recovery_began: Instant::NEVER })
    }
}

#[derive(Debug)]
struct Oracle {
    silence: Silence,
    recovery_began: Instant,
}

/// How long to wait before a probe.
fn silence(cx: &Context<'_>) -> Duration {
    cx.snd.srtt.unwrap_or(cx.config.initial_rto) * 2
}

impl Plugin for Oracle {
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        if turn == Turn::EnterRecovery {
            self.recovery_began = cx.now;
        }
    }
}

impl LossDetector for Oracle {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, _verdicts: &mut Verdicts) {
        self.silence.on_ack(cx, !ack.newly.is_empty(), silence(cx));
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if self.silence.on_timer(cx, silence(cx)).is_some() {
            verdicts.probe();
        }
    }

    fn deadline(&self) -> Instant {
        self.silence.deadline()
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: Cause) {
        self.silence.on_sent(cx, silence(cx));
    }

    fn needs_loss_reports(&self) -> bool {
        true
    }

    fn on_loss_report(&mut self, cx: &Context<'_>, id: SegId, verdicts: &mut Verdicts) {
        let answered_until = self.recovery_began + cx.snd.srtt.unwrap_or_default();
        let is_new = cx.board.get(id).is_some_and(|record| record.last_sent > answered_until);
        if cx.snd.phase == Phase::Recovery && is_new {
            verdicts.event(id);
        }
        verdicts.lost(id, Why::Reported);
    }
}
