//! Loss in bursts: a Markov chain with two states and a step per packet (Gilbert 1960, Elliott 1963).

use std::fmt;

use reknit_units::{Instant, Share};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters. The share of packets in the bad state is `to_bad / (to_bad + to_good)`.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gilbert {
    /// Probability of a change from the good to the bad state, per packet.
    pub to_bad: Share,
    /// Probability of a change back to the good state, per packet.
    pub to_good: Share,
    /// Probability of loss in the good state.
    #[serde(default)]
    pub loss_good: Share,
    /// Probability of loss in the bad state; by default every packet is lost.
    #[serde(default = "all")]
    pub loss_bad: Share,
}

fn all() -> Share {
    Share::ONE
}

impl fmt::Display for Gilbert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gilbert { to_bad, to_good, loss_good, loss_bad } = self;
        write!(
            f,
            "{loss_good} of packets are lost, {loss_bad} in bursts, which begin at {to_bad} of packets and end at {to_good}"
        )
    }
}

impl Parameters for Gilbert {
    type Running = Bursty;

    fn build(&self, id: StreamId) -> Bursty {
        Bursty { spec: self.clone(), steps: id.stream(0), losses: id.stream(1), bad: false }
    }

    fn is_idle(&self) -> bool {
        self.loss_good == Share::ZERO && (self.loss_bad == Share::ZERO || self.to_bad == Share::ZERO)
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Gilbert(self.clone()))
    }
}

#[derive(Debug)]
pub(crate) struct Bursty {
    spec: Gilbert,
    steps: Stream,
    losses: Stream,
    bad: bool,
}

impl Stage for Bursty {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let leaves = if self.bad { self.spec.to_good } else { self.spec.to_bad };
        self.bad ^= self.steps.chance(leaves.get());
        let loss = if self.bad { self.spec.loss_bad } else { self.spec.loss_good };
        if self.losses.chance(loss.get()) { StageOutcome::Drop(DropReason::Lost) } else { StageOutcome::Departure(at) }
    }
}
