//! Random early detection (Floyd and Jacobson, 1993): packets are dropped at random, more of them as the average length of
//! the queue grows.

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Duration, Instant, Share};
use serde::{Deserialize, Serialize};

use super::{DropReason, Server};
use crate::random::Stream;

/// Random early detection. The thresholds apply to the average queue length, in packets.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Red {
    /// Below this nothing is dropped.
    pub min: f64,
    /// From this length on every packet is dropped.
    pub max: f64,
    /// Probability of a drop just below `max`.
    #[serde(default = "a_tenth")]
    pub probability: Share,
    /// Weight of the current queue length in the average, per arrival.
    #[serde(default = "usual_weight")]
    pub weight: f64,
}

fn a_tenth() -> Share {
    Share::new(0.1).unwrap_or(Share::ONE)
}

fn usual_weight() -> f64 {
    0.002
}

impl fmt::Display for Red {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RED between {} and {} packets", self.min, self.max)
    }
}

impl Red {
    pub(super) fn check(&self) -> Result<(), KeyError> {
        if !(self.min >= 0.0 && self.min < self.max) {
            return Err(KeyError::new("red.max", "must be more than `min`, which must not be negative"));
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(KeyError::new("red.weight", "must be between 0 and 1"));
        }
        Ok(())
    }
}

/// A link with a RED queue.
#[derive(Debug)]
pub(crate) struct Managed {
    server: Server,
    red: Red,
    chance: Stream,
    /// The average queue length in packets.
    average: f64,
    /// Packets accepted since the last drop while the average was between the thresholds.
    since_drop: u32,
}

impl Managed {
    pub(super) fn new(server: Server, red: &Red, chance: Stream) -> Managed {
        Managed { server, red: red.clone(), chance, average: 0.0, since_drop: 0 }
    }

    /// As [`Server::pass`].
    pub(super) fn pass(&mut self, at: Instant, size: Bytes) -> Result<Instant, DropReason> {
        self.update_average(at, size);
        if self.drops() { Err(DropReason::Early) } else { self.server.pass(at, size) }
    }

    /// While the link is idle, the average decays as if small packets had passed.
    fn update_average(&mut self, at: Instant, size: Bytes) {
        let free_at = self.server.free_at();
        if free_at < at
            && let Some(rate) = self.server.rate
        {
            let packet = rate.time_for(size).max(Duration::from_nanos(1));
            let missed = at.since(free_at).as_secs_f64() / packet.as_secs_f64();
            self.average *= libm::pow(1.0 - self.red.weight, missed);
        }
        self.average += self.red.weight * (self.server.backlog(at) as f64 - self.average);
    }

    /// Drops are spread evenly: the probability grows with the number of packets since the last drop.
    fn drops(&mut self) -> bool {
        if self.average < self.red.min {
            self.since_drop = 0;
            return false;
        }
        let share = (self.average - self.red.min) / (self.red.max - self.red.min);
        let base = self.red.probability.get() * share;
        let spread = 1.0 - f64::from(self.since_drop) * base;
        let hit = self.average >= self.red.max || spread <= 0.0 || self.chance.chance(base / spread);
        self.since_drop = if hit { 0 } else { self.since_drop + 1 };
        hit
    }
}
