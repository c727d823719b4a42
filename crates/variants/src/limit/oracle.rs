//! # Oracle
//!
//! Not an algorithm: a bound. It shows what a sender could reach on a path that reorders if it knew what became of each
//! packet. Only the simulator can tell, so it runs in simulations alone.
//!
//! **What it changes.** Loss detection guesses nothing. The simulator tells the sender of each lost packet at the moment
//! when an acknowledgment of it would have come: one smoothed round-trip time after it was sent. Duplicate ACKs, clocks
//! and the retransmission timer mean nothing.
//!
//! **State.** When to probe a silent connection, and how many probes were not answered.
//!
//! **Rules.** A loss outside recovery reduces the window and begins recovery by PRR, without growth until everything
//! outstanding then is acknowledged; so each window of data reduces once. A loss in recovery is retransmitted. The window
//! grows by bytes delivered, SACKed ones included, and admits what the pipe has room for. Growth and reduction
//! are CUBIC's (`oracle`) or Reno's (`oracle-reno`). Two round trips without an ACK send a probe, as a tail loss probe
//! does: the acknowledgments may be lost.
//!
//! **Departures.** Timestamps are not offered. With them a retransmission that fills the first hole makes the receiver
//! discard late originals (PAWS, RFC 7323 §5), which would then be lost too.
//!
//! **Reproduces.** Nothing; no bound on paths with random loss either, where a sender that ends slow start later can be
//! faster.
//!
//! **Status.** Faithful.

use std::sync::Arc;

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{Cause, SegId};
use reknit_tcp::seams::{CongestionControl, LossDetector, Plugin, Verdicts, Why};
use reknit_units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::progress::Progress;
use crate::base::respond_at_once::{self, DecreaseOf};
use crate::base::{aimd, cubic, limited_transmit, newreno, no_timer, prr};
use crate::composition::Composition;
use crate::part::{Algorithm, Part, Shared};
use crate::rule::Rule;
use crate::seam::Seam;
use crate::variant::{Side, Status, Variant};

/// The registry's entry: the bound for senders that grow as CUBIC.
pub(crate) const ORACLE: Variant = Variant {
    name: "oracle",
    aliases: &["oracle-cubic"],
    summary: "a bound, in simulation only: the simulator tells of each real loss and of nothing else; CUBIC growth",
    source: "docs/matrix.md",
    side: Side::Sender,
    peer_needs: "SACK",
    status: Status::Faithful,
    compose: || composition(Arc::new(cubic::Config { progress: Progress::Delivered, ..cubic::Config::default() })),
};

/// The registry's entry: the bound for senders that grow as Reno.
pub(crate) const ORACLE_RENO: Variant = Variant {
    name: "oracle-reno",
    summary: "a bound, in simulation only: the simulator tells of each real loss and of nothing else; Reno growth",
    aliases: &[],
    compose: || composition(Arc::new(aimd::Config { progress: Progress::Delivered })),
    ..ORACLE
};

fn composition(congestion_control: Shared<dyn CongestionControl>) -> Composition {
    Composition {
        loss_detector: Arc::new(Config {}),
        loss_response: Arc::new(respond_at_once::Config { of: DecreaseOf::Cwnd }),
        fast_recovery: Arc::new(prr::Config::default()),
        rto_estimator: Arc::new(no_timer::Config {}),
        limited_transmit: Arc::new(limited_transmit::Config::Pipe),
        congestion_control,
        timestamps: Some(false),
        without_sack: Some(newreno::recovery_without_sack),
        ..Composition::default()
    }
}

/// Parameters of the detector: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "oracle";
    const SOURCE: &'static str = include_str!("oracle.rs");
    const RULES: &'static [Rule] = &[Rule::Only(Seam::Postponement, &[])];
}

impl Part<dyn LossDetector> for Config {
    fn build(&self) -> Box<dyn LossDetector> {
        Box::new(Oracle { probe_at: Instant::NEVER, unanswered: 0 })
    }
}

#[derive(Debug)]
struct Oracle {
    /// When to probe.
    probe_at: Instant,
    /// Probes without an answer.
    unanswered: u32,
}

impl Oracle {
    /// Two round trips from now, twice as long after each probe.
    fn schedule_probe(&mut self, cx: &Context<'_>) {
        let round_trip = cx.snd.srtt.unwrap_or(cx.config.initial_rto);
        let wait = (round_trip * 2).max(cx.config.min_rto) * (1 << self.unanswered.min(10));
        self.probe_at = if cx.board.is_empty() { Instant::NEVER } else { cx.now + wait.min(cx.config.max_rto) };
    }
}

impl Plugin for Oracle {}

impl LossDetector for Oracle {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, _verdicts: &mut Verdicts) {
        if !ack.newly.is_empty() {
            self.unanswered = 0;
        }
        self.schedule_probe(cx);
    }

    fn on_timer(&mut self, cx: &Context<'_>, verdicts: &mut Verdicts) {
        if self.probe_at > cx.now {
            return;
        }
        self.unanswered += 1;
        self.schedule_probe(cx);
        verdicts.probe();
    }

    fn deadline(&self) -> Instant {
        self.probe_at
    }

    fn on_sent(&mut self, cx: &Context<'_>, _id: SegId, _cause: Cause) {
        if !self.probe_at.is_set() {
            self.schedule_probe(cx);
        }
    }

    fn is_told(&self) -> bool {
        true
    }

    fn on_told(&mut self, _cx: &Context<'_>, id: SegId, verdicts: &mut Verdicts) {
        verdicts.lost(id, Why::Told);
    }
}
