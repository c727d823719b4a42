//! Probes whether the path carries larger segments, with one segment of the larger size (RFC 4821 §7). Started and read by
//! [`super::live`]; [`super::transmit`] sends the probe. Owned by [`super::Sender`].
//!
//! A probe has new data and is sent while nothing is missing. If it is lost, it is retransmitted like any other segment, but
//! in smaller pieces. So a failed probe costs one reduction of the window.

use reknit_units::Bytes;

use crate::scoreboard::SegId;

/// The segment that is sent as a probe.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Probe {
    /// The segment size, options included, and the payload.
    mss: u16,
    smss: Bytes,
    /// None until it is sent.
    id: Option<SegId>,
    retransmitted: bool,
}

/// The result of a probe.
pub(super) struct ProbeResult {
    /// The segment size, options included, and the payload.
    pub(super) mss: u16,
    pub(super) smss: Bytes,
    pub(super) has_arrived: bool,
}

/// At most one probe; none while no larger size is tried.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct SizeProbe(Option<Box<Probe>>);

impl SizeProbe {
    /// The next segment for which there is enough data carries `smss`; `mss` is its size with options. Has no effect while
    /// another probe is pending.
    pub(super) fn try_size(&mut self, mss: u16, smss: Bytes) {
        self.0.get_or_insert_with(|| Box::new(Probe { mss, smss, id: None, retransmitted: false }));
    }

    pub(super) fn cancel(&mut self) {
        self.0 = None;
    }

    /// The result, once it is known. `first` is the first outstanding segment.
    pub(super) fn take_result(&mut self, first: SegId) -> Option<ProbeResult> {
        let is_known = |probe: &mut Box<Probe>| probe.retransmitted || probe.id.is_some_and(|id| id < first);
        let probe = self.0.take_if(is_known)?;
        Some(ProbeResult { mss: probe.mss, smss: probe.smss, has_arrived: !probe.retransmitted })
    }

    /// True if a larger size is tried.
    pub(super) fn is_pending(&self) -> bool {
        self.0.is_some()
    }

    /// The payload of the probe, if it is due and fits `usable` bytes.
    pub(super) fn due(&self, usable: Bytes) -> Option<Bytes> {
        let probe = self.0.as_deref().filter(|probe| probe.id.is_none() && probe.smss <= usable)?;
        Some(probe.smss)
    }

    /// A new segment was sent.
    pub(super) fn note_sent(&mut self, id: SegId, len: Bytes) {
        if let Some(probe) = self.0.as_mut().filter(|probe| probe.id.is_none() && len >= probe.smss) {
            probe.id = Some(id);
        }
    }

    pub(super) fn note_retransmission(&mut self, id: SegId) {
        if let Some(probe) = self.0.as_mut().filter(|probe| probe.id == Some(id)) {
            probe.retransmitted = true;
        }
    }
}
