//! A chain of 802.11 hops: each hop retransmits a frame until it succeeds, and waits a random number of slots that
//! doubles with each failure. The delay varies, but nothing is reordered (RR-TCP §6, C14).

use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Duration, Instant, Rate, Share};
use serde::Deserialize;

use super::{Departures, DropReason, Parameters, Spec, Stage, StageOutcome, StagePacket};
use crate::random::{Stream, StreamId};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Wlan {
    /// Number of hops.
    pub hops: u32,
    /// Each transmission fails with this probability.
    pub probability: Share,
    /// A slot of the back-off.
    pub slot: Duration,
    /// The first contention window in slots.
    pub cw_min: u32,
    /// The largest contention window in slots.
    pub cw_max: u32,
    /// Transmissions after which a hop drops the frame.
    pub tries: u32,
    /// Duration of a transmission.
    pub frame: Duration,
}

impl Default for Wlan {
    fn default() -> Wlan {
        Wlan {
            hops: 4,
            probability: Share::new(0.2).unwrap_or_default(),
            slot: Duration::from_micros(20),
            cw_min: 31,
            cw_max: 1023,
            tries: 7,
            frame: Duration::from_millis(2),
        }
    }
}

impl fmt::Display for Wlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wlan { hops, probability, frame, tries, .. } = self;
        write!(f, "{hops} wireless hops, {frame} per frame; {probability} of the frames fail, at most {tries} tries")
    }
}

impl Parameters for Wlan {
    type Running = Chain;

    fn checked(self) -> Result<Wlan, KeyError> {
        if !(1..=64).contains(&self.hops) {
            return Err(KeyError::new("hops", "must be from 1 to 64"));
        }
        if self.tries == 0 {
            return Err(KeyError::new("tries", "must be at least 1"));
        }
        if self.cw_min == 0 || self.cw_min > self.cw_max {
            return Err(KeyError::new("cw_min", "must be at least 1 and at most `cw_max`"));
        }
        Ok(self)
    }

    fn build(&self, id: StreamId) -> Chain {
        let hops = (0..self.hops).map(|i| Hop { chance: id.stream(i), free_at: Instant::ZERO });
        Chain { hops: hops.collect(), spec: self.clone() }
    }

    /// The hops without failures.
    fn in_order(&self) -> Option<Spec> {
        Some(Spec::Wlan(Wlan { probability: Share::ZERO, ..self.clone() }))
    }

    /// The rate for frames of 1500 bytes, with the mean first back-off before each attempt.
    fn rate(&self) -> Option<Rate> {
        let attempt = self.frame + self.slot * u64::from(self.cw_min) / 2;
        let per_second = (1.0 - self.probability.get()) / attempt.as_secs_f64();
        #[expect(clippy::cast_sign_loss, reason = "a probability is at most 1")]
        let bits = (per_second * 12_000.0) as u64;
        (bits > 0 && !attempt.is_zero()).then(|| Rate::from_bits_per_second(bits))
    }
}

#[derive(Debug)]
struct Hop {
    chance: Stream,
    free_at: Instant,
}

#[derive(Debug)]
pub(crate) struct Chain {
    spec: Wlan,
    hops: Vec<Hop>,
}

impl Hop {
    /// When a frame that arrives at `at` gets through; none if it is dropped.
    fn pass(&mut self, spec: &Wlan, at: Instant) -> Option<Instant> {
        let mut now = at.max(self.free_at);
        let mut window = spec.cw_min;
        for _ in 0..spec.tries {
            let slots = self.chance.below(window + 1);
            now = now + spec.slot * u64::from(slots) + spec.frame;
            if !self.chance.chance(spec.probability.get()) {
                self.free_at = now;
                return Some(now);
            }
            window = (window * 2 + 1).min(spec.cw_max);
        }
        self.free_at = now;
        None
    }
}

impl Stage for Chain {
    fn on_packet(&mut self, at: Instant, _item: StagePacket, _exits: &mut Departures) -> StageOutcome {
        let mut now = at;
        for hop in &mut self.hops {
            match hop.pass(&self.spec, now) {
                Some(through) => now = through,
                None => return StageOutcome::Drop(DropReason::Lost),
            }
        }
        StageOutcome::Departure(now)
    }
}
