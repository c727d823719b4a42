//! The receiver's part of ECN (RFC 3168 §6.1.3): congestion is echoed until the sender confirms with CWR that it has responded.

use crate::segment::{Ecn, Flags, Segment};

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct EcnEcho {
    echoes: bool,
}

impl EcnEcho {
    /// A segment with data arrived.
    pub(super) fn on_data(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::CWR) {
            self.echoes = false;
        }
        if segment.ecn == Ecn::Congested {
            self.echoes = true;
        }
    }

    /// The flags of a segment that is sent, with ECE if it is due.
    pub(super) fn mark(self, flags: Flags) -> Flags {
        if self.echoes { flags | Flags::ECE } else { flags }
    }
}
