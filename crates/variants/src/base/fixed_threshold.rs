//! A dupthresh that never changes (RFC 5681 §3.2, RFC 6675 §2).

use std::hint::black_box;

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Duplicate ACKs that indicate a loss (RFC 5681, RFC 6675: 3).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub dup_thresh: Segments,
}

impl Default for Config {
    fn default() -> Config {
        Config { dup_thresh: Segments(3) }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "fixed";
    const SOURCE: &'static str = include_str!("fixed_threshold.rs");
}

impl Part<dyn DupThresh> for Config {
    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Fixed { dup_thresh: self.dup_thresh })
    }
}

#[derive(Debug)]
struct Fixed {
    dup_thresh: Segments,
}

impl Plugin for Fixed {
    fn read_ahead(&self) {
        black_box(self.dup_thresh);
    }
}

impl DupThresh for Fixed {
    fn dup_thresh(&self, _cx: &Context<'_>) -> Segments {
        self.dup_thresh
    }
}
