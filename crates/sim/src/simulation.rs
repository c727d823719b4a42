//! The loop: the earliest of all timers and deliveries, again and again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::{Direction, Pipe};
use reknit_tcp::Output;
use reknit_units::{Duration, Instant};
use reknit_variants::rr_share::ReorderingCache;

use crate::flow::Flow;
use crate::result::RunResult;
use crate::scenario::Scenario;
use crate::trace::{Datagram, End, NoTracer, TraceEvent, Tracer};

/// Runs `scenario`.
pub fn run(scenario: &Scenario) -> RunResult {
    run_traced(scenario, NoTracer).0
}

/// Runs `scenario` and lets `tracer` see every packet.
pub fn run_traced<T: Tracer>(scenario: &Scenario, tracer: T) -> (RunResult, T) {
    let mut simulation = Simulation::new(scenario, tracer);
    while simulation.step() {}
    simulation.finish()
}

/// A run was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interrupted;

/// Runs `scenario`, and lets `tracer` see every packet, unless `stop` becomes true on the way.
///
/// # Errors
/// If `stop` did.
pub fn run_unless<T: Tracer>(scenario: &Scenario, tracer: T, stop: &AtomicBool) -> Result<(RunResult, T), Interrupted> {
    const BETWEEN_LOOKS: u64 = 1 << 14;
    let mut simulation = Simulation::new(scenario, tracer);
    while simulation.step() {
        if simulation.events.is_multiple_of(BETWEEN_LOOKS) && stop.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
    }
    Ok(simulation.finish())
}

/// The host at the far end of the path. All flows of a scenario lead to the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Peer;

/// What a timer of the simulation is for. At equal times the order of these variants decides, then that of the flows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Timer {
    /// A connection opens.
    Open(u32),
    /// A connection's end has a deadline.
    Wake(u32, u8),
    /// The time series.
    Sample,
}

struct Simulation<T> {
    now: Instant,
    end: Instant,
    flows: Vec<Flow>,
    forward: Pipe<Datagram>,
    reverse: Pipe<Datagram>,
    /// A timer that has become later stays in the queue until its old time comes: moving it costs nothing.
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    sample_every: Option<Duration>,
    unfinished: usize,
    /// What flows that are done have learned about reordering.
    learned: ReorderingCache<Peer>,
    packets: u64,
    events: u64,
    tracer: T,
}

impl<T: Tracer> Simulation<T> {
    fn new(scenario: &Scenario, tracer: T) -> Simulation<T> {
        let flows: Vec<Flow> =
            scenario.flows.iter().enumerate().map(|(i, spec)| Flow::new(scenario, spec, i as u64)).collect();
        let mut timers = BinaryHeap::new();
        for (i, flow) in flows.iter().enumerate() {
            timers.push(Reverse((flow.start, Timer::Open(i as u32))));
        }
        if let Some(interval) = scenario.sample_every {
            timers.push(Reverse((Instant::ZERO + interval, Timer::Sample)));
        }
        Simulation {
            now: Instant::ZERO,
            end: Instant::ZERO + scenario.duration,
            unfinished: flows.len(),
            flows,
            forward: Pipe::new(&scenario.profile, Direction::Forward, scenario.seed),
            reverse: Pipe::new(&scenario.profile, Direction::Reverse, scenario.seed),
            timers,
            sample_every: scenario.sample_every.filter(|interval| !interval.is_zero()),
            learned: ReorderingCache::default(),
            packets: 0,
            events: 0,
            tracer,
        }
    }

    /// Deals with the next event; false if there is none left in the time of the run.
    fn step(&mut self) -> bool {
        let timer = self.timers.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        let forward = self.forward.next_at();
        let reverse = self.reverse.next_at();
        let next = timer.min(forward).min(reverse);
        if next > self.end || self.unfinished == 0 {
            return false;
        }
        self.now = next;
        self.events += 1;
        // At equal times timers come first, as in the connections themselves.
        if timer == next {
            self.fire();
        } else if forward == next {
            self.deliver(End::Sender);
        } else {
            self.deliver(End::Receiver);
        }
        true
    }

    fn finish(self) -> (RunResult, T) {
        let end = if self.unfinished == 0 { self.now } else { self.end };
        let flows = self.flows.into_iter().map(|flow| flow.into_result(end)).collect();
        (RunResult { flows, packets: self.packets, events: self.events }, self.tracer)
    }

    /// Hands over everything that `from` sent and that arrives now.
    fn deliver(&mut self, from: End) {
        loop {
            let pipe = match from {
                End::Sender => &mut self.forward,
                End::Receiver => &mut self.reverse,
            };
            let Some((_, datagram)) = pipe.pop(self.now) else { break };
            self.tracer.on_packet(self.now, TraceEvent::Delivered, &datagram);
            let flow = &mut self.flows[datagram.flow as usize];
            let was_done = flow.is_done();
            flow.deliver(self.now, &datagram);
            if flow.is_done() && !was_done {
                self.unfinished -= 1;
                self.remember(datagram.flow);
            }
            self.collect(datagram.flow, from.other());
        }
        self.collect_lost();
    }

    fn fire(&mut self) {
        let Some(Reverse((_, timer))) = self.timers.pop() else { return };
        match timer {
            Timer::Open(flow) => self.open(flow),
            Timer::Wake(flow, end) => self.wake(flow, if end == 0 { End::Sender } else { End::Receiver }),
            Timer::Sample => {
                for flow in self.flows.iter_mut().filter(|flow| flow.start <= self.now) {
                    flow.sample(self.now);
                }
                if let Some(interval) = self.sample_every {
                    self.timers.push(Reverse((self.now + interval, Timer::Sample)));
                }
            }
        }
    }

    fn open(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.shares_reordering
            && let Some(history) = self.learned.recall(&Peer, self.now)
        {
            flow.ends[End::Sender.index()].begin_with(history);
        }
        self.collect(index, End::Sender);
    }

    /// A flow is done: those that open later may begin with what it has learned.
    fn remember(&mut self, index: u32) {
        let flow = &self.flows[index as usize];
        if flow.shares_reordering
            && let Some(history) = flow.ends[End::Sender.index()].reordering_history()
        {
            self.learned.remember(Peer, history);
        }
    }

    fn wake(&mut self, index: u32, end: End) {
        let flow = &mut self.flows[index as usize];
        if flow.scheduled[end.index()] != self.now {
            return; // superseded by an earlier one
        }
        flow.scheduled[end.index()] = Instant::NEVER;
        flow.on_timer(self.now, end);
        self.collect(index, end);
    }

    /// Sends what the end wants sent and notes when it wants to be woken.
    fn collect(&mut self, index: u32, end: End) {
        let flow = &mut self.flows[index as usize];
        let pipe = match end {
            End::Sender => &mut self.forward,
            End::Receiver => &mut self.reverse,
        };
        loop {
            match flow.ends[end.index()].poll(self.now) {
                Output::Send(segment) => {
                    let datagram = Datagram { segment, flow: index, from: end, copy: false };
                    self.tracer.on_packet(self.now, TraceEvent::Sent, &datagram);
                    self.packets += 1;
                    pipe.push(self.now, datagram);
                }
                Output::WakeAt(at) => {
                    let scheduled = &mut flow.scheduled[end.index()];
                    if at < *scheduled {
                        *scheduled = at;
                        self.timers.push(Reverse((at, Timer::Wake(index, end.index() as u8))));
                    }
                    break;
                }
                Output::Idle => break,
            }
        }
        self.collect_lost();
    }

    fn collect_lost(&mut self) {
        for pipe in [&mut self.forward, &mut self.reverse] {
            while let Some(lost) = pipe.pop_lost() {
                self.tracer.on_packet(self.now, TraceEvent::Lost, &lost.packet);
                self.flows[lost.packet.flow as usize].on_lost(&lost.packet);
            }
        }
    }
}
