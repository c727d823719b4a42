//! A run of another transport: the event loop, with the same order of events as for this project's own connections.

mod ledger;
mod packet;
mod ranges;

use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::{Direction, Pipe, RunLengths};
use reknit_units::{Bytes, Duration, Instant};

use self::ledger::Ledger;
use self::packet::Carried;
use crate::client;
use crate::result::RunResult;
use crate::roles::{PerRole, Role};
use crate::scenario::{FlowSpec, Scenario};
use crate::simulation::Interrupted;
use crate::timers::{Timer, Timers};
use crate::transport::{Endpoint, Ends, Opening, Transport};
use crate::workload::Workload;

/// More than any run can send.
const WITHOUT_END: u64 = 1 << 60;
/// An end that wants to be woken at once is woken after this time, so that time passes.
const SHORTEST_SLEEP: Duration = Duration::from_micros(1);

/// Runs the flows of `scenario` with `transport` at both ends.
pub(crate) fn run(scenario: &Scenario, transport: &dyn Transport) -> RunResult {
    let mut exchange = Exchange::new(scenario, transport);
    while exchange.step() {}
    exchange.finish()
}

/// The same, but ends early if `stop` becomes true.
pub(crate) fn run_unless(
    scenario: &Scenario,
    transport: &dyn Transport,
    stop: &AtomicBool,
) -> Result<RunResult, Interrupted> {
    const BETWEEN_LOOKS: u64 = 1 << 10;
    let mut exchange = Exchange::new(scenario, transport);
    while exchange.step() {
        if exchange.events.is_multiple_of(BETWEEN_LOOKS) && stop.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
    }
    Ok(exchange.finish())
}

#[derive(Debug)]
struct Flow {
    group: u32,
    start: Instant,
    /// What the application writes, and whether it ever ends; none if this cannot be transferred.
    len: Option<u64>,
    /// None before the start.
    ends: Option<PerRole<Box<dyn Endpoint>>>,
    ledger: Ledger,
    completed: Option<Instant>,
}

impl Flow {
    fn new(start: Instant, spec: &FlowSpec) -> Flow {
        let len = match spec.workload {
            Workload::Bulk => Some(WITHOUT_END),
            Workload::Transfer(size) => Some(size.0),
            Workload::Exchange { .. } | Workload::Transactions(_) => None,
        };
        Flow { group: spec.group, start, len, ends: None, ledger: Ledger::default(), completed: None }
    }
}

struct Exchange<'a> {
    transport: &'a dyn Transport,
    now: Instant,
    /// The end of the warm-up.
    warm: Instant,
    end: Instant,
    seed: u64,
    receive_buffer: Bytes,
    flows: Vec<Flow>,
    pipes: PerRole<Pipe<Carried>>,
    timers: Timers,
    unfinished: usize,
    opened: u32,
    packets: u64,
    /// Packets that the path had delayed before the end of the warm-up.
    delayed_before: u64,
    events: u64,
}

impl<'a> Exchange<'a> {
    fn new(scenario: &Scenario, transport: &'a dyn Transport) -> Exchange<'a> {
        let flow = |(i, spec): (u32, &FlowSpec)| Flow::new(client::start(scenario, spec, i), spec);
        let flows: Vec<Flow> = (0..).zip(&scenario.flows).map(flow).collect();
        let mut timers = Timers::new();
        for (i, flow) in (0..).zip(&flows) {
            timers.open(i);
            timers.set(flow.start, Timer::Begin(i));
        }
        let warm = Instant::ZERO + scenario.warm_up;
        if warm > Instant::ZERO {
            timers.set(warm, Timer::Warm);
        }
        let pipe = |direction| Pipe::new(&scenario.profile, direction, scenario.seed, scenario.phases);
        Exchange {
            transport,
            now: Instant::ZERO,
            warm,
            end: Instant::ZERO + scenario.duration,
            seed: scenario.seed,
            receive_buffer: scenario.tcp.receive_buffer_size(),
            unfinished: flows.len(),
            flows,
            pipes: PerRole { sender: pipe(Direction::Forward), receiver: pipe(Direction::Reverse) },
            timers,
            opened: 0,
            packets: 0,
            delayed_before: 0,
            events: 0,
        }
    }

    /// Processes the next event; false if there is none before the end of the run.
    fn step(&mut self) -> bool {
        let timer = self.timers.next_at();
        let (forward, reverse) = (self.pipes.sender.next_at(), self.pipes.receiver.next_at());
        let next = timer.min(forward).min(reverse);
        if next > self.end || self.unfinished == 0 {
            return false;
        }
        self.now = next;
        self.events += 1;
        if timer == next {
            self.fire();
        } else if forward == next {
            self.deliver(Role::Sender);
        } else {
            self.deliver(Role::Receiver);
        }
        true
    }

    fn fire(&mut self) {
        match self.timers.pop() {
            Some(Timer::Warm) => {
                self.flows.iter_mut().for_each(|flow| flow.ledger.restart());
                self.delayed_before = self.pipes.sender.delayed();
            }
            Some(Timer::Begin(flow)) => self.begin(flow),
            Some(Timer::Wake(flow, end)) => self.wake(flow, end),
            Some(Timer::Tell(_) | Timer::Sample) | None => {}
        }
    }

    fn begin(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Some(len) = flow.len else { return };
        let seed = (self.seed ^ u64::from(index) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let opening = Opening { now: self.now, seed, receive_buffer: self.receive_buffer };
        let Ends { mut sender, receiver } = self.transport.open(&opening);
        sender.write(self.now, len);
        flow.ends = Some(PerRole { sender, receiver });
        self.opened += 1;
        self.collect(index, Role::Sender);
        self.collect(index, Role::Receiver);
    }

    fn wake(&mut self, index: u32, end: Role) {
        if let Some(ends) = &mut self.flows[index as usize].ends
            && ends[end].deadline(self.now) <= self.now
        {
            ends[end].on_deadline(self.now);
        }
        self.collect(index, end);
    }

    /// Delivers everything that `from` sent and that arrives now.
    fn deliver(&mut self, from: Role) {
        let mut batch = Vec::new();
        while let Some((_, packet)) = self.pipes[from].pop(self.now) {
            let flow = &mut self.flows[packet.flow as usize];
            if let Some(ends) = &mut flow.ends {
                ends[from.other()].handle(self.now, &packet.packet);
                if from == Role::Sender {
                    let received = ends.receiver.received();
                    flow.ledger.on_arrived(self.now, &packet, received);
                    if flow.completed.is_none() && flow.len.is_some_and(|len| received >= len) {
                        flow.completed = Some(self.now);
                        self.unfinished -= 1;
                    }
                }
            }
            if !self.transport.reads_in_batches() {
                self.collect(packet.flow, from.other());
            } else if !batch.contains(&packet.flow) {
                batch.push(packet.flow);
            }
        }
        for flow in batch {
            self.collect(flow, from.other());
        }
        self.collect_lost();
    }

    /// Sends what the end wants to send, and schedules its next timer.
    fn collect(&mut self, index: u32, end: Role) {
        let flow = &mut self.flows[index as usize];
        let Some(ends) = &mut flow.ends else { return };
        while let Some(transmit) = ends[end].poll_transmit(self.now) {
            if end == Role::Sender {
                flow.ledger.on_sent(&transmit.data);
            }
            self.packets += 1;
            let packet = Carried {
                packet: transmit.packet,
                size: transmit.size,
                data: transmit.data,
                flow: index,
                from: end,
                sent: self.now,
                copy: false,
            };
            self.pipes[end].push(self.now, packet);
        }
        if end == Role::Sender {
            flow.ledger.on_sender(self.now, ends.sender.counters());
        }
        let deadline = ends[end].deadline(self.now);
        if deadline.is_set() {
            self.timers.wake(deadline.max(self.now + SHORTEST_SLEEP), index, end);
        }
        self.collect_lost();
    }

    fn collect_lost(&mut self) {
        for end in [Role::Sender, Role::Receiver] {
            while let Some(lost) = self.pipes[end].pop_lost() {
                self.flows[lost.packet.flow as usize].ledger.on_lost(&lost.packet, lost.why);
            }
        }
    }

    fn finish(self) -> RunResult {
        let end = if self.unfinished == 0 { self.now } else { self.end };
        let result = |flow: Flow| {
            let elapsed = flow.completed.unwrap_or(end).since(flow.start.max(self.warm));
            flow.ledger.into_result(flow.group, elapsed, flow.completed)
        };
        RunResult {
            flows: self.flows.into_iter().map(result).collect(),
            transactions: Vec::new(),
            connections: self.opened,
            packets: self.packets,
            delayed: self.pipes.sender.delayed() - self.delayed_before,
            run_lengths: RunLengths::default(),
            events: self.events,
        }
    }
}
