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
    /// That of the last packet, and when it passed.
    last: Option<u16>,
    at: Instant,
    /// Packets in a row that counted up by one.
    in_a_row: u8,
    /// The last packet was a single one.
    was_whole: bool,
}

impl AckIds {
    /// True if the packet has the headers of the last one: it is its copy.
    pub(super) fn is_copy(&self, id: Option<u16>) -> bool {
        id.is_some_and(|id| id != 0) && id == self.last
    }

    /// A packet with `len` bytes of data passes. If packets are missing between it and the last one: when that passed.
    #[inline]
    pub(super) fn on_packet(&mut self, id: Option<u16>, len: u32, now: Instant) -> Option<Instant> {
        let step = id.zip(self.last).map_or(0, |(id, last)| id.wrapping_sub(last));
        let is_gap = step != 1 && self.was_whole && self.in_a_row >= ENOUGH && (2..=MOST).contains(&step);
        self.in_a_row = if step == 1 { self.in_a_row.saturating_add(1) } else { 0 };
        let since = is_gap.then_some(self.at);
        (self.last, self.at, self.was_whole) = (id, now, len <= LARGEST_WHOLE);
        since
    }
}
