//! Retransmission by the link layer. A failed packet is retransmitted; in the meantime others may overtake it (survey
//! §2, C7; over a satellite RR-TCP §1, C8), or they wait if the link resequences.

use std::fmt;

use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Arq {
    /// Each transmission fails with this probability, independently.
    pub probability: Share,
    /// Delay of a retransmission: the link's round trip and processing.
    pub retry: Duration,
    /// Retransmissions after which the packet is lost.
    #[serde(default = "three")]
    pub retries: u32,
    /// The far end delivers packets in order, so a failed packet delays all packets after it.
    #[serde(default)]
    pub resequence: bool,
}

fn three() -> u32 {
    3
}

impl fmt::Display for Arq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Arq { probability, retry, retries, resequence } = self;
        write!(f, "{probability} of transmissions fail and are repeated {retry} later, at most {retries} times")?;
        f.write_str(if *resequence { ", in order" } else { "" })
    }
}

impl Parameters for Arq {
    type Running = Persistent;

    fn build(&self, id: StreamId) -> Persistent {
        Persistent { spec: self.clone(), failures: id.stream(0), last: Instant::ZERO }
    }

    /// Only the losses remain.
    fn in_order(&self) -> Option<Spec> {
        let given_up = libm::pow(self.probability.get(), f64::from(self.retries + 1));
        let probability = Share::new(given_up)?;
        Some(Spec::Loss(super::Loss { probability, packets: Vec::new() }))
    }
}

#[derive(Debug)]
pub(crate) struct Persistent {
    spec: Arq,
    failures: Stream,
    /// When the last packet was delivered.
    last: Instant,
}

impl Stage for Persistent {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let mut failed = 0;
        while self.failures.chance(self.spec.probability.get()) {
            if failed == self.spec.retries {
                return StageOutcome::Drop(DropReason::Lost);
            }
            failed += 1;
        }
        let mut exit = at + self.spec.retry * u64::from(failed);
        if self.spec.resequence {
            exit = exit.max(self.last);
            self.last = exit;
        }
        StageOutcome::Departure(exit)
    }

    fn reorders(&self) -> bool {
        !self.spec.resequence
    }
}
