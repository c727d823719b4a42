//! Several parallel paths, chosen for each packet (load balancing by packet, bonding, spraying) or once for each flow.

use std::fmt;
use std::hash::Hasher;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Rate, Share};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use super::{Departures, DropReason, Link, Parameters, Server, Spec, Stage, StageOutcome, StagePacket};
use crate::error::positive;
use crate::queue::{QueueSize, hundred_packets};
use crate::random::{Stream, StreamId, unit_interval};

/// How a packet's path is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// By weight, independently for each packet.
    #[default]
    Random,
    /// In turn; a path of weight w takes w packets in a row.
    RoundRobin,
    /// Like `random`, but a new choice only after a pause: packets close to each other stay together.
    Flowlet,
    /// By weight for each flow, as in routers that hash addresses and ports: a flow keeps its path.
    PerFlow,
}

/// One of the paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Branch {
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Serialisation rate, if the path has its own server.
    pub rate: Option<Rate>,
    /// Its queue.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
    /// Each packet on it is lost with this probability.
    #[serde(default)]
    pub loss: Share,
    /// How often it is chosen, relative to the others.
    #[serde(default = "one")]
    pub weight: u32,
}

fn five_ms() -> Duration {
    Duration::from_millis(5)
}

fn one() -> u32 {
    1
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multipath {
    /// How a packet's path is chosen.
    #[serde(default)]
    pub choice: Choice,
    /// The pause after which a flowlet may take another path.
    #[serde(default = "five_ms")]
    pub gap: Duration,
    /// Packets leave the paths only at multiples of this time, as in an emulator that is driven by a clock. Zero: at any
    /// time.
    #[serde(default)]
    pub tick: Duration,
    /// The paths.
    pub paths: Vec<Branch>,
}

impl fmt::Display for Multipath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.choice {
            Choice::Random => write!(f, "each packet takes one of these at random: ")?,
            Choice::RoundRobin => write!(f, "packets take these in turn: ")?,
            Choice::Flowlet => write!(f, "after a pause of {} packets take one of these at random: ", self.gap)?,
            Choice::PerFlow => write!(f, "each flow takes one of these, by its hash: ")?,
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
        if self.tick > Duration::ZERO {
            write!(f, "; packets leave at multiples of {}", self.tick)?;
        }
        Ok(())
    }
}

impl Multipath {
    /// The path whose turn it is after this many packets of a round, and how many packets it has already taken.
    fn turn(&self, mut packets: u32) -> (usize, u32) {
        for (i, path) in self.paths.iter().enumerate() {
            if packets < path.weight {
                return (i, packets);
            }
            packets -= path.weight;
        }
        (0, 0)
    }
}

impl Parameters for Multipath {
    type Running = Parallel;

    fn checked(self) -> Result<Multipath, KeyError> {
        if self.paths.is_empty() {
            return Err(KeyError::new("paths", "there must be at least one path"));
        }
        for (i, path) in self.paths.iter().enumerate() {
            positive(path.rate, &format!("paths[{i}].rate"))?;
        }
        match self.paths.iter().position(|path| path.weight == 0) {
            Some(i) => Err(KeyError::new(format!("paths[{i}].weight"), "must be at least 1")),
            None => Ok(self),
        }
    }

    /// Only the first path.
    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Multipath(Multipath { paths: vec![self.paths[0].clone()], ..self.clone() }))
    }

    fn build(&self, id: StreamId) -> Parallel {
        let branches = self.paths.iter().enumerate().map(|(i, path)| Lane {
            server: Server::new(&Link { rate: path.rate, delay: path.delay, queue: path.queue, ..Link::default() }),
            loss: path.loss,
            chance: id.stream(1 + i as u32),
            weight: path.weight,
        });
        let mut selection = id.stream(0);
        let total_weight = self.paths.iter().map(|path| path.weight).sum();
        let (current, taken) = self.turn(id.position(total_weight));
        Parallel {
            choice: self.choice,
            gap: self.gap,
            tick: self.tick,
            last: Instant::ZERO,
            hasher: SipHasher13::new_with_keys(selection.bits(), selection.bits()),
            selection: id.stream(0),
            total_weight,
            lanes: branches.collect(),
            current,
            taken,
            chosen: 0,
        }
    }

    fn branches(&self) -> u16 {
        u16::try_from(self.paths.len()).unwrap_or(u16::MAX)
    }

    fn rate(&self) -> Option<Rate> {
        let rates: Option<Vec<u64>> = self.paths.iter().map(|path| Some(path.rate?.bits_per_second())).collect();
        rates.map(|rates| Rate::from_bits_per_second(rates.iter().sum()))
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
pub(crate) struct Parallel {
    choice: Choice,
    gap: Duration,
    tick: Duration,
    /// When the last packet arrived.
    last: Instant,
    /// Hashes flows, differently for each router and seed.
    hasher: SipHasher13,
    selection: Stream,
    total_weight: u32,
    lanes: Vec<Lane>,
    /// Round robin: the current lane, and how many packets it has taken.
    current: usize,
    taken: u32,
    /// The lane of the last packet.
    chosen: usize,
}

impl Parallel {
    fn choose(&mut self, at: Instant, flow: u32) -> usize {
        match self.choice {
            Choice::Random => self.draw(),
            Choice::PerFlow => {
                let mut hasher = self.hasher;
                hasher.write(&flow.to_be_bytes());
                self.lane_at(unit_interval(hasher.finish()))
            }
            Choice::Flowlet => {
                if at.since(self.last) > self.gap {
                    self.current = self.draw();
                }
                self.last = at;
                self.current
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

    /// Draws a lane by weight.
    fn draw(&mut self) -> usize {
        let share = self.selection.uniform();
        self.lane_at(share)
    }

    /// The lane at this share of the weights.
    fn lane_at(&self, share: f64) -> usize {
        let mut ticket = share * f64::from(self.total_weight);
        let reached = self.lanes.iter().position(|lane| {
            ticket -= f64::from(lane.weight);
            ticket < 0.0
        });
        reached.unwrap_or(self.lanes.len() - 1)
    }
}

/// The first multiple of `tick` that is not before `at`.
fn next_tick(at: Instant, tick: Duration) -> Instant {
    match at.since(Instant::ZERO).as_nanos().checked_rem(tick.as_nanos()) {
        None | Some(0) => at,
        Some(past) => at + (tick - Duration::from_nanos(past)),
    }
}

impl Stage for Parallel {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        self.chosen = self.choose(at, item.flow);
        let lane = &mut self.lanes[self.chosen];
        if lane.loss > Share::ZERO && lane.chance.chance(lane.loss.get()) {
            return StageOutcome::Drop(DropReason::Lost);
        }
        match lane.server.pass(at, item.size) {
            Ok(exit) => StageOutcome::Departure(next_tick(exit, self.tick)),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }

    fn branch(&self) -> Option<u16> {
        u16::try_from(self.chosen).ok()
    }

    fn reorders(&self) -> bool {
        self.lanes.len() > 1
    }

    fn reads_flows(&self) -> bool {
        self.choice == Choice::PerFlow
    }
}
