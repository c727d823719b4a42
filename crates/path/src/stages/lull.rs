//! Forwarding lulls: a router pauses while it processes routing updates; afterwards the backlog is mixed with new
//! arrivals (RR-TCP §1, survey §2, C6).

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant};
use serde::Deserialize;

use super::{Departures, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::periods;
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lull {
    /// Time between pauses.
    pub interval: Variate,
    /// Length of a pause.
    pub pause: Variate,
    /// After a pause, one packet of the backlog leaves after each new packet, and at least one per this time.
    #[serde(default = "one_ms")]
    pub drain: Duration,
}

fn one_ms() -> Duration {
    Duration::from_millis(1)
}

impl fmt::Display for Lull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lull { interval, pause, drain } = self;
        write!(
            f,
            "every {interval} forwarding pauses for {pause}; the backlog leaves between new packets or every {drain}"
        )
    }
}

impl Parameters for Lull {
    type Running = Pausing;

    fn checked(self) -> Result<Lull, KeyError> {
        periods(&[&self.interval, &self.pause], "interval")?;
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Pausing {
        let mut times = id.stream(0);
        let next = Instant::ZERO + id.first_interval(&self.interval, &mut times);
        Pausing {
            spec: self.clone(),
            times,
            next,
            until: Instant::ZERO,
            backlog: VecDeque::new(),
            release: Instant::NEVER,
        }
    }

    fn in_order(&self) -> Option<Spec> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Pausing {
    spec: Lull,
    times: Stream,
    /// When the next pause begins, and when the latest one ends.
    next: Instant,
    until: Instant,
    backlog: VecDeque<StagePacket>,
    /// When the oldest packet of the backlog leaves if nothing arrives.
    release: Instant,
}

impl Pausing {
    fn catch_up(&mut self, at: Instant) {
        while self.next <= at {
            self.until = self.next + self.spec.pause.draw(&mut self.times);
            let gap = self.spec.interval.draw(&mut self.times).max(Duration::from_nanos(1));
            self.next = self.until + gap;
        }
    }

    fn release_one(&mut self, at: Instant, exits: &mut Departures) {
        if let Some(item) = self.backlog.pop_front() {
            exits.push(at, item);
        }
        self.release = if self.backlog.is_empty() { Instant::NEVER } else { at + self.spec.drain };
    }
}

impl Stage for Pausing {
    fn on_packet(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) -> StageOutcome {
        self.on_timer(at, exits);
        self.catch_up(at);
        if at < self.until {
            self.backlog.push_back(item);
            self.release = self.until;
            return StageOutcome::Listed;
        }
        if self.backlog.is_empty() && exits.is_empty() {
            return StageOutcome::Departure(at);
        }
        exits.push(at, item);
        if !self.backlog.is_empty() {
            self.release_one(at, exits);
        }
        StageOutcome::Listed
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn deadline(&self) -> Instant {
        self.release
    }

    fn on_timer(&mut self, now: Instant, exits: &mut Departures) {
        while self.release <= now {
            let at = self.release;
            self.release_one(at, exits);
        }
    }
}
