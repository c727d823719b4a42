//! The receiver of RFC 5681 §4.2: it sends an ACK at once for every second full-sized segment, and within a delay
//! otherwise. It acknowledges a gap, a segment that fills a gap, a duplicate and a FIN at once.
//!
//! "Every second" is counted in bytes: an ACK is due when more than one full segment is unacknowledged (RFC 9293
//! §3.8.6.3). This also works for a peer whose later segments are smaller than its first.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, Plugin, RxFacts};
use reknit_units::{Bytes, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// No parameters; `ack_every` and `ack_delay` are options of the connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayedConfig {}

impl Algorithm<dyn AckPolicy> for DelayedConfig {
    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(DelayedAck { unacknowledged: Bytes::ZERO })
    }
}

#[derive(Clone, Debug)]
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
