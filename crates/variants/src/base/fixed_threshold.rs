//! A dupthresh that never changes (RFC 5681 §3.2, RFC 6675 §2).

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FixedConfig {
    /// Duplicate ACKs that indicate a loss (RFC 5681, RFC 6675: 3).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dup_thresh: Segments,
}

impl Default for FixedConfig {
    fn default() -> FixedConfig {
        FixedConfig { dup_thresh: Segments(3) }
    }
}

impl Algorithm<dyn DupThresh> for FixedConfig {
    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Fixed { dup_thresh: self.dup_thresh })
    }
}

#[derive(Clone, Debug)]
struct Fixed {
    dup_thresh: Segments,
}

impl Plugin for Fixed {}

impl DupThresh for Fixed {
    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        self.dup_thresh
    }
}
