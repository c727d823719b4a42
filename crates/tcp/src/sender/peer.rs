//! What the peer's last segments contained, to compare the next one with. Used in steps 2 and 3; the connection notes echoed
//! timestamps in step 1. Owned by [`super::Sender`].

use std::ops::Range;

use reknit_units::{Bytes, Instant};

use super::{SackReport, WindowUpdate};
use crate::config::Paws;
use crate::facts::SendState;
use crate::scoreboard::SegmentRecord;
use crate::seq::Offset;

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Peer {
    /// (SEG.SEQ, SEG.ACK) of the last window update (RFC 9293 §3.3.1: SND.WL1 and SND.WL2).
    wl: (Offset, Offset),
    /// The newest timestamp of ours that the peer has echoed: it discards segments with older ones (RFC 7323 §5).
    echoed: Instant,
    /// The SACK blocks of the last ACK that had any.
    last_report: Option<Box<SackReport>>,
    /// The longest segment that was acknowledged, as far as the last one of each ACK shows.
    largest_acked: Bytes,
}

impl Peer {
    pub(super) fn new() -> Peer {
        Peer { wl: (Offset::SYN, Offset::SYN), echoed: Instant::ZERO, last_report: None, largest_acked: Bytes::ZERO }
    }

    /// The window of the segment that ended the handshake counts as the first update.
    pub(super) fn establish(&mut self, wl: (Offset, Offset)) {
        self.wl = wl;
    }

    /// RFC 9293 §3.10.7.4: true if the segment is the newest so far, so that its window counts; its numbers are noted.
    /// Linux ignores a smaller window in a segment with the same numbers.
    pub(super) fn takes_window_update(&mut self, update: WindowUpdate, snd: &SendState, paws: Paws) -> bool {
        let from = (update.seq, update.ack);
        let shrinks = update.wnd < snd.snd_wnd && update.wnd > Bytes::ZERO;
        if update.ack < snd.snd_una || from < self.wl || (paws == Paws::Linux && shrinks && from == self.wl) {
            return false;
        }
        self.wl = from;
        true
    }

    /// The peer has echoed a timestamp of `stamped`.
    pub(super) fn note_echo(&mut self, stamped: Instant) {
        self.echoed = self.echoed.max(stamped);
    }

    pub(super) fn echoed(&self) -> Instant {
        self.echoed
    }

    /// The SACK blocks that the last ACK did not have. A block that was processed once has no further effect. Blocks that are
    /// repeated are mostly in the same order.
    pub(super) fn new_blocks<'a>(&self, report: &'a SackReport) -> impl Iterator<Item = &'a Range<Offset>> {
        let last = self.last_report.as_ref().map_or(&[][..], |last| last.blocks());
        let mut rest = last.iter();
        report.blocks().iter().filter(move |block| {
            let is_next = rest.as_slice().first() == Some(block);
            if is_next {
                rest.next();
            }
            !is_next && !last.contains(block)
        })
    }

    /// All blocks of the report were processed.
    pub(super) fn note_blocks(&mut self, report: &SackReport) {
        match &mut self.last_report {
            Some(last) => (**last).clone_from(report),
            None => self.last_report = Some(Box::new(report.clone())),
        }
    }

    /// The receiver has reneged: the next blocks are read even if they are the same.
    pub(super) fn forget_blocks(&mut self) {
        self.last_report = None;
    }

    pub(super) fn note_acked(&mut self, record: &SegmentRecord) {
        self.largest_acked = self.largest_acked.max(Bytes(u64::from(record.len)));
    }

    pub(super) fn largest_acked(&self) -> Bytes {
        self.largest_acked
    }

    pub(super) fn holds_memory(&self) -> bool {
        self.last_report.is_some()
    }

    pub(super) fn shrink(&mut self) {
        self.last_report = None;
    }

    /// Brings its fields into the cache.
    pub(super) fn prefetch(&self) {
        std::hint::black_box(&self.wl);
    }
}
