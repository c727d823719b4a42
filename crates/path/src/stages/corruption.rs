//! Corruption: each packet is corrupted with the same probability.
//!
//! One bit that the receiver's checksum covers is flipped. TCP's checksum detects every single flipped bit, so the
//! packet takes as much capacity as any other and is lost on arrival.

use std::fmt;

use reknit_units::{Instant, Share};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Corruption {
    /// Each packet is corrupted with this probability, independently.
    pub probability: Share,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets arrive with a flipped bit and are dropped by their checksum", self.probability)
    }
}

impl Parameters for Corruption {
    type Running = Corrupting;

    fn build(&self, id: StreamId) -> Corrupting {
        Corrupting { spec: self.clone(), selection: id.stream(0), bits: id.stream(1) }
    }

    fn is_idle(&self) -> bool {
        self.probability == Share::ZERO
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Corruption(self.clone()))
    }
}

#[derive(Debug)]
pub(crate) struct Corrupting {
    spec: Corruption,
    selection: Stream,
    bits: Stream,
}

impl Stage for Corrupting {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        if !self.selection.chance(self.spec.probability.get()) {
            return StageOutcome::Departure(at);
        }
        exits.push(at, item);
        exits.damage(self.bits.bits());
        StageOutcome::Listed
    }
}
