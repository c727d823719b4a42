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
//! **Departures.** The survey only says "logarithmically"; the formula is from a secondary source. Limited transmit
//! sends one segment for each SACKed one, as in RR-TCP: otherwise a threshold above the window could never be reached.
//! N is set before the connection opens. There is no upper limit: if the threshold exceeds what the window can reach,
//! losses are repaired by the timer.
//!
//! **Reproduces.** Nothing: the survey gives no experiment with it.
//!
//! **Status.** Partial: the survey (§5.2.1), the only source, does not give the base of the logarithm or the factor.
//! Both change the threshold.

use std::sync::Arc;

use reknit_tcp::seams::DupThresh;
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{fixed_threshold, limited_transmit};
use crate::composition::Composition;
use crate::part::{Algorithm, Part};
use crate::rule::Rule;
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "lpc-sender",
    aliases: &["lee-park-choi"],
    summary: "a threshold that grows with the logarithm of the number of paths, which must be configured",
    source: "Lee, Park and Choi 2002; survey section 5.2.1",
    side: Side::Sender,
    peer_needs: "SACK",
    status: Status::Partial,
    compose: || Composition {
        dup_thresh: Arc::new(Config::default()),
        limited_transmit: Arc::new(limited_transmit::Config::PerSack { windows: 1.0 }),
        ..Composition::default()
    },
};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// N, the number of paths.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub paths: u32,
    /// D, the threshold on a single path.
    #[schemars(range(min = 1, max = 1000))]
    pub single_path: Segments,
}

impl Default for Config {
    fn default() -> Config {
        Config { paths: 1, single_path: Segments(3) }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "paths";
    const SOURCE: &'static str = include_str!("lpc_sender.rs");
    const RULES: &'static [Rule] = &[Rule::MayExceedWindow];
}

impl Config {
    fn dup_thresh(&self) -> Segments {
        Segments(self.single_path.0.saturating_mul(1 + self.paths.max(1).ilog2()))
    }
}

impl Part<dyn DupThresh> for Config {
    fn build(&self) -> Box<dyn DupThresh> {
        fixed_threshold::Config { dup_thresh: self.dup_thresh() }.build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_grows_by_three_for_each_doubling() {
        let thresholds = [1, 2, 3, 4, 7, 8, 64].map(|paths| Config { paths, ..Config::default() }.dup_thresh().0);
        assert_eq!(thresholds, [3, 6, 6, 9, 9, 12, 21]);
    }

    #[test]
    fn zero_paths_count_as_one() {
        assert_eq!(Config { paths: 0, ..Config::default() }.dup_thresh(), Segments(3));
        assert_eq!(Config::default().dup_thresh(), Segments(3));
    }
}
