//! Runs of packets of the same connection.

use crate::stages::SegmentTag;

/// Runs of packets of the same connection at some point of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunLengths {
    /// The number of data packets.
    pub packets: u64,
    /// The number of runs of consecutive packets of the same connection.
    pub runs: u64,
    last: Option<u32>,
}

impl RunLengths {
    pub(crate) fn note(&mut self, label: SegmentTag) {
        if label.segment == 0 {
            return;
        }
        self.packets += 1;
        self.runs += u64::from(self.last != Some(label.flow));
        self.last = Some(label.flow);
    }
}
