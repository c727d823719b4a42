//! After a timeout everything outstanding is marked lost and retransmitted in slow start (RFC 5681 §3.1).

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{AfterTimeout, Plugin, TimeoutRecovery, TimeoutStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConventionalConfig {}

impl Algorithm<dyn TimeoutRecovery> for ConventionalConfig {
    fn build(&self) -> Box<dyn TimeoutRecovery> {
        Box::new(Conventional)
    }
}

#[derive(Clone, Debug)]
struct Conventional;

impl Plugin for Conventional {}

impl TimeoutRecovery for Conventional {
    fn on_timeout(&mut self, _cx: &Context<'_>) -> AfterTimeout {
        AfterTimeout::Conventional
    }

    fn on_ack(&mut self, _cx: &Context<'_>, _ack: &AckFacts<'_>) -> TimeoutStep {
        TimeoutStep::Pass
    }
}
