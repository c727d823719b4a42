//! The packets of a capture, with the fields by which they are found in another capture.

use std::hash::{BuildHasher, Hasher};
use std::io::Read;

use foldhash::fast::FixedState;

use crate::packet::{Datagram, Endpoint, Flags, Reader, Segment};
use crate::{Damage, Error, Filter, Frames};

/// Later times, as a damaged capture may have, count as this one, in the year 2116: differences of two do not overflow.
const LATEST: u64 = 1 << 62;
/// Packets of one capture that are compared.
const MAX_PACKETS: usize = 6_000_000;
/// How many SACK blocks and timestamps of a segment, and bytes of another packet's payload, are compared: by how short the
/// packets of the captures were cut.
const COMPARED: [Compared; 3] = [
    Compared { blocks: true, timestamps: true, payload: 32 },
    Compared { blocks: false, timestamps: true, payload: 16 },
    Compared { blocks: false, timestamps: false, payload: 0 },
];
/// The most flows of a capture.
const MAX_FLOWS: usize = 1 << 20;
/// Segments shorter than this do not show the size of full ones.
const MIN_SEGMENT: u32 = 400;
/// The longest packet of a network: longer ones are split later or were combined by the network card (TSO, GRO).
pub(super) const MAX_ON_WIRE: u32 = 9_216;

/// A packet at a capture point, or a part of a TSO or GRO packet that crosses the network as one packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    /// What does not change on the way, as a number: for each of [`COMPARED`].
    pub(super) prints: [u64; COMPARED.len()],
    /// The flow: its place in [`Captured::flows`].
    pub(super) flow: u32,
    /// Bytes of the IP packet.
    pub(super) size: u32,
    /// Of these, payload of TCP.
    pub(super) len: u32,
    /// The identification of IPv4, or zero.
    pub(super) id: u16,
    pub(super) ttl: u8,
}

/// Which fields are compared.
#[derive(Clone, Copy, Debug)]
struct Compared {
    blocks: bool,
    timestamps: bool,
    payload: usize,
}

impl Compared {
    /// True if what was captured of this packet has all of these fields.
    fn has_all(self, datagram: &Datagram<'_>) -> bool {
        match &datagram.segment {
            Some(segment) if segment.is_cut => {
                !self.timestamps || segment.timestamps.is_some() && (!self.blocks || segment.hidden_sack == 0)
            }
            Some(_) => true,
            None => datagram.payload.len() >= datagram.len.min(self.payload),
        }
    }
}

/// The ends of a flow in one direction, and its protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Ends {
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
    pub(super) protocol: u8,
}

impl Ends {
    pub(super) fn reversed(self) -> Ends {
        Ends { source: self.destination, destination: self.source, ..self }
    }
}

/// A flow of a capture.
#[derive(Clone, Debug)]
pub(super) struct CapturedFlow {
    pub(super) ends: Ends,
    /// The payload of full segments of TCP: the one that most packets have.
    segment: u32,
    sizes: [(u32, u32); 4],
    /// The segment size that the SYN of the other direction announces.
    mss: Option<u16>,
}

/// A capture.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub(super) passages: Vec<Passage>,
    /// The segments of passages with data that may have to be split.
    segments: Vec<(u32, Segment)>,
    pub(super) flows: Vec<CapturedFlow>,
    numbers: hashbrown::HashMap<Ends, u32, FixedState>,
    pub(super) packets: u64,
    /// How short its packets were cut: the first of [`COMPARED`] for which all packets have the fields.
    pub(super) cut: usize,
    pub(super) damage: Option<Damage>,
    /// Packets beyond the limit, and without a time.
    pub(super) left_out: u64,
    pub(super) timeless: u64,
    /// From the first packet to the last.
    pub(super) span: Option<(u64, u64)>,
}

impl Captured {
    /// Reads a capture.
    pub(super) fn read(reader: impl Read, filter: &Filter) -> Result<Captured, Error> {
        let mut frames = Frames::new(reader)?;
        let (mut captured, mut reader, mut times) = (Captured::default(), Reader::default(), filter.times());
        while let Some(frame) = frames.next_frame() {
            captured.packets += 1;
            let Some(at) = frame.at else {
                captured.timeless += 1;
                continue;
            };
            if times.as_mut().is_some_and(|times| !times.contain(at)) {
                continue;
            }
            let at = at.min(LATEST);
            let (first, last) = captured.span.unwrap_or((at, at));
            captured.span = Some((first.min(at), last.max(at)));
            reader.datagrams(&frame, &mut |datagram| {
                if filter.has_ends(&[datagram.source, datagram.destination]) {
                    captured.add(at, datagram);
                }
            });
        }
        captured.damage = frames.damage().cloned();
        Ok(captured)
    }

    fn add(&mut self, at: u64, datagram: &Datagram<'_>) {
        let ends = Ends { source: datagram.source, destination: datagram.destination, protocol: datagram.protocol };
        let Some(flow) = self.flow(ends).filter(|_| self.passages.len() < MAX_PACKETS) else {
            self.left_out += 1;
            return;
        };
        let len = datagram.segment.as_ref().map_or(0, |segment| segment.len);
        if let Some(segment) = &datagram.segment {
            if segment.flags.has(Flags::SYN) {
                self.flows[flow as usize].mss = segment.mss;
            }
            self.flows[flow as usize].note(len);
            if len > 0 {
                self.segments.push((self.passages.len() as u32, *segment));
            }
        }
        while !COMPARED[self.cut].has_all(datagram) {
            self.cut += 1;
        }
        let prints_of_bytes = || COMPARED.map(|compared| print_of_bytes(datagram, compared));
        self.passages.push(Passage {
            at,
            prints: datagram.segment.as_ref().map_or_else(prints_of_bytes, |segment| prints(segment, 0, len)),
            flow,
            size: datagram.size as u32,
            len,
            id: datagram.ip_id.unwrap_or(0),
            ttl: datagram.ttl,
        });
    }

    fn flow(&mut self, ends: Ends) -> Option<u32> {
        if let Some(known) = self.numbers.get(&ends) {
            return Some(*known);
        }
        if self.flows.len() == MAX_FLOWS {
            return None;
        }
        let number = self.flows.len() as u32;
        self.numbers.insert(ends, number);
        self.flows.push(CapturedFlow { ends, segment: 0, sizes: [(0, 0); 4], mss: None });
        Some(number)
    }

    /// The number of a flow.
    pub(super) fn number(&self, ends: Ends) -> Option<u32> {
        self.numbers.get(&ends).copied()
    }
}

impl CapturedFlow {
    /// Counts a size, so that the most frequent one remains (the algorithm of Misra and Gries).
    fn note(&mut self, len: u32) {
        if len < MIN_SEGMENT {
            return;
        }
        if let Some(known) = self.sizes.iter_mut().find(|(size, count)| *size == len && *count > 0) {
            known.1 += 1;
        } else if let Some(free) = self.sizes.iter_mut().find(|(_, count)| *count == 0) {
            *free = (len, 1);
        } else {
            self.sizes.iter_mut().for_each(|(_, count)| *count -= 1);
        }
        self.segment = self.sizes.iter().max_by_key(|(_, count)| *count).map_or(0, |(size, _)| *size);
    }
}

/// Splits TSO and GRO packets into the packets that cross the network, so that both captures have the same ones. Full segments
/// have the smaller of the most frequent sizes of the two captures.
pub(super) fn split(captures: &mut [Captured; 2]) {
    let [a, b] = &*captures;
    let sizes = |captured: &Captured, other: &Captured| -> Vec<u32> {
        let of = |flow: &CapturedFlow| {
            let seen = other.number(flow.ends).map_or(0, |number| other.flows[number as usize].segment);
            let reverse = captured.number(flow.ends.reversed());
            let announced = reverse.and_then(|number| captured.flows[number as usize].mss).map(u32::from);
            let both = [flow.segment, seen].into_iter().filter(|size| *size > 0).min();
            both.map_or(0, |size| size.min(announced.unwrap_or(u32::MAX)))
        };
        captured.flows.iter().map(of).collect()
    };
    let sizes = [sizes(a, b), sizes(b, a)];
    for (captured, sizes) in captures.iter_mut().zip(sizes) {
        captured.split(&sizes);
    }
}

impl Captured {
    fn split(&mut self, sizes: &[u32]) {
        let segments = std::mem::take(&mut self.segments);
        let is_long = |passage: &Passage| (1..passage.len).contains(&sizes[passage.flow as usize]);
        if !self.passages.iter().any(is_long) {
            return;
        }
        let mut segments = segments.into_iter().peekable();
        let mut whole = Vec::with_capacity(self.passages.len());
        for (passage, number) in std::mem::take(&mut self.passages).into_iter().zip(0..) {
            let segment = segments.next_if(|(of, _)| *of == number);
            let (Some((_, segment)), true) = (segment, is_long(&passage)) else {
                whole.push(passage);
                continue;
            };
            let full = sizes[passage.flow as usize];
            for (from, i) in (0..passage.len).step_by(full as usize).zip(0..) {
                let len = full.min(passage.len - from);
                let id = if passage.id == 0 { 0 } else { passage.id.wrapping_add(i) };
                let size = passage.size - passage.len + len;
                whole.push(Passage { prints: prints(&segment, from, len), size, len, id, ..passage });
            }
        }
        self.passages = whole;
    }
}

fn hasher() -> impl Hasher {
    FixedState::with_seed(0).build_hasher()
}

/// The fields that do not change on the way, of `len` bytes of a segment's data from its byte `from` on, or of a segment without
/// data. With TSO, some flags are set only in the last segment.
fn prints(segment: &Segment, from: u32, len: u32) -> [u64; COMPARED.len()] {
    COMPARED.map(|compared| print(segment, from, len, compared))
}

fn print(segment: &Segment, from: u32, len: u32, compared: Compared) -> u64 {
    let mut hasher = hasher();
    hasher.write_u8(6);
    hasher.write_u32(segment.seq.wrapping_add(from));
    hasher.write_u32(len);
    let (value, echo) = segment.timestamps.filter(|_| compared.timestamps).unwrap_or_default();
    hasher.write_u64(u64::from(value) << 32 | u64::from(echo));
    if len == 0 {
        hasher.write_u32(segment.ack);
        hasher.write_u8(segment.flags.0);
        hasher.write_u16(segment.window);
        for (left, right) in segment.blocks().iter().filter(|_| compared.blocks) {
            hasher.write_u64(u64::from(*left) << 32 | u64::from(*right));
        }
    }
    hasher.finish()
}

/// The same of another packet: its length, and the beginning of what IP or UDP carries.
fn print_of_bytes(datagram: &Datagram<'_>, compared: Compared) -> u64 {
    let mut hasher = hasher();
    hasher.write_u8(datagram.protocol);
    hasher.write_usize(datagram.len);
    hasher.write(&datagram.payload[..datagram.payload.len().min(compared.payload)]);
    hasher.finish()
}
