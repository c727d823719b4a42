//! What the path saw of a flow, from which its results are computed.

use std::collections::BTreeMap;
use std::ops::Range;

use reknit_path::stages::DropReason;
use reknit_units::{Bytes, Duration, Instant};

use super::packet::Carried;
use super::ranges::Ranges;
use crate::result::{FlowResult, Unreported};
use crate::roles::Role;
use crate::tally::Tally;
use crate::transport::Counters;

#[derive(Debug, Default)]
pub(super) struct Ledger {
    tally: Tally,
    /// The end of what has been sent.
    sent_up_to: u64,
    arrived: Ranges,
    /// Data that waits at the receiver for earlier data: position and time of arrival.
    waiting: BTreeMap<u64, Instant>,
    received: u64,
    /// The most data in one packet.
    largest: u64,
    /// When the latest of the data packets that the path lost was sent.
    latest_lost: Option<Instant>,
    /// When the window was last reduced.
    last_cut: Instant,
    counters: Counters,
    /// The counters at the end of the warm-up.
    uncounted: Counters,
}

impl Ledger {
    /// The sender has sent data.
    pub(super) fn on_sent(&mut self, data: &[Range<u64>]) {
        let (Some(start), Some(end)) = (data.iter().map(|r| r.start).min(), data.iter().map(|r| r.end).max()) else {
            return;
        };
        let sent = &mut self.tally.send.sent;
        *(if start < self.sent_up_to { &mut sent.fast_retransmit } else { &mut sent.new }) += 1;
        self.sent_up_to = self.sent_up_to.max(end);
        self.largest = self.largest.max(data.iter().map(|r| r.end - r.start).sum());
    }

    /// A packet has arrived at the receiver, whose application has now read `received` bytes.
    pub(super) fn on_arrived(&mut self, now: Instant, packet: &Carried, received: u64) {
        let mut is_new = false;
        packet.data.iter().for_each(|range| is_new |= self.arrived.insert(range));
        let is_duplicate = !packet.data.is_empty() && !is_new;
        self.tally.receive.segments += u64::from(!packet.data.is_empty());
        self.tally.receive.duplicates += u64::from(is_duplicate);
        self.tally.spurious_retransmissions += u64::from(is_duplicate && !packet.copy);
        if received > self.received {
            self.tally.delivered += Bytes(received - self.received);
            self.received = received;
            self.tally.waits.note_in_order();
            while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() < received) {
                self.tally.waits.note(now.since(entry.remove()));
            }
        } else if is_new {
            self.waiting.extend(packet.data.iter().map(|range| (range.start, now)));
        }
    }

    pub(super) fn on_lost(&mut self, packet: &Carried, why: DropReason) {
        if packet.copy {
            return;
        }
        if packet.from != Role::Sender || packet.data.is_empty() {
            self.tally.lost_acks += 1;
            return;
        }
        self.tally.lost += 1;
        self.tally.queue_drops += u64::from(why.is_in_queue());
        self.latest_lost = self.latest_lost.max(Some(packet.sent));
    }

    /// The sender has processed an event. A reduction is false if the path lost nothing that was sent since the last one.
    pub(super) fn on_sender(&mut self, now: Instant, counters: Counters) {
        if counters.cuts.unwrap_or(0) > self.counters.cuts.unwrap_or(0) {
            self.tally.false_cuts += u64::from(self.latest_lost.is_none_or(|sent| sent < self.last_cut));
            self.last_cut = now;
        }
        self.counters = counters;
    }

    /// The warm-up is over.
    pub(super) fn restart(&mut self) {
        self.tally.restart();
        self.uncounted = self.counters;
    }

    pub(super) fn into_result(mut self, group: u32, elapsed: Duration, completed: Option<Instant>) -> FlowResult {
        let since = |count: fn(&Counters) -> Option<u64>| {
            count(&self.counters).unwrap_or(0) - count(&self.uncounted).unwrap_or(0)
        };
        self.tally.send.cuts.fast_retransmit = since(|counters| counters.cuts);
        self.tally.send.undos = since(|counters| counters.undos);
        self.tally.send.timeouts = since(|counters| counters.timeouts);
        let mut result = self.tally.into_result(group, elapsed, Bytes(self.largest.max(1)));
        result.completed = completed;
        result.transactions = u64::from(completed.is_some());
        result.unreported = Unreported {
            causes: true,
            cuts: self.counters.cuts.is_none(),
            undos: self.counters.undos.is_none(),
            timeouts: self.counters.timeouts.is_none(),
        };
        result
    }
}
