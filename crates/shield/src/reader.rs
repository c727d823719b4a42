//! Threads that see packets: of a queue, which are resequenced, or of an interface, which are only watched.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant as Clock;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use reknit_host::service::clock;
use reknit_host::{PacketSocket, RealTime, tcp_header};
use reknit_path::resequencer::{Counts, FlowState, Limits, Phase, Resequencer};
use reknit_units::{Duration, Instant};
use reknit_wire::{Endpoints, TcpHeaders};

use crate::queue::{self, Queue};

/// A reader shows that it runs at least this often.
const BEAT: Duration = Duration::from_millis(50);
/// Messages that are read before verdicts are sent.
const BATCH: usize = 64;
/// How often what it knows is published, in beats or batches.
const PUBLISHED: Duration = Duration::from_millis(500);
/// The flows that are published: those whose senders have suffered most.
const SHOWN: usize = 10;

/// What a reader and the worker share.
#[derive(Debug, Default)]
pub(crate) struct State {
    beats: AtomicU64,
    stop: AtomicBool,
    known: Mutex<Known>,
}

/// What a reader knows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Known {
    pub(crate) counts: Counts,
    /// Packets that are held now.
    pub(crate) held: usize,
    /// The number of flows.
    pub(crate) flows: usize,
    /// Those whose senders have suffered most.
    pub(crate) worst: Vec<(Endpoints, FlowState)>,
}

impl State {
    /// Changes as long as the reader runs.
    pub(crate) fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn known(&self) -> Known {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The reader runs. True if it must end.
    fn beat(&self) -> bool {
        self.beats.fetch_add(1, Ordering::Relaxed);
        self.stop.load(Ordering::Relaxed)
    }

    fn publish<H>(&self, resequencer: &Resequencer<Endpoints, H>) {
        let mut all: Vec<(Endpoints, FlowState)> = resequencer.flows().collect();
        let flows = all.len();
        all.retain(|(_, state)| state.spurious > 0 || state.phase != Phase::Watched);
        all.sort_by_key(|(_, state)| std::cmp::Reverse(state.spurious));
        all.truncate(SHOWN);
        let known = Known { counts: resequencer.counts(), held: resequencer.held(), flows, worst: all };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// The time since `began`.
fn since(began: Clock) -> Instant {
    Instant::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX - 1))
}

/// Resequences the packets of a queue until it must stop; then everything that is held goes on.
pub(crate) fn resequence(mut queue: Queue, limits: Limits, state: &State) -> io::Result<()> {
    let _punctual = RealTime::begin();
    let mut resequencer: Resequencer<Endpoints, u32> = Resequencer::new(limits);
    let (began, mut published) = (clock::now(), Instant::ZERO);
    let (mut buffer, mut out) = (vec![0; 64 << 10], Vec::new());
    loop {
        wait(&queue, resequencer.deadline().since(since(began)).min(BEAT))?;
        let now = since(began);
        resequencer.on_timer(now, &mut out);
        for _ in 0..BATCH {
            let n = queue.receive(&mut buffer)?;
            for packet in queue::packets(&buffer[..n]) {
                match TcpHeaders::read(packet.bytes, packet.len) {
                    Some(headers) => {
                        let header = tcp_header(&headers);
                        resequencer.on_packet(now, headers.endpoints, header, packet.id, &mut out);
                    }
                    None => out.push(packet.id),
                }
            }
            if n == 0 {
                break;
            }
        }
        let must_stop = state.beat();
        if must_stop {
            resequencer.release_all(&mut out);
        }
        out.drain(..).for_each(|id| queue.accept(id));
        queue.flush()?;
        if must_stop {
            return Ok(());
        }
        if now.since(published) >= PUBLISHED {
            published = now;
            state.publish(&resequencer);
        }
    }
}

/// Waits for packets.
fn wait(queue: &Queue, longest: Duration) -> io::Result<()> {
    let time = TimeSpec::from_duration(std::time::Duration::from_nanos(longest.as_nanos()));
    match ppoll(&mut [PollFd::new(queue.as_fd(), PollFlags::POLLIN)], Some(time), None) {
        Ok(_) | Err(nix::Error::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Watches the packets of an interface until it must stop.
pub(crate) fn watch(socket: &PacketSocket, limits: Limits, state: &State) -> io::Result<()> {
    // Nothing is held, so a trial shows only what would have been tried.
    let mut resequencer: Resequencer<Endpoints, ()> = Resequencer::new(Limits { of_flow: 0, ..limits });
    let (began, mut published, mut out) = (clock::now(), Instant::ZERO, Vec::new());
    socket.run(&mut |packets| {
        let now = since(began);
        for packet in packets {
            if let Some(headers) = TcpHeaders::read(packet.bytes, packet.original_len) {
                resequencer.on_packet(now, headers.endpoints, tcp_header(&headers), (), &mut out);
            }
        }
        out.clear();
        if now.since(published) >= PUBLISHED {
            published = now;
            state.publish(&resequencer);
        }
        !state.beat()
    })
}
