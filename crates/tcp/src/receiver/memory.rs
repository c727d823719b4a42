//! Reads the memory of a receiver ahead, and releases what it does not need.

use std::hint::black_box;

use super::Receiver;

impl Receiver {
    /// Reads a field of each cache line.
    pub(crate) fn read_ahead(&self) {
        black_box(&(self.fin, self.rcv_nxt(), self.read, self.stats.segments, self.sack_permitted));
    }

    /// Reads the state of the algorithms.
    pub(crate) fn read_algorithms_ahead(&self) {
        self.plugins.ack_policy.read_ahead();
        for buffer in &self.plugins.receive_buffers {
            buffer.read_ahead();
        }
    }

    pub(crate) fn holds_memory(&self) -> bool {
        self.sack.holds_memory()
    }

    /// Releases memory that is not needed now.
    pub(crate) fn shrink(&mut self) {
        self.sack.shrink();
    }
}
