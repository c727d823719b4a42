//! # A fixed wait before the second duplicate ACK, at the receiver
//!
//! Paxson: End-to-End Internet Packet Dynamics. IEEE/ACM Transactions on Networking 7(3), 1999; as described in Yang's
//! thesis (MIT, 2001, §2.3.2) and in the survey of Leung, Li, Yang, §6.1.2.
//!
//! **What it changes.** Two duplicate ACKs are enough for the sender, but the receiver sends the second one only if the
//! gap is still open 20 ms after the first.
//!
//! **State.** `hole_since`: when the gap opened. `held`: the number of withheld duplicate ACKs.
//!
//! **Rules.**
//! - 1: the first out-of-order segment is acknowledged at once; ACKs for others are withheld until `wait` has passed.
//! - 2: then the withheld ACKs are sent, and further ones at once.
//! - 3: when RCV.NXT advances, withheld ACKs are dropped and one ACK is sent; data that is still missing is a new gap.
//!
//! **Departures.** The sources give only an outline. They do not say from when the 20 ms count: here from the first duplicate ACK,
//! so a second segment that comes later is held for less. `paxson-snd` counts from the second. Our choice is to send withheld duplicates together, each with the
//! SACK blocks of that moment. Until then no other segment reports the data, except the DSACK of a duplicate, which is
//! never delayed.
//!
//! **Status.** Partial: the thesis says that the receiver waits 20 ms before its second duplicate ACK, for a threshold of
//! two, the survey only that a duplicate ACK waits. When the
//! withheld ones are sent and what they report decides whether the sender retransmits.

use reknit_tcp::seams::{AckAction, AckPolicy, Arrival, PiggybackLimit, Plugin, RxFacts, TimedAck};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::delayed_ack;
use crate::requirement::Requirement;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeldDuplicatesConfig {
    /// w, the time from the first duplicate ACK to the second (thesis §2.3.2: 20 ms, without saying from when).
    pub wait: Duration,
}

impl Default for HeldDuplicatesConfig {
    fn default() -> HeldDuplicatesConfig {
        HeldDuplicatesConfig { wait: Duration::from_millis(20) }
    }
}

impl Algorithm<dyn AckPolicy> for HeldDuplicatesConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Withholds]
    }

    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(HeldDuplicates {
            config: self.clone(),
            in_order: delayed_ack::DelayedConfig::default().build(),
            hole_since: None,
            held: 0,
            hidden: false,
            rcv_nxt: Offset::SYN,
        })
    }
}

#[derive(Clone, Debug)]
struct HeldDuplicates {
    config: HeldDuplicatesConfig,
    /// The policy for in-order segments.
    in_order: Box<dyn AckPolicy>,
    hole_since: Option<Instant>,
    held: u32,
    /// Data has arrived that no ACK has reported.
    hidden: bool,
    rcv_nxt: Offset,
}

impl HeldDuplicates {
    /// When duplicate ACKs may be sent.
    fn until(&self) -> Instant {
        self.hole_since.map_or(Instant::NEVER, |since| since + self.config.wait)
    }

    /// Rules 1 and 2.
    fn on_out_of_order(&mut self, now: Instant) -> AckAction {
        if self.hole_since.is_none() {
            self.hole_since = Some(now);
        } else if now < self.until() {
            self.held += 1;
            self.hidden = true;
            return AckAction::Withhold;
        }
        AckAction::Now
    }

    /// Rule 3.
    fn on_advance(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.held = 0;
        self.hidden = false;
        self.hole_since = rx.gaps.then_some(rx.now);
        AckAction::Now
    }
}

impl AckPolicy for HeldDuplicates {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.rcv_nxt = rx.rcv_nxt;
        match rx.arrival {
            Arrival::InOrder => self.in_order.on_data(rx),
            Arrival::OutOfOrder => self.on_out_of_order(rx.now),
            Arrival::FillsGap => self.on_advance(rx),
            Arrival::Duplicate => {
                self.hidden = false;
                AckAction::Now
            }
        }
    }

    fn on_ack_sent(&mut self) {
        self.in_order.on_ack_sent();
    }

    fn deadline(&self) -> Instant {
        if self.held > 0 { self.until() } else { Instant::NEVER }
    }

    fn on_timer(&mut self, now: Instant) -> Option<TimedAck> {
        if self.deadline() > now {
            return None;
        }
        self.held -= 1;
        self.hidden = false;
        Some(TimedAck { ack: self.rcv_nxt, sack: true })
    }

    fn disclosure(&self) -> PiggybackLimit {
        PiggybackLimit { ack: Offset::MAX, sack: !self.hidden }
    }
}

impl Plugin for HeldDuplicates {
    fn heap_size(&self) -> usize {
        size_of_val(&*self.in_order) + self.in_order.heap_size()
    }
}
