//! The smoothed round-trip time of RFC 6298 without a retransmission timer, for detectors that have their own timer.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{Plugin, RtoEstimator, Seam};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::rfc6298::{self, Rfc6298};
use crate::requirement::Requirement;

/// Parameters: none.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoTimerConfig {}

impl Algorithm<dyn RtoEstimator> for NoTimerConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Only(Seam::LossDetector, &["oracle", "learned-lateness"])]
    }

    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(NoTimer { smoothed: Rfc6298::new(rfc6298::Rfc6298Config::default()) })
    }
}

/// The smoothed round-trip time of RFC 6298 without its timer.
#[derive(Clone, Debug)]
struct NoTimer {
    smoothed: Rfc6298,
}

impl Plugin for NoTimer {}

impl RtoEstimator for NoTimer {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.smoothed.on_ack(cx, ack)
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.smoothed.on_sample(config, rtt);
    }

    fn rto(&self) -> Option<Duration> {
        self.smoothed.rto()
    }

    /// Only before the first sample.
    fn has_timer(&self) -> bool {
        self.smoothed.srtt().is_none()
    }

    fn srtt(&self) -> Option<Duration> {
        self.smoothed.srtt()
    }
}
