//! Forwards packets between the two ends of the path in real time. `emulate::run` calls it once both ends exist, until the
//! session says to stop.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use reknit_units::{Duration, Instant};
use tun_rs::SyncDevice;

use super::EmulateError;
use super::direction::EmulatedDirection;
use super::meter::Counts;
use super::relay::Relay;
use crate::capture::CaptureFile;
use crate::clock::{Clock, TimeSource};
use crate::punctuality::Lateness;

/// The longest sleep.
const NAP: Duration = Duration::from_millis(500);
/// How often other events are checked for while packets keep arriving.
const CHECK: Duration = Duration::from_millis(2);
/// The most packets taken from one end before the other gets its turn.
const BATCH: usize = 64;
/// The size of the largest packet that a device can pass.
const BUFFER: usize = 65_536;
/// The most spare buffers that are kept.
const SPARE: usize = 4096;
/// Buffers of spare packets have this capacity: more than any packet on a device of 1500 bytes.
const PACKET: usize = 2048;

/// The direction of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LinkDirection {
    /// From the command to the outside.
    Up,
    /// From the outside to the command.
    Down,
}

/// Whether to continue after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    Continue,
    Stop,
}

/// Events other than packets: signals, the end of the command, the meter.
pub(super) trait Events {
    /// What becomes readable when something happens.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// When it must be called even if nothing happens.
    fn deadline(&self) -> Instant;

    /// Called after each wait, and periodically while packets keep arriving.
    fn handle(&mut self, now: Instant, bridge: &mut Bridge) -> io::Result<Next>;
}

/// A capture file, and the option that names it.
pub(super) struct NamedCapture {
    pub(super) option: &'static str,
    pub(super) file: PathBuf,
    pub(super) capture: CaptureFile,
}

impl NamedCapture {
    fn packet(&mut self, now: Instant, packet: &[u8]) -> Result<(), EmulateError> {
        let (option, file) = (self.option, &self.file);
        self.capture.packet(now, packet).map_err(|source| EmulateError::Capture { option, file: file.clone(), source })
    }

    pub(super) fn finish(self) -> Result<(), EmulateError> {
        let NamedCapture { option, file, capture } = self;
        capture.finish().map_err(|source| EmulateError::Capture { option, file, source })
    }
}

/// The two devices and the path between them.
pub(super) struct Bridge {
    pub(super) clock: Clock,
    pub(super) inner: SyncDevice,
    pub(super) outer: SyncDevice,
    /// Relays packets to addresses outside, if the outer end is private.
    pub(super) relay: Option<Relay>,
    pub(super) up: EmulatedDirection,
    pub(super) down: EmulatedDirection,
    /// Captures at the inner and the outer end.
    pub(super) captures: [Option<NamedCapture>; 2],
    pub(super) lateness: Lateness,
    /// Packets that a device refused.
    pub(super) refused: u64,
    spare: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

/// True if a router would forward this packet: it is neither multicast nor limited to its link.
fn is_routed(packet: &[u8]) -> bool {
    match packet.first().map(|first| first >> 4) {
        Some(4) => packet.get(16).is_some_and(|first| *first < 224),
        Some(6) => {
            let is_local = |address: &[u8]| address[0] == 0xff || (address[0] == 0xfe && address[1] & 0xc0 == 0x80);
            packet.len() >= 40 && !is_local(&packet[24..40]) && !is_local(&packet[8..24])
        }
        _ => false,
    }
}

impl Bridge {
    pub(super) fn new(
        clock: Clock,
        inner: SyncDevice,
        outer: SyncDevice,
        [up, down]: [EmulatedDirection; 2],
        captures: [Option<NamedCapture>; 2],
    ) -> Bridge {
        Bridge {
            clock,
            inner,
            outer,
            relay: None,
            up,
            down,
            captures,
            lateness: Lateness::default(),
            refused: 0,
            spare: Vec::new(),
            buffer: vec![0; BUFFER],
        }
    }

    /// Forwards packets until `events` says to stop.
    pub(super) fn run(&mut self, events: &mut impl Events) -> Result<(), EmulateError> {
        let mut check = Instant::ZERO;
        loop {
            let mut busy = self.collect(LinkDirection::Up)?;
            busy |= self.collect(LinkDirection::Down)?;
            busy |= self.collect_relayed()?;
            busy |= self.deliver(LinkDirection::Up)?;
            busy |= self.deliver(LinkDirection::Down)?;
            let now = self.clock.now();
            if !busy {
                let until = self.up.next_at().min(self.down.next_at()).min(events.deadline()).min(now + NAP);
                let mut descriptors = events.descriptors();
                descriptors.extend(self.descriptors());
                self.clock.wait(until, &descriptors).map_err(EmulateError::Failed)?;
            }
            // A system call for each packet would be too many.
            if !busy || now >= check {
                check = now + CHECK;
                if events.handle(self.clock.now(), self).map_err(EmulateError::Failed)? == Next::Stop {
                    return Ok(());
                }
            }
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let mut all = vec![descriptor(&self.inner), descriptor(&self.outer)];
        all.extend(self.relay.as_ref().map(|relay| relay.packets.as_fd()));
        all
    }

    /// Reads packets from the end where this direction begins. True if there were any.
    fn collect(&mut self, bound: LinkDirection) -> Result<bool, EmulateError> {
        for taken in 0..BATCH {
            let device = if bound == LinkDirection::Up { &self.inner } else { &self.outer };
            match device.recv(&mut self.buffer) {
                Ok(n) => self.enter(bound, n)?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(taken > 0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A device that its user has set down has no packets.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => return Ok(taken > 0),
                Err(error) => return Err(EmulateError::Failed(error)),
            }
        }
        Ok(true)
    }

    /// Reads packets that the relay sends. True if there were any.
    fn collect_relayed(&mut self) -> Result<bool, EmulateError> {
        for taken in 0..BATCH {
            let Some(relay) = &self.relay else { return Ok(false) };
            match recv(relay.packets.as_raw_fd(), &mut self.buffer, MsgFlags::MSG_DONTWAIT) {
                Ok(n) => self.enter(LinkDirection::Down, n)?,
                Err(Errno::EAGAIN) => return Ok(taken > 0),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(EmulateError::Failed(error.into())),
            }
        }
        Ok(true)
    }

    /// A packet of `n` bytes, in the buffer, enters the path.
    fn enter(&mut self, bound: LinkDirection, n: usize) -> Result<(), EmulateError> {
        if !is_routed(&self.buffer[..n]) {
            return Ok(());
        }
        let now = self.clock.now();
        let mut packet = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(PACKET));
        packet.clear();
        packet.extend_from_slice(&self.buffer[..n]);
        let (direction, capture) = match bound {
            LinkDirection::Up => (&mut self.up, &mut self.captures[0]),
            LinkDirection::Down => (&mut self.down, &mut self.captures[1]),
        };
        if let Some(capture) = capture {
            capture.packet(now, &packet)?;
        }
        direction.enter(now, packet);
        self.pass_messages(bound);
        Ok(())
    }

    /// Passes on the packets that are due. True if there were any.
    fn deliver(&mut self, bound: LinkDirection) -> Result<bool, EmulateError> {
        let mut busy = false;
        loop {
            let now = self.clock.now();
            let (direction, at) = match bound {
                LinkDirection::Up => (&mut self.up, 1),
                LinkDirection::Down => (&mut self.down, 0),
            };
            let left = direction.leave(now);
            self.pass_messages(bound);
            let Some((due, carried)) = left else { return Ok(busy) };
            busy = true;
            self.lateness.note(due, now);
            if let Some(capture) = &mut self.captures[at] {
                capture.packet(now, carried.bytes())?;
            }
            self.put(bound, carried.bytes());
            if self.spare.len() < SPARE {
                self.spare.push(carried.into_bytes());
            }
        }
    }

    /// Delivers what routers have to say to the end where this direction begins.
    fn pass_messages(&mut self, bound: LinkDirection) {
        let (direction, back) = match bound {
            LinkDirection::Up => (&mut self.up, LinkDirection::Down),
            LinkDirection::Down => (&mut self.down, LinkDirection::Up),
        };
        for message in direction.take_messages() {
            self.put(back, &message);
        }
    }

    /// Writes a packet to the end where this direction ends. A packet that a device refuses is lost, as in any network.
    fn put(&mut self, bound: LinkDirection, packet: &[u8]) {
        if bound == LinkDirection::Up && self.relay.as_mut().is_some_and(|relay| relay.takes(packet)) {
            return;
        }
        let device = if bound == LinkDirection::Up { &self.outer } else { &self.inner };
        if device.send(packet).is_err() {
            self.refused += 1;
        }
    }

    /// What has been counted so far, up and down.
    pub(super) fn counts(&self) -> [Counts; 2] {
        [self.up.meter.counts, self.down.meter.counts]
    }

    /// Determines what happens to the packets that are still in transit. Called at the end.
    pub(super) fn settle(&mut self) {
        let end = Instant::from_nanos(u64::MAX - 1);
        for direction in [&mut self.up, &mut self.down] {
            if direction.record.is_some() {
                while direction.leave(end).is_some() {}
            }
        }
    }
}

/// The device's descriptor.
fn descriptor(device: &SyncDevice) -> BorrowedFd<'_> {
    #[expect(unsafe_code, reason = "the device owns its descriptor for as long as it is borrowed")]
    // SAFETY: the descriptor is closed when the device is dropped, which the borrow prevents.
    unsafe {
        BorrowedFd::borrow_raw(device.as_raw_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_link_itself_do_not_take_the_path() {
        let mut v4 = [0x45; 20];
        v4[16] = 10;
        assert!(is_routed(&v4));
        v4[16] = 224; // multicast
        assert!(!is_routed(&v4));
        let mut v6 = [0x60; 40];
        assert!(is_routed(&v6));
        v6[8] = 0xfe; // a link-local source
        v6[9] = 0x80;
        assert!(!is_routed(&v6));
        v6[8] = 0xfd;
        v6[24] = 0xff; // multicast
        assert!(!is_routed(&v6));
        assert!(!is_routed(&[]) && !is_routed(&[0x60; 39]));
    }
}
