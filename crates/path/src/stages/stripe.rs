//! A bundle of parallel links without resequencing: different packet sizes, other traffic and different rates make the
//! queues unequal (Yang §2.1, RR-TCP §1, survey §2, Laor and Gendel, C3).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Duration, Instant, Rate, Share};
use serde::Deserialize;

use super::{Departures, Link, Parameters, Server, Spec, Stage, StageOutcome, StagePacket};
use crate::error::positive;
use crate::random::{Stream, StreamId, Variate};

/// How a packet's link is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The link that becomes idle first, so that no capacity is wasted.
    #[default]
    NextIdle,
    /// In turn.
    RoundRobin,
}

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stripe {
    /// Number of links.
    pub links: Option<u32>,
    /// Rate of each link.
    pub rate: Option<Rate>,
    /// Instead of `links` and `rate`: the rate of one link after the other.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// How a packet's link is chosen.
    #[serde(default)]
    pub arbitration: Arbitration,
    /// Share of the bundle that other traffic takes: half of its packets have 40 bytes, a fifth 576, three tenths 1500.
    #[serde(default)]
    pub load: Share,
    /// Propagation delay of each link beyond that of the shortest.
    #[serde(default = "none")]
    pub skew: Variate,
}

fn none() -> Variate {
    Variate::Constant(Duration::ZERO)
}

/// Packet sizes of other traffic, with cumulative shares.
const SIZES: [(f64, Bytes); 3] = [(0.5, Bytes(40)), (0.7, Bytes(576)), (1.0, Bytes(1500))];
/// The mean size: 0.5 * 40 + 0.2 * 576 + 0.3 * 1500.
const MEAN_SIZE: f64 = 585.2;

impl fmt::Display for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.arbitration {
            Arbitration::NextIdle => "the next idle one",
            Arbitration::RoundRobin => "in turn",
        };
        let rates: Vec<String> = self.rates().iter().map(Rate::to_string).collect();
        match self.rate {
            Some(rate) => write!(f, "{} links of {rate}", rates.len())?,
            None => write!(f, "links of {}", rates.join(", "))?,
        }
        write!(f, ", {how}; other traffic takes {}, skew {}", self.load, self.skew)
    }
}

const MOST_LINKS: u32 = 1024;

impl Stripe {
    /// The rate of each link.
    fn rates(&self) -> Vec<Rate> {
        let alike = self.rate.map(|rate| vec![rate; self.links.unwrap_or_default() as usize]);
        alike.unwrap_or_else(|| self.rates.clone())
    }

    /// The rate of all links together.
    fn sum(&self) -> Rate {
        Rate::from_bits_per_second(self.rates().iter().map(|rate| rate.bits_per_second()).sum())
    }
}

impl Parameters for Stripe {
    type Running = Bundle;

    fn checked(self) -> Result<Stripe, KeyError> {
        match (self.links, self.rate, &self.rates[..]) {
            (Some(links), Some(rate), []) => {
                positive(rate, "rate")?;
                if !(1..=MOST_LINKS).contains(&links) {
                    return Err(KeyError::new("links", format!("must be from 1 to {MOST_LINKS}")));
                }
            }
            (None, None, [_, ..]) => {
                self.rates.iter().try_for_each(|rate| positive(*rate, "rates"))?;
                if self.rates.len() > MOST_LINKS as usize {
                    return Err(KeyError::new("rates", format!("must be at most {MOST_LINKS}")));
                }
            }
            _ => return Err(KeyError::new("links", "give either `links` and `rate`, or `rates`")),
        }
        if self.load >= Share::ONE {
            return Err(KeyError::new("load", "must be less than 1"));
        }
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Bundle {
        let mut skews = id.stream(1);
        let link = |rate| Server::new(&Link { rate: Some(rate), delay: self.skew.draw(&mut skews), ..Link::default() });
        let servers: Vec<Server> = self.rates().into_iter().map(link).collect();
        Bundle {
            turn: id.position(self.branches().into()) as usize,
            servers,
            spec: self.clone(),
            others: id.stream(0),
            mean_gap: self.sum().time_for(Bytes(1_000_000)).mul_f64(MEAN_SIZE / 1e6 / self.load.get()),
            next_other: Instant::ZERO,
            chosen: 0,
        }
    }

    /// One link with the part of the bundle's rate that other traffic does not take.
    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Link(Link { rate: self.rate(), ..Link::default() }))
    }

    fn branches(&self) -> u16 {
        u16::try_from(self.rates().len()).unwrap_or(u16::MAX)
    }

    fn rate(&self) -> Option<Rate> {
        let free = self.sum().bits_per_second() as f64 * (1.0 - self.load.get());
        #[expect(clippy::cast_sign_loss, reason = "a load is at most 1")]
        Some(Rate::from_bits_per_second(free as u64))
    }
}

#[derive(Debug)]
pub(crate) struct Bundle {
    spec: Stripe,
    servers: Vec<Server>,
    others: Stream,
    /// The mean time between two packets of other traffic.
    mean_gap: Duration,
    next_other: Instant,
    turn: usize,
    /// The link of the last packet.
    chosen: usize,
}

impl Bundle {
    fn choose(&mut self) -> &mut Server {
        self.turn = (self.turn + 1) % self.servers.len();
        self.chosen = match self.spec.arbitration {
            Arbitration::RoundRobin => self.turn,
            Arbitration::NextIdle => {
                (0..self.servers.len()).min_by_key(|i| self.servers[*i].free_at()).expect("there is a link")
            }
        };
        &mut self.servers[self.chosen]
    }

    /// Serves the packets of other traffic that arrived before `at`.
    fn serve_others(&mut self, at: Instant) {
        if self.spec.load == Share::ZERO {
            return;
        }
        while self.next_other <= at {
            let ticket = self.others.uniform();
            let size = SIZES.iter().find(|(upto, _)| ticket < *upto).map_or(Bytes(1500), |(_, size)| *size);
            let when = self.next_other;
            let _ = self.choose().pass(when, size); // losses of other traffic do not matter
            self.next_other = when + self.mean_gap.mul_f64(self.others.exponential()).max(Duration::from_nanos(1));
        }
    }
}

impl Stage for Bundle {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        self.serve_others(at);
        match self.choose().pass(at, item.size) {
            Ok(exit) => StageOutcome::Departure(exit),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }

    fn branch(&self) -> Option<u16> {
        u16::try_from(self.chosen).ok()
    }

    fn reorders(&self) -> bool {
        self.servers.len() > 1
    }
}
