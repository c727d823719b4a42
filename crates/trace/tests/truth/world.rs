//! Transfers between two simulated ends, captured at both and in between.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use reknit_path::{Direction, Packet, Phases, Pipe, Profile, SegmentTag, flow_hash};
use reknit_sim::tcp_config;
use reknit_tcp::{Connection, Identity, Output, Segment, SeqNum};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Endpoints, encode_headers_for_offload};

use super::log::{Log, MIDDLE, RECEIVER, SENDER, Sent};

const IP_HEADER: u64 = 20;
const HOP_LIMIT: u8 = 64;

/// A transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer<'a> {
    /// The path: one part, or two with a capture point between them.
    pub(crate) parts: &'a [&'a str],
    pub(crate) variant: &'a str,
    /// It ends when this many segments have arrived and are acknowledged, or after this time.
    pub(crate) segments: u64,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    /// Whether IP identifications count the packets, as those of Linux do.
    pub(crate) has_ip_ids: bool,
}

/// What was captured, as pcap files with the headers only, and what happened.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) files: [Vec<u8>; 3],
    pub(crate) log: Log,
}

#[derive(Clone, Copy, Debug)]
struct Datagram {
    segment: Segment,
    from: usize,
    ip_id: u16,
    /// Its number in the log, if it has data.
    serial: Option<usize>,
    label: SegmentTag,
}

impl Packet for Datagram {
    fn size(&self) -> Bytes {
        Bytes(IP_HEADER + self.segment.header_len() as u64 + u64::from(self.segment.len))
    }

    fn copy(&self) -> Datagram {
        *self
    }

    fn label(&self) -> Option<SegmentTag> {
        Some(self.label)
    }

    fn flow(&self) -> u32 {
        let Endpoints { source, destination } = endpoints(self.from);
        flow_hash(source, destination)
    }
}

fn endpoints(from: usize) -> Endpoints {
    let ends = ["10.0.0.1:40000", "10.0.0.2:5001"].map(|end| end.parse().expect("an address"));
    Endpoints { source: ends[from], destination: ends[1 - from] }
}

struct World {
    now: Instant,
    ends: [Connection; 2],
    deadlines: [Instant; 2],
    /// The parts of the path from the sender, in the direction of data, and those in the other direction.
    pipes: [Vec<Pipe<Datagram>>; 2],
    ip_ids: [u16; 2],
    has_ip_ids: bool,
    captured: Captured,
    /// How often each segment has been sent.
    numbers: BTreeMap<u64, u16>,
    /// Segments that the receiver has accepted.
    arrived: BTreeSet<u64>,
    packet: Vec<u8>,
}

/// Runs a transfer. The options of both ends are those of the path's first part.
pub(crate) fn run(transfer: &Transfer<'_>) -> Captured {
    let load = |part: &&str| Profile::load(part, &[]).expect("a valid path");
    run_over(&transfer.parts.iter().map(load).collect::<Vec<_>>(), transfer)
}

/// Runs a transfer over other paths than its own.
pub(crate) fn run_over(profiles: &[Profile], transfer: &Transfer<'_>) -> Captured {
    let tcp = tcp_config(&profiles[0]).expect("valid options");
    let composition = (reknit_variants::find(transfer.variant).expect("a variant").compose)();
    let config = Arc::new(composition.configure(tcp));
    let all = transfer.segments * u64::from(config.mss);
    let pipes = [Direction::Forward, Direction::Reverse].map(|direction| {
        let pipe =
            |(i, profile): (u64, &Profile)| Pipe::new(profile, direction, transfer.seed + 1000 * i, Phases::Drawn);
        (0..).zip(profiles).map(pipe).collect()
    });
    let identity = |n: u32| Identity { isn: SeqNum(n << 20), timestamp_offset: n << 16 };
    let now = Instant::ZERO;
    let mut sender = Connection::connect(now, config.clone(), composition.build(), identity(transfer.seed as u32));
    sender.write(Bytes(all));
    let mut receiver = Connection::listen(now, config, composition.build(), identity(7));
    receiver.read_at_once();
    let mut world = World {
        now,
        ends: [sender, receiver],
        deadlines: [Instant::NEVER; 2],
        pipes,
        ip_ids: [0; 2],
        has_ip_ids: transfer.has_ip_ids,
        captured: Captured { files: [(); 3].map(|()| pcap_header()), log: Log::default() },
        numbers: BTreeMap::new(),
        arrived: BTreeSet::new(),
        packet: Vec::new(),
    };
    world.collect(SENDER);
    let end = now + Duration::from_secs(transfer.seconds);
    while world.ends[SENDER].acknowledged() < all && world.step(end) {}
    world.captured
}

/// A file with microseconds and raw IP packets.
fn pcap_header() -> Vec<u8> {
    [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101].map(u32::to_le_bytes).concat()
}

impl World {
    /// Processes what happens next; false if that is after `end`.
    fn step(&mut self, end: Instant) -> bool {
        let pipes = self.pipes.iter().flatten().map(Pipe::next_at);
        let next = pipes.chain(self.deadlines).min().unwrap_or(Instant::NEVER);
        if next > end {
            return false;
        }
        self.now = next;
        for end in 0..2 {
            if self.deadlines[end] <= next {
                self.ends[end].on_timer(next);
                self.collect(end);
            }
        }
        for direction in 0..2 {
            for part in 0..self.pipes[direction].len() {
                while let Some((_, datagram)) = self.pipes[direction][part].pop(next) {
                    self.arrive(direction, part, &datagram);
                }
                self.collect_lost(direction, part);
            }
        }
        true
    }

    /// Sends what an end wants to send.
    fn collect(&mut self, end: usize) {
        self.deadlines[end] = loop {
            match self.ends[end].poll(self.now) {
                Output::Send(segment) => self.send(end, &segment),
                Output::WakeAt(at) => break at,
                Output::Idle => break Instant::NEVER,
            }
        };
    }

    fn send(&mut self, from: usize, segment: &Segment) {
        let record = self.ends[from].outstanding(segment.seq).filter(|_| from == SENDER && segment.len > 0);
        let mut label = SegmentTag { flow: 0, segment: 0, transmission: 0 };
        let serial = record.map(|(id, record)| {
            label = SegmentTag { segment: id.0 + 1, transmission: record.transmissions, ..label };
            let log = &mut self.captured.log;
            // Not the record's number, which may already count a retransmission that is sent next.
            let number = self.numbers.entry(id.0).or_insert(0);
            *number += 1;
            let (number, cause) = (*number, Some(record.cause));
            log.sent.push(Sent { segment: id.0, number, cause, is_under_way: true, ..Sent::default() });
            log.sent.len() - 1
        });
        let ip_id = self.ip_ids[from];
        self.ip_ids[from] = ip_id.wrapping_add(u16::from(self.has_ip_ids));
        let datagram = Datagram { segment: *segment, from, ip_id, serial, label };
        self.see([SENDER, RECEIVER][from], &datagram);
        let parts = self.pipes[from].len();
        let part = if from == SENDER { 0 } else { parts - 1 };
        self.pipes[from][part].push(self.now, datagram);
        self.collect_lost(from, part);
    }

    /// A packet comes out of a part of the path.
    fn arrive(&mut self, direction: usize, part: usize, datagram: &Datagram) {
        let next = if direction == 0 { part + 1 } else { part.wrapping_sub(1) };
        if next < self.pipes[direction].len() {
            self.see(MIDDLE, datagram);
            self.pipes[direction][next].push(self.now, *datagram);
            self.collect_lost(direction, next);
            return;
        }
        let to = 1 - direction;
        self.see([SENDER, RECEIVER][to], datagram);
        let discards = |end: &Connection| end.receive_stats().paws_discards;
        let before = discards(&self.ends[to]);
        self.ends[to].on_segment(self.now, &datagram.segment);
        if let Some(serial) = datagram.serial {
            let sent = &mut self.captured.log.sent[serial];
            if discards(&self.ends[to]) == before {
                self.arrived.insert(sent.segment);
            }
            sent.is_discarded |= !self.arrived.contains(&sent.segment);
        }
        self.collect(to);
    }

    fn collect_lost(&mut self, direction: usize, part: usize) {
        while let Some(lost) = self.pipes[direction][part].pop_lost() {
            if let Some(serial) = lost.packet.serial {
                self.captured.log.sent[serial].is_under_way = false;
            }
        }
    }

    /// Captures a packet.
    fn see(&mut self, tap: usize, datagram: &Datagram) {
        self.captured.log.pass(tap, datagram.serial);
        let segment = &datagram.segment;
        encode_headers_for_offload(endpoints(datagram.from), HOP_LIMIT, segment, segment.len.into(), &mut self.packet);
        self.packet[4..6].copy_from_slice(&datagram.ip_id.to_be_bytes());
        let micros = self.now.as_nanos() / 1000;
        let (captured, len) = (self.packet.len() as u32, self.packet.len() as u32 + u32::from(segment.len));
        let record = [(micros / 1_000_000) as u32, (micros % 1_000_000) as u32, captured, len];
        self.captured.files[tap].extend(record.map(u32::to_le_bytes).concat());
        self.captured.files[tap].extend(&self.packet);
    }
}
