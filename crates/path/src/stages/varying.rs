//! A link whose rate drops from time to time: competing traffic on a slow shared link (F-RTO §1, C11).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Duration, Instant, Rate};
use serde::Deserialize;

use super::{Departures, Link, Parameters, Server, Spec, Stage, StageOutcome, StagePacket};
use crate::error::{periods, positive};
use crate::queue::{QueueSize, hundred_packets};
use crate::random::{Stream, StreamId, Variate};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Varying {
    /// The rate most of the time.
    pub rate: Rate,
    /// The rate in the slow periods.
    pub slow_rate: Rate,
    /// Length of a fast period.
    pub fast_for: Variate,
    /// Length of a slow period.
    pub slow_for: Variate,
    /// Propagation delay.
    #[serde(default)]
    pub delay: Duration,
    /// Capacity of the queue, excluding the packet that is being serialised.
    #[serde(default = "hundred_packets")]
    pub queue: QueueSize,
}

impl fmt::Display for Varying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Varying { rate, slow_rate, fast_for, slow_for, delay, queue } = self;
        write!(f, "{rate} for {fast_for}, then {slow_rate} for {slow_for}; {delay} one way, queue of {queue}")
    }
}

impl Varying {
    fn link(&self) -> Link {
        Link { rate: Some(self.rate), delay: self.delay, queue: self.queue, ..Link::default() }
    }
}

impl Parameters for Varying {
    type Running = Changing;

    fn checked(self) -> Result<Varying, KeyError> {
        positive(self.slow_rate, "slow_rate")?;
        periods(&[&self.fast_for, &self.slow_for], "fast_for")?;
        if self.slow_rate > self.rate {
            return Err(KeyError::new("slow_rate", "must be at most `rate`"));
        }
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Changing {
        let mut periods = id.stream(0);
        // A period of zero would never end.
        let first = id.first_interval(&self.fast_for, &mut periods).max(Duration::from_micros(1));
        let pace = Pace { spec: self.clone(), periods, slow: false, until: Instant::ZERO + first };
        Changing { server: Server::new(&self.link()), pace }
    }

    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Varying(self.clone()))
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }
}

#[derive(Debug)]
pub(crate) struct Changing {
    server: Server,
    pace: Pace,
}

/// The rate over time. Packets are served in order, so the times asked for never decrease.
#[derive(Debug)]
struct Pace {
    spec: Varying,
    periods: Stream,
    slow: bool,
    /// The end of the current period.
    until: Instant,
}

impl Pace {
    /// When `size` bytes are transmitted whose transmission begins at `start`.
    fn serve(&mut self, start: Instant, size: Bytes) -> Instant {
        let mut at = start;
        let mut left = size.0 as f64;
        loop {
            while self.until <= at {
                self.slow = !self.slow;
                let length = if self.slow { self.spec.slow_for } else { self.spec.fast_for };
                // A period of zero would never end.
                self.until = self.until + length.draw(&mut self.periods).max(Duration::from_micros(1));
            }
            let rate = if self.slow { self.spec.slow_rate } else { self.spec.rate };
            let needed = rate.time_for(Bytes(1_000_000)).as_secs_f64() * left / 1e6;
            let room = self.until.since(at).as_secs_f64();
            if needed <= room {
                return at + Duration::from_secs_f64(needed);
            }
            left -= left * room / needed;
            at = self.until;
        }
    }
}

impl Stage for Changing {
    fn on_packet(&mut self, at: Instant, item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let pace = &mut self.pace;
        match self.server.pass_served(at, item.size, |start| pace.serve(start, item.size)) {
            Ok(exit) => StageOutcome::Departure(exit),
            Err(drop) => StageOutcome::Drop(drop),
        }
    }
}
