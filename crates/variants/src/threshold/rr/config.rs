//! The parameters of RR-TCP's threshold and of the ratio that moves it.

use reknit_units::{Duration, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which length counts for a segment that was sent twice (§4.1.1, §5.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The mean of both copies' lengths, when a DSACK tells that both arrived (-MEAN).
    #[default]
    Mean,
    /// That of the original, if the ACK echoes that it was the original (-RTX). Needs the header bit at both ends;
    /// without it as `mean`.
    Rtx,
}

/// Parameters; values of Table 2.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The FA ratio: the share of reordering events below the threshold (§4.2). Where it starts, if `adaptive`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fa: f64,
    /// Move the ratio by the cost of mistakes (§4.3).
    pub adaptive: bool,
    /// S, by how much a false fast retransmit raises the ratio (§4.3.4).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub step: f64,
    /// k, windows that limited transmit may send (§2.3); as limited transmit is set.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub windows: f64,
    /// A sender whom the connection's largest window stops has exhausted limited transmit too (§4.3.3).
    pub largest_window_exhausts: bool,
    /// 1/alpha: how many samples the EWMAs D (Table 2) and W remember.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub memory: u32,
    /// The smallest threshold, in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub min_dup_thresh: Segments,
    /// The largest threshold, in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub max_dup_thresh: Segments,
    /// How long a reordering event counts.
    pub life: Duration,
    /// Events without which the threshold stays smallest; 1 in the paper.
    #[schemars(range(min = 0, max = 1000))]
    pub min_events: u32,
    /// Which length counts for a segment that was sent twice.
    pub sampling: Sampling,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            fa: 0.9,
            adaptive: true,
            step: 0.01,
            windows: 1.0,
            largest_window_exhausts: true,
            memory: 8,
            min_dup_thresh: Segments(3),
            max_dup_thresh: Segments(64),
            life: Duration::from_secs(80),
            min_events: 1,
            sampling: Sampling::Mean,
        }
    }
}
