//! Measurements after every event: means over time, bursts after ACKs, the outcome of each transmission.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use reknit_path::Packet;
use reknit_tcp::scoreboard::SendReason;
use reknit_tcp::seams::ShownName;
use reknit_tcp::segment::Flags;
use reknit_tcp::{Config, Connection, Identity, State};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

use crate::measures::Measures;
use crate::roles::{PerRole, Role};
use crate::scenario::Scenario;
use crate::trace::{Datagram, EndSnapshot, TraceEvent, Tracer, Transmission};

/// The sender's values after the last event.
#[derive(Clone, Copy, Debug)]
struct Values {
    at: Instant,
    cwnd: f64,
    dup_thresh: f64,
    srtt: Option<f64>,
}

/// What the plug-ins at an end have shown since the last event.
#[derive(Debug, Default)]
struct Showing {
    at: Instant,
    numbers: Vec<(ShownName, f64)>,
}

impl Showing {
    /// The numbers had their current values until `now`.
    fn account(&mut self, now: Instant, measures: &mut Measures) {
        let span = now.since(self.at);
        self.at = now;
        if span.is_zero() {
            return;
        }
        for (name, value) in &self.numbers {
            measures.shown.entry(*name).or_default().note(*value, span);
        }
    }

    /// An end has processed an event.
    fn on_snapshot(&mut self, now: Instant, look: &EndSnapshot<'_>, measures: &mut Measures) {
        self.account(now, measures);
        if look.connection.state() >= State::Established {
            self.numbers.clear();
            look.show(&mut |name, value| self.numbers.push((name, value)));
        }
    }
}

/// Lost copies of a segment.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    copies: u16,
    /// Number of the latest lost transmission.
    latest: u16,
}

/// A connection that is measured.
#[derive(Debug)]
struct Watched {
    group: usize,
    /// None before the connection is established.
    values: Option<Values>,
    /// At both ends.
    showing: PerRole<Showing>,
    /// Data segments sent because of the current ACK.
    burst: Option<u64>,
    /// Segments whose latest copies were lost.
    lost: BTreeMap<u32, Losses>,
    /// First transmissions in flight.
    flight: BTreeMap<u32, Instant>,
    /// The sending times of those that have arrived since the last ACK was sent.
    arrived: Vec<Instant>,
    /// For each of the others that have arrived: the serial number of the first ACK sent since then, and its own
    /// sending time.
    acks: VecDeque<(u64, Instant)>,
    fin_acknowledged: bool,
}

/// Measures the connections of a run.
#[derive(Debug)]
pub struct Meter {
    /// By group of flows.
    groups: Vec<Measures>,
    /// The group of each flow of the scenario.
    group_of: Vec<usize>,
    connections: BTreeMap<u32, Watched>,
    /// Bytes that the plug-ins of `sack` occupy.
    base_state: Bytes,
}

impl Meter {
    /// A meter for a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Meter {
        let group_of: Vec<usize> = scenario.flows.iter().map(|flow| flow.group as usize).collect();
        let groups = group_of.iter().max().map_or(0, |last| last + 1);
        let config = Arc::new(Config::default());
        let sack = Connection::listen(Instant::ZERO, config, Composition::default().build(), Identity::default());
        Meter {
            groups: vec![Measures::default(); groups],
            group_of,
            connections: BTreeMap::new(),
            base_state: sack.plugin_state_size(),
        }
    }

    /// The measurements of each group of flows.
    pub fn groups(&self) -> &[Measures] {
        &self.groups
    }

    /// The measurements of all flows.
    pub fn total(&self) -> Measures {
        let mut total = Measures::default();
        self.groups.iter().for_each(|group| total.add(group));
        total
    }

    /// Adds the connection if it is new. Its data packets come only after its SYN.
    fn meet(&mut self, now: Instant, look: &EndSnapshot<'_>) {
        if look.connection.state() != State::SynSent || self.connections.contains_key(&look.flow) {
            return;
        }
        let group = self.group_of[look.client as usize];
        self.connections.insert(look.flow, Watched::new(group));
        let measures = &mut self.groups[group];
        measures.open += 1;
        let (first, last) = measures.lifetime.unwrap_or((now, now));
        measures.lifetime = Some((first.min(now), last));
    }

    /// A connection has ended, or the run has.
    fn leave(&mut self, now: Instant, mut watched: Watched) {
        let measures = &mut self.groups[watched.group];
        watched.account(now, measures);
        watched.showing.iter_mut().for_each(|(_, showing)| showing.account(now, measures));
    }
}

impl Watched {
    fn new(group: usize) -> Watched {
        Watched {
            group,
            values: None,
            showing: PerRole::default(),
            burst: None,
            lost: BTreeMap::new(),
            flight: BTreeMap::new(),
            arrived: Vec::new(),
            acks: VecDeque::new(),
            fin_acknowledged: false,
        }
    }

    /// The sender has had its current values until `now`.
    fn account(&mut self, now: Instant, measures: &mut Measures) {
        let Some(values) = &mut self.values else { return };
        let span = now.since(values.at);
        values.at = now;
        if span.is_zero() {
            return;
        }
        measures.cwnd.note(values.cwnd, span);
        measures.dup_thresh.note(values.dup_thresh, span);
        if let Some(srtt) = values.srtt {
            measures.srtt.note(srtt, span);
        }
    }

    /// The sender has processed an event.
    fn on_sender(&mut self, now: Instant, sender: &Connection, measures: &mut Measures) {
        self.account(now, measures);
        if sender.state() >= State::Established {
            let info = sender.info(now);
            self.values = Some(Values {
                at: now,
                cwnd: info.cwnd.0 as f64,
                dup_thresh: f64::from(info.dup_thresh.0),
                srtt: info.srtt.map(Duration::as_secs_f64),
            });
        }
        if let Some(burst) = self.burst.take() {
            let burst = burst as usize;
            measures.bursts.resize(measures.bursts.len().max(burst + 1), 0);
            measures.bursts[burst] += 1;
        }
        if !self.fin_acknowledged && sender.is_fin_acknowledged() {
            self.fin_acknowledged = true;
            measures.open -= 1;
            measures.lifetime = measures.lifetime.map(|(first, last)| (first, last.max(now)));
        }
    }

    /// The sender has sent a data segment.
    fn on_data_sent(&mut self, now: Instant, carried: Transmission, measures: &mut Measures) {
        if let Some(burst) = &mut self.burst {
            *burst += 1;
        }
        if carried.number == 1 {
            self.flight.insert(carried.segment, now);
            return;
        }
        let lost = self.lost.get(&carried.segment).copied().unwrap_or_default();
        let before = carried.number - 1;
        if carried.cause == SendReason::FastRetransmit {
            let spurious = lost.copies < before;
            measures.spurious_fast_retransmissions += u64::from(spurious);
            measures.needed_fast_retransmissions += u64::from(!spurious);
        }
        let repairs = matches!(carried.cause, SendReason::FastRetransmit | SendReason::Rescue) && lost.latest == before;
        measures.repaired_by_fast_retransmit += u64::from(repairs);
    }

    /// A data segment has arrived.
    fn on_data_arrived(&mut self, carried: Transmission) {
        // Even if other copies were lost, a later retransmission is spurious.
        self.lost.remove(&carried.segment);
        if carried.number == 1
            && let Some(sent) = self.flight.remove(&carried.segment)
        {
            self.arrived.push(sent);
        }
    }

    fn on_data_lost(&mut self, carried: Transmission) {
        let lost = self.lost.entry(carried.segment).or_default();
        lost.copies += 1;
        lost.latest = lost.latest.max(carried.number);
        if carried.number == 1 {
            self.flight.remove(&carried.segment);
        }
    }

    fn on_ack_arrived(&mut self, now: Instant, serial: u64, measures: &mut Measures) {
        self.burst = Some(0);
        while let Some((_, sent)) = self.acks.pop_front_if(|(first, _)| *first <= serial) {
            let rtt = now.since(sent);
            measures.rtt_total += rtt;
            let _ = measures.rtts.record(rtt.as_nanos() / 1000); // grows as needed, up to 2^64
        }
    }
}

impl Tracer for Meter {
    const WATCHES: bool = true;

    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let Some(watched) = self.connections.get_mut(&datagram.flow) else { return };
        let measures = &mut self.groups[watched.group];
        let (segment, original) = (&datagram.segment, !datagram.copy);
        let data = datagram.transmission.filter(|_| segment.len > 0);
        match (datagram.from, event, data) {
            (Role::Sender, TraceEvent::Sent, Some(carried)) => {
                measures.segments += 1;
                measures.wire += datagram.size();
                watched.on_data_sent(now, carried, measures);
            }
            (Role::Sender, TraceEvent::Delivered, Some(carried)) if original => watched.on_data_arrived(carried),
            (Role::Sender, TraceEvent::Lost, Some(carried)) if original => watched.on_data_lost(carried),
            (Role::Receiver, TraceEvent::Sent, _) => {
                watched.acks.extend(watched.arrived.drain(..).map(|sent| (datagram.serial, sent)));
            }
            (Role::Receiver, TraceEvent::Delivered, _) if !segment.flags.has(Flags::SYN) => {
                watched.on_ack_arrived(now, datagram.serial, measures);
            }
            _ => {}
        }
    }

    fn on_snapshot(&mut self, now: Instant, look: &EndSnapshot<'_>) {
        self.meet(now, look);
        let Some(watched) = self.connections.get_mut(&look.flow) else { return };
        let measures = &mut self.groups[watched.group];
        let beyond = look.connection.plugin_state_size() - self.base_state;
        measures.reordering_state = measures.reordering_state.max(beyond);
        watched.showing[look.end].on_snapshot(now, look, measures);
        if look.end == Role::Sender {
            watched.on_sender(now, look.connection, measures);
        }
        if look.connection.state() >= State::TimeWait
            && let Some(watched) = self.connections.remove(&look.flow)
        {
            self.leave(now, watched);
        }
    }

    fn on_warm(&mut self, now: Instant) {
        self.groups.iter_mut().for_each(Measures::restart);
        for watched in self.connections.values_mut() {
            watched.values.iter_mut().for_each(|values| values.at = now);
            watched.showing.iter_mut().for_each(|(_, showing)| showing.at = now);
        }
    }

    fn on_over(&mut self, end: Instant) {
        for watched in std::mem::take(&mut self.connections).into_values() {
            self.leave(end, watched);
        }
    }
}
