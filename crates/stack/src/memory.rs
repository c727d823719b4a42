//! The memory of all connections together, how much of it each may have, and how long one may wait for its peer. Owned by
//! [`crate::sockets`].
//!
//! While there is enough, buffers are as large as their options say. When three quarters are in use, a connection gets no more
//! than its share, and those that have waited longest for their peers make way for each that begins to use memory. When
//! everything is in use, each gets no more than it needs to go on.

use reknit_units::{Bytes, Duration, Instant};

/// A connection may always have so much in each direction: a segment that waits for its acknowledgment, and one that was not read.
pub(crate) const LEAST: usize = 2048;
/// The least share of each in each direction, while there is some memory.
const LEAST_SHARE: usize = 16 << 10;
/// A connection whose peer has neither acknowledged nor sent anything new for this long may end if there is little memory.
pub(crate) const STALLED: Duration = Duration::from_secs(10);
/// The same if hardly any is left: more than a round trip.
pub(crate) const LEAST_PATIENCE: Duration = Duration::from_millis(250);

/// The memory of all connections.
#[derive(Debug)]
pub(crate) struct Memory {
    most: usize,
    used: usize,
}

impl Memory {
    pub(crate) fn new(most: Bytes) -> Memory {
        Memory { most: most.0 as usize, used: 0 }
    }

    /// A connection has as much as `after`, and had `before`.
    pub(crate) fn update(&mut self, before: usize, after: usize) {
        self.used = self.used + after - before;
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// True if nothing is left.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.most
    }

    /// The most that each of so many connections may have in each direction. None while there is enough.
    #[inline]
    pub(crate) fn share(&self, connections: usize) -> Option<usize> {
        if self.used < self.most / 4 * 3 {
            None
        } else if self.is_full() {
            Some(LEAST)
        } else {
            Some((self.most / connections.max(1) / 2).max(LEAST_SHARE))
        }
    }

    /// How long a connection may wait for its peer while others need memory: the less is left of the last quarter, the shorter.
    /// None while there is enough.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let reserve = self.most - self.most / 4 * 3;
        let left = self.most.saturating_sub(self.used);
        let millis = STALLED.as_millis().saturating_mul(left as u64) / reserve.max(1) as u64;
        (left <= reserve).then(|| Duration::from_millis(millis).max(LEAST_PATIENCE))
    }
}

/// When a connection has last made progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Bytes acknowledged by the peer and received from it.
    bytes: u64,
    since: Instant,
    /// Something was outstanding, or missing.
    is_busy: bool,
}

impl Progress {
    pub(crate) fn new(now: Instant) -> Progress {
        Progress { bytes: 0, since: now, is_busy: false }
    }

    /// So much is acknowledged and received in all; `is_busy` if more is outstanding, or data is missing.
    pub(crate) fn note(&mut self, now: Instant, bytes: u64, is_busy: bool) {
        if bytes != self.bytes || !self.is_busy {
            self.since = now;
        }
        (self.bytes, self.is_busy) = (bytes, is_busy);
    }

    /// It waits for its peer from now on.
    pub(crate) fn restart(&mut self, now: Instant) {
        (self.since, self.is_busy) = (now, true);
    }

    /// Since when there is none.
    pub(crate) fn since(&self) -> Instant {
        self.since
    }

    /// The same, if something is outstanding or missing.
    pub(crate) fn busy_since(&self) -> Option<Instant> {
        self.is_busy.then_some(self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_shrink_as_memory_fills_up() {
        let mut memory = Memory::new(Bytes(1 << 20));
        assert_eq!(memory.share(1000), None);
        memory.update(0, 800 << 10);
        assert_eq!(
            (memory.share(4), memory.share(1000), memory.share(0)),
            (Some(128 << 10), Some(LEAST_SHARE), Some(512 << 10))
        );
        memory.update(0, 300 << 10);
        assert_eq!((memory.share(4), memory.is_full()), (Some(LEAST), true));
        memory.update(800 << 10, 0);
        assert_eq!((memory.share(4), memory.used()), (None, 300 << 10));
    }

    #[test]
    fn patience_ends_with_the_memory() {
        let mut memory = Memory::new(Bytes(1 << 20));
        memory.update(0, (768 << 10) - 1);
        assert_eq!(memory.patience(), None);
        memory.update(0, 1);
        assert_eq!(memory.patience(), Some(STALLED));
        memory.update(0, 128 << 10);
        assert_eq!(memory.patience(), Some(STALLED / 2));
        memory.update(0, 1 << 20);
        assert_eq!(memory.patience(), Some(LEAST_PATIENCE));
    }
}
