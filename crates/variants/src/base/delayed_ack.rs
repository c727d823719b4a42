//! The receiver of RFC 5681 §4.2: an ACK for every second full-sized segment at once, for the rest within a delay, and for
//! anything out of the ordinary (a gap, a gap that closes, a duplicate, a FIN) at once.
//!
//! "Every second" counts bytes: more than one full segment is unacknowledged (RFC 9293 §3.8.6.3), so a peer whose later
//! segments are smaller than its first is served alike.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, Plugin, RxFacts};
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{Algorithm, Part};

/// No parameters of its own: `ack_every` and `ack_delay` belong to the connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Algorithm for Config {
    const NAME: &'static str = "delayed";
    const SOURCE: &'static str = include_str!("delayed_ack.rs");
}

impl Part<dyn AckPolicy> for Config {
    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(DelayedAck { unacknowledged: Bytes::ZERO })
    }
}

#[derive(Debug)]
struct DelayedAck {
    /// Bytes since the last ACK.
    unacknowledged: Bytes,
}

impl Plugin for DelayedAck {}

impl AckPolicy for DelayedAck {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        if rx.arrival != Arrival::InOrder || rx.fin {
            return AckAction::Now;
        }
        self.unacknowledged += rx.end.since(rx.start);
        if self.unacknowledged > (rx.config.ack_every - Segments(1)).of(rx.rmss) {
            AckAction::Now
        } else {
            AckAction::By(rx.now + rx.config.ack_delay)
        }
    }

    fn on_ack_sent(&mut self) {
        self.unacknowledged = Bytes::ZERO;
    }
}
