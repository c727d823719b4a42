//! # The retransmission bit
//!
//! Ludwig, Katz: The Eifel Algorithm. ACM CCR 30(1), 2000, and its use in Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI
//! TR-02-006, 2002, §3. A bit in each segment shows whether it is a retransmission, and its ACK echoes the bit.
//!
//! **What it changes.** Both ends. The bit has no effect by itself; other algorithms use it to distinguish the copies
//! of a segment.
//!
//! **State.** Receiver: `echo`, the bit that the next ACK echoes; `alone`, whether that ACK is sent without data.
//!
//! **Rules.**
//! - 1: the bit is set on data that was sent before.
//! - 2: an ACK echoes the bit of the segment for which it is sent; a delayed ACK echoes that of the first one (like
//!   timestamps, RFC 7323 §4.3).
//! - 3: an ACK that is not sent for a segment echoes nothing.
//!
//! **Departures.** The papers assume bits in the header. Here it is an experimental option (RFC 4727), used only if
//! both SYNs offer it. ACKs that carry data do not echo: in them the bit refers to the data.
//!
//! **Status.** Faithful.

use reknit_tcp::experiment::{ExperimentalOption, Features};
use reknit_tcp::seams::{Arrival, HeaderSupport, HeaderSupportTraits, Plugin, RxFacts};
use reknit_tcp::seq::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::requirement::{Need, Requirement};

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetransmittedConfig {}

impl Algorithm<dyn HeaderSupport> for RetransmittedConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Needs(
            Need::Feature(Features::RESENT),
            "copies are distinguished by timestamps, if there are any",
        )]
    }

    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(RetransmittedBit { echo: None, alone: false })
    }
}

#[derive(Clone, Debug)]
struct RetransmittedBit {
    echo: Option<bool>,
    alone: bool,
}

impl Plugin for RetransmittedBit {}

impl HeaderSupport for RetransmittedBit {
    fn traits(&self) -> HeaderSupportTraits {
        HeaderSupportTraits::new(Features::RESENT)
    }

    /// Rule 1. Data also acknowledges what a delayed ACK would have acknowledged; for out-of-order data an ACK is still
    /// sent separately.
    fn annotate_data(&mut self, again: bool, experiment: &mut ExperimentalOption) {
        experiment.retransmitted = Some(again);
        if !self.alone {
            self.echo = None;
        }
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        self.echo = self.echo.or(rx.experiment.retransmitted);
        self.alone |= rx.arrival != Arrival::InOrder;
    }

    /// Rules 2 and 3.
    fn annotate_ack(&mut self, _ack: Offset, experiment: &mut ExperimentalOption) {
        experiment.retransmitted = self.echo.take();
        self.alone = false;
    }
}
