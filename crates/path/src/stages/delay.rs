//! Selective delay: some packets are delayed by a random time; the others pass at once and may overtake them (RR-TCP
//! §5.1).

use std::fmt;

use reknit_units::{Instant, Share};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Delay {
    /// Each packet is delayed with this probability, independently. By default all are.
    #[serde(default = "all")]
    pub probability: Share,
    /// The delay.
    pub extra: Variate,
}

fn all() -> Share {
    Share::ONE
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets are delayed by a further {}", self.probability, self.extra)
    }
}

impl Parameters for Delay {
    type Running = Delayed;

    fn build(&self, id: StreamId) -> Delayed {
        Delayed { spec: self.clone(), selection: id.stream(0), length: id.stream(1), held_up: 0 }
    }

    fn is_idle(&self) -> bool {
        self.probability == Share::ZERO
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Delayed {
    spec: Delay,
    selection: Stream,
    length: Stream,
    held_up: u64,
}

impl Stage for Delayed {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        if self.selection.chance(self.spec.probability.get()) {
            self.held_up += 1;
            StageOutcome::Departure(at + self.spec.extra.draw(&mut self.length))
        } else {
            StageOutcome::Departure(at)
        }
    }

    fn reorders(&self) -> bool {
        self.spec.probability > Share::ZERO
    }

    fn delayed(&self) -> u64 {
        self.held_up
    }
}
