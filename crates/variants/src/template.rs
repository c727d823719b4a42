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
//! **Reproduces.** Nothing yet.
//!
//! **Status.** Untested.

use std::sync::Arc;

use reknit_tcp::facts::Context;
use reknit_tcp::seams::{DupThresh, Plugin};
use reknit_units::Segments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::Composition;
use crate::part::{Algorithm, Part};
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub const VARIANT: Variant = Variant {
    name: "patient",
    aliases: &[],
    summary: "sack that waits for more duplicate ACKs",
    source: "Author 2000, section 2",
    side: Side::Sender,
    peer_needs: "SACK",
    status: Status::Untested,
    compose: || Composition { dup_thresh: Arc::new(Config::default()), ..Composition::default() },
};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// E, the number of duplicate ACKs to wait for in addition to the three of RFC 5681 (§2: 2).
    #[schemars(range(min = 0, max = 1000))]
    pub extra: Segments,
}

impl Default for Config {
    fn default() -> Config {
        Config { extra: Segments(2) }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "patient";
    const SOURCE: &'static str = include_str!("template.rs");
}

impl Part<dyn DupThresh> for Config {
    fn build(&self) -> Box<dyn DupThresh> {
        Box::new(Patient { config: self.clone() })
    }
}

/// The state of a connection.
#[derive(Debug)]
struct Patient {
    config: Config,
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
