//! `DiffServ` marking: a token bucket sorts packets into a profile that has priority and a best effort that shares its link
//! with others (RR-TCP §2, C12).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate, Segments, Share};
use serde::Deserialize;

use super::{Exits, Item, Link, Outcome, Parameters, Server, Spec, Stage};
use crate::error::positive;
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffServ {
    /// Rate of each of the two queues' servers.
    pub rate: Rate,
    /// Tokens come at this rate.
    pub profile: Rate,
    /// Packets of 1500 bytes that the bucket holds.
    #[serde(default = "ten")]
    pub depth: u32,
    /// Others' share of the best effort.
    #[serde(default)]
    pub load: Share,
    /// The best effort's queue.
    #[serde(default = "hundred_packets")]
    pub queue: Capacity,
}

fn ten() -> u32 {
    10
}

fn hundred_packets() -> Capacity {
    Capacity::Count(Segments(100))
}

/// Size of others' packets, and of what the bucket's depth counts.
const FULL: Bytes = Bytes(1500);

impl fmt::Display for DiffServ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiffServ { rate, profile, depth, load, queue } = self;
        write!(
            f,
            "{rate}; beyond {profile} and {depth} packets of burst best effort, of which others take {load}, queue of {queue}"
        )
    }
}

impl Parameters for DiffServ {
    fn checked(self) -> Result<DiffServ, KeyError> {
        positive(self.rate, "rate")?;
        positive(self.profile, "profile")?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Box<dyn Stage> {
        let link = |queue| Link { rate: Some(self.rate), queue, ..Link::default() };
        Box::new(Marking {
            tokens: (FULL * u64::from(self.depth)).0 as f64,
            spec: self.clone(),
            refilled: Instant::ZERO,
            priority: Server::new(&link(Capacity::Bytes(Bytes::MAX))),
            best_effort: Server::new(&link(self.queue)),
            others: id.stream(0),
            next_other: Instant::ZERO,
        })
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Link(Link { rate: Some(self.rate), queue: self.queue, ..Link::default() }))
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

#[derive(Debug)]
struct Marking {
    spec: DiffServ,
    /// Bytes.
    tokens: f64,
    refilled: Instant,
    priority: Server,
    best_effort: Server,
    others: Stream,
    next_other: Instant,
}

impl Marking {
    fn is_in_profile(&mut self, at: Instant, size: Bytes) -> bool {
        let per_byte = self.spec.profile.time_for(Bytes(1_000_000)).as_secs_f64() / 1e6;
        let depth = (FULL * u64::from(self.spec.depth)).0 as f64;
        self.tokens = (self.tokens + at.since(self.refilled).as_secs_f64() / per_byte).min(depth);
        self.refilled = at;
        let enough = self.tokens >= size.0 as f64;
        if enough {
            self.tokens -= size.0 as f64;
        }
        enough
    }

    /// Others' packets that came before `at`.
    fn serve_others(&mut self, at: Instant) {
        let load = self.spec.load.get();
        if load <= 0.0 {
            return;
        }
        let mean = self.spec.rate.time_for(FULL).mul_f64(1.0 / load);
        while self.next_other <= at {
            let _ = self.best_effort.pass(self.next_other, FULL); // theirs to lose
            let gap = mean.mul_f64(self.others.exponential()).max(Duration::from_nanos(1));
            self.next_other = self.next_other + gap;
        }
    }
}

impl Stage for Marking {
    fn on_packet(&mut self, at: Instant, item: Item, _exits: &mut Exits) -> Outcome {
        self.serve_others(at);
        let queue = if self.is_in_profile(at, item.size) { &mut self.priority } else { &mut self.best_effort };
        match queue.pass(at, item.size) {
            Ok(exit) => Outcome::Exit(exit),
            Err(drop) => Outcome::Drop(drop),
        }
    }

    fn reorders(&self) -> bool {
        true
    }
}
