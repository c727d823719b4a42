//! Prefetches the state of a receiver, and releases memory that it does not need.

use std::hint::black_box;

use super::Receiver;
use crate::prefetch::prefetch;

impl Receiver {
    /// Reads a field of each cache line.
    pub(crate) fn prefetch(&self) {
        black_box(&(self.fin, self.rcv_nxt(), self.read, self.stats.segments, self.sack_permitted));
    }

    /// Loads the state of the algorithms.
    pub(crate) fn prefetch_plugins(&self) {
        prefetch(&*self.plugins.ack_policy);
        self.plugins.receive_buffers.iter().for_each(|buffer| prefetch(&**buffer));
    }

    pub(crate) fn holds_memory(&self) -> bool {
        self.sack.holds_memory() || self.reassembly.holds_memory()
    }

    /// Releases memory that is not needed now.
    pub(crate) fn shrink(&mut self) {
        self.sack.shrink();
        self.reassembly.shrink();
    }
}
