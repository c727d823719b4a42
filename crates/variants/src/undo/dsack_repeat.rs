//! # Repeated DSACKs
//!
//! Leung, Li, Yang: An Overview of Packet Reordering in TCP. IEEE TPDS 18(4), 2007, §8.2 (a proposal without an
//! implementation).
//!
//! **What it changes.** Both ends of `dsack-r`. RFC 2883 reports a duplicate in a single ACK, so the loss of that ACK
//! prevents the undo. Here `reports` consecutive ACKs report it.
//!
//! **Rules.** The receiver puts the DSACK block first in each of these ACKs; a newer duplicate replaces it. The sender
//! treats a repeated range as the same report, unless the segment was retransmitted in between. Both apply only if both
//! SYNs offered the option; otherwise a second report means a second duplicate.
//!
//! **Departures.** The survey asks for "at least k" reports and does not specify k; here it is 3.
//!
//! **Status.** Faithful to a proposal of one paragraph.

use std::sync::Arc;

use reknit_tcp::experiment::Features;
use reknit_tcp::seams::{HeaderSupport, Plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::Composition;
use crate::part::{Algorithm, Part};
use crate::rule::{Need, Rule};
use crate::undo::dsack_r;
use crate::variant::{Side, Status, Variant};

/// The registry entry.
pub(crate) const VARIANT: Variant = Variant {
    name: "dsack-repeat",
    aliases: &[],
    summary: "dsack-r with each duplicate reported in three ACKs",
    source: "survey section 8.2",
    side: Side::Both,
    peer_needs: "SACK, DSACK, the experimental option `repeats`",
    status: Status::Faithful,
    compose: || Composition { header_support: vec![Arc::new(Config::default())], ..(dsack_r::VARIANT.compose)() },
};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// k, the number of ACKs that report each duplicate (§8.2).
    #[schemars(range(min = 1, max = 100))]
    pub reports: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { reports: 3 }
    }
}

impl Algorithm for Config {
    const NAME: &'static str = "dsack-repeat";
    const SOURCE: &'static str = include_str!("dsack_repeat.rs");
    const RULES: &'static [Rule] = &[Rule::Needs(Need::Feature(Features::REPEATS), "each duplicate is reported once")];
}

impl Part<dyn HeaderSupport> for Config {
    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Repeats { reports: self.reports })
    }
}

#[derive(Debug)]
struct Repeats {
    reports: u32,
}

impl Plugin for Repeats {}

impl HeaderSupport for Repeats {
    fn features(&self) -> Features {
        Features::REPEATS
    }

    fn duplicate_reports(&self) -> u32 {
        self.reports
    }
}
