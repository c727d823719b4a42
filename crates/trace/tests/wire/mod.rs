//! Writes captures packet by packet: a connection between a client, end 0, and a server, end 1.

pub(crate) mod incidents;

use reknit_tcp::segment::{Flags, Options as SegmentOptions, SackBlock, Timestamps};
use reknit_tcp::{Segment, SeqNum};
use reknit_trace::{
    Analysis, Analyzer, CapturePoint, DirectionReport, Event, Events, Incident, IncidentReport, Options,
};
use reknit_wire::{Endpoints, encode_headers_for_offload};

const LINKTYPE_RAW: u16 = 101;
const IP_ID: std::ops::Range<usize> = 4..6;
const WINDOW: std::ops::Range<usize> = 34..36;

pub(crate) const SYN: Flags = Flags::SYN;
pub(crate) const ACK: Flags = Flags::ACK;

/// What a connection has in its headers.
#[derive(Clone, Copy)]
pub(crate) struct Headers {
    pub(crate) timestamps: bool,
    pub(crate) sack: bool,
    /// The end at which the packets are captured.
    pub(crate) near: usize,
    pub(crate) port: u16,
    pub(crate) isn: [u32; 2],
}

impl Default for Headers {
    fn default() -> Headers {
        Headers { timestamps: true, sack: true, near: 0, port: 40_000, isn: [1000, 5000] }
    }
}

/// A segment. Numbers are relative: the SYN has 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Passing<'a> {
    pub(crate) flags: Flags,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) len: u16,
    pub(crate) sack: &'a [(u32, u32)],
    /// The echoed timestamp, as the time in milliseconds when it was sent; none: about a round trip ago.
    pub(crate) echo_ms: Option<u32>,
    pub(crate) window: Option<u16>,
    /// A copy of the packet with this number: it has its headers.
    pub(crate) copy_of: Option<usize>,
}

struct Packet {
    us: u64,
    bytes: Vec<u8>,
    len: usize,
}

/// A capture.
#[derive(Default)]
pub(crate) struct Wire {
    packets: Vec<Packet>,
    ids: [u16; 2],
    pub(crate) headers: Headers,
}

impl Wire {
    pub(crate) fn new(headers: Headers) -> Wire {
        Wire { packets: Vec::new(), ids: [100, 9000], headers }
    }

    /// A segment from `end` passes.
    pub(crate) fn pass(&mut self, ms: f64, end: usize, passing: Passing<'_>) {
        let Headers { timestamps, sack, near, port, isn } = self.headers;
        let Passing { flags, seq, ack, len, sack: blocks, echo_ms, window, copy_of } = passing;
        let mut options = SegmentOptions::default();
        if flags.has(SYN) {
            (options.mss, options.sack_permitted) = (Some(1460), sack);
        }
        if timestamps {
            let base = [10_000, 700_000];
            let lag = if end == near { 50 } else { 0 };
            let echo = echo_ms.unwrap_or_else(|| millis(ms).saturating_sub(lag));
            let ecr = if flags.has(ACK) { base[1 - end] + echo } else { 0 };
            options.timestamps = Some(Timestamps { val: base[end] + millis(ms), ecr });
        }
        for (left, right) in blocks {
            let at = |offset: u32| SeqNum(isn[1 - end].wrapping_add(offset));
            options.sack.push(SackBlock { left: at(*left), right: at(*right) });
        }
        let ack = if flags.has(ACK) { SeqNum(isn[1 - end].wrapping_add(ack)) } else { SeqNum(0) };
        let segment =
            Segment { seq: SeqNum(isn[end].wrapping_add(seq)), ack, flags, len, options, ..Segment::default() };
        let ends = [format!("192.0.2.1:{port}"), "198.51.100.2:443".to_owned()].map(|end| end.parse().unwrap());
        let mut bytes = Vec::new();
        let endpoints = Endpoints { source: ends[end], destination: ends[1 - end] };
        encode_headers_for_offload(endpoints, if end == near { 64 } else { 57 }, &segment, len.into(), &mut bytes);
        self.ids[end] += 1;
        bytes[IP_ID].copy_from_slice(&self.ids[end].to_be_bytes());
        bytes[WINDOW].copy_from_slice(&window.unwrap_or(65_535).to_be_bytes());
        if let Some(original) = copy_of {
            bytes.clone_from(&self.packets[original].bytes);
        }
        let len = bytes.len() + usize::from(len);
        self.packets.push(Packet { us: micros(ms), bytes, len });
    }

    /// The next packet of the client gets the IP identification of its last one.
    pub(crate) fn renumber(&mut self) {
        self.ids[0] -= 1;
    }

    /// A segment of `len` bytes from `end`.
    pub(crate) fn data(&mut self, ms: f64, end: usize, seq: u32, len: u16) {
        self.pass(ms, end, Passing { flags: ACK, seq, ack: 1, len, ..Passing::default() });
    }

    /// An acknowledgment from `end`, which has sent nothing.
    pub(crate) fn ack(&mut self, ms: f64, end: usize, ack: u32) {
        self.pass(ms, end, Passing { flags: ACK, seq: 1, ack, ..Passing::default() });
    }

    /// The same with another window.
    pub(crate) fn window(&mut self, ms: f64, end: usize, ack: u32, window: u16) {
        self.pass(ms, end, Passing { flags: ACK, seq: 1, ack, window: Some(window), ..Passing::default() });
    }

    /// A router at the near end says that the packet with this number, from 0, is larger than `mtu` (RFC 1191).
    pub(crate) fn too_big(&mut self, ms: f64, number: usize, mtu: u16) {
        const QUOTED: usize = 28;
        let quoted = &self.packets[number].bytes[..QUOTED];
        let mut bytes = vec![0x45, 0, 0, 56, 0, 1, 0, 0, 64, 1, 0, 0, 203, 0, 113, 1];
        bytes.extend(&quoted[12..16]);
        bytes.extend([3, 4, 0, 0, 0, 0]);
        bytes.extend(mtu.to_be_bytes());
        bytes.extend(quoted);
        let len = bytes.len();
        self.packets.push(Packet { us: micros(ms), bytes, len });
    }

    /// The last packet has no IP identification.
    pub(crate) fn unmark(&mut self) {
        if let Some(last) = self.packets.last_mut() {
            last.bytes[IP_ID].fill(0);
        }
    }

    /// The next packet of `end` gets an IP identification that is this much higher than that of its last one.
    pub(crate) fn count_on(&mut self, end: usize, by: u16) {
        self.ids[end] = self.ids[end].wrapping_add(by - 1);
    }

    /// The handshake, at `ms`, over a round trip of 50 ms.
    pub(crate) fn open(&mut self, ms: f64) {
        let [first, second] = if self.headers.near == 0 { [50.0, 50.2] } else { [0.2, 50.2] };
        self.pass(ms, 0, Passing { flags: SYN, ..Passing::default() });
        self.pass(ms + first, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
        self.pass(ms + second, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    }

    pub(crate) fn opened(headers: Headers) -> Wire {
        let mut wire = Wire::new(headers);
        wire.open(0.0);
        wire
    }

    /// The packet with this number, from 1, is not captured.
    pub(crate) fn without(mut self, number: usize) -> Wire {
        self.packets.remove(number - 1);
        self
    }

    /// The number of packets.
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    /// A pcap file.
    pub(crate) fn file(&self) -> Vec<u8> {
        let mut file =
            [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, LINKTYPE_RAW.into()].map(u32::to_le_bytes).concat();
        let mut order: Vec<&Packet> = self.packets.iter().collect();
        order.sort_by_key(|packet| packet.us);
        for Packet { us, bytes, len } in order {
            let (seconds, micros) = (1_700_000_000 + us / 1_000_000, us % 1_000_000);
            let record = [seconds as u32, micros as u32, bytes.len() as u32, *len as u32];
            file.extend(record.map(u32::to_le_bytes).concat());
            file.extend(bytes);
        }
        file
    }

    pub(crate) fn analyze_at(&self, at: Option<CapturePoint>) -> (Analysis, Vec<Event>) {
        analyze_file(&self.file(), at)
    }

    pub(crate) fn analyze(&self) -> (Analysis, Vec<Event>) {
        self.analyze_at(None)
    }

    /// The direction from `end`.
    pub(crate) fn direction(&self, end: u8) -> Box<DirectionReport> {
        let (analysis, _) = self.analyze();
        analysis.directions.into_iter().find(|direction| direction.end == end).expect("data in this direction")
    }
}

#[track_caller]
pub(crate) fn incident(direction: &DirectionReport, what: Incident) -> IncidentReport {
    *direction.incident(what).unwrap_or_else(|| panic!("no {what:?}: {:?}", direction.incidents))
}

/// A time in whole milliseconds, as timestamps have it.
#[expect(clippy::cast_sign_loss, reason = "no packet passes before the capture begins")]
pub(crate) fn millis(ms: f64) -> u32 {
    ms as u32
}

#[expect(clippy::cast_sign_loss, reason = "no packet passes before the capture begins")]
fn micros(ms: f64) -> u64 {
    (ms * 1000.0).round() as u64
}

/// What a file says.
pub(crate) fn analyze_file(file: &[u8], at: Option<CapturePoint>) -> (Analysis, Vec<Event>) {
    let mut analyzer = Analyzer::new(Options { at, ..Options::default() });
    let mut events = Events::default();
    analyzer.read(file, &mut |event| events.add(event)).expect("a good capture");
    let analysis = analyzer.finish(&mut |event| events.add(event));
    let (events, _) = events.counted(&analysis);
    (analysis, events)
}
