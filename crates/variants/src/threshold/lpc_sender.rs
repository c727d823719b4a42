//! # Lee, Park and Choi at the sender: a threshold that depends on the number of paths
//!
//! Lee, Park, Choi: Improving TCP Performance in Multipath Packet Forwarding Networks. Journal of Communications and
//! Networks 4(2), 2002; as described in the survey of Leung, Li, Yang (§5.2.1).
//!
//! **What it changes.** dupthresh grows with the logarithm of the number of paths that the flow uses. The number must
//! be configured at the sender; nothing else changes the threshold.
//!
//! **Rules.** dupthresh = D (1 + floor(log2 N)).
//!
//! **Departures.** The survey only says "logarithmically"; the base and the factor are from a secondary description of the
//! paper. Limited transmit sends one segment for each SACKed one, as in RR-TCP: otherwise a threshold above the window
//! could never be reached. By the survey's Table 2 the scheme does not maintain ACK clocking. N is set before the connection opens. There is no upper limit: if the threshold exceeds what
//! the window can reach, losses are repaired by the timer.
//!
//! **Status.** Partial: the survey (§5.2.1) does not give the base of the logarithm or the factor. Both change the
//! threshold.

use reknit_tcp::seams::DupThresh;
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::fixed_threshold;
use crate::requirement::Requirement;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathsConfig {
    /// N, the number of paths.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub paths: u32,
    /// D, the threshold on a single path.
    #[schemars(range(min = 1, max = 1000))]
    pub single_path: Segments,
}

impl Default for PathsConfig {
    fn default() -> PathsConfig {
        PathsConfig { paths: 1, single_path: Segments(3) }
    }
}

impl PathsConfig {
    fn dup_thresh(&self) -> Segments {
        Segments(self.single_path.0.saturating_mul(1 + self.paths.max(1).ilog2()))
    }
}

impl Algorithm<dyn DupThresh> for PathsConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::MayExceedWindow]
    }

    fn build(&self) -> Box<dyn DupThresh> {
        fixed_threshold::FixedConfig { dup_thresh: self.dup_thresh() }.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_grows_by_three_for_each_doubling() {
        let thresholds =
            [1, 2, 3, 4, 7, 8, 64].map(|paths| PathsConfig { paths, ..PathsConfig::default() }.dup_thresh().0);
        assert_eq!(thresholds, [3, 6, 6, 9, 9, 12, 21]);
    }

    #[test]
    fn zero_paths_count_as_one() {
        assert_eq!(PathsConfig { paths: 0, ..PathsConfig::default() }.dup_thresh(), Segments(3));
        assert_eq!(PathsConfig::default().dup_thresh(), Segments(3));
    }
}
