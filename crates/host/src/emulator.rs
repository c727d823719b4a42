//! Emulates a path between two ends in real time.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::{DropRange, Notice, Packet, Pipe, flow_hash};
use reknit_tcp::SeqNum;
use reknit_tcp::experiment::Dropped;
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Capture, DecodeError, Decoded, Interface, endpoints, set_dropped};

use crate::clock::{Clock, TimeSource};
use crate::observer::Observer;
use crate::punctuality::Lateness;

/// The longest sleep, so that a request to stop is noticed.
const NAP: Duration = Duration::from_millis(50);
/// How long the last packets may take after both ends have finished.
const FAREWELL: Duration = Duration::from_secs(2);
/// The most packets taken from one device before the other side gets its turn.
const BATCH: usize = 64;

/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: usize = 40;

/// A packet on the emulated path.
#[derive(Debug)]
pub(crate) struct Wire {
    bytes: Vec<u8>,
    copy: bool,
}

impl Wire {
    pub(crate) fn new(bytes: Vec<u8>) -> Wire {
        Wire { bytes, copy: false }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if the path has made it.
    pub(crate) fn is_copy(&self) -> bool {
        self.copy
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Packet for Wire {
    fn size(&self) -> Bytes {
        Bytes(self.bytes.len() as u64)
    }

    fn copy(&self) -> Wire {
        Wire { bytes: self.bytes.clone(), copy: true }
    }

    fn flow(&self) -> u32 {
        endpoints(&self.bytes).map_or(0, |endpoints| flow_hash(endpoints.source, endpoints.destination))
    }

    /// The IP header is not corrupted: between the two ends that would not matter, but a real router would drop the
    /// packet.
    fn flip(&mut self, bit: u64) -> bool {
        let ip_header = match self.bytes.first() {
            Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
            _ => IPV6_HEADER,
        };
        if let Some(covered) = self.bytes.get_mut(ip_header..).filter(|bytes| !bytes.is_empty()) {
            let bit = bit % (covered.len() as u64 * 8);
            covered[bit as usize / 8] ^= 1 << (bit % 8);
        }
        true
    }

    fn notice(&self) -> Option<Notice> {
        let Decoded { endpoints, segment, .. } = Decoded::read(&self.bytes).ok()?;
        let dropped = segment.options.experiment.dropped.filter(|_| segment.len > 0)?;
        let range = DropRange { lowest: dropped.lowest.0, highest: dropped.highest.0 };
        Some(Notice {
            // A pipe carries one direction between two hosts, so the ports identify its flows.
            flow: u64::from(endpoints.source.port()) << 16 | u64::from(endpoints.destination.port()),
            number: segment.seq.0,
            dropped: (!dropped.is_empty()).then_some(range),
        })
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        let dropped = Dropped { lowest: SeqNum(dropped.lowest), highest: SeqNum(dropped.highest) };
        set_dropped(&mut self.bytes, dropped);
    }
}

/// An end of the path.
pub(crate) trait Endpoint {
    /// Writes the next packet that it sends into `packet`; false if there is none now.
    fn take(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool>;

    /// A packet arrives; `decoded` is none if it is corrupted.
    fn put(&mut self, now: Instant, bytes: &[u8], decoded: Option<&Decoded<'_>>) -> io::Result<()>;

    /// When it next has something to do without a packet.
    fn deadline(&self) -> Instant;

    /// What becomes readable when it has a packet to send.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// True if it neither sends nor expects anything more.
    fn is_finished(&self) -> bool;

    /// True if it has failed.
    fn has_failed(&self) -> bool;
}

/// The capture file of one side.
pub(crate) struct Tap {
    capture: Capture<BufWriter<File>>,
    interface: Interface,
    time_of_day: Instant,
}

impl Tap {
    pub(crate) fn new(path: &std::path::Path, side: &str, clock: Clock) -> io::Result<Tap> {
        let mut capture = Capture::new(BufWriter::new(File::create(path)?))?;
        let interface = capture.interface(side)?;
        Ok(Tap { capture, interface, time_of_day: clock.time_of_day() })
    }

    pub(crate) fn see(&mut self, now: Instant, packet: &[u8]) -> io::Result<()> {
        let at = self.time_of_day + now.since(Instant::ZERO);
        self.capture.packet(self.interface, at, packet, packet.len())
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.capture.finish()
    }
}

/// One side: its end, the pipe for what it sends, and its observers.
pub(crate) struct Side<E> {
    pub(crate) end: E,
    /// The direction to the other side.
    pub(crate) pipe: Pipe<Wire>,
    pub(crate) tap: Option<Tap>,
    /// Observes the data that this side sends.
    pub(crate) observer: Observer,
}

/// Why the emulation stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// Both ends are finished and the path is empty.
    Done,
    /// An end has failed.
    Failed,
    /// The time limit was reached first.
    TimeIsUp,
    /// It was cancelled.
    Cancelled,
}

/// Two sides and the path between them.
pub(crate) struct Emulator<'a, C, E> {
    pub(crate) clock: C,
    pub(crate) sides: [Side<E>; 2],
    pub(crate) cancel: &'a AtomicBool,
    /// How late packets left the path, in both directions.
    pub(crate) lateness: Lateness,
}

impl<C: TimeSource, E: Endpoint> Emulator<'_, C, E> {
    /// Forwards packets until the ends are finished, or until `limit`.
    pub(crate) fn run(&mut self, limit: Instant) -> io::Result<Stopped> {
        let mut buffer = Vec::new();
        let mut farewell = Instant::NEVER;
        loop {
            let now = self.clock.now();
            let mut busy = false;
            for side in 0..2 {
                busy |= self.collect(side, now, &mut buffer)?;
                busy |= self.deliver(side, now)?;
            }
            if self.sides.iter().any(|side| side.end.has_failed()) {
                return Ok(Stopped::Failed);
            }
            if self.sides.iter().all(|side| side.end.is_finished()) {
                farewell = farewell.min(now + FAREWELL);
                if now >= farewell || self.sides.iter().all(|side| side.pipe.is_empty()) {
                    return Ok(Stopped::Done);
                }
            }
            if now >= limit {
                return Ok(Stopped::TimeIsUp);
            }
            if self.cancel.load(Ordering::Relaxed) {
                return Ok(Stopped::Cancelled);
            }
            if !busy {
                self.sleep(now)?;
            }
        }
    }

    /// Takes the packets that a side wants to send. True if there were any.
    fn collect(&mut self, side: usize, now: Instant, buffer: &mut Vec<u8>) -> io::Result<bool> {
        for taken in 0..BATCH {
            if !self.sides[side].end.take(now, buffer)? {
                return Ok(taken > 0);
            }
            self.send(side, now, buffer)?;
        }
        Ok(true)
    }

    fn send(&mut self, from: usize, now: Instant, packet: &[u8]) -> io::Result<()> {
        let side = &mut self.sides[from];
        match Decoded::read(packet) {
            Ok(decoded) => side.observer.on_sent(&decoded),
            // Other traffic of the kernel, such as router solicitations, does not belong on the path.
            Err(DecodeError::NotTcp) => return Ok(()),
            Err(_) => {}
        }
        if let Some(tap) = &mut side.tap {
            tap.see(now, packet)?;
        }
        side.pipe.push(now, Wire::new(packet.to_vec()));
        while side.pipe.pop_lost().is_some() {}
        Ok(())
    }

    /// Delivers the packets that have come through from `from` to the other side. True if there were any.
    fn deliver(&mut self, from: usize, now: Instant) -> io::Result<bool> {
        let [first, second] = &mut self.sides;
        let (from, to) = if from == 0 { (first, second) } else { (second, first) };
        let mut busy = false;
        while let Some((due, wire)) = from.pipe.pop(now) {
            busy = true;
            self.lateness.note(due, self.clock.now());
            if let Some(tap) = &mut to.tap {
                tap.see(now, &wire.bytes)?;
            }
            let decoded = Decoded::read(&wire.bytes).ok();
            if let Some(decoded) = &decoded {
                from.observer.on_delivered(decoded, wire.copy);
            }
            to.end.put(now, &wire.bytes, decoded.as_ref())?;
        }
        while from.pipe.pop_lost().is_some() {}
        Ok(busy)
    }

    /// Sleeps until the next event.
    fn sleep(&self, now: Instant) -> io::Result<()> {
        let wake = |wake: Instant, side: &Side<E>| wake.min(side.pipe.next_at()).min(side.end.deadline());
        let until = self.sides.iter().fold(now + NAP, wake);
        let readable: Vec<BorrowedFd<'_>> = self.sides.iter().filter_map(|side| side.end.readable()).collect();
        self.clock.wait(until, &readable)
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Segment;
    use reknit_tcp::experiment::Experiment;
    use reknit_tcp::segment::Options;
    use reknit_wire::{Endpoints, encode};

    use super::*;

    fn wire(len: u16, dropped: Option<Dropped>) -> Wire {
        let experiment = Experiment { dropped, ..Experiment::default() };
        let options = Options { experiment, ..Options::default() };
        let segment = Segment { seq: SeqNum(77), len, options, ..Segment::default() };
        let endpoints = Endpoints { source: "10.0.0.1:2".parse().unwrap(), destination: "10.0.0.2:3".parse().unwrap() };
        let mut bytes = Vec::new();
        encode(endpoints, &segment, &vec![0; usize::from(len)], &mut bytes);
        Wire { bytes, copy: false }
    }

    #[test]
    fn routers_write_into_real_packets() {
        let mut packet = wire(100, Some(Dropped::NOTHING));
        let notice = Notice { flow: 2 << 16 | 3, number: 77, dropped: None };
        assert_eq!(packet.notice(), Some(notice));
        let dropped = DropRange { lowest: u32::MAX, highest: 5 };
        packet.set_dropped(dropped);
        assert_eq!(packet.notice(), Some(Notice { dropped: Some(dropped), ..notice }));
    }

    #[test]
    fn a_flipped_bit_is_detected_at_any_position() {
        let whole = wire(20, None);
        let bits = 8 * (whole.bytes.len() as u64 - 20);
        for bit in 0..bits {
            let mut damaged = whole.copy();
            assert!(damaged.flip(bit + 3 * bits));
            assert!(Decoded::read(&damaged.bytes).is_err(), "bit {bit}");
            assert_eq!(damaged.bytes[..20], whole.bytes[..20]);
            damaged.flip(bit);
            assert_eq!(damaged.bytes, whole.bytes);
        }
    }

    #[test]
    fn a_flow_is_identified_by_addresses_and_ports() {
        let [source, destination] = ["10.0.0.1:2".parse().unwrap(), "10.0.0.2:3".parse().unwrap()];
        assert_eq!(wire(100, None).flow(), flow_hash(source, destination));
        assert_eq!(wire(0, None).flow(), wire(100, None).flow());
        assert_ne!(wire(0, None).flow(), flow_hash(destination, source));
    }

    #[test]
    fn packets_without_data_or_space_are_not_changed() {
        assert_eq!(wire(0, Some(Dropped::NOTHING)).notice(), None);
        assert_eq!(wire(100, None).notice(), None);
    }
}
