//! Sudden delays without reordering: a packet is delayed, and with it everything behind it (F-RTO §5.1, C9: hand-off,
//! persistent link-layer retransmission).

use std::fmt;

use reknit_units::{Instant, Share};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// Each packet stalls the path with this probability, independently.
    pub probability: Share,
    /// How long.
    pub length: Variate,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of packets are delayed by {}, and all packets behind them wait", self.probability, self.length)
    }
}

impl Parameters for Stall {
    type Running = Stalling;

    fn build(&self, id: StreamId) -> Stalling {
        Stalling {
            spec: self.clone(),
            selection: id.stream(0),
            lengths: id.stream(1),
            free_at: Instant::ZERO,
            stalls: 0,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Stalling {
    spec: Stall,
    selection: Stream,
    lengths: Stream,
    free_at: Instant,
    stalls: u64,
}

impl Stage for Stalling {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let mut exit = at.max(self.free_at);
        if self.selection.chance(self.spec.probability.get()) {
            self.stalls += 1;
            exit = exit + self.spec.length.draw(&mut self.lengths);
        }
        self.free_at = exit;
        StageOutcome::Departure(exit)
    }

    fn delayed(&self) -> u64 {
        self.stalls
    }
}
