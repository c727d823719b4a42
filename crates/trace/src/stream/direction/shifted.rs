//! SACK blocks with the numbers of the other side of a firewall: it changes the sequence numbers of a connection, but not those in
//! options. Called by [`super::Direction`] for acknowledgments with such blocks.

use super::Direction;
use crate::packet::Segment;

impl Direction {
    /// The SACK blocks of an acknowledgment, which are far from all data that has passed, in the numbers of this side. None if it
    /// is not known how these differ. They are known from the first block that can only report a duplicate of the last
    /// retransmission: it has its length, and everything is acknowledged.
    #[cold]
    pub(super) fn shifted_blocks(&mut self, ack: u64, segment: &Segment) -> Option<[(u64, u64); 4]> {
        let first = segment.blocks().first()?;
        if self.sack_shift.is_none() && ack >= self.known.highest {
            let (start, end) = self.data.as_ref()?.last_retransmission()?;
            let has_its_length = u64::from(first.1.wrapping_sub(first.0)) == end - start;
            self.sack_shift = self.numbers.seq(start).filter(|_| has_its_length).map(|seq| first.0.wrapping_sub(seq));
        }
        let shift = self.sack_shift?;
        let mut blocks = [(0, 0); 4];
        for (block, into) in segment.blocks().iter().zip(&mut blocks) {
            *into = (self.numbers.of(block.0.wrapping_sub(shift)), self.numbers.of(block.1.wrapping_sub(shift)));
        }
        let are_possible = blocks.iter().all(|(left, right)| left <= right && *right <= self.known.highest);
        are_possible.then_some(blocks)
    }
}
