//! Duplication: some packets are duplicated; the copy may leave later.

use std::fmt;

use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Duplicate {
    /// Each packet is duplicated with this probability, independently.
    pub probability: Share,
    /// By how much the copy leaves later; by default it leaves at once.
    #[serde(default = "at_once")]
    pub extra: Variate,
}

fn at_once() -> Variate {
    Variate::Constant(Duration::ZERO)
}

impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets are duplicated, the copy {} later", self.probability, self.extra)
    }
}

impl Parameters for Duplicate {
    type Running = Duplicated;

    fn build(&self, id: StreamId) -> Duplicated {
        Duplicated { spec: self.clone(), selection: id.stream(0), length: id.stream(1) }
    }

    fn is_idle(&self) -> bool {
        self.probability == Share::ZERO && self.extra == at_once()
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Duplicated {
    spec: Duplicate,
    selection: Stream,
    length: Stream,
}

impl Stage for Duplicated {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        if !self.selection.chance(self.spec.probability.get()) {
            return StageOutcome::Departure(at);
        }
        exits.push(at, item);
        exits.push_copy(at + self.spec.extra.draw(&mut self.length), item);
        StageOutcome::Listed
    }

    fn reorders(&self) -> bool {
        // A late copy is out of order even if no original is.
        self.spec.extra != at_once()
    }
}
