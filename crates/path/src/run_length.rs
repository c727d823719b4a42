//! How packets of several connections follow each other.

use crate::stages::Label;

/// How packets of several connections follow each other at some point of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunLengths {
    /// Packets of data.
    pub packets: u64,
    /// Groups of them that follow each other and belong to one connection.
    pub runs: u64,
    last: Option<u32>,
}

impl RunLengths {
    pub(crate) fn note(&mut self, label: Label) {
        if label.segment == 0 {
            return;
        }
        self.packets += 1;
        self.runs += u64::from(self.last != Some(label.flow));
        self.last = Some(label.flow);
    }
}
