//! # Delayed ACKs for out-of-order segments
//!
//! Lee, Park, Choi: Improving TCP Performance in Multipath Packet Forwarding Networks. Journal of Communications and
//! Networks 4(2), 2002; as described in the survey of Leung, Li, Yang, §6.1.1.
//!
//! **What it changes.** Only the receiver. It delays duplicate ACKs like ordinary ones: it sends one for every second
//! out-of-order segment, or when a timer expires. Retransmissions are acknowledged at once, so that the sender's timer
//! does not expire.
//!
//! **State.** `overtaking`: out-of-order segments since the last ACK. The segments above the gap, to recognize
//! retransmissions.
//!
//! **Rules.**
//! - 1: a retransmission is acknowledged at once.
//! - 2: a duplicate is acknowledged at once.
//! - 3: a segment that fills a gap is acknowledged at once (RFC 5681 §4.2).
//! - 4: of the other out-of-order segments, every second one is acknowledged at once.
//! - 5: if the second one does not arrive, an ACK is sent when the timer expires.
//!
//! **Departures.** In the survey all out-of-order segments except retransmissions are delayed; rules 2 and 3 are ours (RFC
//! 5681 and 2883). In the survey every two arrivals cause an ACK; here an in-order segment whose ACK is delayed does not count
//! towards the two. The survey does not say how a retransmission is recognized: here by its bit if the connection has
//! one, otherwise by its timestamp, otherwise by the age of the gap. The timer is 40 ms, not the
//! 200 ms of the delayed ACK, which would stall small windows.
//!
//! The scheme mainly helps senders without SACK: the second duplicate ACK tells a sender with SACK of four segments
//! above the gap. RFC 6675 counts their bytes, so the sender retransmits.
//!
//! **Status.** Partial: the survey (§6.1.1), the only source, gives the rules but not the timer, nor how a retransmission
//! is recognized. A wrong judgment delays the ACK of a retransmission by the timer.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, Plugin, RxFacts};
use reknit_units::{Duration, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::arrivals::Arrivals;
use crate::base::delayed_ack;
use crate::requirement::Requirement;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DelayedDuplicatesConfig {
    /// Out-of-order segments per duplicate ACK (survey §6.1.1: 2).
    #[schemars(range(min = 1, max = 1000))]
    pub every: Segments,
    /// How long a duplicate ACK waits for the next segment.
    pub delay: Duration,
}

impl Default for DelayedDuplicatesConfig {
    fn default() -> DelayedDuplicatesConfig {
        DelayedDuplicatesConfig { every: Segments(2), delay: Duration::from_millis(40) }
    }
}

impl Algorithm<dyn AckPolicy> for DelayedDuplicatesConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Withholds]
    }

    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(DelayedDuplicates {
            config: self.clone(),
            in_order: delayed_ack::DelayedConfig::default().build(),
            overtaking: Segments::ZERO,
            arrivals: Arrivals::default(),
        })
    }
}

#[derive(Clone, Debug)]
struct DelayedDuplicates {
    config: DelayedDuplicatesConfig,
    /// The policy for in-order segments.
    in_order: Box<dyn AckPolicy>,
    overtaking: Segments,
    arrivals: Arrivals,
}

impl DelayedDuplicates {
    /// Rules 4 and 5.
    fn on_out_of_order(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.overtaking += Segments(1);
        if self.overtaking >= self.config.every { AckAction::Now } else { AckAction::By(rx.now + self.config.delay) }
    }
}

impl AckPolicy for DelayedDuplicates {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        if rx.arrival == Arrival::InOrder {
            return self.in_order.on_data(rx);
        }
        let retransmitted = self.arrivals.is_retransmission(rx);
        self.arrivals.note(rx);
        self.arrivals.forget_below(rx.rcv_nxt);
        match rx.arrival {
            Arrival::OutOfOrder if !retransmitted => self.on_out_of_order(rx),
            _ => AckAction::Now, // rules 1 to 3
        }
    }

    fn on_ack_sent(&mut self) {
        self.overtaking = Segments::ZERO;
        self.in_order.on_ack_sent();
    }
}

impl Plugin for DelayedDuplicates {
    fn heap_size(&self) -> usize {
        size_of_val(&*self.in_order) + self.in_order.heap_size() + self.arrivals.heap_size()
    }
}
