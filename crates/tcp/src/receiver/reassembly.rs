//! Which bytes have arrived.

use std::collections::VecDeque;
use std::ops::Range;

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
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    rcv_nxt: Offset,
    blocks: VecDeque<Range<Offset>>,
}

impl Reassembly {
    pub(crate) fn new(rcv_nxt: Offset) -> Reassembly {
        Reassembly { rcv_nxt, blocks: VecDeque::new() }
    }

    pub(crate) fn rcv_nxt(&self) -> Offset {
        self.rcv_nxt
    }

    /// True if there are gaps before data that has arrived.
    pub(crate) fn has_gaps(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// One past the highest byte that has arrived.
    pub(crate) fn highest(&self) -> Offset {
        self.blocks.back().map_or(self.rcv_nxt, |block| block.end)
    }

    /// Adds the bytes `range`; RCV.NXT advances if they are the next ones.
    pub(crate) fn insert(&mut self, range: Range<Offset>) -> Inserted {
        if range.end <= self.rcv_nxt {
            return Inserted { duplicate: Some(range), new: false, block: None };
        }
        let mut duplicate = (range.start < self.rcv_nxt).then_some(range.start..self.rcv_nxt);
        let mut block = range.start.max(self.rcv_nxt)..range.end;
        if self.blocks.is_empty() && block.start == self.rcv_nxt {
            self.rcv_nxt = block.end;
            return Inserted { duplicate, new: true, block: None };
        }
        let at = match self.blocks.back() {
            Some(last) if last.end < block.start => self.blocks.len(),
            _ => self.blocks.partition_point(|b| b.end < block.start),
        };
        let touching = self.blocks.range(at..).take_while(|b| b.start <= block.end).count();
        let mut had = 0;
        for existing in self.blocks.range(at..at + touching) {
            let overlap = existing.start.max(block.start)..existing.end.min(block.end);
            if overlap.start < overlap.end {
                had += overlap.end.since(overlap.start).0;
                duplicate = duplicate.or(Some(overlap));
            }
        }
        let new = had < block.end.since(block.start).0;
        if touching > 0 {
            block.start = block.start.min(self.blocks[at].start);
            block.end = block.end.max(self.blocks[at + touching - 1].end);
        }
        self.place(at, touching, block, duplicate, new)
    }

    /// Replaces the `touching` blocks from `at` by `block`.
    fn place(
        &mut self,
        at: usize,
        touching: usize,
        block: Range<Offset>,
        duplicate: Option<Range<Offset>>,
        new: bool,
    ) -> Inserted {
        if block.start == self.rcv_nxt {
            self.rcv_nxt = block.end;
            self.blocks.drain(at..at + touching);
            return Inserted { duplicate, new, block: None };
        }
        match touching {
            0 => self.blocks.insert(at, block.clone()),
            1 => self.blocks[at] = block.clone(),
            _ => {
                self.blocks[at] = block.clone();
                self.blocks.drain(at + 1..at + touching);
            }
        }
        Inserted { duplicate, new, block: Some(block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn r(start: u64, end: u64) -> Range<Offset> {
        Offset(start)..Offset(end)
    }

    #[test]
    fn the_next_bytes_move_rcv_nxt() {
        let mut queue = Reassembly::new(Offset(1));
        assert_eq!(queue.insert(r(1, 11)), Inserted { duplicate: None, new: true, block: None });
        assert_eq!(queue.rcv_nxt(), Offset(11));
        assert!(!queue.has_gaps());
    }

    #[test]
    fn a_filled_gap_releases_the_blocks_above_it() {
        let mut queue = Reassembly::new(Offset(1));
        assert_eq!(queue.insert(r(11, 21)).block, Some(r(11, 21)));
        assert_eq!(queue.insert(r(31, 41)).block, Some(r(31, 41)));
        assert_eq!(queue.insert(r(21, 31)).block, Some(r(11, 41)));
        assert_eq!(queue.highest(), Offset(41));
        assert_eq!(queue.insert(r(1, 11)), Inserted { duplicate: None, new: true, block: None });
        assert_eq!(queue.rcv_nxt(), Offset(41));
        assert!(!queue.has_gaps());
    }

    #[test]
    fn only_the_first_duplicate_part_is_reported() {
        let mut queue = Reassembly::new(Offset(1));
        queue.insert(r(11, 21));
        queue.insert(r(31, 41));
        let all = queue.insert(r(5, 45));
        assert_eq!(all.duplicate, Some(r(11, 21)));
        assert!(all.new);
        assert_eq!(all.block, Some(r(5, 45)));
        let again = queue.insert(r(11, 21));
        assert_eq!((again.duplicate, again.new), (Some(r(11, 21)), false));
        assert_eq!(again.block, Some(r(5, 45)));
    }

    #[test]
    fn bytes_below_rcv_nxt_are_duplicates() {
        let mut queue = Reassembly::new(Offset(100));
        assert_eq!(queue.insert(r(50, 60)), Inserted { duplicate: Some(r(50, 60)), new: false, block: None });
        let partly = queue.insert(r(90, 110));
        assert_eq!((partly.duplicate, partly.new), (Some(r(90, 100)), true));
        assert_eq!(queue.rcv_nxt(), Offset(110));
    }

    #[test]
    fn any_order_gives_the_same_result() {
        // All permutations of five adjacent pieces give the same result.
        fn permute(pieces: &mut Vec<u64>, from: usize) {
            if from == pieces.len() {
                let mut queue = Reassembly::new(Offset(0));
                for &piece in pieces.iter() {
                    queue.insert(r(piece * 10, piece * 10 + 10));
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
}
