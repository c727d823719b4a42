//! Parallel forwarding engines: packets are distributed to engines with different service times, and leave in the order
//! of completion (RR-TCP §1, survey §2, C4).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// The number of engines.
    #[serde(default = "four")]
    pub engines: u32,
    /// Service time of a packet.
    pub service: Variate,
    /// Share of packets that need the slow service.
    #[serde(default)]
    pub slow: Share,
    /// Service time of such a packet.
    #[serde(default = "nothing")]
    pub slow_service: Variate,
}

fn four() -> u32 {
    4
}

fn nothing() -> Variate {
    Variate::Constant(Duration::ZERO)
}

impl fmt::Display for Engines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} engines that take {} per packet", self.engines, self.service)?;
        if self.slow > Share::ZERO {
            write!(f, ", or {} for {} of packets", self.slow_service, self.slow)?;
        }
        Ok(())
    }
}

impl Parameters for Engines {
    type Running = Pool;

    fn checked(self) -> Result<Engines, KeyError> {
        match self.engines {
            1..=1024 => Ok(self),
            _ => Err(KeyError::new("engines", "must be from 1 to 1024")),
        }
    }

    fn build(&self, id: StreamId) -> Pool {
        Pool {
            free_at: vec![Instant::ZERO; self.engines as usize],
            spec: self.clone(),
            selection: id.stream(0),
            times: id.stream(1),
        }
    }

    /// A single engine with the speed of all together would reorder nothing and add almost no delay.
    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    spec: Engines,
    selection: Stream,
    times: Stream,
    /// When each engine becomes idle.
    free_at: Vec<Instant>,
}

impl Stage for Pool {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let slow = self.selection.chance(self.spec.slow.get());
        let service = if slow { self.spec.slow_service } else { self.spec.service };
        let service = service.draw(&mut self.times);
        let idlest = self.free_at.iter_mut().min().expect("there is an engine");
        *idlest = at.max(*idlest) + service;
        StageOutcome::Departure(*idlest)
    }

    fn reorders(&self) -> bool {
        self.spec.engines > 1
    }
}
