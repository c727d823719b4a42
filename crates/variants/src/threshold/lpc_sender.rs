//! # Lee, Park and Choi at the sender: a threshold by the number of paths
//!
//! Lee, Park, Choi: Improving TCP Performance in Multipath Packet Forwarding Networks. Journal of Communications and
//! Networks 4(2), 2002; by the survey of Leung, Li, Yang (§5.2.1).
//!
//! **What it changes.** dupthresh grows with the logarithm of the number of paths over which the flow is spread. The
//! sender has to be told that number; nothing else changes it.
//!
//! **Rules.** dupthresh = D (1 + floor(log2 N)).
//!
//! **Departures.** The survey says "logarithmically" and no more; the formula is that of a secondary source. Limited
//! transmit sends a segment for each that is SACKed, as RR-TCP does: without it a threshold above the window could never
//! be reached. N is set before the connection opens. There is no upper limit: what N asks for and the window cannot
//! give, the timer repairs.
//!
//! **Reproduces.** Nothing: the survey gives no experiment with it.
//!
//! **Status.** Partial: the original paper was not at hand.

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

/// The registry's entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "lpc-sender",
    aliases: &["lee-park-choi"],
    summary: "a threshold that grows with the logarithm of the number of paths, which it must be told",
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
    fn no_path_is_taken_as_one() {
        assert_eq!(Config { paths: 0, ..Config::default() }.dup_thresh(), Segments(3));
        assert_eq!(Config::default().dup_thresh(), Segments(3));
    }
}
