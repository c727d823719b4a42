//! One direction of a path at work.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use reknit_units::{Bytes, Instant};

use crate::profile::{Direction, Profile};
use crate::random::StreamId;
use crate::router::{DropRange, Notice, Router};
use crate::runs::Runs;
use crate::stages::{Drop, Exit, Exits, Fate, Item, Label, Stage};

/// What travels through a pipe: a segment in a simulator, octets on a host.
pub trait Packet: Sized {
    /// Octets on the wire.
    fn size(&self) -> Bytes;

    /// The copy that a duplicating network makes.
    #[must_use]
    fn copy(&self) -> Self;

    /// What it carries, if that is known.
    fn label(&self) -> Option<Label> {
        None
    }

    /// What a router reads that tells receivers what it has dropped; none if the packet has no room for such news, so
    /// that routers leave it and its flow alone.
    fn notice(&self) -> Option<Notice> {
        None
    }

    /// A router writes what was dropped. Only if [`Packet::notice`] says that there is room.
    fn set_dropped(&mut self, _dropped: DropRange) {}
}

/// A packet that did not come through.
#[derive(Debug)]
pub struct Lost<P> {
    /// The packet.
    pub packet: P,
    /// Which stage lost it, counted from 0.
    pub stage: usize,
    /// Why.
    pub why: Drop,
}

/// A chain of stages with the packets in it.
///
/// Most stages foresee by arithmetic when a packet leaves them, so a packet walks the whole chain the moment it enters.
/// It pauses only where packets may have overtaken each other before a stage to which their order matters.
#[derive(Debug)]
pub struct Pipe<P> {
    stages: Vec<Placed>,
    /// The packets that are in a stage or in `later`; items refer to them by index.
    packets: Vec<Option<P>>,
    free: Vec<u32>,
    /// Deliveries in order of time: where they all are as long as nothing overtakes. Packets lie here side by side, since
    /// nothing costs more than looking for them all over the memory.
    lane: VecDeque<Delivery<P>>,
    /// A stage has let out packets and copies of some of them, which are yet to be made: what comes out goes to `later`,
    /// where the copies find it.
    copying: bool,
    /// Deliveries and pauses that came out of order, and those beside which copies are made.
    later: BinaryHeap<Reverse<Pending>>,
    /// Numbers everything that is put off, so that equal times keep the order in which they arose.
    serial: u64,
    exits: Exits,
    lost: VecDeque<Lost<P>>,
    /// Some stage has timers of its own.
    timed: bool,
    /// One for each stage, if those that drop packets tell of it.
    routers: Vec<Router>,
    /// Where runs are counted, if they are.
    counted: Option<(usize, Runs)>,
}

#[derive(Debug)]
struct Placed {
    stage: Box<dyn Stage>,
    /// Packets may arrive here out of the order of time, so each waits for its own.
    pause: bool,
    /// It tells packets apart, or they are counted here.
    reads_labels: bool,
}

/// A packet that comes out at a moment.
#[derive(Debug)]
struct Delivery<P> {
    at: Instant,
    serial: u64,
    packet: P,
}

/// Something that happens at a moment: an item reaches the stage `at_stage`, or the end if there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending {
    at: Instant,
    serial: u64,
    item: Item,
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

impl<P: Packet> Pipe<P> {
    /// The pipe for one direction of `profile`.
    pub fn new(profile: &Profile, direction: Direction, seed: u64) -> Pipe<P> {
        let specs = profile.stages(direction);
        let base = match direction {
            Direction::Forward => 0,
            Direction::Reverse => 1 << 16,
        };
        let mut overtaken = false;
        let mut stages = Vec::with_capacity(specs.len());
        for (i, named) in specs.iter().enumerate() {
            let stage = named.spec.build(StreamId { seed, stage: base + i as u32 });
            let pause = overtaken;
            overtaken = stage.reorders();
            let reads_labels = stage.reads_labels();
            stages.push(Placed { stage, pause, reads_labels });
        }
        let routers = if profile.drop_notices { specs.iter().map(|_| Router::default()).collect() } else { Vec::new() };
        Pipe {
            routers,
            timed: stages.iter().any(|placed| placed.stage.has_timers()),
            stages,
            packets: Vec::new(),
            free: Vec::new(),
            lane: VecDeque::new(),
            copying: false,
            later: BinaryHeap::new(),
            serial: 0,
            exits: Exits::default(),
            lost: VecDeque::new(),
            counted: None,
        }
    }

    /// True if what happens to a packet may depend on its label.
    pub fn reads_labels(&self) -> bool {
        self.stages.iter().any(|placed| placed.reads_labels)
    }

    /// From now on counts how the packets that reach the stage at `position` follow each other.
    pub fn count_runs(&mut self, position: usize) {
        if let Some(placed) = self.stages.get_mut(position) {
            placed.reads_labels = true;
            self.counted = Some((position, Runs::default()));
        }
    }

    /// What [`Pipe::count_runs`] has counted.
    pub fn runs(&self) -> Runs {
        self.counted.map_or_else(Runs::default, |(_, runs)| runs)
    }

    /// Packets that stages have held up so far, while they let others through at once.
    pub fn delayed(&self) -> u64 {
        self.stages.iter().map(|placed| placed.stage.delayed()).sum()
    }

    /// A packet enters at `now`. Times must not run backwards.
    pub fn push(&mut self, now: Instant, packet: P) {
        let size = packet.size();
        let slot = self.store(packet);
        self.walk(now, Item { slot, size }, 0);
    }

    /// When [`Pipe::pop`] has something next.
    pub fn next_at(&self) -> Instant {
        let mut next = self.lane.front().map_or(Instant::NEVER, |pending| pending.at);
        if let Some(Reverse(pending)) = self.later.peek() {
            next = next.min(pending.at);
        }
        if self.timed {
            next = self.stages.iter().map(|placed| placed.stage.deadline()).fold(next, Instant::min);
        }
        next
    }

    /// The next packet that comes out at or before `now`, with the time at which it does.
    pub fn pop(&mut self, now: Instant) -> Option<(Instant, P)> {
        loop {
            if self.timed {
                self.fire_timers(now);
            }
            let lane = self.lane.front().map(|delivery| (delivery.at, delivery.serial));
            let later = self.later.peek().map(|Reverse(pending)| (pending.at, pending.serial));
            if let Some((at, _)) = lane
                && later.is_none_or(|later| lane < Some(later))
            {
                let delivery = self.lane.pop_front_if(|_| at <= now)?;
                return Some((at, delivery.packet));
            }
            if later.is_none_or(|(at, _)| at > now) {
                return None;
            }
            let Reverse(pending) = self.later.pop()?;
            if pending.at_stage == self.stages.len() {
                return self.take(pending.item).map(|packet| (pending.at, packet));
            }
            self.pass(pending.at, pending.item, pending.at_stage);
        }
    }

    /// The next packet that the path has lost. Losses are known as soon as they are certain.
    pub fn pop_lost(&mut self) -> Option<Lost<P>> {
        self.lost.pop_front()
    }

    /// Packets inside.
    pub fn len(&self) -> usize {
        self.lane.len() + self.packets.len() - self.free.len()
    }

    /// True if no packet is inside.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes `item` through the stages from `i` on, as far as it gets without waiting.
    fn walk(&mut self, at: Instant, item: Item, i: usize) {
        if self.stages.get(i).is_some_and(|placed| placed.pause) {
            self.put_off(at, item, i);
        } else {
            self.pass(at, item, i);
        }
    }

    /// Takes `item` through the stage `i` and on.
    fn pass(&mut self, at: Instant, item: Item, i: usize) {
        let mut at = at;
        let mut i = i;
        while let Some(placed) = self.stages.get_mut(i) {
            let fate = if placed.reads_labels {
                let label = self.packets[item.slot as usize].as_ref().and_then(Packet::label);
                if let (Some(label), Some((position, runs))) = (label, &mut self.counted)
                    && *position == i
                {
                    runs.note(label);
                }
                placed.stage.on_labelled(at, item, label, &mut self.exits)
            } else {
                placed.stage.on_packet(at, item, &mut self.exits)
            };
            match fate {
                Fate::Exit(exit) => {
                    self.tell(at, item, i);
                    at = exit;
                }
                Fate::Drop(why) => {
                    if let Some(packet) = self.take(item) {
                        self.note_drop(at, &packet, i);
                        self.lost.push_back(Lost { packet, stage: i, why });
                    }
                    return;
                }
                Fate::SeeExits => {
                    self.walk_exits(i + 1);
                    return;
                }
            }
            i += 1;
            if self.stages.get(i).is_some_and(|placed| placed.pause) {
                self.put_off(at, item, i);
                return;
            }
        }
        self.put_off(at, item, i);
    }

    /// The router at stage `i` has dropped `packet`.
    fn note_drop(&mut self, at: Instant, packet: &P, i: usize) {
        if let Some(router) = self.routers.get_mut(i)
            && let Some(notice) = packet.notice()
        {
            router.on_drop(at, notice);
        }
    }

    /// The router at stage `i` forwards `item`, and with it the news of what it has dropped of that flow.
    fn tell(&mut self, at: Instant, item: Item, i: usize) {
        if let Some(router) = self.routers.get_mut(i).filter(|router| !router.is_silent())
            && let Some(packet) = &mut self.packets[item.slot as usize]
            && let Some(dropped) = packet.notice().and_then(|notice| router.on_forward(at, notice))
        {
            packet.set_dropped(dropped);
        }
    }

    /// Takes on what a stage has let out.
    fn walk_exits(&mut self, i: usize) {
        let mut exits = std::mem::take(&mut self.exits.exits);
        let copying = self.copying;
        self.copying |= exits.iter().any(|(_, exit)| matches!(exit, Exit::CopyOf(_)));
        for (at, exit) in exits.drain(..) {
            match exit {
                Exit::Packet(item) => self.walk(at, item, i),
                Exit::CopyOf(item) => {
                    if let Some(copy) = self.packets[item.slot as usize].as_ref().map(Packet::copy) {
                        let slot = self.store(copy);
                        self.walk(at, Item { slot, ..item }, i);
                    }
                }
            }
        }
        self.copying = copying;
        self.exits.exits = exits;
    }

    fn fire_timers(&mut self, now: Instant) {
        for i in 0..self.stages.len() {
            if self.stages[i].stage.deadline() <= now {
                self.stages[i].stage.on_timer(now, &mut self.exits);
                self.walk_exits(i + 1);
            }
        }
    }

    fn put_off(&mut self, at: Instant, item: Item, at_stage: usize) {
        self.serial += 1;
        let serial = self.serial;
        let in_order = self.lane.back().is_none_or(|last| last.at <= at);
        if !in_order || self.copying || at_stage < self.stages.len() {
            self.later.push(Reverse(Pending { at, serial, item, at_stage }));
        } else if let Some(packet) = self.take(item) {
            self.lane.push_back(Delivery { at, serial, packet });
        }
    }

    fn store(&mut self, packet: P) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.packets[slot as usize] = Some(packet);
            return slot;
        }
        self.packets.push(Some(packet));
        (self.packets.len() - 1) as u32
    }

    fn take(&mut self, item: Item) -> Option<P> {
        self.free.push(item.slot);
        self.packets[item.slot as usize].take()
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Duration;

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Numbered(u32);

    impl Packet for Numbered {
        fn size(&self) -> Bytes {
            Bytes(1000)
        }

        fn copy(&self) -> Numbered {
            *self
        }
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn pipe(toml: &str) -> Pipe<Numbered> {
        let profile = Profile::parse("test", &format!("description = \"test\"\n{toml}")).unwrap();
        Pipe::new(&profile, Direction::Forward, 1)
    }

    /// Sends 1 to `n`, one each `gap` milliseconds; returns what comes out, with the time in milliseconds.
    fn train(pipe: &mut Pipe<Numbered>, n: u32, gap: u64) -> Vec<(u64, u32)> {
        let mut out = Vec::new();
        let mut take = |pipe: &mut Pipe<Numbered>, until| {
            while let Some((at, packet)) = pipe.pop(until) {
                out.push((at.as_nanos() / 1_000_000, packet.0));
            }
        };
        for i in 0..n {
            let now = at(u64::from(i) * gap);
            take(pipe, now);
            pipe.push(now, Numbered(i + 1));
        }
        take(pipe, at(1_000_000));
        assert!(pipe.is_empty());
        assert_eq!(pipe.next_at(), Instant::NEVER);
        out
    }

    #[test]
    fn links_in_series_add_up() {
        let mut pipe = pipe(
            "[[forward]]\nkind = \"link\"\nrate = \"8 Mbit/s\"\ndelay = \"10 ms\"\n\
             [[forward]]\nkind = \"link\"\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n",
        );
        // 1 ms on the first link, 2 ms on the second, which is the bottleneck.
        assert_eq!(train(&mut pipe, 3, 0), [(33, 1), (35, 2), (37, 3)]);
    }

    #[test]
    fn alternating_paths_reorder() {
        let mut pipe = pipe(
            "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\n\
             paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n",
        );
        assert_eq!(train(&mut pipe, 4, 10), [(35, 2), (50, 1), (55, 4), (70, 3)]);
    }

    #[test]
    fn a_link_behind_a_delay_serves_in_the_order_of_arrival() {
        let mut pipe = pipe(
            "[[forward]]\nkind = \"multipath\"\nchoice = \"round-robin\"\n\
             paths = [{ delay = \"50 ms\" }, { delay = \"25 ms\" }]\n\
             [[forward]]\nkind = \"link\"\nrate = \"0.8 Mbit/s\"\n",
        );
        // Arrivals at the link: 2 at 35, 1 at 50, 4 at 55, 3 at 70; 10 ms each.
        assert_eq!(train(&mut pipe, 4, 10), [(45, 2), (60, 1), (70, 4), (80, 3)]);
    }

    #[test]
    fn skip_two_reorder_four() {
        // Laor and Gendel's "skip N = 2, reorder M = 4": the third packet behind the sixth.
        let mut pipe = pipe("[[forward]]\nkind = \"displace\"\npositions = 3\nevery = 6\n");
        let order: Vec<u32> = train(&mut pipe, 7, 1).into_iter().map(|(_, n)| n).collect();
        assert_eq!(order, [1, 2, 4, 5, 6, 3, 7]);
    }

    #[test]
    fn a_displaced_packet_does_not_wait_for_ever() {
        let mut pipe = pipe(
            "[[forward]]\nkind = \"displace\"\npositions = 3\nevery = 4\nrelease = \"500 ms\"\n\
             [[forward]]\nkind = \"link\"\ndelay = \"1 ms\"\n",
        );
        assert_eq!(train(&mut pipe, 2, 1), [(2, 2), (501, 1)]);
    }

    #[test]
    fn scripted_packets_are_lost_and_told() {
        let mut pipe = pipe("[[forward]]\nkind = \"loss\"\npackets = [2, 3]\n");
        let out: Vec<u32> = train(&mut pipe, 4, 1).into_iter().map(|(_, n)| n).collect();
        assert_eq!(out, [1, 4]);
        let lost: Vec<u32> = std::iter::from_fn(|| pipe.pop_lost()).map(|lost| lost.packet.0).collect();
        assert_eq!(lost, [2, 3]);
    }

    /// A packet of a flow that is told of drops.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Told(u32, Option<DropRange>);

    impl Packet for Told {
        fn size(&self) -> Bytes {
            Bytes(1000)
        }

        fn copy(&self) -> Told {
            *self
        }

        fn notice(&self) -> Option<Notice> {
            Some(Notice { flow: 7, number: self.0, dropped: self.1 })
        }

        fn set_dropped(&mut self, dropped: DropRange) {
            self.1 = Some(dropped);
        }
    }

    #[test]
    fn the_packet_behind_those_that_were_dropped_tells_of_them() {
        for drop_notices in [true, false] {
            let toml = format!(
                "description = \"test\"\ndrop_notices = {drop_notices}\n\
                 [[forward]]\nkind = \"loss\"\npackets = [2, 4]\n\
                 [[forward]]\nkind = \"loss\"\npackets = [2]\n"
            );
            let mut pipe = Pipe::new(&Profile::parse("test", &toml).unwrap(), Direction::Forward, 1);
            for n in 1..=6 {
                pipe.push(at(0), Told(n, None));
            }
            let out: Vec<Told> = std::iter::from_fn(|| pipe.pop(at(1))).map(|(_, packet)| packet).collect();
            // The first stage drops 2 and 4, and tells of them in 3 and 5; the second drops that 3.
            let told = drop_notices.then_some(DropRange { lowest: 2, highest: 4 });
            assert_eq!(out, [Told(1, None), Told(5, told), Told(6, None)]);
        }
    }

    #[test]
    fn copies_come_later() {
        let mut pipe = pipe("[[forward]]\nkind = \"duplicate\"\nprobability = 1\nextra = \"constant(5 ms)\"\n");
        assert_eq!(train(&mut pipe, 2, 1), [(0, 1), (1, 2), (5, 1), (6, 2)]);
    }
}
