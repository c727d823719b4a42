//! Corruption: each packet is damaged on the way with the same probability.
//!
//! One bit is flipped, of what the receiver's checksum covers. TCP's checksum finds every single flipped bit, so that the
//! packet costs the path as much as any other and is lost on arrival.

use std::fmt;

use reknit_units::{Instant, Share};
use serde::Deserialize;

use super::{Exits, Item, Outcome, Parameters, Spec, Stage};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Corruption {
    /// Each packet is damaged with this probability, independently.
    pub probability: Share,
}

impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets arrive with a flipped bit, and the checksum refuses them", self.probability)
    }
}

impl Parameters for Corruption {
    fn build(&self, id: StreamId) -> Box<dyn Stage> {
        Box::new(Corrupting { spec: self.clone(), selection: id.stream(0), bits: id.stream(1) })
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Corruption(self.clone()))
    }
}

#[derive(Debug)]
struct Corrupting {
    spec: Corruption,
    selection: Stream,
    bits: Stream,
}

impl Stage for Corrupting {
    fn on_packet(&mut self, at: Instant, item: Item, exits: &mut Exits) -> Outcome {
        if !self.selection.chance(self.spec.probability.get()) {
            return Outcome::Exit(at);
        }
        exits.push(at, item);
        exits.damage(self.bits.bits());
        Outcome::SeeExits
    }
}
