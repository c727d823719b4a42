//! Outages: all packets are lost for some time. Outages occur on a schedule (F-RTO §5.1, C10) or are triggered by
//! packets (RR-TCP Table 4, C19).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Share};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::error::periods;
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Time between outages.
    pub up: Option<Variate>,
    /// Each packet triggers an outage with this probability, and is the first to be lost.
    pub probability: Option<Share>,
    /// How long an outage lasts.
    pub down: Variate,
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.up, self.probability) {
            (Some(up), _) => write!(f, "after {up} everything is lost for {}", self.down),
            (None, probability) => {
                write!(f, "{} of packets start an outage of {}", probability.unwrap_or_default(), self.down)
            }
        }
    }
}

impl Parameters for Outage {
    type Running = Interrupted;

    fn checked(self) -> Result<Outage, KeyError> {
        if let Some(up) = &self.up {
            periods(&[up, &self.down], "up")?;
        }
        match (&self.up, self.probability) {
            (Some(_), None) | (None, Some(_)) => Ok(self),
            _ => Err(KeyError::new("up", "give either `up` or `probability`")),
        }
    }

    fn build(&self, id: StreamId) -> Interrupted {
        let mut times = id.stream(0);
        let next = self.up.map_or(Instant::NEVER, |up| Instant::ZERO + id.first_interval(&up, &mut times));
        Interrupted { spec: self.clone(), times, selection: id.stream(1), next, until: Instant::ZERO }
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Outage(self.clone()))
    }
}

#[derive(Debug)]
pub(crate) struct Interrupted {
    spec: Outage,
    times: Stream,
    selection: Stream,
    /// When the next outage begins, if there is a schedule.
    next: Instant,
    /// When the latest one ends.
    until: Instant,
}

impl Interrupted {
    fn catch_up(&mut self, at: Instant) {
        while self.next <= at {
            self.until = self.next + self.spec.down.draw(&mut self.times);
            let up = self.spec.up.map_or(Duration::MAX, |up| up.draw(&mut self.times));
            self.next = self.until + up.max(Duration::from_nanos(1));
        }
    }
}

impl Stage for Interrupted {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        self.catch_up(at);
        let sets_off = self.spec.probability.is_some_and(|p| self.selection.chance(p.get()));
        if sets_off && self.until <= at {
            self.until = at + self.spec.down.draw(&mut self.times);
            return StageOutcome::Drop(DropReason::Lost);
        }
        if at < self.until { StageOutcome::Drop(DropReason::Lost) } else { StageOutcome::Departure(at) }
    }
}
