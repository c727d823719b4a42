//! Tracers, which see every packet that is sent, delivered or lost.

use std::net::{Ipv4Addr, SocketAddr};

use reknit_path::resequencer::TcpHeader;
use reknit_path::{DropNotice, DropRange, Packet, SegmentTag, flow_hash};
use reknit_tcp::experiment::Dropped;
use reknit_tcp::scoreboard::SendReason;
use reknit_tcp::seams::ShownName;
use reknit_tcp::segment::Flags;
use reknit_tcp::{Connection, Segment, SeqNum};
use reknit_units::{Bytes, Instant};

use crate::roles::Role;
use crate::transactions::Transaction;

/// Bytes of an IPv4 header without options.
const IP_HEADER: u64 = 20;

/// A transmission of a data segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmission {
    /// The number of the segment in the order of first transmission by its end, from 1. A FIN without data also counts.
    pub segment: u32,
    /// The number of the transmission, from 1.
    pub number: u16,
    /// The cause.
    pub cause: SendReason,
}

/// A segment on the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The segment.
    pub segment: Segment,
    /// The connection.
    pub flow: u32,
    /// The end that sent it.
    pub from: Role,
    /// True for a copy that the network made.
    pub copy: bool,
    /// The number of packets sent in the run before it. Copies have the number of the original.
    pub serial: u64,
    /// The data that it carries, if any; only if a tracer that watches, or a stage of the path, needs it.
    pub transmission: Option<Transmission>,
    /// The slot of the connection in the simulation, while the connection exists.
    pub(crate) slot: u32,
}

/// Two cache lines: with many flows, reading packets in flight takes most of the time.
const _: () = assert!(size_of::<Datagram>() <= 128);

impl Datagram {
    /// Source and destination. Flows differ in the address and port of the end that sends data.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        addresses(self.flow, self.from)
    }
}

/// Source and destination of what `from` sends in this flow.
pub(crate) fn addresses(flow: u32, from: Role) -> [SocketAddr; 2] {
    let port = 40_000 + (flow % 20_000) as u16;
    let sender = SocketAddr::from((Ipv4Addr::new(10, 0, (flow / 20_000) as u8, 1), port));
    let receiver = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), 5001));
    match from {
        Role::Sender => [sender, receiver],
        Role::Receiver => [receiver, sender],
    }
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes(IP_HEADER + self.segment.header_len() as u64 + u64::from(self.segment.len))
    }

    fn copy(&self) -> Datagram {
        Datagram { copy: true, ..*self }
    }

    fn label(&self) -> Option<SegmentTag> {
        let (segment, transmission) = self.transmission.map_or((0, 0), |t| (u64::from(t.segment), t.number));
        Some(SegmentTag { flow: self.flow, segment, transmission })
    }

    fn flow(&self) -> u32 {
        let [source, destination] = self.addresses();
        flow_hash(source, destination)
    }

    fn tcp(&self) -> Option<TcpHeader> {
        Some(tcp_header(&self.segment))
    }

    fn notice(&self) -> Option<DropNotice> {
        let dropped = self.segment.options.experiment.dropped.filter(|_| self.segment.len > 0)?;
        let range = DropRange { lowest: dropped.lowest.0, highest: dropped.highest.0 };
        Some(DropNotice {
            flow: u64::from(self.flow) << 1 | self.from as u64,
            number: self.segment.seq.0,
            dropped: (!dropped.is_empty()).then_some(range),
        })
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        let dropped = Dropped { lowest: SeqNum(dropped.lowest), highest: SeqNum(dropped.highest) };
        self.segment.options.experiment.dropped = Some(dropped);
    }
}

/// What a gateway reads of a segment.
fn tcp_header(segment: &Segment) -> TcpHeader {
    TcpHeader {
        seq: segment.seq.0,
        len: segment.seq_len(),
        timestamp: segment.options.timestamps.map(|timestamps| timestamps.val),
        opens: segment.flags.has(Flags::SYN),
        resets: segment.flags.has(Flags::RST),
    }
}

/// What happened to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// An end sent it.
    Sent,
    /// The other end received it.
    Delivered,
    /// The path lost it.
    Lost,
}

/// One end of a connection after it has processed an event and sent its response.
#[derive(Clone, Copy, Debug)]
pub struct EndSnapshot<'a> {
    /// The connection.
    pub flow: u32,
    /// The flow of the scenario that it belongs to.
    pub client: u32,
    /// The end.
    pub end: Role,
    /// The connection's state at that end.
    pub connection: &'a Connection,
}

impl EndSnapshot<'_> {
    /// Calls `show` for each number that plug-ins at this end show: those of the sender's seams at the sender of data, those
    /// of the receiver's seams at its receiver.
    pub fn show(&self, show: &mut dyn FnMut(ShownName, f64)) {
        self.end.show(self.connection, show);
    }
}

/// Is called for every packet, and for other events if it wants to.
pub trait Tracer {
    /// True if it also needs to see the ends, and what packets carry. This costs time.
    const WATCHES: bool = false;

    /// Something happened to `datagram` at `now`.
    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram);

    /// A transaction has ended.
    fn on_transaction(&mut self, _transaction: &Transaction) {}

    /// An end has processed an event. Called only for tracers that watch.
    fn on_snapshot(&mut self, _now: Instant, _look: &EndSnapshot<'_>) {}

    /// The warm-up is over: counts restart.
    fn on_warm(&mut self, _now: Instant) {}

    /// The run is over.
    fn on_over(&mut self, _end: Instant) {}
}

/// Ignores everything, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTracer;

impl Tracer for NoTracer {
    fn on_packet(&mut self, _now: Instant, _event: TraceEvent, _datagram: &Datagram) {}
}

/// Computes one number for a run: equal runs have equal hashes (FNV-1a, 64 bits).
#[derive(Clone, Copy, Debug)]
pub struct HashTracer {
    hash: u64,
    events: u64,
}

impl Default for HashTracer {
    fn default() -> HashTracer {
        HashTracer { hash: 0xcbf2_9ce4_8422_2325, events: 0 }
    }
}

impl HashTracer {
    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The number of events in the hash.
    pub fn events(&self) -> u64 {
        self.events
    }

    fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl Tracer for HashTracer {
    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let segment = &datagram.segment;
        self.events += 1;
        self.add(now.as_nanos());
        self.add(event as u64);
        self.add(u64::from(datagram.flow) << 2 | (datagram.from as u64) << 1 | u64::from(datagram.copy));
        self.add(u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0));
        self.add(u64::from(segment.window) << 32 | u64::from(segment.len) << 16 | u64::from(segment.flags.bits()));
        if let Some(timestamps) = segment.options.timestamps {
            self.add(u64::from(timestamps.val) << 32 | u64::from(timestamps.ecr));
        }
        for block in segment.options.sack.as_slice() {
            self.add(u64::from(block.left.0) << 32 | u64::from(block.right.0));
        }
    }
}
