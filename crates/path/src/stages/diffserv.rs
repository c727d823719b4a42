//! `DiffServ` marking: a token bucket separates packets within a profile, which have priority, from best-effort
//! packets, which share a queue with other traffic (RR-TCP §1, C12).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate, Share};
use serde::Deserialize;

use super::{Departures, Link, Parameters, Server, Spec, Stage, StageOutcome, StagePacket};
use crate::error::positive;
use crate::queue::{QueueSize, hundred_packets};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffServ {
    /// Rate at which each of the two queues is served.
    pub rate: Rate,
    /// Rate of the tokens.
    pub profile: Rate,
    /// Depth of the bucket, in packets of 1500 bytes.
    #[serde(default = "ten")]
    pub depth: u32,
    /// Share of the best-effort class that other traffic takes.
    #[serde(default)]
    pub load: Share,
    /// Queue of the best-effort class.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
}

fn ten() -> u32 {
    10
}

/// Size of packets of other traffic, and the unit of the bucket's depth.
const FULL: Bytes = Bytes(1500);

impl fmt::Display for DiffServ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiffServ { rate, profile, depth, load, queue } = self;
        write!(
            f,
            "{rate}; packets above {profile} (bursts of {depth}) become best effort; other traffic uses {load} of the rate; queue of {queue}"
        )
    }
}

impl Parameters for DiffServ {
    type Running = Marking;

    fn checked(self) -> Result<DiffServ, KeyError> {
        positive(self.rate, "rate")?;
        positive(self.profile, "profile")?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Marking {
        let link = |queue| Link { rate: Some(self.rate), queue, ..Link::default() };
        Marking {
            tokens: (FULL * u64::from(self.depth)).0 as f64,
            spec: self.clone(),
            refilled: Instant::ZERO,
            priority: Server::new(&link(QueueSize::Capacity(Capacity::Bytes(Bytes::MAX)))),
            best_effort: Server::new(&link(self.queue)),
            others: id.stream(0),
            next_other: Instant::ZERO,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Link(Link { rate: Some(self.rate), queue: self.queue, ..Link::default() }))
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

#[derive(Debug)]
pub(crate) struct Marking {
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

    /// Serves the packets of other traffic that arrived before `at`.
    fn serve_others(&mut self, at: Instant) {
        let load = self.spec.load.get();
        if load <= 0.0 {
            return;
        }
        let mean = self.spec.rate.time_for(FULL).mul_f64(1.0 / load);
        while self.next_other <= at {
            let _ = self.best_effort.pass(self.next_other, FULL); // losses of other traffic do not matter
            let gap = mean.mul_f64(self.others.exponential()).max(Duration::from_nanos(1));
            self.next_other = self.next_other + gap;
        }
    }
}

impl Stage for Marking {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        self.serve_others(at);
        let queue = if self.is_in_profile(at, item.size) { &mut self.priority } else { &mut self.best_effort };
        match queue.pass(at, item.size) {
            Ok(exit) => StageOutcome::Departure(exit),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }

    fn reorders(&self) -> bool {
        true
    }
}
