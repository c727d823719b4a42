//! The timers of a simulation, in order of time. The event loop takes them out; clients, oracles and connections set them.
//!
//! A connection moves its deadline with nearly every segment, mostly to a later time. So each end has at most one timer that
//! counts; it stays where it is when the deadline moves later, and the connection, woken early, asks to be woken again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reknit_units::Instant;

use crate::roles::{PerRole, Role};

/// The purpose of a timer. Simultaneous timers are ordered by variant, then by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    /// The warm-up is over.
    Warm,
    /// A client's next transaction begins.
    Begin(u32),
    /// A sender with an oracle in this slot is told about a loss. The connection may have ended.
    Tell(u32),
    /// An end of the connection in this slot has a deadline. The connection may have ended.
    Wake(u32, Role),
    /// The time series.
    Sample,
}

#[derive(Debug)]
pub(crate) struct Timers {
    queue: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// When the next timer is due; [`Instant::NEVER`] if there is none.
    next_at: Instant,
    /// When each end of the connection in a slot is to be woken; its other timers no longer count.
    wakes: Vec<PerRole<Instant>>,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        Timers { queue: BinaryHeap::new(), next_at: Instant::NEVER, wakes: Vec::new() }
    }

    pub(crate) fn set(&mut self, at: Instant, timer: Timer) {
        self.queue.push(Reverse((at, timer)));
        self.next_at = self.next_at.min(at);
    }

    /// A connection begins in `slot`.
    pub(crate) fn open(&mut self, slot: u32) {
        let never = PerRole { sender: Instant::NEVER, receiver: Instant::NEVER };
        let slot = slot as usize;
        if slot >= self.wakes.len() {
            self.wakes.resize(slot + 1, never);
        }
        self.wakes[slot] = never;
    }

    /// Wakes `end` of the connection in `slot` at `at` or earlier.
    #[inline]
    pub(crate) fn wake(&mut self, at: Instant, slot: u32, end: Role) {
        let wake = &mut self.wakes[slot as usize][end];
        if at < *wake {
            *wake = at;
            self.set(at, Timer::Wake(slot, end));
        }
    }

    /// When the next timer is due; [`Instant::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Removes the next timer. None if it does not count any more.
    pub(crate) fn pop(&mut self) -> Option<Timer> {
        let Reverse((at, timer)) = self.queue.pop()?;
        self.next_at = self.queue.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        if let Timer::Wake(slot, end) = timer {
            let wake = &mut self.wakes[slot as usize][end];
            if *wake != at {
                return None;
            }
            *wake = Instant::NEVER;
        }
        Some(timer)
    }
}
