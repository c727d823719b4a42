//! One direction of a path.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use reknit_units::{Bytes, Instant};

use crate::profile::{Direction, Profile};
use crate::random::{Phases, StreamId};
use crate::router::{DropNotice, DropRange, Router};
use crate::run_length::RunLengths;
use crate::stages::{Departures, DropReason, SegmentTag, Stage, StageOutcome, StagePacket};

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
/// It pauses only if other packets may have overtaken it before a stage that depends on the order of arrival.
///
/// What comes out, and when, depends only on what was pushed in and when, not on how often the pipe is called: a clock
/// that jumps from event to event and one that is read late see the same packets at the same times.
#[derive(Debug)]
pub struct Pipe<P> {
    stages: Vec<Placed>,
    /// The packets that are in a stage, in `later` or in `pauses`; items refer to them by index.
    packets: Vec<Option<Inside<P>>>,
    free: Vec<u32>,
    /// Deliveries in order of time; all of them are here as long as no packet overtakes another. Packets are stored
    /// contiguously, because memory access is the main cost.
    lane: VecDeque<Delivery<P>>,
    /// Deliveries that are not in order.
    later: BinaryHeap<Reverse<Pending>>,
    /// Items that wait before a stage.
    pauses: BinaryHeap<Reverse<Pending>>,
    /// Numbers everything that waits, so that simultaneous events keep the order in which they were created.
    serial: u64,
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
    /// The stage that corrupted it, if the packet itself does not show that.
    damaged_by: Option<u32>,
}

#[derive(Debug)]
struct Placed {
    stage: Box<dyn Stage>,
    /// Packets may arrive here out of order, so each waits for its time.
    pause: bool,
    /// It distinguishes packets, or they are counted here.
    reads_labels: bool,
}

/// A packet that comes out at a given time.
#[derive(Debug)]
struct Delivery<P> {
    at: Instant,
    serial: u64,
    inside: Inside<P>,
}

/// An event: an item reaches the stage `at_stage`, or the end if there is no such stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending {
    at: Instant,
    serial: u64,
    item: StagePacket,
    at_stage: usize,
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Pending) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Pending) -> std::cmp::Ordering {
        (self.at, self.serial).cmp(&(other.at, other.serial))
    }
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
        for (i, named) in specs.iter().enumerate() {
            let stage = named.spec.build(StreamId { seed, stage: base + i as u32, phases });
            let pause = overtaken;
            overtaken = stage.reorders();
            let reads_labels = stage.reads_labels();
            stages.push(Placed { stage, pause, reads_labels });
        }
        let routers = if profile.drop_notices { specs.iter().map(|_| Router::default()).collect() } else { Vec::new() };
        Pipe {
            routers,
            timed: stages.iter().any(|placed| placed.stage.has_timers()),
            reads_flows: stages.iter().any(|placed| placed.stage.reads_flows()),
            stages,
            packets: Vec::new(),
            free: Vec::new(),
            lane: VecDeque::new(),
            later: BinaryHeap::new(),
            pauses: BinaryHeap::new(),
            serial: 0,
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
        if let Some(placed) = self.stages.get_mut(position) {
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
        self.stages.iter().map(|placed| placed.stage.delayed()).sum()
    }

    /// A packet enters at `now`. Times must not decrease. At [`Instant::NEVER`] it is lost.
    pub fn push(&mut self, now: Instant, packet: P) {
        if !now.is_set() {
            self.lost.push_back(Lost { packet, stage: 0, why: DropReason::Lost });
            return;
        }
        let size = packet.size();
        let flow = if self.reads_flows { packet.flow() } else { 0 };
        let slot = self.store(Inside { packet, damaged_by: None });
        self.walk(now, StagePacket { slot, flow, size }, 0);
    }

    /// When [`Pipe::pop`] returns the next packet.
    pub fn next_at(&self) -> Instant {
        let mut next = self.lane.front().map_or(Instant::NEVER, |delivery| delivery.at);
        for heap in [&self.later, &self.pauses] {
            if let Some(Reverse(pending)) = heap.peek() {
                next = next.min(pending.at);
            }
        }
        self.next_timer().map_or(next, |(at, _)| next.min(at))
    }

    /// The next packet that comes out at or before `now`, with its time.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, P)> {
        self.advance(now);
        loop {
            let (at, Inside { packet, damaged_by }) = self.earliest(now)?;
            match damaged_by {
                None => return Some((at, packet)),
                Some(stage) => self.lost.push_back(Lost { packet, stage: stage as usize, why: DropReason::Checksum }),
            }
        }
    }

    /// The next packet that the path has lost. Losses are reported as soon as they are certain; a corrupted packet
    /// without bytes is reported when it would have arrived.
    pub fn pop_lost(&mut self) -> Option<Lost<P>> {
        self.lost.pop_front()
    }

    /// The number of packets inside.
    pub fn len(&self) -> usize {
        self.lane.len() + self.packets.len() - self.free.len()
    }

    /// True if no packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Passes `item` through the stages from `i` on, as far as it gets without waiting.
    fn walk(&mut self, at: Instant, item: StagePacket, i: usize) {
        if self.stages.get(i).is_some_and(|placed| placed.pause) {
            self.enqueue(at, item, i);
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
                StageOutcome::Drop(DropReason::Lost) // it would arrive after the end of time, up to which no stage can catch up
            } else if placed.reads_labels {
                let label = self.packets[item.slot as usize].as_ref().and_then(|inside| inside.packet.label());
                if let (Some(label), Some((position, runs))) = (label, &mut self.counted)
                    && *position == i
                {
                    runs.note(label);
                }
                placed.stage.on_labelled(at, item, label, &mut self.exits)
            } else {
                placed.stage.on_packet(at, item, &mut self.exits)
            };
            match outcome {
                StageOutcome::Departure(exit) => {
                    self.tell(at, item, i);
                    at = exit;
                }
                StageOutcome::Drop(why) => {
                    if let Some(inside) = self.take(item) {
                        self.note_drop(at, &inside, i);
                        self.lost.push_back(Lost { packet: inside.packet, stage: i, why });
                    }
                    return;
                }
                StageOutcome::Listed => {
                    self.walk_exits(i);
                    return;
                }
            }
            i += 1;
            if self.stages.get(i).is_some_and(|placed| placed.pause) {
                self.enqueue(at, item, i);
                return;
            }
        }
        self.enqueue(at, item, i);
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

    /// Continues with the packets that stage `i` has let out.
    fn walk_exits(&mut self, i: usize) {
        let mut exits = std::mem::take(&mut self.exits.exits);
        // Copies are made before anything happens to the originals in later stages.
        for (_, exit) in exits.iter_mut().filter(|(_, exit)| exit.copy) {
            if let Some(original) = &self.packets[exit.item.slot as usize] {
                let copy = Inside { packet: original.packet.copy(), damaged_by: original.damaged_by };
                exit.item.slot = self.store(copy);
            }
        }
        for (at, exit) in exits.drain(..) {
            if let (Some(bit), Some(inside)) = (exit.flip, &mut self.packets[exit.item.slot as usize])
                && !inside.packet.flip(bit)
            {
                inside.damaged_by = Some(i as u32);
            }
            self.walk(at, exit.item, i + 1);
        }
        self.exits.exits = exits;
    }

    /// Processes all events up to `now`, each at its own time. Timers come before simultaneous packets.
    fn advance(&mut self, now: Instant) {
        loop {
            let pause = self.pauses.peek().map_or(Instant::NEVER, |Reverse(pending)| pending.at);
            match self.next_timer() {
                Some((at, i)) if at <= pause && at <= now => {
                    self.stages[i].stage.on_timer(at, &mut self.exits);
                    self.walk_exits(i);
                }
                _ if pause <= now => {
                    let Some(Reverse(pending)) = self.pauses.pop() else { return };
                    self.pass(pending.at, pending.item, pending.at_stage);
                }
                _ => return,
            }
        }
    }

    /// The next timer of a stage: its time and the stage.
    fn next_timer(&self) -> Option<(Instant, usize)> {
        if !self.timed {
            return None;
        }
        let deadlines = self.stages.iter().zip(0..).map(|(placed, i)| (placed.stage.deadline(), i));
        deadlines.filter(|(at, _)| at.is_set()).min()
    }

    /// `item` waits for `at`: to enter a stage, or, after the last one, to be delivered.
    fn enqueue(&mut self, at: Instant, item: StagePacket, at_stage: usize) {
        self.serial += 1;
        let serial = self.serial;
        if at_stage < self.stages.len() {
            self.pauses.push(Reverse(Pending { at, serial, item, at_stage }));
        } else if self.lane.back().is_some_and(|last| last.at > at) {
            self.later.push(Reverse(Pending { at, serial, item, at_stage }));
        } else if let Some(inside) = self.take(item) {
            self.lane.push_back(Delivery { at, serial, inside });
        }
    }

    /// Removes the next packet to come out, if that is at or before `now`.
    fn earliest(&mut self, now: Instant) -> Option<(Instant, Inside<P>)> {
        let lane = self.lane.front().map(|delivery| (delivery.at, delivery.serial));
        let later = self.later.peek().map(|Reverse(pending)| (pending.at, pending.serial));
        if let Some((at, _)) = lane
            && later.is_none_or(|later| lane < Some(later))
        {
            let delivery = self.lane.pop_front_if(|_| at <= now)?;
            return Some((at, delivery.inside));
        }
        if later.is_none_or(|(at, _)| at > now) {
            return None;
        }
        let Reverse(pending) = self.later.pop()?;
        self.take(pending.item).map(|inside| (pending.at, inside))
    }

    fn store(&mut self, inside: Inside<P>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = Some(inside);
            return slot;
        }
        self.packets.push(Some(inside));
        (self.packets.len() - 1) as u32
    }

    fn take(&mut self, item: StagePacket) -> Option<Inside<P>> {
        self.free.push(item.slot);
        self.packets[item.slot as usize].take()
    }
}

#[cfg(test)]
mod tests;
