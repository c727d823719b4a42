//! Segments by number, lowest first. Owned by [`super::Scoreboard`], for those that wait to be retransmitted, and by
//! [`super::reopening`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::SegId;

/// A heap of segments.
#[derive(Clone, Debug, Default)]
pub(super) struct LowestFirst(BinaryHeap<Reverse<u64>>);

impl LowestFirst {
    pub(super) fn push(&mut self, id: SegId) {
        self.0.push(Reverse(id.0));
    }

    /// The lowest segment.
    pub(super) fn peek(&self) -> Option<SegId> {
        self.0.peek().map(|Reverse(id)| SegId(*id))
    }

    pub(super) fn pop(&mut self) -> Option<SegId> {
        self.0.pop().map(|Reverse(id)| SegId(id))
    }

    /// Moves all of `other` here.
    pub(super) fn append(&mut self, other: &mut LowestFirst) {
        self.0.append(&mut other.0);
    }

    pub(super) fn remove(&mut self, id: SegId) {
        self.0.retain(|entry| *entry != Reverse(id.0));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// Equal if they were made by the same changes.
impl PartialEq for LowestFirst {
    fn eq(&self, other: &LowestFirst) -> bool {
        self.0.as_slice() == other.0.as_slice()
    }
}
