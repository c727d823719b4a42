//! # JUGGLER
//!
//! Geng, Jeyakumar, Kabbani, Alizadeh: Juggler: A Practical Reordering Resilient Network Stack for Datacenters. `EuroSys`,
//! 2016; as in the authors' changes to Linux 4.1 (`net/core/dev.c`, `net/ipv4/tcp_offload.c`).
//!
//! **What it changes.** Only the receiver, below TCP: where the network card's segments are merged (GRO), those that arrive
//! out of order are held for a short time, so that TCP sees them in order.
//!
//! **State.** `seq_next`: one past the highest byte that was passed on. `held`: the runs of bytes above it. `timestamp`: when
//! something was last passed on, or when the first run was held.
//!
//! **Rules.**
//! - 1 (`dev_gro_receive`): a segment below `seq_next` is passed on at once: it comes later than it was waited for, or again.
//! - 2 (`tcp_gro_receive`): a segment at `seq_next` is passed on with the runs that follow it.
//! - 3 (same function): any other segment is held. Adjacent segments are merged to one run.
//! - 4 (`dev_gro_complete`): if nothing was passed on for `ofo_timeout`, everything held is, and `seq_next` moves above it.
//!   TCP sees each run as one segment, so each causes one duplicate ACK.
//!
//! **Departures.** This part decides about ACKs: TCP gets held data when it arrives, but tells nobody. While anything is held, ACKs
//! also leave out what was passed on above a gap. Segments in order are passed on at once; in the original they wait for `inseq_timeout`, at most 20 us, which saves processing time. Runs of 64 KiB
//! and more are not passed on early, and there is no table of flows that can overflow. The timer is precise.
//!
//! **Choices.** The default of 100 us is that of the authors' scripts, which have 50 to 500 us: enough for the queues of a
//! datacenter. On a slower path `ofo_timeout` must be longer than segments are late.
//!
//! **Status.** Partial: the rules are those of the authors' program; the paper was not compared.

use std::collections::BTreeMap;

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
pub struct JugglerConfig {
    /// How long segments above a gap are held (`gro_ofo_timeout`).
    pub ofo_timeout: Duration,
}

impl Default for JugglerConfig {
    fn default() -> JugglerConfig {
        JugglerConfig { ofo_timeout: Duration::from_micros(100) }
    }
}

impl Algorithm<dyn AckPolicy> for JugglerConfig {
    fn requirements(&self) -> &'static [Requirement] {
        &[Requirement::Withholds]
    }

    fn build(&self) -> Box<dyn AckPolicy> {
        Box::new(Juggler {
            config: self.clone(),
            in_order: delayed_ack::DelayedConfig::default().build(),
            seq_next: Offset::DATA,
            held: BTreeMap::new(),
            timestamp: Instant::ZERO,
            flushed: 0,
            rcv_nxt: Offset::SYN,
        })
    }
}

#[derive(Clone, Debug)]
struct Juggler {
    config: JugglerConfig,
    /// The policy for in-order segments.
    in_order: Box<dyn AckPolicy>,
    seq_next: Offset,
    /// The end of each run, by its start.
    held: BTreeMap<Offset, Offset>,
    timestamp: Instant,
    /// Runs passed on by rule 4 whose duplicate ACKs have not been sent.
    flushed: usize,
    rcv_nxt: Offset,
}

impl Juggler {
    /// Rule 3.
    fn hold(&mut self, rx: &RxFacts<'_>) {
        if self.held.is_empty() {
            self.timestamp = rx.now;
        }
        let (mut start, mut end) = (rx.start, rx.end);
        let before = self.held.range(..=end).next_back().map(|(from, to)| (*from, *to));
        if let Some((from, to)) = before.filter(|(_, to)| *to >= start) {
            self.held.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        if let Some((from, to)) = self.held.range(..start).next_back().map(|(from, to)| (*from, *to))
            && to >= start
        {
            self.held.remove(&from);
            start = from;
        }
        self.held.insert(start, end);
    }

    /// Rules 1 and 2.
    fn pass_on(&mut self, rx: &RxFacts<'_>) {
        self.seq_next = self.seq_next.max(rx.end);
        while let Some(run) = self.held.first_entry().filter(|run| *run.key() <= self.seq_next) {
            self.seq_next = self.seq_next.max(run.remove());
        }
        self.timestamp = rx.now;
    }
}

impl AckPolicy for Juggler {
    fn on_data(&mut self, rx: &RxFacts<'_>) -> AckAction {
        self.rcv_nxt = rx.rcv_nxt;
        if rx.start > self.seq_next {
            self.hold(rx);
            return AckAction::Withhold;
        }
        self.pass_on(rx);
        match rx.arrival {
            Arrival::InOrder => self.in_order.on_data(rx),
            Arrival::OutOfOrder | Arrival::FillsGap | Arrival::Duplicate => AckAction::Now,
        }
    }

    fn on_ack_sent(&mut self) {
        self.in_order.on_ack_sent();
    }

    fn deadline(&self) -> Instant {
        if self.flushed > 0 {
            return self.timestamp;
        }
        if self.held.is_empty() { Instant::NEVER } else { self.timestamp + self.config.ofo_timeout }
    }

    /// Rule 4.
    fn on_timer(&mut self, now: Instant) -> Option<TimedAck> {
        if self.deadline() > now {
            return None;
        }
        if self.flushed == 0 {
            self.flushed = self.held.len();
            self.seq_next = self.held.pop_last().map_or(self.seq_next, |(_, end)| end);
            self.held.clear();
            self.timestamp = now;
        }
        self.flushed -= 1;
        Some(TimedAck { ack: self.rcv_nxt, sack: true })
    }

    fn disclosure(&self) -> PiggybackLimit {
        PiggybackLimit { ack: Offset::MAX, sack: self.held.is_empty() }
    }
}

impl Plugin for Juggler {
    fn heap_size(&self) -> usize {
        size_of_val(&*self.in_order) + self.in_order.heap_size() + self.held.len() * size_of::<(Offset, Offset)>()
    }
}
