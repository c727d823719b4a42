//! How much of a direction was acknowledged, and in what time: also of data that was not captured.

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

use super::super::arrival::Arrival;
use super::Direction;

/// What the acknowledgments show of a direction of which no packet was captured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Unseen {
    /// The first acknowledgment.
    pub(super) from: u64,
    pub(super) at: Instant,
    /// The last that acknowledged something new.
    pub(super) to: u64,
    pub(super) until: Instant,
    pub(super) frame: u64,
}

impl Unseen {
    /// An acknowledgment, before any packet of its direction.
    pub(super) fn note(unseen: &mut Option<Unseen>, ack: u64, arrival: &Arrival<'_>) {
        let (now, frame) = (arrival.now, arrival.frame);
        let unseen = unseen.get_or_insert(Unseen { from: ack, at: now, to: ack, until: now, frame });
        if ack > unseen.to {
            (unseen.to, unseen.until, unseen.frame) = (ack, now, frame);
        }
    }
}

impl Direction {
    /// None if packets of the direction were captured, or no data was acknowledged.
    pub(super) fn unseen(&self) -> Option<&Unseen> {
        // A FIN takes a number too.
        self.unseen.as_ref().filter(|unseen| self.known.highest == 0 && unseen.to > unseen.from + 1)
    }

    /// The end of what was acknowledged beyond the captured data; none if nothing was.
    fn unseen_tail(&self) -> Option<u64> {
        let end = self.known.acked.min(self.fin.unwrap_or(u64::MAX));
        Some(end).filter(|end| self.known.highest > 0 && *end > self.known.highest + 1)
    }

    /// Bytes that the other end has acknowledged, captured or not.
    pub(crate) fn acknowledged(&self) -> u64 {
        let unseen = self.unseen().map_or(0, |unseen| unseen.to - unseen.from);
        let end = self.unseen_tail().unwrap_or(self.known.acked.min(self.known.highest));
        self.acknowledged_before + unseen + end.saturating_sub(self.first_offset)
    }

    /// When these bytes passed, first and last; none without data or incidents.
    pub(crate) fn active(&self) -> Option<(Instant, Instant)> {
        let data = self.data()?;
        if let Some(unseen) = self.unseen() {
            return Some((unseen.at, unseen.until));
        }
        let (first, last) = data.active();
        let first = if data.lacks_beginning(self.first_offset) { self.began.min(first) } else { first };
        let last = self.unseen_tail().map_or(last, |_| last.max(self.known.acked_at));
        Some((first, last))
    }
}
