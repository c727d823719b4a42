//! When Linux sends new data outside recovery.
//!
//! **Rules.**
//! - 1: cwnd limits the pipe in every state, not just in recovery (RFC 6675 §5). A segment that was sent twice counts
//!   twice if both copies may be in flight.
//! - 2: segments leave in pairs.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{Batch, LimitedTransmit, LimitedTransmitTraits, Plugin};
use reknit_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::batches;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinuxInFlightConfig {}

impl Algorithm<dyn LimitedTransmit> for LinuxInFlightConfig {
    fn build(&self) -> Box<dyn LimitedTransmit> {
        Box::new(InFlight)
    }
}

#[derive(Clone, Debug)]
struct InFlight;

impl Plugin for InFlight {}

impl LimitedTransmit for InFlight {
    fn traits(&self) -> LimitedTransmitTraits {
        LimitedTransmitTraits { spends_by_pipe: true, ..LimitedTransmitTraits::default() }
    }

    fn flight_limit(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> Bytes {
        Bytes::ZERO
    }

    /// Rule 2.
    fn batch(&self, cx: &Context<'_>, since: Duration) -> Option<Batch> {
        batches::of_linux(cx, since)
    }
}
