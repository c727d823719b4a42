//! Which bytes have arrived.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};

use reknit_units::Bytes;

use crate::seq::Offset;

/// The effect of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Inserted {
    /// The first part of it that had already been received.
    pub(crate) duplicate: Option<Range<Offset>>,
    /// True if any of it was new.
    pub(crate) new: bool,
    /// The contiguous block above RCV.NXT that it now belongs to.
    pub(crate) block: Option<Range<Offset>>,
}

/// RCV.NXT and the blocks above it, in order; they neither overlap nor touch.
///
/// A block costs memory and time, however few bytes it has, so their number is limited. A segment that would make a
/// further one is refused as if it had been lost; what extends a block, joins two, or moves RCV.NXT is never refused, so
/// the transfer continues.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Reassembly {
    rcv_nxt: Offset,
    blocks: Blocks,
    /// Bytes in these blocks.
    held: Bytes,
    most_blocks: usize,
}

/// The blocks. Most connections have none, and an idle one keeps only a pointer.
#[derive(Clone, Debug, Default)]
#[expect(clippy::box_collection, reason = "it is 24 bytes smaller than an empty ring")]
struct Blocks(Option<Box<VecDeque<Range<Offset>>>>);

static NO_BLOCKS: VecDeque<Range<Offset>> = VecDeque::new();

impl Deref for Blocks {
    type Target = VecDeque<Range<Offset>>;

    fn deref(&self) -> &VecDeque<Range<Offset>> {
        self.0.as_deref().unwrap_or(&NO_BLOCKS)
    }
}

impl DerefMut for Blocks {
    fn deref_mut(&mut self) -> &mut VecDeque<Range<Offset>> {
        self.0.get_or_insert_default()
    }
}

impl PartialEq for Blocks {
    fn eq(&self, other: &Blocks) -> bool {
        **self == **other
    }
}

impl Reassembly {
    pub(crate) fn new(rcv_nxt: Offset, most_blocks: usize) -> Reassembly {
        Reassembly { rcv_nxt, blocks: Blocks::default(), held: Bytes::ZERO, most_blocks }
    }

    pub(crate) fn rcv_nxt(&self) -> Offset {
        self.rcv_nxt
    }

    /// True if there are gaps before data that has arrived.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Bytes that have arrived above the first gap.
    pub(crate) fn held(&self) -> Bytes {
        self.held
    }

    /// One past the highest byte that has arrived.
    pub(crate) fn highest(&self) -> Offset {
        self.blocks.back().map_or(self.rcv_nxt, |block| block.end)
    }

    /// Adds the bytes `range`; RCV.NXT advances if they are the next ones. None if there are too many blocks already.
    pub(crate) fn insert(&mut self, range: Range<Offset>) -> Option<Inserted> {
        if range.end <= self.rcv_nxt {
            return Some(Inserted { duplicate: Some(range), new: false, block: None });
        }
        let mut duplicate = (range.start < self.rcv_nxt).then_some(range.start..self.rcv_nxt);
        let mut block = range.start.max(self.rcv_nxt)..range.end;
        if self.blocks.is_empty() && block.start == self.rcv_nxt {
            self.rcv_nxt = block.end;
            return Some(Inserted { duplicate, new: true, block: None });
        }
        let touching = self.touching(&block);
        if touching.is_empty() && block.start > self.rcv_nxt && self.blocks.len() >= self.most_blocks {
            return None;
        }
        let (arrived, mut had) = (block.clone(), Bytes::ZERO);
        for i in touching.clone() {
            let existing = self.blocks[i].clone();
            let overlap = existing.start.max(arrived.start)..existing.end.min(arrived.end);
            if overlap.start < overlap.end {
                had += overlap.end.since(overlap.start);
                duplicate = duplicate.or(Some(overlap));
            }
            self.held -= existing.end.since(existing.start);
            block = block.start.min(existing.start)..block.end.max(existing.end);
        }
        let new = had < arrived.end.since(arrived.start);
        if block.start == self.rcv_nxt {
            self.rcv_nxt = block.end;
            self.remove(touching);
            return Some(Inserted { duplicate, new, block: None });
        }
        self.held += block.end.since(block.start);
        self.replace(touching, block.clone());
        Some(Inserted { duplicate, new, block: Some(block) })
    }

    /// RCV.NXT advances to `end`: the next bytes have arrived, and there are no gaps.
    pub(crate) fn advance(&mut self, end: Offset) {
        debug_assert!(!self.has_gaps() && end > self.rcv_nxt);
        self.rcv_nxt = end;
    }

    /// The positions of the blocks that overlap `range` or are adjacent to it; if there are none, the empty range at its place.
    /// Most segments are above all blocks, extend the last one, or fill the gap before the first one; only the others need a
    /// search.
    fn touching(&self, range: &Range<Offset>) -> Range<usize> {
        let blocks = &self.blocks;
        let from = match (blocks.front(), blocks.back()) {
            (Some(first), _) if first.end >= range.start => 0,
            (_, Some(last)) if last.end < range.start => blocks.len(),
            (_, Some(last)) if last.start <= range.start => blocks.len() - 1,
            _ => blocks.partition_point(|block| block.end < range.start),
        };
        let mut to = from;
        while blocks.get(to).is_some_and(|block| block.start <= range.end) {
            to += 1;
        }
        from..to
    }

    /// The blocks at these positions become this one.
    fn replace(&mut self, positions: Range<usize>, block: Range<Offset>) {
        if positions.is_empty() {
            self.blocks.insert(positions.start, block);
        } else {
            self.blocks[positions.start] = block;
            self.remove(positions.start + 1..positions.end);
        }
    }

    fn remove(&mut self, positions: Range<usize>) {
        if positions == (0..1) {
            self.blocks.pop_front();
        } else if !positions.is_empty() {
            self.blocks.drain(positions);
        }
    }

    pub(crate) fn holds_memory(&self) -> bool {
        self.blocks.0.is_some()
    }

    /// Releases memory, if there are no gaps.
    pub(crate) fn shrink(&mut self) {
        if self.blocks.is_empty() {
            self.blocks = Blocks::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(queue: &mut Reassembly, start: u64, end: u64) -> Inserted {
        queue.insert(r(start, end)).unwrap()
    }

    fn r(start: u64, end: u64) -> Range<Offset> {
        Offset(start)..Offset(end)
    }

    #[test]
    fn the_next_bytes_move_rcv_nxt() {
        let mut queue = Reassembly::new(Offset(1), 10);
        assert_eq!(insert(&mut queue, 1, 11), Inserted { duplicate: None, new: true, block: None });
        assert_eq!(queue.rcv_nxt(), Offset(11));
        assert!(!queue.has_gaps());
    }

    #[test]
    fn a_filled_gap_releases_the_blocks_above_it() {
        let mut queue = Reassembly::new(Offset(1), 10);
        assert_eq!(insert(&mut queue, 11, 21).block, Some(r(11, 21)));
        assert_eq!(insert(&mut queue, 31, 41).block, Some(r(31, 41)));
        assert_eq!(insert(&mut queue, 21, 31).block, Some(r(11, 41)));
        assert_eq!((queue.highest(), queue.held()), (Offset(41), Bytes(30)));
        assert_eq!(insert(&mut queue, 1, 11), Inserted { duplicate: None, new: true, block: None });
        assert_eq!((queue.rcv_nxt(), queue.held()), (Offset(41), Bytes::ZERO));
        assert!(!queue.has_gaps());
    }

    #[test]
    fn only_the_first_duplicate_part_is_reported() {
        let mut queue = Reassembly::new(Offset(1), 10);
        insert(&mut queue, 11, 21);
        insert(&mut queue, 31, 41);
        let all = insert(&mut queue, 5, 45);
        assert_eq!(all.duplicate, Some(r(11, 21)));
        assert!(all.new);
        assert_eq!(all.block, Some(r(5, 45)));
        let again = insert(&mut queue, 11, 21);
        assert_eq!((again.duplicate, again.new), (Some(r(11, 21)), false));
        assert_eq!(again.block, Some(r(5, 45)));
    }

    #[test]
    fn bytes_below_rcv_nxt_are_duplicates() {
        let mut queue = Reassembly::new(Offset(100), 10);
        assert_eq!(insert(&mut queue, 50, 60), Inserted { duplicate: Some(r(50, 60)), new: false, block: None });
        let partly = insert(&mut queue, 90, 110);
        assert_eq!((partly.duplicate, partly.new), (Some(r(90, 100)), true));
        assert_eq!(queue.rcv_nxt(), Offset(110));
    }

    #[test]
    fn any_order_gives_the_same_result() {
        // All permutations of five adjacent pieces give the same result.
        fn permute(pieces: &mut Vec<u64>, from: usize) {
            if from == pieces.len() {
                let mut queue = Reassembly::new(Offset(0), 10);
                for &piece in pieces.iter() {
                    insert(&mut queue, piece * 10, piece * 10 + 10);
                }
                assert_eq!(queue.rcv_nxt(), Offset(50), "{pieces:?}");
                assert!(!queue.has_gaps());
                return;
            }
            for i in from..pieces.len() {
                pieces.swap(from, i);
                permute(pieces, from + 1);
                pieces.swap(from, i);
            }
        }
        permute(&mut (0..5).collect(), 0);
    }

    #[test]
    fn beyond_the_most_blocks_only_what_makes_no_further_block_is_taken() {
        let mut queue = Reassembly::new(Offset(0), 2);
        insert(&mut queue, 10, 11);
        insert(&mut queue, 20, 21);
        assert_eq!(queue.insert(r(30, 31)), None);
        assert_eq!(queue.insert(r(15, 16)), None);
        assert_eq!(queue.highest(), Offset(21));
        assert_eq!(insert(&mut queue, 21, 25).block, Some(r(20, 25)));
        assert_eq!(insert(&mut queue, 11, 20).block, Some(r(10, 25)));
        assert_eq!(insert(&mut queue, 30, 31).block, Some(r(30, 31)));
        assert!(insert(&mut queue, 0, 5).new);
        insert(&mut queue, 5, 10);
        assert_eq!(queue.rcv_nxt(), Offset(25));
    }
}
