//! A route cache: after a miss, packets wait on the slow path until the look-up is done; later packets find the entry
//! and overtake them (Yang §2.1, C5).

use std::fmt;

use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlowPath {
    /// How long a look-up takes.
    pub lookup: Duration,
    /// Service time on the slow path for each packet that waited.
    pub service: Duration,
    /// How long an entry stays in the cache.
    pub eviction: Variate,
}

impl fmt::Display for SlowPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SlowPath { lookup, service, eviction } = self;
        write!(f, "a route look-up of {lookup} after {eviction}; packets that waited take {service} each")
    }
}

impl Parameters for SlowPath {
    type Running = Cache;

    fn build(&self, id: StreamId) -> Cache {
        Cache {
            spec: self.clone(),
            lives: id.stream(0),
            found_at: Instant::ZERO,
            evicted_at: Instant::ZERO,
            slow_free_at: Instant::ZERO,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Cache {
    spec: SlowPath,
    lives: Stream,
    /// When the latest look-up is complete.
    found_at: Instant,
    /// When its entry is removed from the cache.
    evicted_at: Instant,
    /// When the slow path has served all packets.
    slow_free_at: Instant,
}

impl Stage for Cache {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        if self.evicted_at <= at {
            self.found_at = at + self.spec.lookup;
            self.evicted_at = self.found_at + self.spec.eviction.draw(&mut self.lives);
        }
        if self.found_at <= at {
            return StageOutcome::Departure(at);
        }
        self.slow_free_at = self.slow_free_at.max(self.found_at) + self.spec.service;
        StageOutcome::Departure(self.slow_free_at)
    }

    fn reorders(&self) -> bool {
        true
    }
}
