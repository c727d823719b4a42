//! The network between the two ends of all connections: a pipe for each direction, and the tracer that sees what enters and
//! leaves them. The simulation owns it and decides when something leaves.

use reknit_path::Pipe;
use reknit_tcp::{Connection, Segment};
use reknit_units::Instant;

use crate::flow::Flow;
use crate::roles::Role;
use crate::trace::{Datagram, TraceEvent, Tracer, Transmission};

pub(crate) struct Network<T> {
    pub(crate) forward: Pipe<Datagram>,
    pub(crate) reverse: Pipe<Datagram>,
    /// True if anyone needs to know what packets carry.
    pub(crate) labels: bool,
    /// The number of packets sent.
    pub(crate) packets: u64,
    pub(crate) tracer: T,
}

impl<T: Tracer> Network<T> {
    /// `end` of `flow`, which is in `slot`, sends `segment`.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, slot: u32, end: Role, flow: &Flow, segment: &Segment) {
        let transmission = if self.labels { carried(&flow.ends[end], segment) } else { None };
        let (serial, flow) = (self.packets, flow.id);
        let datagram = Datagram { segment: *segment, flow, from: end, copy: false, serial, transmission, slot };
        self.tracer.on_packet(now, TraceEvent::Sent, &datagram);
        self.packets += 1;
        let pipe = match end {
            Role::Sender => &mut self.forward,
            Role::Receiver => &mut self.reverse,
        };
        pipe.push(now, datagram);
    }

    /// True if a pipe has lost a packet that has not been reported.
    pub(crate) fn has_lost(&self) -> bool {
        self.forward.has_lost() || self.reverse.has_lost()
    }
}

/// What `segment`, which `end` has just sent, carries.
fn carried(end: &Connection, segment: &Segment) -> Option<Transmission> {
    let (id, record) = if segment.seq_len() > 0 { end.outstanding(segment.seq)? } else { return None };
    Some(Transmission { segment: id.0 as u32 + 1, number: record.transmissions, cause: record.cause })
}
