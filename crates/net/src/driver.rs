//! Moves packets between the device and the stack.
//!
//! It takes the lock once per batch of packets, not per packet: packets are read before it and written after it.

use std::future::Future;
use std::io;
use std::sync::Arc;

use reknit_units::{Duration, Instant};

use crate::alarm::Alarm;
use crate::clock::to_std;
use crate::frame::Frames;
use crate::io::PacketIo;
use crate::receive::{Sharing, receive};
use crate::state::Shared;

/// The most packets that are written in one batch.
const BATCH: usize = 32;
/// The most packets that are read in one batch if the device coalesces segments into packets of up to 64 KiB (GRO).
const BATCH_WITH_GRO: usize = 32;
/// The most packets that are read in one batch otherwise: as many as stay in the first-level cache until their checksums are
/// verified and their payloads copied.
const BATCH_WITHOUT_GRO: usize = 24;
/// The most batches that are read before anything is sent, while there are more packets and several connections are busy: as many
/// packets as the queue of a TUN device holds.
const MAX_BATCHES: u32 = 16;
/// The least room for a packet: the MTU that IPv6 asks of each device.
const MIN_MTU: usize = 1280;
/// The longest packet of a device with offload, with its virtio header.
const MAX_PACKET: usize = (64 << 10) + 16;
/// After this many batches in a row, other tasks of the thread run.
const YIELD_EVERY: u32 = 8;
/// Until a deadline that is closer than this, the driver does not sleep: being woken takes about as long. Pacing has such
/// deadlines above 5 Gbit/s. Only if the timer is precise: time may be virtual otherwise, and stand still while the driver spins.
const SPIN_BELOW: Duration = Duration::from_micros(100);
/// How often a thread without a runtime checks whether an application has something to send.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Moves the packets of a [`Network`](crate::Network). Only [`Builder::build`](crate::Builder::build) needs it.
///
/// When it is dropped, it first delivers what was written, as the network's [`Builder::drain_limit`](crate::Builder::drain_limit)
/// says, and blocks the thread meanwhile.
pub struct Driver<P: PacketIo> {
    shared: Arc<Shared>,
    io: P,
    arrived: Batch,
    frames: Frames,
    sharing: Sharing,
    /// Batches since other tasks have run.
    batches: u32,
    /// A batch is being processed. Still true when the driver is dropped: processing has panicked.
    is_busy: bool,
    /// Why it has ended.
    end: Option<String>,
}

/// What the driver does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// Another batch at once.
    Continue,
    /// It waits for a packet, for an application, or for this time.
    Wait(Instant),
    /// Nobody uses the network any more.
    Stop,
}

impl<P: PacketIo> Driver<P> {
    pub(crate) fn new(shared: Arc<Shared>, io: P) -> Driver<P> {
        let arrived = Batch::new(&io);
        let (frames, sharing) = (Frames::default(), Sharing::default());
        Driver { shared, io, arrived, frames, sharing, batches: 0, is_busy: false, end: None }
    }

    /// Runs in a tokio runtime, until the network and all of its sockets are dropped. Sockets report an error of the device.
    pub async fn run(mut self) {
        let ended = match Alarm::new(&self.io) {
            Ok(alarm) => self.drive(alarm).await,
            Err(error) => Err(error),
        };
        self.finish(ended);
    }

    /// Runs in any runtime. `sleep` returns a future that is ready after this time.
    pub async fn run_with<F: Future<Output = ()> + Send>(
        mut self,
        sleep: impl Fn(std::time::Duration) -> F + Send + Sync,
    ) {
        let ended = self.drive(&sleep).await;
        self.finish(ended);
    }

    /// Runs in the calling thread, without a runtime. Once a millisecond it polls for data that applications have written.
    pub fn run_in_thread(mut self) {
        let ended = self.block(POLL_INTERVAL);
        self.finish(ended);
    }

    fn finish(&mut self, ended: io::Result<()>) {
        self.end = Some(ended.map_or_else(|error| error.to_string(), |()| "the network was dropped".to_owned()));
    }

    async fn drive(&mut self, mut timer: impl Timer) -> io::Result<()> {
        loop {
            match self.step()? {
                Step::Stop => return Ok(()),
                Step::Continue => {
                    if self.batches >= YIELD_EVERY {
                        self.batches = 0;
                        tokio::task::yield_now().await;
                    }
                }
                Step::Wait(at) => {
                    self.batches = 0;
                    let now = self.shared.now();
                    if at < now + SPIN_BELOW && timer.is_precise() {
                        tokio::task::yield_now().await;
                        continue;
                    }
                    let Driver { io, shared, .. } = self;
                    tokio::select! {
                        result = io.readable() => result?,
                        () = shared.work.notified() => {}
                        result = timer.wait(now, at) => result?,
                    }
                }
            }
        }
    }

    /// The same, blocking: waits at most for `longest` at once.
    fn block(&mut self, longest: Duration) -> io::Result<()> {
        loop {
            match self.step()? {
                Step::Stop => return Ok(()),
                Step::Continue => {}
                Step::Wait(at) => {
                    let now = self.shared.now();
                    self.io.wait(to_std(at.since(now).min(longest)));
                    if self.shared.now() == now {
                        return Ok(()); // virtual time that stands still
                    }
                }
            }
        }
    }

    /// Processes a batch of packets.
    fn step(&mut self) -> io::Result<Step> {
        self.is_busy = true;
        let next = self.process();
        self.is_busy = false;
        next
    }

    fn process(&mut self) -> io::Result<Step> {
        let mut drained = self.arrived.read(&mut self.io)?;
        let offload = self.io.has_offload();
        let (more, is_over, wake_at) = {
            let mut state = self.shared.lock();
            let state = &mut *state;
            let now = self.shared.now();
            let mut batches = 1;
            loop {
                let packets = self.arrived.packets();
                let delays = receive(&mut state.stack, now, offload, packets, drained, &mut self.sharing);
                if !delays || batches == MAX_BATCHES {
                    break;
                }
                drained = self.arrived.read(&mut self.io)?;
                batches += 1;
            }
            self.batches += batches;
            state.stack.on_timer(now);
            if state.drain.check(now, &mut state.stack) {
                self.shared.drained.notify_waiters();
            }
            let more = self.frames.fill(&mut state.stack, now, offload, BATCH);
            state.dispatch();
            let is_over = !more && state.drain.is_over(now, &state.stack);
            (more, is_over, state.stack.deadline().min(state.drain.deadline()))
        };
        for frame in self.frames.ready() {
            self.io.send(frame.bytes())?;
        }
        self.io.flush()?;
        Ok(match (is_over, more || !drained) {
            (true, _) => Step::Stop,
            (_, true) => Step::Continue,
            _ => Step::Wait(wake_at),
        })
    }
}

impl<P: PacketIo> Drop for Driver<P> {
    fn drop(&mut self) {
        let reason = self.end.take().unwrap_or_else(|| {
            // The runtime was shut down and dropped the driver: what was written is delivered without it.
            if !self.is_busy {
                let mut state = self.shared.lock();
                let now = self.shared.now();
                state.stack.finish_all(now);
                state.drain.abandon_at_once(now, self.shared.drain_limit);
                drop(state);
                let _ = self.block(Duration::MAX); // best effort: nobody is left to report an error to
            }
            "the runtime in which the network was started has ended".to_owned()
        });
        let mut state = self.shared.lock();
        let state = &mut *state;
        state.drain.end(&state.stack);
        state.fail(reason);
        self.shared.drained.notify_waiters();
    }
}

/// The sleep of the runtime at hand: an [`Alarm`], or the future that the caller gave.
trait Timer: Send {
    /// True if it is a timer of the kernel.
    fn is_precise(&self) -> bool {
        false
    }

    /// Returns at `at`, or earlier.
    fn wait(&mut self, now: Instant, at: Instant) -> impl Future<Output = io::Result<()>> + Send;
}

impl Timer for Alarm {
    fn is_precise(&self) -> bool {
        !matches!(self, Alarm::Runtime)
    }

    fn wait(&mut self, now: Instant, at: Instant) -> impl Future<Output = io::Result<()>> + Send {
        Alarm::wait(self, now, at)
    }
}

impl<F: Future<Output = ()> + Send, S: Fn(std::time::Duration) -> F + Sync> Timer for &S {
    async fn wait(&mut self, now: Instant, at: Instant) -> io::Result<()> {
        self(to_std(at.since(now))).await;
        Ok(())
    }
}

/// Packets that were read together.
struct Batch {
    bytes: Vec<u8>,
    /// The room for each packet.
    largest: usize,
    lens: Vec<usize>,
}

impl Batch {
    fn new(io: &impl PacketIo) -> Batch {
        let (largest, count) = if io.has_offload() {
            (MAX_PACKET, BATCH_WITH_GRO)
        } else {
            (usize::from(io.mtu()).max(MIN_MTU), BATCH_WITHOUT_GRO)
        };
        Batch { bytes: vec![0; count * largest], largest, lens: Vec::with_capacity(count) }
    }

    /// Reads what there is now. False if there may be more.
    fn read(&mut self, io: &mut impl PacketIo) -> io::Result<bool> {
        self.lens.clear();
        for into in self.bytes.chunks_exact_mut(self.largest) {
            match io.recv(into)? {
                Some(n) => self.lens.push(n),
                None => return Ok(true),
            }
        }
        Ok(false)
    }

    fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks_exact(self.largest).zip(&self.lens).map(|(bytes, len)| &bytes[..*len])
    }
}
