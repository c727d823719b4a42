//! # A bit that marks retransmissions
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP, ICSI TR-02-006, 2002, §3 and §5.1.1 (the RTX bit), after Ludwig and Katz.
//!
//! **What it changes.** Each segment says whether it is a retransmission, each ACK echoes it: the sender can tell which
//! copy of a segment an ACK belongs to.
//!
//! **State.** The bit of the first segment that has not been acknowledged yet.
//!
//! **Rules.** A segment with data carries the bit. A pure ACK echoes that of the segment that caused it; one that was
//! delayed, that of the first segment it answers, as with timestamps (RFC 7323 §4.3).
//!
//! **Departures.** A reserved bit of the header in the paper, an experimental option here.
//!
//! **Status.** Faithful.

use reknit_tcp::experiment::{Experiment, Features};
use reknit_tcp::seams::{HeaderSupport, RxFacts};
use reknit_tcp::seq::Offset;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::composition::{Algorithm, Part};

/// No parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "resent";
    const SOURCE: &'static str = include_str!("resent.rs");
}

impl Part<dyn HeaderSupport> for Config {
    fn build(&self) -> Box<dyn HeaderSupport> {
        Box::new(Resent { echo: None })
    }
}

#[derive(Debug)]
struct Resent {
    echo: Option<bool>,
}

impl HeaderSupport for Resent {
    fn features(&self) -> Features {
        Features::RESENT
    }

    fn annotate_data(&mut self, again: bool, experiment: &mut Experiment) {
        experiment.resent = Some(again);
        self.echo = None; // it acknowledges as well
    }

    fn on_data(&mut self, rx: &RxFacts<'_>) {
        self.echo = self.echo.or(rx.experiment.resent);
    }

    fn annotate_ack(&mut self, _ack: Offset, experiment: &mut Experiment) {
        experiment.resent = self.echo.take();
    }
}
