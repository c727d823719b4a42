//! Runs of consecutive segments that are passed on as one packet (GRO, TSO): built by `receive` for arriving packets and by
//! `frame` for packets to the device.

use reknit_stack::Transmit;
use reknit_tcp::Segment;
use reknit_tcp::segment::Flags;
use reknit_wire::Endpoints;

/// The longest payload of a packet: its length field has 16 bits.
const LONGEST: usize = 65_535 - 40 - 60;

/// Consecutive segments of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The first segment, with the flags of all.
    pub(crate) first: Transmit,
    /// Bytes of payload so far.
    pub(crate) len: usize,
    /// The last segment is full, so that another may follow.
    is_full: bool,
}

impl Run {
    pub(crate) fn new(first: Transmit) -> Run {
        Run {
            first,
            len: usize::from(first.segment.len),
            is_full: first.segment.len > 0 && !first.segment.flags.has(Flags::FIN),
        }
    }

    /// Adds `next` if its header follows from the first one. False if it does not.
    pub(crate) fn join(&mut self, endpoints: &Endpoints, hop_limit: u8, next: &Segment) -> bool {
        let takes = *endpoints == self.first.endpoints && hop_limit == self.first.hop_limit && self.takes(next);
        if takes {
            self.len += usize::from(next.len);
            self.is_full = next.len == self.first.segment.len && !next.flags.has(Flags::FIN);
            self.first.segment.flags |= next.flags;
        }
        takes
    }

    fn takes(&self, next: &Segment) -> bool {
        let (a, b) = (&self.first.segment, next);
        self.is_full
            && b.len > 0
            && b.len <= a.len
            && b.seq == a.seq.plus(self.len as u32)
            && (a.ack, a.window, a.ecn, a.options) == (b.ack, b.window, b.ecn, b.options)
            && is_plain(a.flags)
            && is_plain(b.flags)
            && self.len + usize::from(b.len) <= LONGEST
    }
}

/// True if the segment can be part of a run: an ACK, with or without PSH. A FIN ends the run.
fn is_plain(flags: Flags) -> bool {
    flags | Flags::PSH | Flags::FIN == Flags::ACK | Flags::PSH | Flags::FIN
}
