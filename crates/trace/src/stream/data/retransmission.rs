//! The last retransmission that passed. Called by `Direction` for acknowledgments whose SACK blocks have other numbers.

use super::super::ranges::Range;
use super::Data;

impl Data {
    /// The bytes of the last packet that passed again.
    #[cold]
    pub(in crate::stream) fn last_retransmission(&self) -> Option<(u64, u64)> {
        let again = |range: &Range| range.again.last().map(|again| again.seen.frame);
        let frame = self.ranges.from(0).filter_map(again).max()?;
        let of_packet = || self.ranges.from(0).filter(|range| again(range) == Some(frame));
        Some((of_packet().next()?.start, of_packet().last()?.end))
    }
}
