//! Several parallel paths, chosen anew for each packet: load balancing by packet, bonding, spraying.

use std::fmt;

use reknit_units::{Capacity, Duration, Instant, Rate, Segments, Share};
use serde::{Deserialize, Serialize};

use super::{Drop, Exits, Fate, Item, Link, Server, Spec, Stage};
use crate::profile::KeyError;
use crate::random::{Stream, StreamId};

/// How a packet's path is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// By weight, independently of all others.
    #[default]
    Random,
    /// One after the other; a path of weight w takes w packets in a row.
    RoundRobin,
}

/// One of the paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Serialisation rate, if the path has a server of its own.
    pub rate: Option<Rate>,
    /// Its queue.
    #[serde(default = "hundred_packets")]
    pub queue: Capacity,
    /// Each packet on it is lost with this probability.
    #[serde(default)]
    pub loss: Share,
    /// How often it is chosen, relative to the others.
    #[serde(default = "one")]
    pub weight: u32,
}

fn hundred_packets() -> Capacity {
    Capacity::Count(Segments(100))
}

fn one() -> u32 {
    1
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multipath {
    /// How a packet's path is chosen.
    #[serde(default)]
    pub choice: Choice,
    /// The paths.
    pub paths: Vec<Branch>,
}

impl fmt::Display for Multipath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.choice {
            Choice::Random => write!(f, "each packet takes one of these at random: ")?,
            Choice::RoundRobin => write!(f, "packets take these in turn: ")?,
        }
        for (i, path) in self.paths.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { "; " }, path.delay)?;
            if let Some(rate) = path.rate {
                write!(f, " at {rate} with a queue of {}", path.queue)?;
            }
            if path.loss > Share::ZERO {
                write!(f, ", {} lost", path.loss)?;
            }
            if path.weight > 1 {
                write!(f, ", weight {}", path.weight)?;
            }
        }
        Ok(())
    }
}

impl Multipath {
    pub(super) fn checked(self) -> Result<Multipath, KeyError> {
        if self.paths.is_empty() {
            return Err(KeyError::new("paths", "there must be at least one path"));
        }
        match self.paths.iter().position(|path| path.weight == 0) {
            Some(i) => Err(KeyError::new(format!("paths[{i}].weight"), "must be at least 1")),
            None => Ok(self),
        }
    }

    /// The first path alone, which keeps the order.
    pub(super) fn first_path(&self) -> Spec {
        Spec::Multipath(Multipath { choice: self.choice, paths: vec![self.paths[0].clone()] })
    }

    pub(super) fn build(&self, id: StreamId) -> Box<dyn Stage> {
        let branches = self.paths.iter().enumerate().map(|(i, path)| Lane {
            server: Server::new(&Link { rate: path.rate, delay: path.delay, queue: path.queue }),
            loss: path.loss,
            chance: id.stream(1 + i as u32),
            weight: path.weight,
        });
        Box::new(Parallel {
            choice: self.choice,
            selection: id.stream(0),
            total_weight: self.paths.iter().map(|path| path.weight).sum(),
            lanes: branches.collect(),
            current: 0,
            taken: 0,
        })
    }
}

#[derive(Debug)]
struct Lane {
    server: Server,
    loss: Share,
    chance: Stream,
    weight: u32,
}

#[derive(Debug)]
struct Parallel {
    choice: Choice,
    selection: Stream,
    total_weight: u32,
    lanes: Vec<Lane>,
    /// Round robin: the lane in turn, and how many packets it has taken.
    current: usize,
    taken: u32,
}

impl Parallel {
    fn choose(&mut self) -> usize {
        match self.choice {
            Choice::Random => {
                let mut ticket = self.selection.uniform() * f64::from(self.total_weight);
                let reached = self.lanes.iter().position(|lane| {
                    ticket -= f64::from(lane.weight);
                    ticket < 0.0
                });
                reached.unwrap_or(self.lanes.len() - 1)
            }
            Choice::RoundRobin => {
                if self.taken == self.lanes[self.current].weight {
                    self.current = (self.current + 1) % self.lanes.len();
                    self.taken = 0;
                }
                self.taken += 1;
                self.current
            }
        }
    }
}

impl Stage for Parallel {
    fn on_packet(&mut self, at: Instant, item: Item, _exits: &mut Exits) -> Fate {
        let chosen = self.choose();
        let lane = &mut self.lanes[chosen];
        if lane.loss > Share::ZERO && lane.chance.chance(lane.loss.get()) {
            return Fate::Drop(Drop::Lost);
        }
        match lane.server.pass(at, item.size) {
            Ok(exit) => Fate::Exit(exit),
            Err(drop) => Fate::Drop(drop),
        }
    }

    fn reorders(&self) -> bool {
        self.lanes.len() > 1
    }
}
