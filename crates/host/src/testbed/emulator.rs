//! Emulates a path between two ends in real time.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use reknit_path::Pipe;
use reknit_path::stages::DropReason;
use reknit_units::{Duration, Instant};
use reknit_wire::{DecodeError, Decoded};

use super::observer::Observer;
use crate::capture::CaptureFile;
use crate::clock::TimeSource;
use crate::packet::IpPacket;
use crate::punctuality::Lateness;

/// The longest sleep, so that a request to stop is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// How long the last packets may take after both ends have finished.
const LAST_PACKETS: Duration = Duration::from_secs(2);
/// The most packets taken from one device before the other side gets its turn.
const BATCH: usize = 64;

/// An end of the path.
pub(crate) trait Endpoint {
    /// Writes the next packet that it sends into `packet`; false if there is none now.
    fn take(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool>;

    /// A packet arrives; `decoded` is none if it is corrupted.
    fn put(&mut self, now: Instant, bytes: &[u8], decoded: Option<&Decoded<'_>>) -> io::Result<()>;

    /// A router's message arrives.
    fn put_icmp(&mut self, now: Instant, message: &[u8]) -> io::Result<()>;

    /// When it next has something to do without a packet.
    fn deadline(&self) -> Instant;

    /// What becomes readable when it has a packet to send.
    fn readable(&self) -> Option<BorrowedFd<'_>>;

    /// True if it neither sends nor expects anything more.
    fn is_finished(&self) -> bool;

    /// True if it has failed.
    fn has_failed(&self) -> bool;
}

/// One side: its end, the pipe for what it sends, and its observers.
pub(crate) struct Side<E> {
    pub(crate) end: E,
    /// The direction to the other side.
    pub(crate) pipe: Pipe<IpPacket>,
    pub(crate) capture: Option<CaptureFile>,
    /// Observes the data that this side sends.
    pub(crate) observer: Observer,
}

impl<E: Endpoint> Side<E> {
    /// A router tells the end about packets that are too big.
    fn report_losses(&mut self, now: Instant) -> io::Result<()> {
        while let Some(lost) = self.pipe.pop_lost() {
            if let DropReason::TooBig { told: Some(mtu) } = lost.why
                && let Some(message) = lost.packet.too_big(mtu)
            {
                self.end.put_icmp(now, &message)?;
            }
        }
        Ok(())
    }
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
        let mut deadline = Instant::NEVER;
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
                deadline = deadline.min(now + LAST_PACKETS);
                if now >= deadline || self.sides.iter().all(|side| side.pipe.is_empty()) {
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
        if let Some(capture) = &mut side.capture {
            capture.packet(now, packet)?;
        }
        side.pipe.push(now, IpPacket::new(packet.to_vec()));
        side.report_losses(now)
    }

    /// Delivers the packets that have come through from `from` to the other side. True if there were any.
    fn deliver(&mut self, from: usize, now: Instant) -> io::Result<bool> {
        let [first, second] = &mut self.sides;
        let (from, to) = if from == 0 { (first, second) } else { (second, first) };
        let mut busy = false;
        while let Some((due, packet)) = from.pipe.pop(now) {
            busy = true;
            self.lateness.note(due, self.clock.now());
            if let Some(capture) = &mut to.capture {
                capture.packet(now, packet.bytes())?;
            }
            let decoded = Decoded::read(packet.bytes()).ok();
            if let Some(decoded) = &decoded {
                from.observer.on_delivered(decoded, packet.is_copy());
            }
            to.end.put(now, packet.bytes(), decoded.as_ref())?;
        }
        from.report_losses(now)?;
        Ok(busy)
    }

    /// Sleeps until the next event.
    fn sleep(&self, now: Instant) -> io::Result<()> {
        let wake = |wake: Instant, side: &Side<E>| wake.min(side.pipe.next_at()).min(side.end.deadline());
        let until = self.sides.iter().fold(now + LONGEST_SLEEP, wake);
        let readable: Vec<BorrowedFd<'_>> = self.sides.iter().filter_map(|side| side.end.readable()).collect();
        self.clock.wait(until, &readable)
    }
}
