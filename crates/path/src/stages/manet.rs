//! A mobile ad-hoc network: a route exists for some time, and is then followed by a longer or shorter one, on which
//! packets may overtake those that are still on their way along the old one (Yang §2.1.4, survey §2, C13). If the old
//! route broke, there is an outage before the next one is found.

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Departures, DropReason, Link, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::periods;
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manet {
    /// Hops of the shortest route.
    #[serde(default = "two")]
    pub min_hops: u32,
    /// Hops of the longest route.
    #[serde(default = "six")]
    pub max_hops: u32,
    /// Delay of a hop.
    pub hop: Variate,
    /// Lifetime of a route.
    pub life: Variate,
    /// Time without a route after it breaks.
    pub outage: Variate,
    /// Share of the changes of the route at which the old one breaks; at the others it works until the new one is used.
    #[serde(default = "half")]
    pub breaks: Share,
}

fn two() -> u32 {
    2
}

fn six() -> u32 {
    6
}

fn half() -> Share {
    Share::new(0.5).unwrap_or_default()
}

impl fmt::Display for Manet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Manet { min_hops, max_hops, hop, life, outage, breaks } = self;
        write!(
            f,
            "routes of {min_hops} to {max_hops} hops of {hop}, each for {life}, then in {breaks} of cases none for {outage}"
        )
    }
}

impl Parameters for Manet {
    type Running = Roaming;

    fn checked(self) -> Result<Manet, KeyError> {
        if self.min_hops == 0 || self.min_hops > self.max_hops || self.max_hops > 64 {
            return Err(KeyError::new("min_hops", "must be at least 1 and at most `max_hops`, which is at most 64"));
        }
        periods(&[&self.life, &self.outage], "life")?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Roaming {
        Roaming {
            hops: u32::midpoint(self.min_hops, self.max_hops),
            spec: self.clone(),
            steps: id.stream(0),
            delays: id.stream(1),
            times: id.stream(2),
            breaks: id.stream(3),
            delay: Duration::ZERO,
            route_until: Instant::ZERO,
            outage_until: Instant::ZERO,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        let shortest = self.hop.mean()? * u64::from(self.min_hops);
        Some(Spec::Link(Link { delay: shortest, ..Link::default() }))
    }
}

#[derive(Debug)]
pub(crate) struct Roaming {
    spec: Manet,
    steps: Stream,
    delays: Stream,
    times: Stream,
    breaks: Stream,
    hops: u32,
    delay: Duration,
    route_until: Instant,
    outage_until: Instant,
}

impl Roaming {
    /// The next route is one hop longer or shorter, or has the same length.
    fn next_route(&mut self) {
        let step = self.steps.below(3);
        self.hops = (self.hops + step).saturating_sub(1).clamp(self.spec.min_hops, self.spec.max_hops);
        self.delay = (0..self.hops).fold(Duration::ZERO, |sum, _| sum + self.spec.hop.draw(&mut self.delays));
        let life = self.spec.life.draw(&mut self.times).max(Duration::from_nanos(1));
        self.route_until = self.outage_until + life;
    }

    fn catch_up(&mut self, at: Instant) {
        while self.route_until <= at {
            self.outage_until = self.route_until;
            if self.route_until > Instant::ZERO && self.breaks.chance(self.spec.breaks.get()) {
                self.outage_until = self.route_until + self.spec.outage.draw(&mut self.times);
            }
            self.next_route();
        }
    }
}

impl Stage for Roaming {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        self.catch_up(at);
        if at < self.outage_until {
            StageOutcome::Drop(DropReason::Lost)
        } else {
            StageOutcome::Departure(at + self.delay)
        }
    }

    fn reorders(&self) -> bool {
        true
    }
}
