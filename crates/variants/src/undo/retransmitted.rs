//! # The retransmission bit
//!
//! Ludwig, Katz: The Eifel Algorithm. ACM CCR 30(1), 2000, and its use in Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI
//! TR-02-006, 2002, §3: a bit in each segment says whether it is a retransmission, and its ACK echoes the bit.
//!
//! **What it changes.** Both ends. Nothing follows from it by itself; it tells the copies of a segment apart.
//!
//! **State.** Receiver: `echo`, the bit that the next ACK echoes; `alone`, whether that ACK leaves on its own.
//!
//! **Rules.** 1: data is marked when its bytes were sent before. 2: an ACK echoes the bit of the segment that it answers,
//! a delayed one that of the first (as RFC 7323 §4.3 has it for timestamps). 3: an ACK that answers nothing echoes
//! nothing.
//!
//! **Departures.** The papers assume header bits; here it is an experimental option (RFC 4727), on only if both SYNs offer
//! it. ACKs that travel with data do not echo: there the bit speaks of the data.
//!
//! **Status.** Faithful.

use reknit_tcp::experiment::{Experiment, Features};
use reknit_tcp::seams::{Arrival, HeaderSupport, Plugin, RxFacts};
use reknit_tcp::seq::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};
use crate::rule::{Need, Rule};

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "retransmitted";
    const SOURCE: &'static str = include_str!("retransmitted.rs");
    const RULES: &'static [Rule] =
        &[Rule::Needs(Need::Feature(Features::RESENT), "timestamps, if there are any, tell copies apart")];
}

impl Part<dyn HeaderSupport> for Config {
    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(RetransmittedBit { echo: None, alone: false })
    }
}

#[derive(Debug)]
struct RetransmittedBit {
    echo: Option<bool>,
    alone: bool,
}

impl Plugin for RetransmittedBit {}

impl HeaderSupport for RetransmittedBit {
    fn features(&self) -> Features {
        Features::RESENT
    }

    /// Rule 1. Data also acknowledges what a delayed ACK would have; news about order still gets an ACK of its own.
    fn annotate_data(&mut self, again: bool, experiment: &mut Experiment) {
        experiment.retransmitted = Some(again);
        if !self.alone {
            self.echo = None;
        }
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        self.echo = self.echo.or(rx.experiment.retransmitted);
        self.alone |= rx.arrival != Arrival::InOrder;
    }

    /// Rules 2 and 3.
    fn annotate_ack(&mut self, _ack: Offset, experiment: &mut Experiment) {
        experiment.retransmitted = self.echo.take();
        self.alone = false;
    }
}
