//! The blocks that an ACK reports (RFC 2018 §4, RFC 2883 §4).

use std::ops::Range;

use crate::segment::{SackBlock, SackBlocks};
use crate::seq::{Offset, SeqNum};

/// Blocks that an option can hold.
const MAX_BLOCKS: usize = 4;

/// The blocks above RCV.NXT, the most recently changed first, and a duplicate that has yet to be reported. Takes little
/// memory while everything arrives in order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct SackMemory {
    /// At most [`MAX_BLOCKS`].
    recent: Vec<Range<Offset>>,
    dsack: Option<Box<Dsack>>,
    /// The number of ACKs that report each duplicate.
    reports: u32,
}

#[derive(Clone, PartialEq, Debug)]
struct Dsack {
    duplicate: Range<Offset>,
    /// The block that contains the duplicate, if it lies above the cumulative ACK.
    enclosing: Option<Range<Offset>>,
    /// The number of further ACKs that report it.
    reports_left: u32,
}

impl Default for SackMemory {
    /// RFC 2883 §4: every duplicate is reported once.
    fn default() -> SackMemory {
        SackMemory { recent: Vec::new(), dsack: None, reports: 1 }
    }
}

impl SackMemory {
    /// Sets the number of ACKs that report each duplicate.
    pub(crate) fn report_duplicates_in(&mut self, acks: u32) {
        self.reports = acks.max(1);
    }

    /// A segment arrived and is now part of `block`. Older blocks inside it are removed. Returns how many blocks had
    /// changed more recently.
    pub(crate) fn on_block(&mut self, block: Range<Offset>) -> usize {
        let inside = |older: &Range<Offset>| block.start <= older.start && older.end <= block.end;
        let rank = self.recent.iter().position(inside).unwrap_or(self.recent.len());
        if rank < self.recent.len() {
            self.recent.retain(|older| !inside(older));
        }
        self.recent.truncate(MAX_BLOCKS - 1);
        self.recent.insert(0, block);
        rank
    }

    /// RCV.NXT advanced: what lies below needs no report.
    pub(crate) fn on_advance(&mut self, rcv_nxt: Offset) {
        self.recent.retain(|block| block.end > rcv_nxt);
        if let Some(dsack) = &mut self.dsack {
            dsack.enclosing.take_if(|enclosing| enclosing.end <= rcv_nxt);
        }
    }

    /// `duplicate` arrived again. It is reported from the next ACK on.
    pub(crate) fn on_duplicate(&mut self, duplicate: Range<Offset>, enclosing: Option<Range<Offset>>) {
        self.dsack = Some(Box::new(Dsack { duplicate, enclosing, reports_left: self.reports }));
    }

    /// The option for an ACK with room for `room` blocks. A duplicate comes first, followed by the block that contains
    /// it.
    pub(crate) fn take(&mut self, room: usize, irs: SeqNum) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        let to_wire =
            |range: &Range<Offset>| SackBlock { left: range.start.to_wire(irs), right: range.end.to_wire(irs) };
        if self.dsack.is_none() {
            self.recent.iter().take(room).for_each(|block| blocks.push(to_wire(block)));
            return blocks;
        }
        let mut push = |range: &Range<Offset>| {
            if blocks.as_slice().len() < room {
                blocks.push(to_wire(range));
            }
        };
        let mut skip = None;
        if let Some(dsack) = &mut self.dsack {
            push(&dsack.duplicate);
            if let Some(enclosing) = &dsack.enclosing {
                push(enclosing);
                skip = Some(enclosing.clone());
            }
            dsack.reports_left -= 1;
        }
        self.dsack.take_if(|dsack| dsack.reports_left == 0);
        for block in self.recent.iter().filter(|block| Some(*block) != skip.as_ref()) {
            push(block);
        }
        blocks
    }

    /// True if the next ACK has something to report.
    pub(crate) fn has_news(&self) -> bool {
        !self.recent.is_empty() || self.dsack.is_some()
    }

    pub(crate) fn holds_memory(&self) -> bool {
        self.recent.capacity() > 0
    }

    /// Releases memory, if there is nothing to report.
    pub(crate) fn shrink(&mut self) {
        if self.recent.is_empty() {
            self.recent = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IRS: SeqNum = SeqNum(0);

    fn r(start: u64, end: u64) -> Range<Offset> {
        Offset(start)..Offset(end)
    }

    fn report(memory: &mut SackMemory, room: usize) -> Vec<(u32, u32)> {
        memory.take(room, IRS).as_slice().iter().map(|b| (b.left.0, b.right.0)).collect()
    }

    #[test]
    fn the_block_of_the_latest_segment_comes_first() {
        let mut memory = SackMemory::default();
        memory.on_block(r(10, 20));
        memory.on_block(r(30, 40));
        memory.on_block(r(10, 25));
        assert_eq!(report(&mut memory, 4), [(10, 25), (30, 40)]);
    }

    #[test]
    fn a_merged_block_replaces_its_parts() {
        let mut memory = SackMemory::default();
        memory.on_block(r(10, 20));
        memory.on_block(r(30, 40));
        memory.on_block(r(10, 40));
        assert_eq!(report(&mut memory, 4), [(10, 40)]);
    }

    #[test]
    fn the_oldest_block_is_left_out_first() {
        let mut memory = SackMemory::default();
        for n in 1..=6 {
            memory.on_block(r(n * 20, n * 20 + 10));
        }
        assert_eq!(report(&mut memory, 4), [(120, 130), (100, 110), (80, 90), (60, 70)]);
        assert_eq!(report(&mut memory, 3), [(120, 130), (100, 110), (80, 90)]);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut memory = SackMemory::default();
        memory.on_block(r(30, 40));
        memory.on_block(r(50, 60));
        memory.on_duplicate(r(30, 35), Some(r(30, 40)));
        assert_eq!(report(&mut memory, 3), [(30, 35), (30, 40), (50, 60)]);
        assert_eq!(report(&mut memory, 3), [(50, 60), (30, 40)]);
    }

    #[test]
    fn a_duplicate_may_be_reported_more_often() {
        let mut memory = SackMemory::default();
        memory.report_duplicates_in(3);
        memory.on_block(r(30, 40));
        memory.on_duplicate(r(30, 35), Some(r(30, 40)));
        assert_eq!(report(&mut memory, 3), [(30, 35), (30, 40)]);
        memory.on_advance(Offset(40));
        assert_eq!(report(&mut memory, 3), [(30, 35)]);
        assert_eq!(report(&mut memory, 3), [(30, 35)]);
        assert!(!memory.has_news());
    }

    #[test]
    fn blocks_below_rcv_nxt_are_forgotten() {
        let mut memory = SackMemory::default();
        memory.on_block(r(10, 20));
        memory.on_block(r(30, 40));
        memory.on_advance(Offset(20));
        assert_eq!(report(&mut memory, 4), [(30, 40)]);
        memory.on_advance(Offset(40));
        assert!(!memory.has_news());
    }
}
