//! A path in real time between two ends.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use reknit_path::{DropRange, Notice, Packet, Pipe};
use reknit_tcp::SeqNum;
use reknit_tcp::experiment::Dropped;
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Capture, DecodeError, Decoded, Interface, set_dropped};
use tun_rs::SyncDevice;

use crate::clock::Clock;
use crate::engine_end::EngineEnd;
use crate::kernel_end::KernelEnd;
use crate::namespace::MTU;
use crate::observer::Observer;

/// Longest sleep, so that a request to stop is heard.
const NAP: Duration = Duration::from_millis(50);
/// After the ends are done, how long the last packets may take.
const FAREWELL: Duration = Duration::from_secs(2);
/// Packets taken from a device before the other side gets its turn.
const BATCH: usize = 64;

/// A packet on the emulated path.
#[derive(Debug)]
pub(crate) struct Wire {
    octets: Vec<u8>,
    copy: bool,
}

impl Packet for Wire {
    fn size(&self) -> Bytes {
        Bytes(self.octets.len() as u64)
    }

    fn copy(&self) -> Wire {
        Wire { octets: self.octets.clone(), copy: true }
    }

    fn notice(&self) -> Option<Notice> {
        let Decoded { endpoints, segment, .. } = Decoded::read(&self.octets).ok()?;
        let dropped = segment.options.experiment.dropped.filter(|_| segment.len > 0)?;
        let range = DropRange { lowest: dropped.lowest.0, highest: dropped.highest.0 };
        Some(Notice {
            // One pipe carries one direction between two hosts: the ports tell its flows apart.
            flow: u64::from(endpoints.source.port()) << 16 | u64::from(endpoints.destination.port()),
            number: segment.seq.0,
            dropped: (!dropped.is_empty()).then_some(range),
        })
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        let dropped = Dropped { lowest: SeqNum(dropped.lowest), highest: SeqNum(dropped.highest) };
        set_dropped(&mut self.octets, dropped);
    }
}

/// One end of the path.
pub(crate) enum End {
    /// A kernel, behind its TUN device.
    Kernel(KernelEnd),
    /// Our engine.
    Engine(Box<EngineEnd>),
}

impl End {
    pub(crate) fn is_finished(&self) -> bool {
        match self {
            End::Kernel(end) => end.is_finished(),
            End::Engine(end) => end.is_finished(),
        }
    }

    fn has_failed(&self) -> bool {
        match self {
            End::Kernel(end) => end.has_failed(),
            End::Engine(end) => end.failure().is_some(),
        }
    }
}

/// A capture file of one side.
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

    fn see(&mut self, now: Instant, packet: &[u8]) -> io::Result<()> {
        let at = self.time_of_day + now.since(Instant::ZERO);
        self.capture.packet(self.interface, at, packet, packet.len())
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.capture.finish()
    }
}

/// One side: its end, what that sends into, who looks on.
pub(crate) struct Side {
    pub(crate) end: End,
    /// The way to the other side.
    pub(crate) pipe: Pipe<Wire>,
    pub(crate) tap: Option<Tap>,
    /// Watches the data that this side sends.
    pub(crate) observer: Observer,
}

/// Why the emulation stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// Both ends are finished and the path is empty.
    Done,
    /// An end has failed.
    Failed,
    /// The limit came first.
    TimeIsUp,
    /// Someone asked for it.
    Cancelled,
}

/// Two sides and the path between them.
pub(crate) struct Emulator<'a> {
    pub(crate) clock: Clock,
    pub(crate) sides: [Side; 2],
    pub(crate) cancel: &'a AtomicBool,
}

impl Emulator<'_> {
    /// Moves packets until the ends are done, or until `limit`.
    pub(crate) fn run(&mut self, limit: Instant) -> io::Result<Stopped> {
        let mut buffer = vec![0; usize::from(MTU) + 64];
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

    /// Takes what a side wants to send. True if there was something.
    fn collect(&mut self, side: usize, now: Instant, buffer: &mut Vec<u8>) -> io::Result<bool> {
        for taken in 0..BATCH {
            match &mut self.sides[side].end {
                End::Kernel(kernel) => {
                    buffer.resize(usize::from(MTU) + 64, 0);
                    match kernel.device.recv(buffer) {
                        Ok(n) => buffer.truncate(n),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken > 0),
                        Err(error) => return Err(error),
                    }
                }
                End::Engine(end) => {
                    if !end.poll(now, buffer)? {
                        return Ok(taken > 0);
                    }
                }
            }
            self.send(side, now, buffer)?;
        }
        Ok(true)
    }

    fn send(&mut self, from: usize, now: Instant, packet: &[u8]) -> io::Result<()> {
        let side = &mut self.sides[from];
        match Decoded::read(packet) {
            Ok(decoded) => side.observer.on_sent(&decoded),
            // Housekeeping of the kernel (router solicitations and the like) has no business on the path.
            Err(DecodeError::NotTcp) => return Ok(()),
            Err(_) => {}
        }
        if let Some(tap) = &mut side.tap {
            tap.see(now, packet)?;
        }
        side.pipe.push(now, Wire { octets: packet.to_vec(), copy: false });
        while side.pipe.pop_lost().is_some() {}
        Ok(())
    }

    /// Hands what has come through from `from` to the other side. True if there was something.
    fn deliver(&mut self, from: usize, now: Instant) -> io::Result<bool> {
        let [first, second] = &mut self.sides;
        let (from, to) = if from == 0 { (first, second) } else { (second, first) };
        let mut busy = false;
        while let Some((_, wire)) = from.pipe.pop(now) {
            busy = true;
            if let Some(tap) = &mut to.tap {
                tap.see(now, &wire.octets)?;
            }
            let decoded = Decoded::read(&wire.octets);
            if let Ok(decoded) = &decoded {
                from.observer.on_delivered(decoded, wire.copy);
            }
            match (&mut to.end, decoded) {
                (End::Kernel(kernel), _) => put(&kernel.device, &wire.octets)?,
                (End::Engine(end), Ok(decoded)) => end.on_packet(now, &decoded),
                (End::Engine(_), Err(_)) => {} // damaged: as if it had never come
            }
        }
        while from.pipe.pop_lost().is_some() {}
        Ok(busy)
    }

    /// Sleeps until something can happen.
    fn sleep(&self, now: Instant) -> io::Result<()> {
        let mut wake = now + NAP;
        let mut fds = Vec::with_capacity(2);
        for side in &self.sides {
            wake = wake.min(side.pipe.next_at());
            match &side.end {
                End::Kernel(kernel) => {
                    let raw = kernel.device.as_raw_fd();
                    #[expect(unsafe_code, reason = "the device outlives the poll and owns its descriptor")]
                    // SAFETY: the device is borrowed for longer than `fd` lives.
                    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
                    fds.push(PollFd::new(fd, PollFlags::POLLIN));
                }
                End::Engine(end) => wake = wake.min(end.deadline()),
            }
        }
        let timeout = std::time::Duration::from_nanos(wake.since(self.clock.now()).as_nanos());
        match ppoll(&mut fds, Some(TimeSpec::from(timeout)), None) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes a packet to a device. A device that has no room, or is not up yet, loses it, as any network may.
fn put(device: &SyncDevice, packet: &[u8]) -> io::Result<()> {
    match device.send(packet) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(NO_BUFFERS) => Ok(()),
        Err(error) => Err(error),
    }
}

const NO_BUFFERS: i32 = nix::errno::Errno::ENOBUFS as i32;

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
        let mut octets = Vec::new();
        encode(endpoints, &segment, &vec![0; usize::from(len)], &mut octets);
        Wire { octets, copy: false }
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
    fn packets_without_data_or_room_are_left_alone() {
        assert_eq!(wire(0, Some(Dropped::NOTHING)).notice(), None);
        assert_eq!(wire(100, None).notice(), None);
    }
}
