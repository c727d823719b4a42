//! The receiver of RFC 5681 §4.2: every second full-sized segment at once, the rest within a delay, and anything out of
//! the ordinary (a gap, a gap that closes, a duplicate) at once.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, RxFacts};
use reknit_units::Segments;
use serde::{Deserialize, Serialize};

use crate::composition::Part;

/// No parameters of its own: `ack_every` and `ack_delay` belong to the connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {}

impl Part<dyn AckPolicy> for Config {
    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(DelayedAck { unacknowledged: Segments::ZERO })
    }
}

#[derive(Debug)]
struct DelayedAck {
    /// Full-sized segments since the last ACK.
    unacknowledged: Segments,
}

impl AckPolicy for DelayedAck {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        if rx.arrival != Arrival::InOrder {
            return AckAction::Now;
        }
        if rx.full_sized {
            self.unacknowledged += Segments(1);
        }
        if self.unacknowledged >= rx.config.ack_every || rx.config.ack_every == Segments(1) {
            AckAction::Now
        } else {
            AckAction::By(rx.now + rx.config.ack_delay)
        }
    }

    fn on_ack_sent(&mut self) {
        self.unacknowledged = Segments::ZERO;
    }
}
