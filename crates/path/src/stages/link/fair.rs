//! A link with CoDel: one queue, or one for each flow and deficit round robin between them (FQ-CoDel, RFC 8290).

use std::collections::VecDeque;
use std::fmt;

use reknit_config::KeyError;
use reknit_units::{Bytes, Capacity, Duration, Instant, Rate};
use serde::{Deserialize, Serialize};

use super::codel::Queue;
use super::{CoDel, Departures, DropReason, StagePacket};

/// FQ-CoDel's parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FqCoDel {
    /// How long packets may wait.
    pub target: Duration,
    /// For how long all packets of a flow must wait longer before one is dropped.
    pub interval: Duration,
    /// The number of queues. Flows are spread over them by their hash.
    pub flows: u32,
    /// The bytes that a queue sends before it is the next one's turn.
    pub quantum: u32,
}

impl Default for FqCoDel {
    fn default() -> FqCoDel {
        let CoDel { target, interval } = CoDel::default();
        FqCoDel { target, interval, flows: 1024, quantum: 1514 }
    }
}

impl fmt::Display for FqCoDel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FQ-CoDel, {} queues, target {}, interval {}", self.flows, self.target, self.interval)
    }
}

impl FqCoDel {
    /// CoDel itself.
    pub(super) fn single(codel: &CoDel) -> FqCoDel {
        FqCoDel { target: codel.target, interval: codel.interval, flows: 1, ..FqCoDel::default() }
    }

    fn codel(&self) -> CoDel {
        CoDel { target: self.target, interval: self.interval }
    }

    pub(super) fn check(&self) -> Result<(), KeyError> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(KeyError::new("fq_codel.flows", "must be from 1 to 65536"));
        }
        if !(1..=1 << 20).contains(&self.quantum) {
            return Err(KeyError::new("fq_codel.quantum", "must be from 1 to 1048576 bytes"));
        }
        self.codel().check("fq_codel")
    }
}

/// In which list a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Idle,
    New,
    Old,
}

#[derive(Debug)]
struct Flow {
    queue: Queue,
    place: Place,
    /// The bytes that it may still send, less those that it sent beyond.
    credits: i64,
}

/// A link in operation. Which packet leaves is decided when the one before it has left, so it has a timer.
#[derive(Debug)]
pub(crate) struct FairQueues {
    rate: Rate,
    delay: Duration,
    capacity: Capacity,
    codel: CoDel,
    quantum: i64,
    flows: Vec<Flow>,
    /// The indices of queues that have just begun to send, and of all others with packets.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: Bytes,
    /// When the packet that is being serialised has left.
    free_at: Instant,
}

impl FairQueues {
    pub(super) fn new(rate: Rate, delay: Duration, capacity: Capacity, parameters: &FqCoDel) -> FairQueues {
        let idle = || Flow { queue: Queue::default(), place: Place::Idle, credits: 0 };
        FairQueues {
            rate,
            delay,
            capacity,
            codel: parameters.codel(),
            quantum: i64::from(parameters.quantum),
            flows: (0..parameters.flows).map(|_| idle()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: Bytes::ZERO,
            free_at: Instant::ZERO,
        }
    }

    /// When the next packet leaves its queue.
    pub(super) fn deadline(&self) -> Instant {
        if self.packets == 0 { Instant::NEVER } else { self.free_at }
    }

    /// A packet arrives at `at`.
    pub(super) fn arrive(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) {
        self.serve(at, exits);
        let is_idle = self.packets == 0 && self.free_at <= at;
        self.enqueue(at, item, exits);
        if is_idle {
            self.send(at, exits);
        }
    }

    /// Sends all packets whose turn comes up to `now`.
    pub(super) fn serve(&mut self, now: Instant, exits: &mut Departures) {
        while self.packets > 0 && self.free_at <= now {
            self.send(self.free_at, exits);
        }
    }

    fn send(&mut self, now: Instant, exits: &mut Departures) {
        if let Some(item) = self.dequeue(now, exits) {
            self.free_at = now + self.rate.time_for(item.size);
            exits.push(self.free_at + self.delay, item);
        }
    }

    /// A single queue refuses what does not fit; of several, the longest loses its first packets.
    fn enqueue(&mut self, at: Instant, item: StagePacket, exits: &mut Departures) {
        let is_single = self.flows.len() == 1;
        if is_single && !self.fits(1, item.size) {
            return exits.push_drop(at, item, DropReason::QueueFull);
        }
        let i = item.flow as usize % self.flows.len();
        let flow = &mut self.flows[i];
        flow.queue.push(at, item);
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + item.size);
        if flow.place == Place::Idle {
            (flow.place, flow.credits) = (Place::New, self.quantum);
            self.new.push_back(i);
        }
        while !is_single && !self.fits(0, Bytes::ZERO) {
            let longest = self.flows.iter_mut().map(|flow| &mut flow.queue).max_by_key(|queue| queue.bytes());
            let Some((_, item)) = longest.and_then(Queue::pop) else { return };
            self.left(item.size);
            exits.push_drop(at, item, DropReason::QueueFull);
        }
    }

    /// True if so many packets and bytes more do.
    fn fits(&self, packets: usize, bytes: Bytes) -> bool {
        match self.capacity {
            Capacity::Count(count) => self.packets + packets <= count.0 as usize,
            Capacity::Bytes(capacity) => self.bytes + bytes <= capacity,
        }
    }

    fn left(&mut self, size: Bytes) {
        self.packets -= 1;
        self.bytes -= size;
    }

    /// The next packet (RFC 8290 section 4.2).
    fn dequeue(&mut self, now: Instant, exits: &mut Departures) -> Option<StagePacket> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let i = *list.front()?;
            let flow = &mut self.flows[i];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                self.move_first(is_new, Place::Old);
                continue;
            }
            let dropped_before = exits.drops.len();
            let item = flow.queue.dequeue(now, &self.codel, exits);
            for i in dropped_before..exits.drops.len() {
                self.left(exits.drops[i].item.size);
            }
            let Some(item) = item else {
                // A new queue passes the old ones once, so that a flow of single packets does not starve them.
                self.move_first(is_new, if is_new { Place::Old } else { Place::Idle });
                continue;
            };
            self.flows[i].credits -= i64::try_from(item.size.0).unwrap_or(i64::MAX);
            self.left(item.size);
            return Some(item);
        }
    }

    /// Moves the first queue of a list.
    fn move_first(&mut self, is_new: bool, to: Place) {
        let list = if is_new { &mut self.new } else { &mut self.old };
        if let Some(i) = list.pop_front() {
            self.flows[i].place = to;
            if to == Place::Old {
                self.old.push_back(i);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn packet(slot: u32, flow: u32, size: u64) -> StagePacket {
        StagePacket { slot, flow, size: Bytes(size) }
    }

    /// 1000 bytes take a millisecond.
    fn link(capacity: &str, parameters: &FqCoDel) -> FairQueues {
        let rate = Rate::from_bits_per_second(8_000_000);
        FairQueues::new(rate, Duration::ZERO, capacity.parse().unwrap(), parameters)
    }

    fn slots(exits: &Departures) -> Vec<u32> {
        exits.exits.iter().map(|(_, exit)| exit.item.slot).collect()
    }

    fn drop_times(exits: &Departures) -> Vec<u64> {
        exits.drops.iter().map(|drop| drop.at.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn codel_drops_after_an_interval_and_then_faster() {
        let mut link = link("1000 packets", &FqCoDel::single(&CoDel::default()));
        let mut exits = Departures::default();
        // Ten packets wait all the time, twice the target.
        (0..10).for_each(|i| link.arrive(at(0), packet(i, 0, 1000), &mut exits));
        for ms in 1..=400 {
            link.serve(at(ms), &mut exits);
            let lost = exits.drops.len();
            while link.packets < 10 {
                link.arrive(at(ms), packet(100 + ms as u32 + lost as u32, 0, 1000), &mut exits);
            }
        }
        // The packet that leaves at 5 ms is the first that has waited for the target. Then sqrt(count), RFC 8289 section 5.
        assert_eq!(drop_times(&exits), [105, 205, 276, 334, 384]);
    }

    #[test]
    fn codel_keeps_a_short_queue() {
        let mut link = link("1000 packets", &FqCoDel::single(&CoDel::default()));
        let mut exits = Departures::default();
        for ms in 0..1000 {
            link.arrive(at(ms), packet(ms as u32, 0, 1000), &mut exits);
        }
        assert_eq!((exits.drops.len(), exits.exits.len()), (0, 1000));
    }

    #[test]
    fn a_single_queue_refuses_what_does_not_fit() {
        let mut link = link("2 packets", &FqCoDel::single(&CoDel::default()));
        let mut exits = Departures::default();
        (0..4).for_each(|i| link.arrive(at(0), packet(i, i, 1000), &mut exits));
        link.serve(at(10), &mut exits);
        assert_eq!((slots(&exits), exits.drops[0].item.slot), (vec![0, 1, 2], 3));
    }

    #[test]
    fn flows_take_turns_and_new_ones_come_first() {
        let mut link = link("1000 packets", &FqCoDel { flows: 8, quantum: 1000, ..FqCoDel::default() });
        let mut exits = Departures::default();
        (0..4).for_each(|i| link.arrive(at(0), packet(i, 1, 1000), &mut exits));
        (10..12).for_each(|i| link.arrive(at(0), packet(i, 2, 1000), &mut exits));
        link.serve(at(1), &mut exits);
        link.arrive(at(1), packet(20, 3, 500), &mut exits);
        link.serve(at(20), &mut exits);
        assert_eq!(slots(&exits), [0, 10, 20, 1, 11, 2, 3]);
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut link = link("4 packets", &FqCoDel { flows: 8, quantum: 1000, ..FqCoDel::default() });
        let mut exits = Departures::default();
        (0..5).for_each(|i| link.arrive(at(0), packet(i, 1, 1000), &mut exits));
        link.arrive(at(0), packet(10, 2, 100), &mut exits);
        assert_eq!(exits.drops.iter().map(|drop| drop.item.slot).collect::<Vec<_>>(), [1]);
        link.serve(at(20), &mut exits);
        assert_eq!(slots(&exits), [0, 10, 2, 3, 4]);
    }
}
