//! # Enhanced RTT sampling
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §4.4 (DSACK-ES).
//!
//! **What it changes.** By Karn's algorithm a segment that was sent twice gives no RTT sample. Under reordering those
//! are the late segments, so the timeout is too short. A DSACK shows that both copies arrived, so both times can be
//! used.
//!
//! **Rules.** For a segment that was sent twice, acknowledged, and then reported as a duplicate, the sample is the mean
//! of (first ACK - first transmission) and (DSACK - second transmission). The mean does not depend on which copy caused
//! which ACK. There is no sample without a DSACK or after more than two transmissions. The sample is used by RFC 6298
//! like any other and ends the back-off.
//!
//! **Departures.** With timestamps it does nothing, because they distinguish the copies exactly. If the ACK before the
//! DSACK was lost, the first time is unknown and there is no sample.
//!
//! **Status.** Faithful.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::SendReason;
use reknit_tcp::seams::{Plugin, RtoEstimator};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::rfc6298;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnhancedSamplingConfig {
    /// The parameters of RFC 6298, which gets the samples.
    pub rfc6298: rfc6298::Rfc6298Config,
}

impl Algorithm<dyn RtoEstimator> for EnhancedSamplingConfig {
    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(EnhancedSampling { rfc6298: self.rfc6298.build() })
    }
}

#[derive(Clone, Debug)]
struct EnhancedSampling {
    rfc6298: Box<dyn RtoEstimator>,
}

/// The sample from a DSACK for a segment that was sent twice.
pub(crate) fn mean_of_both(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Duration> {
    let segments = ack.dsack.filter(|_| !cx.snd.timestamps)?.segments;
    let twice = segments.iter().find(|segment| {
        segment.transmissions == 2 && segment.reports == 1 && segment.cause != SendReason::WindowProbe
    })?;
    if ack.newly.contains(&twice.id) {
        return None;
    }
    let (first, second) = (twice.delivered?.since(twice.first_sent), cx.now.since(twice.last_sent));
    Some((first + second) / 2)
}

impl RtoEstimator for EnhancedSampling {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let ordinary = self.rfc6298.on_ack(cx, ack);
        let enhanced = mean_of_both(cx, ack);
        if let Some(sample) = enhanced {
            self.rfc6298.on_sample(cx.config, sample);
        }
        ordinary || enhanced.is_some()
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.rfc6298.on_sample(config, rtt);
    }

    fn rto(&self) -> Option<Duration> {
        self.rfc6298.rto()
    }

    fn srtt(&self) -> Option<Duration> {
        self.rfc6298.srtt()
    }

    fn rttvar(&self) -> Option<Duration> {
        self.rfc6298.rttvar()
    }
}

impl Plugin for EnhancedSampling {
    fn heap_size(&self) -> usize {
        size_of_val(&*self.rfc6298) + self.rfc6298.heap_size()
    }
}
