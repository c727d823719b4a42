//! One direction of a path.

use std::collections::VecDeque;

use reknit_units::{Bytes, Instant};

use crate::profile::{Direction, Profile};
use crate::random::{Phases, StreamId};
use crate::resequencer::TcpHeader;
use crate::router::{DropNotice, DropRange, Router};
use crate::run_length::RunLengths;
use crate::schedule::Schedule;
use crate::stages::{Departures, DropReason, Running, SeenByGateway, SegmentTag, StageOutcome, StagePacket};

/// What is sent through a pipe: a segment in a simulator, bytes on a host.
pub trait Packet: Sized {
    /// Bytes on the wire.
    fn size(&self) -> Bytes;

    /// The copy that a network makes when it duplicates packets.
    #[must_use]
    fn copy(&self) -> Self;

    /// The data that it carries, if that is known.
    fn label(&self) -> Option<SegmentTag> {
        None
    }

    /// What a gateway reads of its TCP header, if it is TCP.
    fn tcp(&self) -> Option<TcpHeader> {
        None
    }

    /// The drop notice that a router reads, for variants whose routers report drops. None if the packet has no space
    /// for one; routers then ignore the packet and its flow.
    fn notice(&self) -> Option<DropNotice> {
        None
    }

    /// A router writes what was dropped. Called only if [`Packet::notice`] is not none.
    fn set_dropped(&mut self, _dropped: DropRange) {}

    /// A value that the packets of a flow share and those of other flows mostly do not: a hash of addresses and ports
    /// ([`flow_hash`](crate::flow_hash)).
    fn flow(&self) -> u32;

    /// Flips a bit that the receiver's checksum covers: number `bit`, modulo the number of such bits. False if the
    /// packet has no bytes; the pipe then remembers that it is corrupted, and loses it on arrival.
    fn flip(&mut self, _bit: u64) -> bool {
        false
    }
}

/// A packet that was lost.
#[derive(Debug)]
pub struct Lost<P> {
    /// The packet.
    pub packet: P,
    /// The stage that lost or corrupted it, counted from 0.
    pub stage: usize,
    /// The reason.
    pub why: DropReason,
}

/// A chain of stages with the packets in it.
///
/// Most stages can compute when a packet leaves them, so a packet passes through the whole chain as soon as it enters.
/// It pauses only if other packets may have overtaken it before a stage that depends on the order of arrival. It is stored
/// once, when it enters, and read where it lies when it comes out.
///
/// What comes out, and when, depends only on what was pushed in and when, not on how often the pipe is called: a clock
/// that jumps from event to event and one that is read late see the same packets at the same times.
#[derive(Debug)]
pub struct Pipe<P> {
    stages: Vec<Placed>,
    /// The packets inside, by slot.
    packets: Vec<Option<Inside<P>>>,
    free: Vec<u32>,
    /// Packets that will come out.
    deliveries: Schedule,
    /// Packets that wait before a stage.
    pauses: Schedule,
    exits: Departures,
    lost: VecDeque<Lost<P>>,
    /// True if a stage has timers.
    timed: bool,
    /// True if a stage distinguishes flows.
    reads_flows: bool,
    /// One for each stage, if stages report the packets that they drop.
    routers: Vec<Router>,
    /// The stage before which run lengths are counted, if they are.
    counted: Option<(usize, RunLengths)>,
}

#[derive(Debug)]
struct Inside<P> {
    packet: P,
    /// The packet as stages see it.
    item: StagePacket,
    /// The stage that corrupted it, if the packet itself does not show that.
    damaged_by: Option<u32>,
    /// The branch that it took, for gateways.
    branch: u16,
}

#[derive(Debug)]
struct Placed {
    stage: Running,
    /// Its position in the profile, which may have idle stages before it.
    position: usize,
    /// Packets may arrive here out of order, so each waits for its time.
    pause: bool,
    /// It distinguishes packets, or they are counted here.
    reads_labels: bool,
    is_gateway: bool,
    /// It has branches, and a gateway follows.
    has_branches: bool,
}

impl<P: Packet> Inside<P> {
    /// The drop notice for a router, which ignores corrupted packets.
    fn notice(&self) -> Option<DropNotice> {
        if self.damaged_by.is_some() { None } else { self.packet.notice() }
    }
}

impl<P: Packet> Pipe<P> {
    /// The pipe for one direction of `profile`.
    pub fn new(profile: &Profile, direction: Direction, seed: u64, phases: Phases) -> Pipe<P> {
        let specs = profile.stages(direction);
        let base = match direction {
            Direction::Forward => 0,
            Direction::Reverse => 1 << 16,
        };
        let mut overtaken = false;
        let mut stages = Vec::with_capacity(specs.len());
        for (position, named) in specs.iter().enumerate() {
            // The first stage stays: runs of packets are counted there on paths without a rate.
            if position > 0 && named.spec.is_idle() {
                continue;
            }
            let stage = named.spec.build(StreamId { seed, stage: base + position as u32, phases });
            let pause = overtaken;
            overtaken = stage.stage().reorders();
            let reads_labels = stage.stage().reads_labels();
            let is_gateway = stage.stage().is_gateway();
            let has_branches = named.spec.branches() > 1;
            stages.push(Placed { stage, position, pause, reads_labels, is_gateway, has_branches });
        }
        let before_gateway = stages.iter().rposition(|placed| placed.is_gateway).unwrap_or(0);
        stages.iter_mut().skip(before_gateway).for_each(|placed| placed.has_branches = false);
        let routers =
            if profile.drop_notices { stages.iter().map(|_| Router::default()).collect() } else { Vec::new() };
        Pipe {
            routers,
            timed: stages.iter().any(|placed| placed.stage.stage().has_timers()),
            reads_flows: stages.iter().any(|placed| placed.stage.stage().reads_flows()),
            stages,
            packets: Vec::new(),
            free: Vec::new(),
            deliveries: Schedule::new(),
            pauses: Schedule::new(),
            exits: Departures::default(),
            lost: VecDeque::new(),
            counted: None,
        }
    }

    /// True if what happens to a packet may depend on its label.
    pub fn reads_labels(&self) -> bool {
        self.stages.iter().any(|placed| placed.reads_labels)
    }

    /// From now on counts runs of packets of the same connection before the stage at `position`.
    pub fn count_runs(&mut self, position: usize) {
        if let Some(placed) = self.stages.iter_mut().find(|placed| placed.position == position) {
            placed.reads_labels = true;
            self.counted = Some((position, RunLengths::default()));
        }
    }

    /// The counts of [`Pipe::count_runs`].
    pub fn run_lengths(&self) -> RunLengths {
        self.counted.map_or_else(RunLengths::default, |(_, runs)| runs)
    }

    /// Packets that stages have delayed so far while they let others pass.
    pub fn delayed(&self) -> u64 {
        self.stages.iter().map(|placed| placed.stage.stage().delayed()).sum()
    }

    /// A packet enters at `now`. Times must not decrease. At [`Instant::NEVER`] it is lost.
    #[inline]
    pub fn push(&mut self, now: Instant, packet: P) {
        if !now.is_set() {
            self.lost.push_back(Lost { packet, stage: 0, why: DropReason::Lost });
            return;
        }
        let slot = self.free_slot();
        let item = StagePacket { slot, flow: 0, size: Bytes::ZERO };
        // It is read only where it is stored, so that it is copied as a whole.
        let inside = self.packets[slot as usize].insert(Inside { packet, item, damaged_by: None, branch: 0 });
        inside.item.size = inside.packet.size();
        if self.reads_flows {
            inside.item.flow = inside.packet.flow();
        }
        let item = inside.item;
        self.walk(now, item, 0);
    }

    /// When [`Pipe::pop`] returns the next packet.
    #[inline]
    pub fn next_at(&self) -> Instant {
        let next = self.deliveries.next_at().min(self.pauses.next_at());
        self.next_timer().map_or(next, |(at, _)| next.min(at))
    }

    /// The next packet that comes out at or before `now`, with its time. It stays inside until [`Pipe::pop`] or
    /// [`Pipe::remove_first`].
    #[inline]
    pub fn peek(&mut self, now: Instant) -> Option<(Instant, &P)> {
        let (at, slot) = self.first_out(now)?;
        self.packets[slot as usize].as_ref().map(|inside| (at, &inside.packet))
    }

    /// Removes the packet that [`Pipe::peek`] has just returned.
    #[inline]
    pub fn remove_first(&mut self) {
        if let Some(slot) = self.deliveries.pop() {
            self.take(slot);
        }
    }

    /// The next packet that comes out at or before `now`, with its time.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, P)> {
        let (at, slot) = self.first_out(now)?;
        self.deliveries.pop();
        self.take(slot).map(|inside| (at, inside.packet))
    }

    /// The next packet that the path has lost. Losses are reported as soon as they are certain; a corrupted packet
    /// without bytes is reported when it would have arrived.
    pub fn pop_lost(&mut self) -> Option<Lost<P>> {
        self.lost.pop_front()
    }

    /// True if [`Pipe::pop_lost`] returns a packet.
    #[inline]
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The number of packets inside.
    pub fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// True if no packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes `item` through the stages from `i` on, as far as it gets without waiting.
    fn walk(&mut self, at: Instant, item: StagePacket, i: usize) {
        if self.stages.get(i).is_some_and(|placed| placed.pause) {
            self.pauses.push(at, item.slot, i as u32);
        } else {
            self.pass(at, item, i);
        }
    }

    /// Passes `item` through stage `i` and the following ones.
    fn pass(&mut self, at: Instant, item: StagePacket, i: usize) {
        let mut at = at;
        let mut i = i;
        while let Some(placed) = self.stages.get_mut(i) {
            let outcome = if !at.is_set() {
                StageOutcome::Drop(DropReason::Lost) // the time of arrival overflows
            } else if placed.reads_labels || placed.is_gateway || placed.has_branches {
                self.pass_read(at, item, i)
            } else {
                placed.stage.on_packet(at, item, &mut self.exits)
            };
            match outcome {
                StageOutcome::Departure(exit) => {
                    self.tell(at, item, i);
                    at = exit;
                }
                StageOutcome::Drop(why) => return self.lose(at, item, i, why),
                StageOutcome::Listed => return self.walk_exits(i),
            }
            i += 1;
            if self.stages.get(i).is_some_and(|placed| placed.pause) {
                return self.pauses.push(at, item.slot, i as u32);
            }
        }
        self.deliveries.push(at, item.slot, i as u32);
    }

    /// `item` arrives at stage `i`, which reads labels or headers, has branches, or before which runs are counted.
    fn pass_read(&mut self, at: Instant, item: StagePacket, i: usize) -> StageOutcome {
        let placed = &mut self.stages[i];
        let inside = self.packets[item.slot as usize].as_mut();
        let label = inside.as_ref().and_then(|inside| inside.packet.label());
        if let (Some(label), Some((position, runs))) = (label, &mut self.counted)
            && *position == placed.position
        {
            runs.note(label);
        }
        let stage = placed.stage.stage_mut();
        if placed.is_gateway {
            let seen = inside.map(|inside| SeenByGateway { header: inside.packet.tcp(), branch: inside.branch });
            return stage.on_gateway(at, item, seen.unwrap_or_default(), &mut self.exits);
        }
        let outcome = stage.on_labelled(at, item, label, &mut self.exits);
        if let (Some(branch), Some(inside)) = (stage.branch(), inside) {
            inside.branch = branch;
        }
        outcome
    }

    /// Stage `i` drops `item`.
    fn lose(&mut self, at: Instant, item: StagePacket, i: usize, why: DropReason) {
        if let Some(inside) = self.take(item.slot) {
            self.note_drop(at, &inside, i);
            self.lost.push_back(Lost { packet: inside.packet, stage: self.stages[i].position, why });
        }
    }

    /// The router at stage `i` has dropped a packet.
    fn note_drop(&mut self, at: Instant, dropped: &Inside<P>, i: usize) {
        if let Some(router) = self.routers.get_mut(i)
            && let Some(notice) = dropped.notice()
        {
            router.on_drop(at, notice);
        }
    }

    /// The router at stage `i` forwards `item`, with a notice of what it has dropped of that flow.
    fn tell(&mut self, at: Instant, item: StagePacket, i: usize) {
        if let Some(router) = self.routers.get_mut(i).filter(|router| !router.is_silent())
            && let Some(inside) = &mut self.packets[item.slot as usize]
            && let Some(dropped) = inside.notice().and_then(|notice| router.on_forward(at, notice))
        {
            inside.packet.set_dropped(dropped);
        }
    }

    /// Loses the packets that stage `i` has dropped, and continues with those that it has let out.
    fn walk_exits(&mut self, i: usize) {
        if !self.exits.drops.is_empty() {
            let mut drops = std::mem::take(&mut self.exits.drops);
            for drop in drops.drain(..) {
                self.lose(drop.at, drop.item, i, drop.why);
            }
            self.exits.drops = drops;
        }
        let mut exits = std::mem::take(&mut self.exits.exits);
        // Copies are made before anything happens to the originals in later stages.
        for (_, exit) in exits.iter_mut().filter(|(_, exit)| exit.copy) {
            if let Some(original) = &self.packets[exit.item.slot as usize] {
                let mut copy = Inside { packet: original.packet.copy(), ..*original };
                let slot = self.free_slot();
                copy.item.slot = slot;
                exit.item.slot = slot;
                self.packets[slot as usize] = Some(copy);
            }
        }
        for (at, exit) in exits.drain(..) {
            if let (Some(bit), Some(inside)) = (exit.flip, &mut self.packets[exit.item.slot as usize])
                && !inside.packet.flip(bit)
            {
                inside.damaged_by = Some(self.stages[i].position as u32);
            }
            self.walk(at, exit.item, i + 1);
        }
        self.exits.exits = exits;
    }

    /// Processes all events up to `now`, each at its own time. Timers come before simultaneous packets.
    #[inline(never)]
    fn advance(&mut self, now: Instant) {
        loop {
            match self.next_timer() {
                Some((at, i)) if at <= self.pauses.next_at() && at <= now => {
                    self.stages[i].stage.stage_mut().on_timer(at, &mut self.exits);
                    self.walk_exits(i);
                }
                _ => {
                    let Some(first) = self.pauses.due(now) else { return };
                    self.pauses.pop();
                    if let Some(inside) = &self.packets[first.slot as usize] {
                        self.pass(first.at, inside.item, first.stage as usize);
                    }
                }
            }
        }
    }

    /// The next timer of a stage: its time and the stage.
    #[inline]
    fn next_timer(&self) -> Option<(Instant, usize)> {
        if self.timed { self.next_of_timers() } else { None }
    }

    fn next_of_timers(&self) -> Option<(Instant, usize)> {
        let deadlines = self.stages.iter().zip(0..).map(|(placed, i)| (placed.stage.stage().deadline(), i));
        deadlines.filter(|(at, _)| at.is_set()).min()
    }

    /// The time and slot of the next packet that comes out at or before `now`. Corrupted packets before it are lost.
    #[inline]
    fn first_out(&mut self, now: Instant) -> Option<(Instant, u32)> {
        if self.next_at() > now {
            return None;
        }
        if self.timed || self.pauses.next_at() <= now {
            self.advance(now);
        }
        loop {
            let first = self.deliveries.due(now)?;
            let inside = self.packets[first.slot as usize].as_ref()?;
            let Some(stage) = inside.damaged_by else { return Some((first.at, first.slot)) };
            self.deliveries.pop();
            if let Some(Inside { packet, .. }) = self.take(first.slot) {
                self.lost.push_back(Lost { packet, stage: stage as usize, why: DropReason::Checksum });
            }
        }
    }

    /// A slot without a packet.
    #[inline]
    fn free_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.packets.push(None);
            (self.packets.len() - 1) as u32
        })
    }

    #[inline]
    fn take(&mut self, slot: u32) -> Option<Inside<P>> {
        self.free.push(slot);
        self.packets[slot as usize].take()
    }
}

#[cfg(test)]
mod tests;
