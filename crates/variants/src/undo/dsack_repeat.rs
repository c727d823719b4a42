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
//! **Departures.** The survey asks for "at least k" reports and does not specify k; here it is 3. A newer
//! duplicate ends the reports of the older one, so k is an upper limit. The survey leaves open when a receiver may be confident
//! that the report has arrived; here it stops after k.
//!
//! **Status.** Partial: the proposal has one paragraph, which gives neither k nor when to stop.

use reknit_tcp::experiment::Features;
use reknit_tcp::seams::{HeaderSupport, HeaderSupportTraits, Plugin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DsackRepeatConfig {
    /// k, the number of ACKs that report each duplicate (§8.2).
    #[schemars(range(min = 1, max = 100))]
    pub reports: u32,
}

impl Default for DsackRepeatConfig {
    fn default() -> DsackRepeatConfig {
        DsackRepeatConfig { reports: 3 }
    }
}

impl Algorithm<dyn HeaderSupport> for DsackRepeatConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(Need::Feature(Features::REPEATS), "each duplicate is reported once")]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Repeats { reports: self.reports })
    }
}

#[derive(Clone, Debug)]
struct Repeats {
    reports: u32,
}

impl Plugin for Repeats {}

impl HeaderSupport for Repeats {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits { features: Features::REPEATS, duplicate_reports: self.reports }
    }
}
