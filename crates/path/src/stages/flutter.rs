//! Route fluttering: all packets take the current route, which changes at random times (survey §2 and §7, "route
//! fluttering").

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Departures, Link, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::periods;
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flutter {
    /// Time between changes of the route.
    pub interval: Variate,
    /// Delay of a route.
    pub delay: Variate,
    /// Routes with a smaller delay are drawn again.
    #[serde(default)]
    pub minimum: Duration,
}

impl fmt::Display for Flutter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flutter { interval, delay, minimum } = self;
        write!(f, "the route changes every {interval}, to a delay of {delay}, at least {minimum}")
    }
}

impl Parameters for Flutter {
    type Running = Fluttering;

    fn checked(self) -> Result<Flutter, KeyError> {
        periods(&[&self.interval], "interval")?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Fluttering {
        let mut changes = id.stream(0);
        let next_change = Instant::ZERO + id.first_interval(&self.interval, &mut changes).max(Duration::from_nanos(1));
        let (spec, delays) = (self.clone(), id.stream(1));
        let mut route = Fluttering { spec, changes, delays, next_change, delay: Duration::ZERO };
        route.delay = route.draw();
        route
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Link(Link { delay: self.minimum, ..Link::default() }))
    }
}

#[derive(Debug)]
pub(crate) struct Fluttering {
    spec: Flutter,
    changes: Stream,
    delays: Stream,
    next_change: Instant,
    delay: Duration,
}

/// Redraws after which the minimum is used: almost the whole distribution lies below it.
const MAX_REDRAWS: u32 = 1000;

impl Fluttering {
    fn draw(&mut self) -> Duration {
        for _ in 0..MAX_REDRAWS {
            let delay = self.spec.delay.draw(&mut self.delays);
            if delay >= self.spec.minimum {
                return delay;
            }
        }
        self.spec.minimum
    }
}

impl Stage for Fluttering {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        while self.next_change <= at {
            // An interval of zero would never end.
            let interval = self.spec.interval.draw(&mut self.changes).max(Duration::from_nanos(1));
            self.next_change = self.next_change + interval;
            self.delay = self.draw();
        }
        StageOutcome::Departure(at + self.delay)
    }

    fn reorders(&self) -> bool {
        true
    }
}
