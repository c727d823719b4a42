//! # Patient: wait for more duplicate ACKs
//!
//! Author, Author: Title. Journal, year, §section.
//!
//! **What it changes.** `sack` with a larger dupthresh.
//!
//! **State.** None.
//!
//! **Rules.** dupthresh = D + E (§2, equation 1).
//!
//! **Departures.** None.
//!
//! **Status.** Untested.

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PatientConfig {
    /// E, the number of duplicate ACKs to wait for in addition to the three of RFC 5681 (§2: 2).
    #[schemars(range(min = 0, max = 1000))]
    pub extra: Segments,
}

impl Default for PatientConfig {
    fn default() -> PatientConfig {
        PatientConfig { extra: Segments(2) }
    }
}

impl Algorithm<dyn DupThresh> for PatientConfig {
    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Patient { config: self.clone() })
    }
}

/// The state of a connection.
#[derive(Clone, Debug)]
struct Patient {
    config: PatientConfig,
}

impl Patient {
    /// Equation 1.
    fn threshold(&self) -> Segments {
        const D: Segments = Segments(3);
        D + self.config.extra
    }
}

impl Plugin for Patient {}

impl DupThresh for Patient {
    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        self.threshold()
    }
}
