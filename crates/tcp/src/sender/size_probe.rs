//! Whether the path carries larger segments: one segment of the larger size finds out (RFC 4821 §7).
//!
//! It has new data and is sent while nothing is missing. If it is lost, it is repaired like any other loss, but in smaller
//! pieces. So a probe that fails costs one reduction of the window.

use reknit_units::Bytes;

use super::Sender;
use super::reaction::Reaction;
use crate::scoreboard::SegId;

#[derive(Clone, Copy, Debug)]
pub(super) struct SizeProbe {
    /// The segment size, options included, and the payload.
    mss: u16,
    smss: Bytes,
    /// None until it is sent.
    id: Option<SegId>,
    retransmitted: bool,
}

impl Sender {
    /// The next segment for which there is enough data carries `smss`; `mss` is its size with options. One is tried at a
    /// time.
    pub(crate) fn probe_size(&mut self, mss: u16, smss: Bytes) {
        let probe = || Box::new(SizeProbe { mss, smss, id: None, retransmitted: false });
        self.size_probe.get_or_insert_with(probe);
    }

    /// The size of the probe and whether it arrived, once that is known. If so, full segments have its size from now on.
    pub(crate) fn take_probe_result(&mut self) -> Option<(u16, bool)> {
        let first = self.board.first();
        let is_known = |probe: &mut Box<SizeProbe>| probe.retransmitted || probe.id.is_some_and(|id| id < first);
        let probe = self.size_probe.take_if(is_known)?;
        if !probe.retransmitted {
            self.state.smss = probe.smss;
        }
        Some((probe.mss, !probe.retransmitted))
    }

    /// The payload of the next full segment, if `usable` bytes can be sent.
    pub(super) fn next_size(&self, usable: Bytes) -> Bytes {
        let is_open = matches!(self.reaction, Reaction::Open);
        let due = |probe: &&SizeProbe| is_open && probe.id.is_none() && probe.smss <= usable;
        self.size_probe.as_deref().filter(due).map_or(self.state.smss, |probe| probe.smss)
    }

    pub(super) fn note_probe(&mut self, id: SegId, len: Bytes) {
        if let Some(probe) = self.size_probe.as_mut().filter(|probe| probe.id.is_none() && len >= probe.smss) {
            probe.id = Some(id);
        }
    }

    pub(super) fn note_probe_again(&mut self, id: SegId) {
        if let Some(probe) = self.size_probe.as_mut().filter(|probe| probe.id == Some(id)) {
            probe.retransmitted = true;
        }
    }
}
