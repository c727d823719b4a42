//! How many duplicates a receiver can have received. Counted as [`super::transmit`] retransmits, checked for each DSACK in
//! step 3. Owned by [`super::Sender`].

use reknit_units::Bytes;

/// Segments that were retransmitted, and segments that the receiver has reported as duplicates. Linux ignores a DSACK while
/// the second number is larger (`tcp_dsack_seen`): a receiver that reports every segment would otherwise teach the sender
/// that the network reorders, and undo every reduction.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct DsackLimit {
    retransmitted: u64,
    reported: u64,
}

impl DsackLimit {
    /// `len` bytes are retransmitted.
    pub(super) fn on_retransmit(&mut self, len: Bytes, smss: Bytes) {
        self.retransmitted += segments(len, smss);
    }

    /// A DSACK reports `len` bytes. True if that is possible; it is counted in any case.
    pub(super) fn count_report(&mut self, len: Bytes, smss: Bytes) -> bool {
        self.reported += segments(len, smss);
        self.reported <= self.retransmitted
    }
}

fn segments(len: Bytes, smss: Bytes) -> u64 {
    len.0.div_ceil(smss.0.max(1))
}
