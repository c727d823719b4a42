//! A gateway in front of the receiver that restores the order of TCP packets ([`Resequencer`]).

use std::fmt;

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::StreamId;
use crate::resequencer::{Limits, Resequencer, TcpHeader};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shield {
    /// What it does.
    #[serde(default)]
    pub mode: Mode,
    /// The longest time that a packet is held.
    #[serde(default = "longest")]
    pub limit: Duration,
}

/// What a shield does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Holds early packets of a flow whose sender retransmits late ones, as long as that makes it faster.
    #[default]
    Resequence,
}

fn longest() -> Duration {
    Limits::default().time
}

impl fmt::Display for Shield {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a shield holds early packets for at most {}", self.limit)
    }
}

impl Parameters for Shield {
    type Running = Gateway;

    fn build(&self, _id: StreamId) -> Gateway {
        let limits = Limits { time: self.limit, ..Limits::default() };
        Gateway { resequencer: Resequencer::new(limits), released: Vec::new() }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Gateway {
    resequencer: Resequencer<u32, StagePacket>,
    released: Vec<StagePacket>,
}

impl Gateway {
    fn release(&mut self, at: Instant, exits: &mut Departures) {
        self.released.drain(..).for_each(|item| exits.push(at, item));
    }
}

impl Stage for Gateway {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        self.on_tcp(at, item, None, exits)
    }

    fn on_tcp(
        &mut self,
        at: Instant,
        item: StagePacket,
        header: Option<TcpHeader>,
        exits: &mut Departures,
    ) -> StageOutcome {
        self.on_timer(at, exits);
        let header = header.unwrap_or_default();
        self.resequencer.on_packet(at, item.flow, header, item, &mut self.released);
        self.release(at, exits);
        StageOutcome::Listed
    }

    fn reads_tcp(&self) -> bool {
        true
    }

    fn reads_flows(&self) -> bool {
        true
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn deadline(&self) -> Instant {
        self.resequencer.deadline()
    }

    fn on_timer(&mut self, now: Instant, exits: &mut Departures) {
        while self.resequencer.deadline() <= now {
            let at = self.resequencer.deadline();
            self.resequencer.on_timer(at, &mut self.released);
            self.release(at, exits);
        }
    }
}
