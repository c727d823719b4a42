//! Sequence numbers, which wrap, as offsets, which do not. [`super::direction`] converts with `of` at the start of each packet
//! and ACK and calls `reach` afterwards. Owned by [`super::direction`].

use serde::{Deserialize, Serialize};

/// Where offsets begin, so that data from before the first captured packet has one too.
pub(super) const ORIGIN: u64 = 1 << 32;
/// No window is larger (RFC 7323 §2.3), so no acknowledgment can be further ahead of the data than this.
const LARGEST_WINDOW: u64 = 1 << 30;
/// An acknowledgment that is further ahead of all captured data than this must be confirmed by a second one or by data.
const DOUBTFUL: u64 = 1 << 20;

/// A sequence number that is further away than this belongs to another numbering.
const FAR: u32 = 1 << 24;

/// The sequence numbers of one direction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Numbers {
    /// The sequence number at [`ORIGIN`].
    base: Option<u32>,
    /// At least [`ORIGIN`].
    highest: u64,
    /// An acknowledgment far ahead that is not confirmed yet.
    doubtful: Option<u64>,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { base: None, highest: ORIGIN, doubtful: None }
    }
}

impl Numbers {
    /// The offset of a sequence number.
    #[inline]
    pub(super) fn of(&mut self, seq: u32) -> u64 {
        let base = *self.base.get_or_insert(seq);
        // The lower half of ORIGIN is zero.
        let ahead = seq.wrapping_sub(base.wrapping_add(self.highest as u32)).cast_signed();
        self.highest.wrapping_add_signed(ahead.into())
    }

    /// True if no window around what has passed contains this sequence number.
    #[inline]
    pub(super) fn is_far(&self, seq: u32) -> bool {
        let ahead = |base: u32| seq.wrapping_sub(base.wrapping_add(self.highest as u32)).cast_signed();
        self.base.is_some_and(|base| ahead(base).unsigned_abs() > FAR)
    }

    /// The sequence number of an offset.
    pub(super) fn seq(&self, offset: u64) -> Option<u32> {
        self.base.map(|base| base.wrapping_add(offset as u32))
    }

    /// Another numbering begins: `seq` follows all that has passed.
    #[cold]
    pub(super) fn begin_again(&mut self, seq: u32) {
        self.base = Some(seq.wrapping_sub(self.highest as u32));
        self.doubtful = None;
    }

    /// The sender, or an acknowledgment, has reached this offset.
    #[inline]
    pub(super) fn reach(&mut self, offset: u64) {
        self.highest = self.highest.max(offset);
    }

    /// The highest offset so far.
    #[inline]
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// True if an acknowledgment beyond everything that was captured is plausible, because the capture missed packets. One far
    /// ahead may belong to an earlier connection between the same ports.
    #[cold]
    pub(super) fn is_plausible_ack(&mut self, ack: u64) -> bool {
        let ahead = ack - self.highest;
        if ahead > LARGEST_WINDOW {
            return false;
        }
        let confirmed = self.doubtful.is_some_and(|doubtful| ack > doubtful && ack - doubtful < LARGEST_WINDOW);
        self.doubtful = Some(ack);
        ahead <= DOUBTFUL || confirmed
    }
}
