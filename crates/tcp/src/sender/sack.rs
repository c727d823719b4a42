//! Reads the SACK option: the reported blocks, and the duplicate if there is one. Called by the connection in
//! step 1 of the ACK pipeline ([`super::ack`]).

use std::ops::Range;

use reknit_units::Bytes;

use crate::segment::SackBlocks;
use crate::seq::{Offset, SeqNum};

/// The longest DSACK: the data of one packet, which GRO may have coalesced from several. No receiver can honestly send a
/// longer one, and processing it would take time in proportion to the flight.
const LONGEST_DSACK: Bytes = Bytes(65_535);

/// The SACK option of one segment, in offsets.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct SackReport {
    blocks: [Range<Offset>; 4],
    len: usize,
    pub(crate) dsack: Option<Range<Offset>>,
}

impl SackReport {
    /// Reads `option` of a segment whose cumulative acknowledgment is `ack`.
    ///
    /// The first block is a DSACK if it lies completely at or below the cumulative acknowledgment of *this* segment
    /// (not SND.UNA, or else the blocks of an overtaken ACK would look like a DSACK), or inside the second block (RFC
    /// 2883 §4). Invalid blocks (empty, or beyond what was sent) are ignored, and so is a DSACK of more than one packet.
    /// None if there is no option.
    pub(crate) fn read(option: &SackBlocks, ack: Offset, isn: SeqNum, snd_nxt: Offset) -> Option<SackReport> {
        if option.is_empty() {
            return None;
        }
        let mut report = SackReport::default();
        for block in option.as_slice() {
            let edges = (ack.nearest(block.left, isn), ack.nearest(block.right, isn));
            if let (Some(left), Some(right)) = edges
                && left < right
                && right <= snd_nxt
            {
                report.blocks[report.len] = left..right;
                report.len += 1;
            }
        }
        if report.first_is_dsack(ack) {
            let duplicate = report.blocks[0].clone();
            report.dsack = (duplicate.end.since(duplicate.start) <= LONGEST_DSACK).then_some(duplicate);
            report.blocks.rotate_left(1);
            report.len -= 1;
        }
        Some(report)
    }

    /// The blocks of data that the receiver has.
    pub(crate) fn blocks(&self) -> &[Range<Offset>] {
        &self.blocks[..self.len]
    }

    fn first_is_dsack(&self, ack: Offset) -> bool {
        match self.blocks() {
            [] => false,
            [first, rest @ ..] => {
                let inside = |outer: &Range<Offset>| outer.start <= first.start && first.end <= outer.end;
                first.end <= ack || rest.first().is_some_and(inside)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::SackBlock;

    const ISN: SeqNum = SeqNum(0);

    fn read(ack: u64, blocks: &[(u32, u32)]) -> SackReport {
        let mut option = SackBlocks::EMPTY;
        for &(left, right) in blocks {
            option.push(SackBlock { left: SeqNum(left), right: SeqNum(right) });
        }
        SackReport::read(&option, Offset(ack), ISN, Offset(10_000)).unwrap()
    }

    #[test]
    fn a_block_below_the_cumulative_field_is_a_dsack() {
        assert_eq!(read(4000, &[(3000, 3500)]).dsack, Some(Offset(3000)..Offset(3500)));
    }

    #[test]
    fn a_block_inside_the_second_is_a_dsack() {
        let report = read(4000, &[(5000, 5500), (4500, 5500)]);
        assert_eq!(report.dsack, Some(Offset(5000)..Offset(5500)));
        assert_eq!(report.blocks(), [Offset(4500)..Offset(5500)]);
    }

    #[test]
    fn a_block_above_the_cumulative_field_is_plain() {
        let report = read(4000, &[(4500, 5000)]);
        assert_eq!(report.dsack, None);
        assert_eq!(report.blocks(), [Offset(4500)..Offset(5000)]);
    }

    #[test]
    fn a_stale_ack_is_compared_with_its_own_cumulative_field() {
        let report = read(2000, &[(2500, 3000)]);
        assert_eq!(report.dsack, None);
        assert_eq!(report.blocks(), [Offset(2500)..Offset(3000)]);
    }

    #[test]
    fn invalid_blocks_are_ignored() {
        assert!(read(4000, &[(5000, 5000), (6000, 5500), (9000, 11_000)]).blocks().is_empty());
    }
}
