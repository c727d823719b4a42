//! A gateway in front of the receiver that restores the order of TCP packets ([`Resequencer`]), or gives the branches of the path
//! the same delay ([`Equaliser`]).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::{Departures, Parameters, SeenByGateway, Spec, Stage, StageOutcome, StagePacket};
use crate::equaliser::{Equal, Equaliser};
use crate::random::StreamId;
use crate::resequencer::{Limits, Resequencer};

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
    /// Only with `mode = "equalise"`: how long packets of the first branch are held. Otherwise it is learned from TCP flows which
    /// branch is faster, and by how much.
    pub difference: Option<Duration>,
}

/// What a shield does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Holds early packets of a flow whose sender retransmits late ones, as long as that makes it faster.
    #[default]
    Resequence,
    /// Holds packets of any protocol that come by the faster branch of a path, for the difference of the delays.
    Equalise,
}

fn longest() -> Duration {
    Limits::default().time
}

impl fmt::Display for Shield {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.mode, self.difference) {
            (Mode::Resequence, _) => write!(f, "a shield holds early packets for at most {}", self.limit),
            (Mode::Equalise, Some(difference)) => {
                write!(f, "a shield holds packets of the first branch for {difference}")
            }
            (Mode::Equalise, None) => {
                write!(f, "a shield holds packets of the faster branch for the difference, at most {}", self.limit)
            }
        }
    }
}

impl Parameters for Shield {
    type Running = Gateway;

    fn checked(self) -> Result<Shield, KeyError> {
        let Some(difference) = self.difference else { return Ok(self) };
        if self.mode != Mode::Equalise {
            return Err(KeyError::new("difference", "only with mode = \"equalise\""));
        }
        if difference > self.limit {
            return Err(KeyError::new("difference", format!("must be at most the limit, {}", self.limit)));
        }
        Ok(self)
    }

    fn build(&self, _id: StreamId) -> Gateway {
        let limits = Limits { time: self.limit, ..Limits::default() };
        let kind = match self.mode {
            Mode::Resequence => Kind::Resequence(Resequencer::new(limits)),
            Mode::Equalise => {
                let Shield { difference, limit: longest, .. } = *self;
                Kind::Equalise(Equaliser::new(Equal { difference, longest, most: limits.of_all }))
            }
        };
        Gateway { kind, released: Vec::new() }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Gateway {
    kind: Kind,
    released: Vec<StagePacket>,
}

#[derive(Debug)]
enum Kind {
    Resequence(Resequencer<u32, StagePacket>),
    Equalise(Equaliser<u32, StagePacket>),
}

impl Gateway {
    fn release(&mut self, at: Instant, exits: &mut Departures) {
        self.released.drain(..).for_each(|item| exits.push(at, item));
    }
}

impl Stage for Gateway {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        self.on_gateway(at, item, SeenByGateway::default(), exits)
    }

    fn on_gateway(
        &mut self,
        at: Instant,
        item: StagePacket,
        seen: SeenByGateway,
        exits: &mut Departures,
    ) -> StageOutcome {
        self.on_timer(at, exits);
        match &mut self.kind {
            Kind::Resequence(resequencer) => {
                resequencer.on_packet(at, item.flow, seen.header.unwrap_or_default(), item, &mut self.released);
            }
            Kind::Equalise(equaliser) => {
                let tcp = seen.header.map(|header| (item.flow, header));
                equaliser.on_packet(at, usize::from(seen.branch), tcp, item, &mut self.released);
            }
        }
        self.release(at, exits);
        StageOutcome::Listed
    }

    fn is_gateway(&self) -> bool {
        true
    }

    fn reads_flows(&self) -> bool {
        true
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn deadline(&self) -> Instant {
        match &self.kind {
            Kind::Resequence(resequencer) => resequencer.deadline(),
            Kind::Equalise(equaliser) => equaliser.deadline(),
        }
    }

    fn on_timer(&mut self, now: Instant, exits: &mut Departures) {
        while self.deadline() <= now {
            let at = self.deadline();
            match &mut self.kind {
                Kind::Resequence(resequencer) => resequencer.on_timer(at, &mut self.released),
                Kind::Equalise(equaliser) => equaliser.on_timer(at, &mut self.released),
            }
            self.release(at, exits);
        }
    }
}
