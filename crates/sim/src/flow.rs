//! One connection of a simulation: its two ends, what their applications do, and what really happened on the way.

use std::collections::BTreeMap;
use std::sync::Arc;

use hdrhistogram::Histogram;
use reknit_tcp::stats::Cut;
use reknit_tcp::{Connection, Identity, SeqNum, State};
use reknit_units::{Bytes, Duration, Instant};

use crate::result::{FlowResult, Sample};
use crate::scenario::{FlowSpec, Scenario, Workload};
use crate::trace::{Datagram, End};

/// More than any run can send.
const WITHOUT_END: Bytes = Bytes(1 << 60);

#[derive(Debug)]
pub(crate) struct Flow {
    /// Sender of data, then receiver.
    pub(crate) ends: [Connection; 2],
    /// When each end next has a timer in the simulation's queue.
    pub(crate) scheduled: [Instant; 2],
    pub(crate) start: Instant,
    /// What its sender learns about reordering serves later flows, and the other way round.
    pub(crate) shares_reordering: bool,
    workload: Workload,
    completed: Option<Instant>,
    truth: Truth,
    series: Vec<Sample>,
}

/// What only the simulator knows.
#[derive(Debug, Default)]
struct Truth {
    /// Copies of the segment at this position that the path lost.
    lost: BTreeMap<u64, u32>,
    lost_total: u64,
    spurious_retransmissions: u64,
    cuts_seen: u64,
    false_cuts: u64,
    waits: Waits,
}

/// How long segments wait at the receiver for those before them.
#[derive(Debug, Default)]
struct Waits {
    /// Segments that wait, by position, and since when.
    waiting: BTreeMap<u64, Instant>,
    /// Segments that did not wait.
    none: u64,
    /// Waits in microseconds.
    some: Option<Histogram<u64>>,
}

impl Flow {
    pub(crate) fn new(scenario: &Scenario, spec: &FlowSpec, index: u64) -> Flow {
        let config = |end: &reknit_variants::Composition| Arc::new(end.configure(scenario.tcp.clone()));
        // Any numbers do: no decision depends on them.
        let mixed = (scenario.seed ^ index << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let identity = |salt: u64| Identity { isn: SeqNum((mixed >> salt) as u32), timestamp_offset: mixed as u32 };
        let mut receiver = Connection::listen(spec.start, config(&spec.receiver), spec.receiver.build(), identity(32));
        let mut sender = Connection::connect(spec.start, config(&spec.sender), spec.sender.build(), identity(16));
        receiver.read_at_once();
        match spec.workload {
            Workload::Bulk => sender.write(WITHOUT_END),
            Workload::Transfer(size) => {
                sender.write(size);
                sender.close();
            }
        }
        Flow {
            ends: [sender, receiver],
            scheduled: [Instant::NEVER; 2],
            start: spec.start,
            shares_reordering: spec.sender.shares_reordering,
            workload: spec.workload,
            completed: None,
            truth: Truth::default(),
            series: Vec::new(),
        }
    }

    /// `datagram` has arrived.
    pub(crate) fn deliver(&mut self, now: Instant, datagram: &Datagram) {
        match datagram.from {
            End::Sender => self.deliver_data(now, datagram),
            End::Receiver => {
                self.ends[0].on_segment(now, &datagram.segment);
                self.check_cuts();
            }
        }
    }

    fn deliver_data(&mut self, now: Instant, datagram: &Datagram) {
        let receiver = &mut self.ends[1];
        let before = (receiver.received(), receiver.receive_stats().duplicates);
        receiver.on_segment(now, &datagram.segment);
        let advanced = receiver.received() > before.0;
        let duplicate = receiver.receive_stats().duplicates > before.1;
        let after = receiver.received();
        if advanced {
            self.note_completion(now);
            self.truth.waits.on_advance(now, after);
        } else if !duplicate && let Some(position) = self.ends[0].position_sent(datagram.segment.seq) {
            self.truth.waits.on_gap(now, position);
        }
        self.truth.spurious_retransmissions += u64::from(duplicate && !datagram.copy);
    }

    fn note_completion(&mut self, now: Instant) {
        if let Workload::Transfer(size) = self.workload
            && self.completed.is_none()
            && self.ends[1].received() == size.0
        {
            self.completed = Some(now);
            self.ends[1].close();
        }
    }

    /// The timers of `end` are due.
    pub(crate) fn on_timer(&mut self, now: Instant, end: End) {
        self.ends[end.index()].on_timer(now);
        if end == End::Sender {
            self.check_cuts();
        }
    }

    /// The path lost `datagram`.
    pub(crate) fn on_lost(&mut self, datagram: &Datagram) {
        if datagram.from != End::Sender || datagram.segment.len == 0 || datagram.copy {
            return;
        }
        self.truth.lost_total += 1;
        let sender = &self.ends[0];
        if let Some(position) = sender.position_sent(datagram.segment.seq) {
            *self.truth.lost.entry(position).or_default() += 1;
        }
        let acknowledged = sender.acknowledged();
        while let Some(entry) = self.truth.lost.first_entry().filter(|entry| *entry.key() < acknowledged) {
            entry.remove();
        }
    }

    /// If the sender has reduced its window: was the segment that it blames lost?
    fn check_cuts(&mut self) {
        let stats = self.ends[0].send_stats();
        let total = stats.cuts.total();
        if total > self.truth.cuts_seen {
            self.truth.cuts_seen = total;
            if let Some(cut) = stats.last_cut {
                self.truth.judge(&cut);
            }
        }
    }

    /// True if nothing more will happen.
    pub(crate) fn is_done(&self) -> bool {
        match self.workload {
            Workload::Bulk => false,
            // The last ACK may be lost; the receiver's TIME-WAIT is nobody's business.
            Workload::Transfer(_) => {
                self.completed.is_some() && self.ends.iter().any(|end| end.state() >= State::TimeWait)
            }
        }
    }

    pub(crate) fn sample(&mut self, now: Instant) {
        let [sender, receiver] = &self.ends;
        self.series.push(Sample { at: now, info: sender.info(now), delivered: Bytes(receiver.received()) });
    }

    pub(crate) fn into_result(self, end: Instant) -> FlowResult {
        let [sender, receiver] = &self.ends;
        FlowResult {
            delivered: Bytes(receiver.received()),
            elapsed: self.completed.unwrap_or(end).since(self.start),
            completed: self.completed,
            send: sender.send_stats().clone(),
            receive: *receiver.receive_stats(),
            spurious_retransmissions: self.truth.spurious_retransmissions,
            false_cuts: self.truth.false_cuts,
            lost: self.truth.lost_total,
            wait_p50: self.truth.waits.quantile(0.5),
            wait_p99: self.truth.waits.quantile(0.99),
            last: sender.info(end),
            series: self.series,
        }
    }
}

impl Truth {
    fn judge(&mut self, cut: &Cut) {
        let lost = self.lost.get(&cut.position).copied().unwrap_or(0);
        self.false_cuts += u64::from(lost < u32::from(cut.transmissions));
    }
}

impl Waits {
    /// A segment has arrived before one that precedes it.
    fn on_gap(&mut self, now: Instant, position: u64) {
        self.waiting.insert(position, now);
    }

    /// A segment has arrived in its turn, and with it everything below `received`.
    fn on_advance(&mut self, now: Instant, received: u64) {
        self.none += 1;
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() < received) {
            let wait = now.since(entry.remove());
            let some = self.some.get_or_insert_with(|| Histogram::new(3).expect("3 digits are allowed"));
            let _ = some.record(wait.as_nanos() / 1000); // it grows as needed, up to 2^64
        }
    }

    fn quantile(&self, quantile: f64) -> Duration {
        let some = self.some.as_ref().map_or(0, Histogram::len);
        let rank = quantile * (self.none + some) as f64 - self.none as f64;
        match &self.some {
            Some(histogram) if rank > 0.0 => Duration::from_micros(histogram.value_at_quantile(rank / some as f64)),
            _ => Duration::ZERO,
        }
    }
}
