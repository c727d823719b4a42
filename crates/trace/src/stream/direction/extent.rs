//! How much of a direction was acknowledged, and in what time: also of data that was not captured.

use reknit_units::Instant;

use super::super::known::SequenceState;
use super::Direction;

impl Direction {
    /// The data that was acknowledged; none if packets of the direction were captured.
    pub(super) fn unseen(&self) -> Option<(u64, u64)> {
        // A FIN takes a number too.
        let SequenceState { highest, acked, .. } = self.known;
        (highest == 0 && self.last.1 > Instant::ZERO && acked > self.first_offset + 1)
            .then_some((self.first_offset, acked))
    }

    /// The end of what was acknowledged beyond the captured data; none if nothing was.
    fn unseen_tail(&self) -> Option<u64> {
        let end = self.known.acked.min(self.fin.unwrap_or(u64::MAX));
        Some(end).filter(|end| self.known.highest > 0 && *end > self.known.highest + 1)
    }

    /// Bytes that the other end has acknowledged, captured or not.
    pub(crate) fn acknowledged(&self) -> u64 {
        let unseen = self.unseen().map_or(0, |(from, to)| to - from);
        let end = self.unseen_tail().unwrap_or(self.known.acked.min(self.known.highest));
        self.acknowledged_before + unseen + if unseen > 0 { 0 } else { end.saturating_sub(self.first_offset) }
    }

    /// When these bytes passed, first and last; none without data or incidents.
    pub(crate) fn active(&self) -> Option<(Instant, Instant)> {
        let data = self.data()?;
        if self.unseen().is_some() {
            return Some((self.known.acked_at, self.last.1));
        }
        let (first, last) = data.active();
        let last = self.unseen_tail().map_or(last, |_| last.max(self.known.acked_at));
        Some((first, last))
    }
}
