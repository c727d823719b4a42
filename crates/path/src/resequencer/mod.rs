//! Restores the order of TCP packets in front of a receiver: early packets are held until late ones have passed.
//!
//! A [`Resequencer`] has no clock and sees only headers: give it each packet with a handle, and it says which packets go on
//! now. It leaves a flow alone until the sender has suffered: until it has retransmitted late data, which was not lost, in
//! three or ten different seconds. Then it holds packets on trial, and goes on only if that makes the flow faster.

mod flow;
mod gaps;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use reknit_units::{Duration, Instant};

use self::flow::{Arriving, Call, Flow};

/// Flows that are followed at a time. The packets of others pass.
const MAX_FLOWS: usize = 65_536;
/// A flow without packets for this long is forgotten.
const IDLE: Duration = Duration::from_secs(120);

/// What the resequencer reads of a TCP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpHeader {
    /// The first sequence number.
    pub seq: u32,
    /// Sequence numbers that it occupies: bytes of data, and one each for SYN and FIN.
    pub len: u32,
    /// TSval of the timestamps option.
    pub timestamp: Option<u32>,
    /// SYN.
    pub opens: bool,
    /// RST.
    pub resets: bool,
}

/// How much is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The longest time that a packet is held.
    pub time: Duration,
    /// Packets of a flow.
    pub of_flow: usize,
    /// Packets of all flows.
    pub of_all: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_millis(300), of_flow: 1000, of_all: 10_000 }
    }
}

/// What it has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that it has seen.
    pub packets: u64,
    /// Packets that arrived after others that were sent later.
    pub late: u64,
    /// Packets that it held.
    pub held: u64,
    /// Times that it has given up waiting for a packet.
    pub given_up: u64,
    /// Retransmissions of data that was only late.
    pub spurious: u64,
    /// Trials that it has begun.
    pub trials: u64,
    /// Trials that made the flow faster.
    pub kept: u64,
    /// Trials that did not.
    pub ended: u64,
}

/// The flows in one direction of a path. `K` tells flows apart; `H` is the caller's handle of a packet.
#[derive(Debug)]
pub struct Resequencer<K, H> {
    limits: Limits,
    flows: BTreeMap<K, Flow<H>>,
    /// When the flows that hold packets give up waiting.
    deadlines: BTreeSet<(Instant, K)>,
    held: usize,
    counts: Counts,
    swept: Instant,
}

impl<K: Copy + Ord, H> Resequencer<K, H> {
    /// Without flows.
    pub fn new(limits: Limits) -> Resequencer<K, H> {
        Resequencer {
            limits,
            flows: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            held: 0,
            counts: Counts::default(),
            swept: Instant::ZERO,
        }
    }

    /// A packet of `flow` has arrived at `now`, not before the packets so far. Adds to `out` the packets that go on now, in this
    /// order.
    pub fn on_packet(&mut self, now: Instant, flow: K, header: TcpHeader, handle: H, out: &mut Vec<H>) {
        self.counts.packets += 1;
        if !self.flows.contains_key(&flow) && !self.admit(now, flow, header) {
            return out.push(handle);
        }
        let Some(state) = self.flows.get_mut(&flow) else { return out.push(handle) };
        let (before, deadline) = (state.held(), state.deadline());
        let mut call = Call { counts: &mut self.counts, out };
        state.on_packet(now, Arriving { header, handle }, self.limits.time, &mut call);
        let others = self.held - before;
        while state.held() > self.limits.of_flow.min(self.limits.of_all.saturating_sub(others)) {
            state.give_up(&mut call);
        }
        self.held = others + state.held();
        let next = state.deadline();
        self.schedule(flow, deadline, next);
        if header.resets {
            self.flows.remove(&flow);
        }
    }

    /// When to call [`Resequencer::on_timer`] if no packet arrives before; [`Instant::NEVER`] if nothing is held.
    pub fn deadline(&self) -> Instant {
        self.deadlines.first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// Adds to `out` the packets that have been held long enough at `now`, in this order.
    pub fn on_timer(&mut self, now: Instant, out: &mut Vec<H>) {
        while let Some((deadline, flow)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            let Some(state) = self.flows.get_mut(&flow) else {
                self.deadlines.pop_first();
                continue;
            };
            let before = state.held();
            state.on_timer(now, self.limits.time, &mut Call { counts: &mut self.counts, out });
            self.held -= before - state.held();
            let next = state.deadline();
            self.schedule(flow, deadline, next);
        }
    }

    /// Adds to `out` everything that is held, and forgets all flows.
    pub fn release_all(&mut self, out: &mut Vec<H>) {
        for mut flow in std::mem::take(&mut self.flows).into_values() {
            flow.release_all(&mut Call { counts: &mut self.counts, out });
        }
        self.deadlines.clear();
        self.held = 0;
    }

    /// The number of packets that are held.
    pub fn held(&self) -> usize {
        self.held
    }

    /// What it has done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The flows, each with what is known of it.
    pub fn flows(&self) -> impl Iterator<Item = (K, FlowState)> {
        self.flows.iter().map(|(key, flow)| (*key, flow.state()))
    }

    /// False if a new flow is not followed: it has no data yet, or there are too many.
    fn admit(&mut self, now: Instant, flow: K, header: TcpHeader) -> bool {
        if header.len == 0 || header.resets {
            return false;
        }
        if self.flows.len() >= MAX_FLOWS {
            self.forget_idle(now);
        }
        let has_room = self.flows.len() < MAX_FLOWS;
        if has_room {
            self.flows.insert(flow, Flow::new(now, header.seq));
        }
        has_room
    }

    /// At most once a second, because it looks at all flows.
    fn forget_idle(&mut self, now: Instant) {
        if now.since(self.swept) >= Duration::from_secs(1) {
            self.swept = now;
            self.flows.retain(|_, flow| flow.held() > 0 || now.since(flow.last()) < IDLE);
        }
    }

    fn schedule(&mut self, flow: K, before: Instant, now: Instant) {
        if before != now {
            self.deadlines.remove(&(before, flow));
            if now.is_set() {
                self.deadlines.insert((now, flow));
            }
        }
    }
}

/// What is known of a flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowState {
    /// Whether its packets are held.
    pub phase: Phase,
    /// Packets that arrived after others that were sent later.
    pub late: u64,
    /// Retransmissions of data that was only late.
    pub spurious: u64,
    /// How long a missing packet is waited for; none as long as no packet was late.
    pub wait: Option<Duration>,
    /// Bytes of new data.
    pub bytes: u64,
}

/// Whether the packets of a flow are held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// No: its sender has not suffered enough.
    Watched,
    /// On trial.
    OnTrial,
    /// Yes: it became faster.
    Held,
    /// No: it did not become faster, so the next trial must wait.
    Left,
}

#[cfg(test)]
mod tests;
