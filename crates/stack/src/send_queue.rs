//! The order in which sockets send. A socket is queued when a packet, a timer or its application wakes it; `Sockets::poll` serves
//! the first one. Owned by [`crate::sockets`].

use std::collections::VecDeque;

/// The most segments that a socket sends before the next one: as many as GRO coalesces to 64 KiB.
const BURST: u32 = 48;

/// Sockets that may have segments to send or events for their owner. The first of them sends now.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    indices: VecDeque<u32>,
    /// Segments that the first of them has sent in this turn.
    sent: u32,
    /// How many of them were prefetched.
    read_ahead: usize,
    /// The application has written to some of them, so that their state may not be in the cache.
    was_written: bool,
}

impl SendQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The socket gets a turn after all others. It must not be in the queue.
    pub(crate) fn push(&mut self, index: u32) {
        self.indices.push_back(index);
    }

    /// The socket whose turn it is.
    pub(crate) fn first(&self) -> Option<u32> {
        self.indices.front().copied()
    }

    /// The first socket has sent a segment.
    pub(crate) fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// If the first socket has sent enough, moves it to the end. Called before each segment.
    pub(crate) fn rotate_if_used_up(&mut self) -> bool {
        let used_up = self.sent >= BURST;
        if used_up {
            self.sent = 0;
            self.indices.rotate_left(1);
        }
        used_up
    }

    /// The first socket has nothing to send.
    pub(crate) fn end_turn(&mut self) {
        self.indices.pop_front();
        self.sent = 0;
        self.read_ahead = self.read_ahead.saturating_sub(1);
    }

    /// The application has written to a socket of the queue.
    pub(crate) fn on_written(&mut self) {
        self.was_written = true;
    }

    /// True if all prefetched sockets have had their turn.
    pub(crate) fn has_used_read_ahead(&self) -> bool {
        self.read_ahead == 0
    }

    /// The sockets that send next and may not be in the cache; returns their number, which is 0 if all were just used.
    pub(crate) fn next_to_read_ahead(&mut self, into: &mut [u32]) -> usize {
        let was_written = std::mem::take(&mut self.was_written);
        self.read_ahead = into.iter_mut().zip(&self.indices).map(|(into, index)| *into = *index).count();
        // Segments and timers have just used the state of the sockets that they wake; if these are few, it is still in the cache.
        let are_loaded = self.indices.len() <= into.len() && !was_written;
        if self.read_ahead > 1 && !are_loaded { self.read_ahead } else { 0 }
    }
}
