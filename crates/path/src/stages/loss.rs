//! Loss: of each packet with the same probability, or of the packets in a list.

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Instant, Share};
use serde::{Deserialize, Serialize};

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Loss {
    /// Each packet is lost with this probability, independently.
    pub probability: Share,
    /// These packets are lost: their numbers among the packets that reach this stage, from 1.
    pub packets: Vec<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets are lost", self.probability)?;
        match self.packets.len() {
            0 => Ok(()),
            n => write!(f, ", and {n} particular ones"),
        }
    }
}

impl Parameters for Loss {
    type Running = Lossy;

    fn checked(mut self) -> Result<Loss, KeyError> {
        if self.packets.contains(&0) {
            return Err(KeyError::new("packets", "packets are counted from 1"));
        }
        self.packets.sort_unstable();
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Lossy {
        Lossy { spec: self.clone(), chance: id.stream(0), seen: 0, scripted: 0 }
    }

    fn is_idle(&self) -> bool {
        self.probability == Share::ZERO && self.packets.is_empty()
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Loss(self.clone()))
    }
}

#[derive(Debug)]
pub(crate) struct Lossy {
    spec: Loss,
    chance: Stream,
    seen: u64,
    /// Position in the list of packets to lose.
    scripted: usize,
}

impl Lossy {
    fn is_scripted(&mut self) -> bool {
        self.seen += 1;
        let hit = self.spec.packets.get(self.scripted) == Some(&self.seen);
        self.scripted += usize::from(hit);
        hit
    }
}

impl Stage for Lossy {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let scripted = self.is_scripted();
        let probability = self.spec.probability.get();
        if scripted || (probability > 0.0 && self.chance.chance(probability)) {
            StageOutcome::Drop(DropReason::Lost)
        } else {
            StageOutcome::Departure(at)
        }
    }
}
