//! A simulated connection, captured at one of its ends and analysed as the packets pass.

use reknit_sim::{Datagram, Role, TraceEvent, Tracer};
use reknit_trace::{Analysis, Analyzer, CapturePoint, Frame, Options};
use reknit_units::Instant;
use reknit_wire::{Endpoints, encode_headers_for_offload};

/// LINKTYPE of packets without a link-layer header.
const RAW: u16 = 101;
const HOP_LIMIT: u8 = 64;

/// Analyses what one end sees.
#[derive(Debug)]
pub(super) struct Recorder {
    side: Role,
    analyzer: Analyzer,
    number: u64,
    packet: Vec<u8>,
}

impl Recorder {
    /// A capture at this place; between the ends, at the sender.
    pub(super) fn at(place: CapturePoint) -> Recorder {
        let (side, place) = match place {
            CapturePoint::Receiver => (Role::Receiver, CapturePoint::Receiver),
            CapturePoint::Sender | CapturePoint::Middle => (Role::Sender, CapturePoint::Sender),
        };
        let analyzer = Analyzer::new(Options { at: Some(place), ..Options::default() });
        Recorder { side, analyzer, number: 0, packet: Vec::new() }
    }

    pub(super) fn finish(self) -> Analysis {
        self.analyzer.finish(&mut |_| {})
    }
}

impl Tracer for Recorder {
    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let is_seen = match event {
            TraceEvent::Sent => datagram.from == self.side,
            TraceEvent::Delivered => datagram.from != self.side,
            TraceEvent::Lost => false,
        };
        if !is_seen {
            return;
        }
        let [source, destination] = datagram.addresses();
        let len = usize::from(datagram.segment.len);
        let endpoints = Endpoints { source, destination };
        encode_headers_for_offload(endpoints, HOP_LIMIT, &datagram.segment, len, &mut self.packet);
        self.number += 1;
        let frame = Frame {
            number: self.number,
            at: Some(now.as_nanos()),
            interface: 0,
            link: RAW,
            bytes: &self.packet,
            original_len: self.packet.len() + len,
        };
        self.analyzer.on_frame(&frame, &mut |_| {});
    }
}
