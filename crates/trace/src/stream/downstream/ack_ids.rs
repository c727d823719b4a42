//! Acknowledgments that never passed, by the IP identifications of those that did: many hosts count the packets of each connection.
//! Called by [`super`] for each acknowledgment. Owned by [`super::Downstream`].

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

/// After this many packets in a row that counted up by one, a gap is a packet that never passed.
const ENOUGH: u8 = 4;
/// More packets than this are not missing at once: the host counts for other connections too.
const MOST: u16 = 64;
/// Larger packets may have been several, each with an identification, before they were captured.
const LARGEST_WHOLE: u32 = 1_500;

/// The IP identifications of the packets with acknowledgments.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct AckIds {
    last: Option<Last>,
}

/// The last packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Last {
    id: u16,
    at: Instant,
    /// Packets in a row that counted up by one.
    in_a_row: u8,
    /// It was a single one.
    is_whole: bool,
}

impl AckIds {
    /// True if the packet has the headers of the last one: it is its copy.
    pub(super) fn is_copy(&self, id: Option<u16>) -> bool {
        id.is_some_and(|id| id != 0) && id == self.last.map(|last| last.id)
    }

    /// A packet with `len` bytes of data passes. If packets are missing between it and the last one: when that passed.
    #[inline]
    pub(super) fn on_packet(&mut self, id: Option<u16>, len: u32, now: Instant) -> Option<Instant> {
        let last = std::mem::take(&mut self.last);
        let id = id?;
        let step = last.map_or(0, |last| id.wrapping_sub(last.id));
        let in_a_row = last.filter(|_| step == 1).map_or(0, |last| last.in_a_row.saturating_add(1));
        self.last = Some(Last { id, at: now, in_a_row, is_whole: len <= LARGEST_WHOLE });
        let is_gap = |last: &Last| last.is_whole && last.in_a_row >= ENOUGH && (2..=MOST).contains(&step);
        last.filter(is_gap).map(|last| last.at)
    }
}
