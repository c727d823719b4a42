//! The bytes of the outgoing stream that the peer has not acknowledged.

use std::collections::VecDeque;

use reknit_units::Bytes;

use crate::pool::Pool;

/// Bytes that were written and are not acknowledged.
#[derive(Debug)]
pub(super) struct SendBuffer {
    bytes: VecDeque<u8>,
    /// Stream position of the first of them.
    first: u64,
    limit: usize,
}

impl SendBuffer {
    /// `limit` is how much may be written ahead of the peer's acknowledgments.
    pub(super) fn new(limit: Bytes) -> SendBuffer {
        SendBuffer { bytes: VecDeque::new(), first: 0, limit: limit.0 as usize }
    }

    pub(super) fn set_limit(&mut self, limit: Bytes) {
        self.limit = limit.0 as usize;
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The application has written `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Appends the `len` bytes from `position` on to `into`.
    pub(super) fn copy(&self, position: u64, len: usize, into: &mut Vec<u8>) {
        let from = position.saturating_sub(self.first) as usize;
        let (front, back) = self.bytes.as_slices();
        let in_front = front.len().saturating_sub(from).min(len);
        if in_front > 0 {
            into.extend_from_slice(&front[from..from + in_front]);
        }
        let from = (from + in_front).saturating_sub(front.len());
        let rest = (len - in_front).min(back.len().saturating_sub(from));
        into.extend_from_slice(&back[from..from + rest]);
    }

    /// The bytes before `first_needed` are acknowledged.
    pub(super) fn release(&mut self, first_needed: u64) {
        let n = (first_needed.saturating_sub(self.first) as usize).min(self.bytes.len());
        self.bytes.drain(..n);
        self.first += n as u64;
    }

    pub(super) fn borrow_buffer(&mut self, pool: &mut Pool<VecDeque<u8>>) {
        pool.lend(&mut self.bytes);
    }

    pub(super) fn return_buffer(&mut self, pool: &mut Pool<VecDeque<u8>>) {
        if self.bytes.is_empty() {
            pool.reclaim(&mut self.bytes);
        }
    }

    /// Bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn holds_memory(&self) -> bool {
        self.bytes.capacity() > 0
    }

    pub(super) fn shrink(&mut self) {
        if self.bytes.is_empty() {
            self.clear();
        }
    }

    /// Nothing will be sent any more.
    pub(super) fn clear(&mut self) {
        self.bytes = VecDeque::new();
    }

    /// Brings its fields into the cache.
    pub(super) fn prefetch(&self) {
        std::hint::black_box(&self.limit);
    }
}
