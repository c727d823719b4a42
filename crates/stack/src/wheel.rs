//! One hierarchical timer wheel for all sockets. `Stack::on_timer` calls `advance`; `Sockets::rest` sets the timer of a socket
//! that has sent all it can. Owned by [`crate::sockets`].
//!
//! Eight levels of 64 slots; a slot of level 0 is one tick, a slot of each further level as long as all of the level below
//! it. The cost of setting, moving and removing a timer does not depend on their number. A timer never fires early, and at
//! most one tick late. Most deadlines are postponed with every segment: such a timer stays in its slot, and when that slot
//! is reached, it moves to the slot of its last deadline without access to its socket.

use std::hint::black_box;

use reknit_units::Instant;

/// A tick is 2^17 ns, about 131 µs.
const TICK_SHIFT: u32 = 17;
const SLOT_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
/// The levels cover all of `Instant`.
const LEVELS: usize = 8;
/// An empty slot keeps the memory for this many timers.
const KEPT: usize = 64;

/// One timer.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// When it fires; [`NOT_SET`] if it does not.
    due: u64,
    /// When its slot is reached: not after `due`.
    tick: u64,
    /// Its index in the list of its slot.
    position: u32,
    /// Level and slot, or [`NOWHERE`].
    place: u16,
}

const NOT_SET: u64 = u64::MAX;
const NOWHERE: u16 = u16::MAX;

/// The timers, each named by the index of its socket.
#[derive(Debug)]
pub(crate) struct Wheel {
    nodes: Vec<Node>,
    /// The timers of each slot, level by level, as vectors: the processor can load many of their nodes at once, which are not in
    /// the cache if there are many. It would load the nodes of a linked list one after the other.
    slots: Vec<Vec<u32>>,
    occupied: [u64; LEVELS],
    /// The tick up to which everything has fired.
    elapsed: u64,
}

impl Wheel {
    pub(crate) fn new(now: Instant) -> Wheel {
        Wheel {
            nodes: Vec::new(),
            slots: vec![Vec::new(); LEVELS * SLOTS],
            occupied: [0; LEVELS],
            elapsed: now.as_nanos() >> TICK_SHIFT,
        }
    }

    /// The timer `index` fires at `at`, or not at all.
    pub(crate) fn set(&mut self, index: u32, at: Instant) {
        let due = if at.is_set() { at.as_nanos().div_ceil(1 << TICK_SHIFT).max(self.elapsed + 1) } else { NOT_SET };
        let i = index as usize;
        if i >= self.nodes.len() {
            self.nodes.resize(i + 1, Node { due, tick: 0, position: 0, place: NOWHERE });
        }
        let node = &mut self.nodes[i];
        node.due = due;
        if node.place != NOWHERE && node.tick <= due {
            return;
        }
        self.unlink(index);
        if due != NOT_SET {
            self.link(index, due);
        }
    }

    /// Removes the timer `index`, if it is set.
    pub(crate) fn clear(&mut self, index: u32) {
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.due = NOT_SET;
            self.unlink(index);
        }
    }

    /// When the timer `index` fires; reads its node.
    pub(crate) fn due(&self, index: u32) -> Option<u64> {
        self.nodes.get(index as usize).map(|node| node.due)
    }

    fn unlink(&mut self, index: u32) {
        let node = &mut self.nodes[index as usize];
        let place = std::mem::replace(&mut node.place, NOWHERE);
        if place == NOWHERE {
            return;
        }
        let (place, position) = (usize::from(place), node.position);
        let list = &mut self.slots[place];
        list.swap_remove(position as usize);
        if let Some(moved) = list.get(position as usize) {
            self.nodes[*moved as usize].position = position;
        } else if list.is_empty() {
            self.occupied[place / SLOTS] &= !(1 << (place % SLOTS));
        }
    }

    fn link(&mut self, index: u32, tick: u64) {
        let differing = (self.elapsed ^ tick) | (SLOTS as u64 - 1);
        let level = ((differing.ilog2() / SLOT_BITS) as usize).min(LEVELS - 1);
        let slot = (tick >> (level as u32 * SLOT_BITS)) as usize % SLOTS;
        let place = level * SLOTS + slot;
        self.occupied[level] |= 1 << slot;
        let node = &mut self.nodes[index as usize];
        (node.tick, node.position, node.place) = (tick, self.slots[place].len() as u32, place as u16);
        self.slots[place].push(index);
    }

    /// When [`Wheel::advance`] next has something to do. It may turn out that no timer fires then.
    pub(crate) fn next(&self) -> Instant {
        self.next_slot().map_or(Instant::NEVER, |(_, _, tick)| Instant::from_nanos(tick << TICK_SHIFT))
    }

    /// The first occupied slot and the tick at which it begins. Everything in a lower level comes before everything in a
    /// higher one.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.occupied.iter().position(|slots| *slots != 0)?;
        let shift = level as u32 * SLOT_BITS;
        let at = (self.elapsed >> shift) as u32 % SLOTS as u32;
        let ahead = self.occupied[level].rotate_right(at).trailing_zeros();
        let start = (self.elapsed >> shift) + u64::from(ahead);
        Some((level, (start % SLOTS as u64) as usize, start << shift))
    }

    /// Appends the timers that are due at `now` to `due`, and removes them.
    pub(crate) fn advance(&mut self, now: Instant, due: &mut Vec<u32>) {
        let target = now.as_nanos() >> TICK_SHIFT;
        while let Some((level, slot, tick)) = self.next_slot().filter(|(_, _, tick)| *tick <= target) {
            self.elapsed = self.elapsed.max(tick);
            self.occupied[level] &= !(1 << slot);
            let place = level * SLOTS + slot;
            let mut list = std::mem::take(&mut self.slots[place]);
            for index in &list {
                black_box(self.nodes[*index as usize].due); // waits for many nodes at once
            }
            for index in list.drain(..) {
                let node = &mut self.nodes[index as usize];
                node.place = NOWHERE;
                let at = node.due;
                if at <= self.elapsed {
                    due.push(index);
                } else if at != NOT_SET {
                    self.link(index, at);
                }
            }
            if list.capacity() <= KEPT && self.slots[place].is_empty() {
                self.slots[place] = list;
            }
        }
        self.elapsed = self.elapsed.max(target);
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Duration;

    use super::*;

    const TICK: Duration = Duration::from_nanos(1 << TICK_SHIFT);

    /// The next of a sequence of numbers that look random.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 11
    }

    #[test]
    fn every_timer_fires_once_in_its_tick() {
        let mut state = 7;
        let mut wheel = Wheel::new(Instant::from_nanos(123_456_789));
        let mut now = Instant::from_nanos(123_456_789);
        let count = 2000;
        let mut expected: Vec<Instant> = Vec::new();
        for index in 0..count {
            let scale = random(&mut state) % 44; // from nanoseconds to hours
            let at = now + Duration::from_nanos(random(&mut state) % (1 << scale).max(1));
            expected.push(at);
            wheel.set(index, at);
        }
        for index in (0..count).step_by(5) {
            wheel.clear(index);
            expected[index as usize] = Instant::NEVER;
        }
        for index in (1..count).step_by(5) {
            expected[index as usize] = now + Duration::from_millis(3); // earlier or later
            wheel.set(index, expected[index as usize]);
        }
        for index in (2..count).step_by(5) {
            wheel.set(index, Instant::NEVER);
            expected[index as usize] = Instant::NEVER;
        }
        let mut due = Vec::new();
        while wheel.next().is_set() {
            let next = wheel.next();
            now = now.max(next);
            due.clear();
            wheel.advance(now, &mut due);
            for index in &due {
                let at = std::mem::replace(&mut expected[*index as usize], Instant::NEVER);
                assert!(at.is_set(), "{index} fired twice or was cleared");
                assert!(at <= now && now.since(at) <= TICK * 2, "{at:?} fired at {now:?}");
            }
        }
        assert!(expected.iter().all(|at| !at.is_set()));
    }

    #[test]
    fn a_late_owner_gets_everything_that_is_due() {
        let mut wheel = Wheel::new(Instant::ZERO);
        for index in 0..100 {
            wheel.set(index, Instant::ZERO + Duration::from_millis(u64::from(index) * 100));
        }
        let mut due = Vec::new();
        wheel.advance(Instant::ZERO + Duration::from_millis(4_951), &mut due);
        due.sort_unstable();
        assert_eq!(due, (0..50).collect::<Vec<_>>());
        wheel.advance(Instant::ZERO + Duration::from_secs(3600), &mut due);
        assert_eq!(due.len(), 100);
        assert!(!wheel.next().is_set());
    }
}
