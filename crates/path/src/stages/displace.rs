//! Displacement by positions: a packet waits until a number of others have passed. Laor and Gendel's "skip N, reorder
//! M" moves packet N + 1 after packet N + M, which is a displacement by M - 1 positions.

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Share};
use serde::{Deserialize, Serialize};

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Displace {
    /// Number of packets that pass a waiting one.
    pub positions: u32,
    /// Share of packets that are displaced, at random.
    pub probability: Option<Share>,
    /// One packet in each group of this size is displaced.
    pub every: Option<u32>,
    /// The longest time that a packet waits.
    #[serde(default = "one_second")]
    pub release: Duration,
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl fmt::Display for Displace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.every, self.probability) {
            (Some(every), _) => write!(f, "one packet in {every} waits")?,
            (None, probability) => write!(f, "{} of packets wait", probability.unwrap_or_default())?,
        }
        write!(f, " until {} others have passed, but at most {}", self.positions, self.release)
    }
}

impl Parameters for Displace {
    type Running = Displaced;

    fn checked(self) -> Result<Displace, KeyError> {
        if self.positions == 0 {
            return Err(KeyError::new("positions", "must be at least 1"));
        }
        match (self.probability, self.every) {
            (Some(_), None) => Ok(self),
            (None, Some(every)) if every > self.positions => Ok(self),
            (None, Some(_)) => Err(KeyError::new("every", "must be more than `positions`")),
            _ => Err(KeyError::new("probability", "give either `probability` or `every`")),
        }
    }

    fn build(&self, id: StreamId) -> Displaced {
        Displaced {
            spec: self.clone(),
            selection: id.stream(0),
            seen: id.position(self.every.unwrap_or(1)),
            held: VecDeque::new(),
            delayed: 0,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Clone, Copy, Debug)]
struct Held {
    item: StagePacket,
    /// The number of packets that still have to pass.
    passes: u32,
    release: Instant,
}

#[derive(Debug)]
pub(crate) struct Displaced {
    spec: Displace,
    selection: Stream,
    seen: u32,
    held: VecDeque<Held>,
    delayed: u64,
}

impl Displaced {
    fn is_selected(&mut self) -> bool {
        match (self.spec.probability, self.spec.every) {
            (_, Some(every)) => {
                // Of each group, N = every - M pass, the next one waits, and M - 1 = positions pass it.
                self.seen = self.seen % every + 1;
                self.seen == every - self.spec.positions
            }
            (Some(probability), None) => self.selection.chance(probability.get()),
            (None, None) => false,
        }
    }
}

impl Stage for Displaced {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        // An arrival may be known before its time; packets that must leave earlier leave first.
        self.on_timer(at, exits);
        if self.is_selected() {
            self.delayed += 1;
            self.held.push_back(Held { item, passes: self.spec.positions, release: at + self.spec.release });
            return StageOutcome::Listed;
        }
        if self.held.is_empty() && exits.is_empty() {
            return StageOutcome::Departure(at);
        }
        exits.push(at, item);
        for held in &mut self.held {
            held.passes -= 1;
        }
        while let Some(held) = self.held.front().filter(|held| held.passes == 0) {
            exits.push(at, held.item);
            self.held.pop_front();
        }
        StageOutcome::Listed
    }

    fn reorders(&self) -> bool {
        // Waiting packets leave together with the last packet that passes them, so times never decrease.
        false
    }

    fn delayed(&self) -> u64 {
        self.delayed
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn deadline(&self) -> Instant {
        self.held.front().map_or(Instant::NEVER, |held| held.release)
    }

    fn on_timer(&mut self, now: Instant, exits: &mut Departures) {
        while let Some(held) = self.held.front().filter(|held| held.release <= now) {
            exits.push(held.release, held.item);
            self.held.pop_front();
        }
    }
}
