//! The order in which the packets in a pipe go on. A [`Pipe`](crate::Pipe) has two of these: one for packets that wait before
//! a stage, and one for those that will come out. It holds only their times and places; the packets stay in the pipe.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use reknit_units::Instant;

/// A packet that waits until `at`. Simultaneous ones keep the order in which they began to wait: `serial` is unique.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Waiting {
    pub(crate) at: Instant,
    serial: u64,
    /// The index of the packet in the pipe.
    pub(crate) slot: u32,
    /// The position of the stage that it enters then; the number of stages if it comes out.
    pub(crate) stage: u32,
}

/// Packets that wait, the earliest first.
///
/// Two FIFO lanes suffice for most paths: one if packets keep their order, two if they alternate between two delays. A packet
/// joins the first lane whose last packet is not later, and only if there is none, the heap.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The earliest, which is in no lane.
    first: Option<Waiting>,
    /// Its time; [`Instant::NEVER`] if there is none.
    next_at: Instant,
    lanes: [VecDeque<Waiting>; 2],
    heap: BinaryHeap<Reverse<Waiting>>,
    serial: u64,
}

impl Schedule {
    pub(crate) fn new() -> Schedule {
        Schedule {
            first: None,
            next_at: Instant::NEVER,
            lanes: [VecDeque::new(), VecDeque::new()],
            heap: BinaryHeap::new(),
            serial: 0,
        }
    }

    /// The packet in `slot` waits until `at`, and then enters `stage`.
    pub(crate) fn push(&mut self, at: Instant, slot: u32, stage: u32) {
        self.serial += 1;
        let waiting = Waiting { at, serial: self.serial, slot, stage };
        match self.first {
            None => self.set_first(Some(waiting)),
            Some(first) if at < first.at => {
                self.lanes[0].push_front(first);
                self.set_first(Some(waiting));
            }
            Some(_) => match self.lanes.iter_mut().find(|lane| lane.back().is_none_or(|last| last.at <= at)) {
                Some(lane) => lane.push_back(waiting),
                None => self.heap.push(Reverse(waiting)),
            },
        }
    }

    /// When the earliest goes on; [`Instant::NEVER`] if none waits.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// The earliest, if it goes on at or before `now`.
    #[inline]
    pub(crate) fn due(&self, now: Instant) -> Option<Waiting> {
        if self.next_at <= now { self.first } else { None }
    }

    /// Removes the earliest, and returns its slot.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let slot = self.first?.slot;
        let next = self.take_next();
        self.set_first(next);
        Some(slot)
    }

    fn set_first(&mut self, first: Option<Waiting>) {
        self.first = first;
        self.next_at = first.map_or(Instant::NEVER, |first| first.at);
    }

    /// Removes the earliest of those that are in a lane or in the heap.
    fn take_next(&mut self) -> Option<Waiting> {
        if self.lanes[1].is_empty() && self.heap.is_empty() {
            return self.lanes[0].pop_front();
        }
        let [front, second] = self.lanes.each_ref().map(VecDeque::front);
        let lane = usize::from(second.is_some_and(|second| front.is_none_or(|front| second < front)));
        let from_lane = self.lanes[lane].front();
        let from_heap = self.heap.peek().filter(|Reverse(heap)| from_lane.is_none_or(|lane| heap < lane));
        if from_heap.is_some() { self.heap.pop().map(|Reverse(waiting)| waiting) } else { self.lanes[lane].pop_front() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// The slots in the order in which they go on.
    fn drained(schedule: &mut Schedule) -> Vec<u32> {
        std::iter::from_fn(|| {
            let first = schedule.due(Instant::NEVER)?;
            assert_eq!(schedule.next_at(), first.at);
            schedule.pop();
            Some(first.slot)
        })
        .collect()
    }

    #[test]
    fn the_earliest_goes_on_first_wherever_it_waits() {
        let mut schedule = Schedule::new();
        for (slot, ms) in (0..).zip([10, 50, 30, 20, 60, 40, 5, 25]) {
            schedule.push(at(ms), slot, 0);
        }
        assert_eq!(schedule.heap.len(), 2, "20 and 25 fit neither lane");
        assert_eq!(schedule.due(at(4)), None);
        assert_eq!(drained(&mut schedule), [6, 0, 3, 7, 2, 5, 1, 4]);
        assert_eq!(schedule.next_at(), Instant::NEVER);
    }

    #[test]
    fn simultaneous_packets_keep_their_order() {
        let mut schedule = Schedule::new();
        for (slot, ms) in (0..).zip([9, 8, 7, 9, 8, 7, 7, 8, 9]) {
            schedule.push(at(ms), slot, 0);
        }
        assert_eq!(drained(&mut schedule), [2, 5, 6, 1, 4, 7, 0, 3, 8]);
    }

    #[test]
    fn two_paths_need_no_heap() {
        let mut schedule = Schedule::new();
        for i in 0..100 {
            schedule.push(at(u64::from(i) + if i % 2 == 0 { 50 } else { 0 }), i, 0);
        }
        assert!(schedule.heap.is_empty());
        assert_eq!(drained(&mut schedule).len(), 100);
    }
}
