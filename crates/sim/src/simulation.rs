//! The event loop: always processes the earliest timer or delivery next.

use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::stages::DropReason;
use reknit_path::{Direction, Pipe, Profile};
use reknit_tcp::seams::Memory;
use reknit_units::{Duration, Instant};
use reknit_variants::algorithm::SeamAlgorithm;

use crate::application::Application;
use crate::client::Client;
use crate::exchange;
use crate::flow::{Flow, FlowIds};
use crate::network::Network;
use crate::result::RunResult;
use crate::roles::{PerRole, Role};
use crate::scenario::Scenario;
use crate::timers::{Timer, Timers};
use crate::trace::{Datagram, EndSnapshot, NoTracer, TraceEvent, Tracer};
use crate::transactions::TransactionStats;

/// Bytes of an IPv4 and a TCP header without options: what an MTU exceeds the MSS by.
const HEADERS: u16 = 40;

/// Runs `scenario`.
pub fn run(scenario: &Scenario) -> RunResult {
    run_traced(scenario, NoTracer).0
}

/// Runs `scenario`; `tracer` sees every packet of variants, and none of another transport.
pub fn run_traced<T: Tracer>(scenario: &Scenario, tracer: T) -> (RunResult, T) {
    if let Some(transport) = &scenario.transport {
        return (exchange::run(scenario, transport.as_ref()), tracer);
    }
    let mut simulation = Simulation::new(scenario, tracer);
    while simulation.step() {}
    simulation.finish()
}

/// The run was interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// Runs `scenario`; `tracer` sees every packet of variants, and none of another transport. Ends early if `stop` becomes true.
///
/// # Errors
/// If it ended early.
pub fn run_unless<T: Tracer>(scenario: &Scenario, tracer: T, stop: &AtomicBool) -> Result<(RunResult, T), Interrupted> {
    const BETWEEN_LOOKS: u64 = 1 << 14;
    if let Some(transport) = &scenario.transport {
        return Ok((exchange::run_unless(scenario, transport.as_ref(), stop)?, tracer));
    }
    let mut simulation = Simulation::new(scenario, tracer);
    while simulation.step() {
        if simulation.events.is_multiple_of(BETWEEN_LOOKS) && stop.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
    }
    Ok(simulation.finish())
}

struct Simulation<T> {
    now: Instant,
    /// The end of the warm-up.
    warm: Instant,
    end: Instant,
    seed: u64,
    clients: Vec<Client>,
    /// The connections. Slots of ended connections are reused.
    flows: Vec<Option<Flow>>,
    free: Vec<u32>,
    /// The first connection of each client has the client's number; later connections are numbered after those.
    next_id: u32,
    connections: u32,
    network: Network<T>,
    timers: Timers,
    sample_every: Option<Duration>,
    unfinished: usize,
    /// What the hosts at both ends of the path, which are the same for all flows, remember of finished connections.
    memories: PerRole<Memory>,
    /// By group.
    transactions: Vec<TransactionStats>,
    /// The position of the slowest stage in the direction of data.
    slowest: usize,
    /// Packets that the path had delayed before the end of the warm-up.
    delayed_before: u64,
    events: u64,
}

impl<T: Tracer> Simulation<T> {
    fn new(scenario: &Scenario, tracer: T) -> Simulation<T> {
        let mut configs = Vec::new();
        let client = |(i, spec)| Client::new(scenario, spec, i, &mut configs);
        let clients: Vec<Client> = (0..).zip(&scenario.flows).map(client).collect();
        let mut timers = Timers::new();
        for (i, client) in (0..).zip(&clients) {
            timers.set(client.spec.start, Timer::Begin(i));
        }
        if let Some(interval) = scenario.sample_every {
            timers.set(Instant::ZERO + interval, Timer::Sample);
        }
        let warm = Instant::ZERO + scenario.warm_up;
        if warm > Instant::ZERO {
            timers.set(warm, Timer::Warm);
        }
        let mut forward = Pipe::new(&scenario.profile, Direction::Forward, scenario.seed, scenario.phases);
        let reverse = Pipe::new(&scenario.profile, Direction::Reverse, scenario.seed, scenario.phases);
        let slowest = slowest(&scenario.profile);
        if T::WATCHES {
            forward.count_runs(slowest);
        }
        let groups = scenario.flows.iter().map(|spec| spec.group as usize + 1).max().unwrap_or(0);
        Simulation {
            now: Instant::ZERO,
            warm,
            end: Instant::ZERO + scenario.duration,
            seed: scenario.seed,
            unfinished: clients.len(),
            flows: clients.iter().map(|_| None).collect(),
            free: Vec::new(),
            next_id: clients.len() as u32,
            connections: 0,
            clients,
            network: Network {
                labels: T::WATCHES || forward.reads_labels() || reverse.reads_labels() || has_oracle(scenario),
                forward,
                reverse,
                packets: 0,
                tracer,
            },
            slowest,
            delayed_before: 0,
            timers,
            sample_every: scenario.sample_every.filter(|interval| !interval.is_zero()),
            memories: PerRole::default(),
            transactions: vec![TransactionStats::default(); groups],
            events: 0,
        }
    }

    /// Processes the next event; false if there is none before the end of the run.
    fn step(&mut self) -> bool {
        let timer = self.timers.next_at();
        let forward = self.network.forward.next_at();
        let reverse = self.network.reverse.next_at();
        let next = timer.min(forward).min(reverse);
        if next > self.end || self.unfinished == 0 {
            return false;
        }
        self.now = next;
        self.events += 1;
        // Timers come before simultaneous packets, as in the connections themselves.
        if timer == next {
            self.fire();
        } else if forward == next {
            self.deliver(Role::Sender);
        } else {
            self.deliver(Role::Receiver);
        }
        true
    }

    fn finish(mut self) -> (RunResult, T) {
        let end = if self.unfinished == 0 { self.now } else { self.end };
        for flow in self.flows.iter().flatten() {
            self.clients[flow.client as usize].absorb(end, flow);
        }
        self.network.tracer.on_over(end);
        let ids = |client| FlowIds { id: client, client, seed: self.seed };
        let flows = (0..).zip(self.clients).map(|(i, client)| client.into_result(self.warm, end, ids(i))).collect();
        let result = RunResult {
            flows,
            transactions: self.transactions,
            connections: self.connections,
            packets: self.network.packets,
            delayed: self.network.forward.delayed() - self.delayed_before,
            run_lengths: self.network.forward.run_lengths(),
            events: self.events,
        };
        (result, self.network.tracer)
    }

    /// Delivers everything that `from` sent and that arrives now. Not inlined: the compiler would choose
    /// between the pipes again for each field.
    #[inline(never)]
    fn deliver(&mut self, from: Role) {
        let to = from.other();
        loop {
            let pipe = match from {
                Role::Sender => &mut self.network.forward,
                Role::Receiver => &mut self.network.reverse,
            };
            // The packet is read in the pipe: copying it costs more time than reading it.
            let Some((_, datagram)) = pipe.peek(self.now) else { break };
            let slot = datagram.slot;
            self.network.tracer.on_packet(self.now, TraceEvent::Delivered, datagram);
            let Some(flow) = addressee(&mut self.flows, datagram) else {
                pipe.remove_first();
                continue;
            };
            let tally = &mut self.clients[flow.client as usize].tally;
            let complete = flow.deliver(self.now, datagram, tally);
            pipe.remove_first();
            if complete {
                self.complete(slot);
            }
            self.collect(slot, to);
            self.settle(slot, to);
        }
        self.collect_lost();
    }

    fn fire(&mut self) {
        let Some(timer) = self.timers.pop() else { return };
        match timer {
            Timer::Warm => self.end_warm_up(),
            Timer::Begin(client) => self.begin(client),
            Timer::Tell(slot) => self.tell(slot),
            Timer::Wake(slot, end) => self.wake(slot, end),
            Timer::Sample => {
                for (i, client) in (0..).zip(&mut self.clients) {
                    if let Some(flow) = current(&self.flows, client, i) {
                        client.sample(self.now, flow);
                    }
                }
                if let Some(interval) = self.sample_every {
                    self.timers.set(self.now + interval, Timer::Sample);
                }
            }
        }
    }

    /// The warm-up is over.
    fn end_warm_up(&mut self) {
        self.clients.iter_mut().for_each(Client::restart);
        self.flows.iter_mut().flatten().for_each(Flow::restart_counts);
        self.transactions.iter_mut().for_each(|stats| *stats = TransactionStats::default());
        self.delayed_before = self.network.forward.delayed();
        if T::WATCHES {
            self.network.forward.count_runs(self.slowest);
        }
        self.network.tracer.on_warm(self.now);
    }

    /// Begins a client's next transaction, on its connection if that can take another, else on a new one.
    fn begin(&mut self, index: u32) {
        let client = &self.clients[index as usize];
        let open = current(&self.flows, client, index).filter(|flow| !flow.application.is_over());
        let slot = match (client.slot, open) {
            (Some(slot), Some(_)) => slot,
            _ => self.connect(index),
        };
        let client = &mut self.clients[index as usize];
        if let Some(flow) = &mut self.flows[slot as usize] {
            client.begin(self.now, flow);
        }
        let opener = Application::opener(&client.spec.workload);
        self.collect(slot, opener);
    }

    /// Opens a connection for a client.
    fn connect(&mut self, index: u32) -> u32 {
        let client = &mut self.clients[index as usize];
        let (slot, id) = if client.slot.is_none() {
            (index, index)
        } else {
            self.next_id += 1;
            let slot = self.free.pop().unwrap_or_else(|| {
                self.flows.push(None);
                (self.flows.len() - 1) as u32
            });
            (slot, self.next_id - 1)
        };
        let mut flow = client.connect(self.now, FlowIds { id, client: index, seed: self.seed });
        flow.recall(self.now, &self.memories);
        client.slot = Some(slot);
        self.connections += 1;
        self.timers.open(slot);
        self.flows[slot as usize] = Some(flow);
        slot
    }

    /// The current transaction in `slot` is complete. Schedules the client's next one.
    fn complete(&mut self, slot: u32) {
        let Some(flow) = &self.flows[slot as usize] else { return };
        let client = &mut self.clients[flow.client as usize];
        let transaction = client.complete(self.now, flow.client);
        self.transactions[client.spec.group as usize].note(&transaction);
        self.network.tracer.on_transaction(&transaction);
        if !client.is_finished() {
            self.timers.set(self.now + client.think(), Timer::Begin(flow.client));
        }
    }

    /// Handles the state of the connection in `slot`, after an event at its `end`.
    fn settle(&mut self, slot: u32, end: Role) {
        let Some(flow) = self.flows[slot as usize].as_mut().filter(|flow| flow.may_be_over(end)) else { return };
        let client = &mut self.clients[flow.client as usize];
        if !flow.done && flow.is_done() {
            flow.done = true;
            if client.is_finished() && client.slot == Some(slot) {
                self.unfinished -= 1;
            }
            flow.remember(&mut self.memories);
        }
        let failed = flow.has_failed(end) && client.retries_after_failure();
        if failed && flow.application.is_busy() {
            client.fail();
            self.transactions[client.spec.group as usize].note_failure();
            self.timers.set(self.now + client.think(), Timer::Begin(flow.client));
        }
        if failed || flow.is_over() {
            client.absorb(self.now, flow);
            self.flows[slot as usize] = None;
            self.free.push(slot);
        }
    }

    fn wake(&mut self, slot: u32, end: Role) {
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        flow.on_timer(self.now, end, &mut self.clients[flow.client as usize].tally);
        self.collect(slot, end);
        self.settle(slot, end);
    }

    /// Tells the sender in `slot` about the losses that are due.
    fn tell(&mut self, slot: u32) {
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        flow.tell(self.now);
        self.collect(slot, Role::Sender);
        self.settle(slot, Role::Sender);
    }

    /// Sends what the end wants to send, and schedules its next timer.
    fn collect(&mut self, slot: u32, end: Role) {
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        while let Some(segment) = flow.ends[end].poll_segment(self.now) {
            if !flow.has_liar() {
                self.network.send(self.now, slot, end, flow, &segment);
                continue;
            }
            for lie in flow.tamper(self.now, end, &segment) {
                self.network.send(self.now, slot, end, flow, &lie);
            }
        }
        self.timers.wake(flow.ends[end].deadline(), slot, end);
        if T::WATCHES {
            let connection = &flow.ends[end];
            self.network
                .tracer
                .on_snapshot(self.now, &EndSnapshot { flow: flow.id, client: flow.client, end, connection });
        }
        self.collect_lost();
    }

    fn collect_lost(&mut self) {
        if self.network.has_lost() {
            self.report_lost();
        }
    }

    fn report_lost(&mut self) {
        for pipe in [&mut self.network.forward, &mut self.network.reverse] {
            while let Some(lost) = pipe.pop_lost() {
                self.network.tracer.on_packet(self.now, TraceEvent::Lost, &lost.packet);
                if let Some(flow) = addressee(&mut self.flows, &lost.packet) {
                    let tally = &mut self.clients[flow.client as usize].tally;
                    if let Some(at) = flow.on_lost(self.now, &lost.packet, lost.why, tally) {
                        self.timers.set(at, Timer::Tell(lost.packet.slot));
                    }
                    if let DropReason::TooBig { told: Some(mtu) } = lost.why {
                        let from = lost.packet.from;
                        flow.ends[from].limit_segment_size(self.now, mtu.saturating_sub(HEADERS));
                        self.timers.wake(self.now, lost.packet.slot, from);
                    }
                }
            }
        }
    }
}

/// True if any sender must be told what was lost.
fn has_oracle(scenario: &Scenario) -> bool {
    scenario.flows.iter().any(|spec| spec.sender.loss_detector.build().traits().needs_loss_reports)
}

/// The position of the slowest stage in the direction of data; the first stage if none has a rate.
fn slowest(profile: &Profile) -> usize {
    let rates = (0..).zip(profile.stages(Direction::Forward)).filter_map(|(i, named)| Some((named.spec.rate()?, i)));
    rates.min().map_or(0, |(_, i)| i)
}

/// The latest connection of the client with this number; none if it has ended, since its slot may have been reused.
fn current<'a>(flows: &'a [Option<Flow>], client: &Client, index: u32) -> Option<&'a Flow> {
    flows[client.slot? as usize].as_ref().filter(|flow| flow.client == index)
}

/// The connection that `datagram` belongs to; none if it has ended.
fn addressee<'a>(flows: &'a mut [Option<Flow>], datagram: &Datagram) -> Option<&'a mut Flow> {
    flows[datagram.slot as usize].as_mut().filter(|flow| flow.id == datagram.flow)
}
