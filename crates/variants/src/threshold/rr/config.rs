//! The parameters of RR-TCP's threshold and of its FA ratio.

use reknit_units::{Duration, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which reordering length is used for a segment that was sent twice (§4.1.1, §5.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// The mean of the lengths of both copies, when a DSACK shows that both arrived (-MEAN).
    #[default]
    Mean,
    /// The length of the original, if the ACK echoes that it is for the original (-RTX). Needs the retransmission bit
    /// at both ends; without it, as `mean`.
    Rtx,
}

/// Parameters; values of Table 2.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RrTcpConfig {
    /// The FA ratio: the fraction of reordering events that stay below the threshold (§4.2). The initial value if
    /// `adaptive`.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub fa: f64,
    /// Adapt the FA ratio to the cost of mistakes (§4.3).
    pub adaptive: bool,
    /// S, the increase of the FA ratio after a false fast retransmit (§4.3.4).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub step: f64,
    /// k, how many windows limited transmit may send (§2.3); must equal `windows` of `limited_transmit`.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub windows: f64,
    /// Limited transmit also counts as exhausted when the connection's maximum window stops the sender (§4.3.3).
    pub largest_window_exhausts: bool,
    /// 1/alpha of the EWMAs D (Table 2) and W: the weight of a new sample is 1 divided by this.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub memory: u32,
    /// The smallest threshold, in segments.
    #[schemars(range(min = 1, max = 1000))]
    pub min_dup_thresh: Segments,
    /// The largest threshold, in segments; lengths that it does not cover all count as one.
    #[schemars(range(min = 1, max = 1000))]
    pub max_dup_thresh: Segments,
    /// How long a reordering event is kept.
    pub life: Duration,
    /// The number of events below which the threshold stays at its minimum; 1: no such limit, as in the paper.
    #[schemars(range(min = 0, max = 1000))]
    pub min_events: u32,
    /// Which reordering length is used for a segment that was sent twice.
    pub sampling: Sampling,
    /// Begin with the reordering lengths and the FA ratio of the last connection to the same peer, and leave them to the
    /// next one (§6).
    pub share: bool,
}

impl Default for RrTcpConfig {
    fn default() -> RrTcpConfig {
        RrTcpConfig {
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
            share: false,
        }
    }
}
