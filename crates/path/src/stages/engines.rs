//! Parallel forwarding engines: packets are dealt out to servers whose service times differ, and leave in the order of
//! completion (RR-TCP §2, survey §3, C4).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Exits, Item, Outcome, Parameters, Spec, Stage};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Engines {
    /// How many there are.
    #[serde(default = "four")]
    pub engines: u32,
    /// Service time of a packet.
    pub service: Variate,
    /// This share of packets takes the slow case,
    #[serde(default)]
    pub slow: Share,
    /// which takes this long.
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
        write!(f, "{} engines take {} a packet", self.engines, self.service)?;
        if self.slow > Share::ZERO {
            write!(f, ", {} of them {}", self.slow, self.slow_service)?;
        }
        Ok(())
    }
}

impl Parameters for Engines {
    fn checked(self) -> Result<Engines, KeyError> {
        match self.engines {
            1..=1024 => Ok(self),
            _ => Err(KeyError::new("engines", "must lie between 1 and 1024")),
        }
    }

    fn build(&self, id: StreamId) -> Box<dyn Stage> {
        Box::new(Pool {
            free_at: vec![Instant::ZERO; self.engines as usize],
            spec: self.clone(),
            selection: id.stream(0),
            times: id.stream(1),
        })
    }

    /// One engine as fast as all together would reorder nothing and take about no time.
    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
struct Pool {
    spec: Engines,
    selection: Stream,
    times: Stream,
    /// When each engine is idle.
    free_at: Vec<Instant>,
}

impl Stage for Pool {
    fn on_packet(&mut self, at: Instant, _item: Item, _exits: &mut Exits) -> Outcome {
        let slow = self.selection.chance(self.spec.slow.get());
        let service = if slow { self.spec.slow_service } else { self.spec.service };
        let service = service.draw(&mut self.times);
        let idlest = self.free_at.iter_mut().min().expect("there is an engine");
        *idlest = at.max(*idlest) + service;
        Outcome::Exit(*idlest)
    }

    fn reorders(&self) -> bool {
        self.spec.engines > 1
    }
}
