//! The sender's part of ECN (RFC 3168 §6.1.2): one window of data causes one reduction, whether it was marked, lost or
//! both, and CWR informs the peer. Used by [`super::undo`] for each reduction (steps 8 and 9), and when a segment is sent.
//! Owned by [`super::Sender`].

use crate::seq::Offset;

/// Whether the next new segment carries CWR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cwr {
    NotDue,
    Due,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ecn {
    /// Reductions have been made for data up to here.
    reduced_until: Offset,
    cwr: Cwr,
}

impl Ecn {
    pub(super) fn new() -> Ecn {
        Ecn { reduced_until: Offset::SYN, cwr: Cwr::NotDue }
    }

    /// The window was reduced when SND.NXT was `snd_nxt`.
    pub(super) fn note_reduction(&mut self, snd_nxt: Offset) {
        self.reduced_until = snd_nxt;
        self.cwr = Cwr::Due;
    }

    /// True if data that was in flight at the last reduction still is when SND.UNA is `snd_una`.
    pub(super) fn was_reduced_for(&self, snd_una: Offset) -> bool {
        snd_una < self.reduced_until
    }

    /// True if an ACK of `ack` covers data that was sent after the last reduction.
    pub(super) fn is_new_congestion(&self, ack: Offset) -> bool {
        ack > self.reduced_until
    }

    /// True if the segment that is sent now must carry CWR.
    pub(super) fn take_cwr(&mut self) -> bool {
        std::mem::replace(&mut self.cwr, Cwr::NotDue) == Cwr::Due
    }
}
