//! The order in which sockets get their turns to send, and to process what has arrived if that had to wait. A socket is queued
//! when a packet, a timer or its application wakes it; `Sockets::poll` serves the first one. Owned by [`crate::sockets`].

use std::collections::VecDeque;

/// The longest payload of a packet that a device with offload cuts into segments.
const LONGEST: usize = 64 << 10;

/// The most segments that a socket processes before it sends what they have caused: with more, one acknowledgment is for so much
/// that it releases a long burst.
const MAX_ARRIVALS: u32 = 16;

/// Sockets that may have segments to send or events for their owner. The first of them sends now.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    indices: VecDeque<u32>,
    /// The turn of the first of them has begun.
    has_begun: bool,
    /// Segments that the first of them has processed since it has last sent all it could.
    arrivals: u32,
    /// Bytes that the first of them has sent in one packet, if the device cuts packets into segments.
    joined: usize,
    /// Turns until all that wait now have had one, and how often that has happened.
    turns_left: usize,
    round: u32,
    /// How many of them were prefetched.
    prefetch: usize,
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

    /// True if other sockets wait than one that `is_queued` itself.
    pub(crate) fn has_others(&self, is_queued: bool) -> bool {
        self.indices.len() > usize::from(is_queued)
    }

    /// True once for each turn.
    pub(crate) fn begins_turn(&mut self) -> bool {
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// How often all sockets that waited have had a turn.
    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    /// True if the first socket processes another segment that has waited before it sends.
    pub(crate) fn takes_arrival(&mut self) -> bool {
        self.arrivals += 1;
        self.arrivals <= MAX_ARRIVALS
    }

    /// The first socket has sent all it can.
    pub(crate) fn on_all_sent(&mut self) {
        self.arrivals = 0;
    }

    /// The first socket sends a segment with `len` bytes of data. True if it leaves in the same packet as the one before.
    pub(crate) fn joins(&mut self, len: usize, offload: bool) -> bool {
        let joins = offload && len > 0 && self.joined > 0 && self.joined + len <= LONGEST;
        self.joined = if joins { self.joined + len } else { len };
        joins
    }

    /// The first socket has used its share: it gets its next turn after all others.
    pub(crate) fn put_last(&mut self) {
        self.indices.rotate_left(1);
        self.count_turn();
    }

    /// The first socket has nothing to send.
    pub(crate) fn end_turn(&mut self) {
        self.indices.pop_front();
        self.prefetch = self.prefetch.saturating_sub(1);
        self.count_turn();
    }

    fn count_turn(&mut self) {
        (self.has_begun, self.joined, self.arrivals) = (false, 0, 0);
        self.turns_left = self.turns_left.saturating_sub(1);
        if self.turns_left == 0 {
            self.turns_left = self.indices.len();
            self.round = self.round.wrapping_add(1);
        }
    }

    /// The application has written to a socket of the queue.
    pub(crate) fn on_written(&mut self) {
        self.was_written = true;
    }

    /// True if all prefetched sockets have had their turn.
    pub(crate) fn has_used_read_ahead(&self) -> bool {
        self.prefetch == 0
    }

    /// The sockets that send next and may not be in the cache; returns their number, which is 0 if all were just used.
    pub(crate) fn next_to_read_ahead(&mut self, into: &mut [u32]) -> usize {
        let was_written = std::mem::take(&mut self.was_written);
        self.prefetch = into.iter_mut().zip(&self.indices).map(|(into, index)| *into = *index).count();
        // Segments and timers have just used the state of the sockets that they wake; if these are few, it is still in the cache.
        let are_loaded = self.indices.len() <= into.len() && !was_written;
        if self.prefetch > 1 && !are_loaded { self.prefetch } else { 0 }
    }
}
