//! Threads that see packets: of a queue, which are held there, or of an interface, which are only watched.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant as Clock;

use nix::net::if_::if_nametoindex;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use reknit_host::service::clock;
use reknit_host::{PacketSocket, RealTime, tcp_header};
use reknit_path::equaliser::{self, Equal, Equaliser};
use reknit_path::resequencer::{Counts, FlowState, Limits, Phase, Resequencer};
use reknit_units::{Duration, Instant};
use reknit_wire::{Endpoints, TcpHeaders};

use crate::queue::{Buffers, Queue, Queued};

/// A reader shows that it runs at least this often.
const BEAT: Duration = Duration::from_millis(50);
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
    /// How long packets of each interface are held, to make interfaces equal.
    pub(crate) delays: Vec<(String, Duration)>,
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

    fn publish(&self, known: Known) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
    }
}

/// What is known of TCP flows.
fn known<H>(resequencer: &Resequencer<Endpoints, H>) -> Known {
    let mut all: Vec<(Endpoints, FlowState)> = resequencer.flows().collect();
    let flows = all.len();
    all.retain(|(_, state)| state.spurious > 0 || state.phase != Phase::Watched);
    all.sort_by_key(|(_, state)| std::cmp::Reverse(state.spurious));
    all.truncate(SHOWN);
    Known { counts: resequencer.counts(), held: resequencer.held(), flows, worst: all, delays: Vec::new() }
}

/// The time since `began`.
fn since(began: Clock) -> Instant {
    Instant::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX - 1))
}

/// Decides when packets of a queue go on.
pub(crate) trait Holder {
    /// A packet has arrived. Adds to `out` those that go on now.
    fn on_packet(&mut self, now: Instant, packet: Queued<'_>, out: &mut Vec<u32>);
    /// When to call [`Holder::on_timer`] if no packet arrives before.
    fn deadline(&self) -> Instant;
    /// Adds to `out` the packets that have been held long enough.
    fn on_timer(&mut self, now: Instant, out: &mut Vec<u32>);
    /// Adds to `out` everything that is held.
    fn release_all(&mut self, out: &mut Vec<u32>);
    /// What it knows.
    fn known(&mut self) -> Known;
}

impl Holder for Resequencer<Endpoints, u32> {
    fn on_packet(&mut self, now: Instant, packet: Queued<'_>, out: &mut Vec<u32>) {
        match TcpHeaders::read(packet.bytes, packet.len) {
            Some(headers) => self.on_packet(now, headers.endpoints, tcp_header(&headers), packet.id, out),
            None => out.push(packet.id),
        }
    }

    fn deadline(&self) -> Instant {
        self.deadline()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Vec<u32>) {
        self.on_timer(now, out);
    }

    fn release_all(&mut self, out: &mut Vec<u32>) {
        self.release_all(out);
    }

    fn known(&mut self) -> Known {
        known(self)
    }
}

/// Gives interfaces the same delay.
#[derive(Debug)]
pub(crate) struct Interfaces {
    equaliser: Equaliser<Endpoints, u32>,
    names: Vec<String>,
    /// Their indices; none as long as there is no such interface.
    indices: Vec<Option<u32>>,
}

impl Interfaces {
    pub(crate) fn new(names: &[String], settings: Equal) -> Interfaces {
        let mut new = Interfaces { equaliser: Equaliser::new(settings), names: names.to_vec(), indices: Vec::new() };
        new.look_up();
        new
    }

    /// Looks up the indices, which change when an interface is made anew.
    fn look_up(&mut self) {
        self.indices = self.names.iter().map(|name| if_nametoindex(name.as_str()).ok()).collect();
    }
}

impl Holder for Interfaces {
    fn on_packet(&mut self, now: Instant, packet: Queued<'_>, out: &mut Vec<u32>) {
        let Some(branch) = self.indices.iter().position(|index| *index == Some(packet.interface)) else {
            return out.push(packet.id);
        };
        let tcp = TcpHeaders::read(packet.bytes, packet.len).map(|headers| (headers.endpoints, tcp_header(&headers)));
        self.equaliser.on_packet(now, branch, tcp, packet.id, out);
    }

    fn deadline(&self) -> Instant {
        self.equaliser.deadline()
    }

    fn on_timer(&mut self, now: Instant, out: &mut Vec<u32>) {
        self.equaliser.on_timer(now, out);
    }

    fn release_all(&mut self, out: &mut Vec<u32>) {
        self.equaliser.release_all(out);
    }

    fn known(&mut self) -> Known {
        self.look_up();
        let equaliser::Counts { packets, held, .. } = self.equaliser.counts();
        Known {
            counts: Counts { packets, held, ..Counts::default() },
            held: self.equaliser.held(),
            delays: self.names.iter().cloned().zip(self.equaliser.delays()).collect(),
            ..Known::default()
        }
    }
}

/// Takes the packets of a queue until it must stop; then everything that is held goes on.
pub(crate) fn hold(mut queue: Queue, mut holder: impl Holder, state: &State) -> io::Result<()> {
    let _punctual = RealTime::begin();
    let (began, mut published) = (clock::now(), Instant::ZERO);
    let (mut buffers, mut out) = (Buffers::new(), Vec::new());
    loop {
        wait(&queue, holder.deadline().since(since(began)).min(BEAT))?;
        let now = since(began);
        holder.on_timer(now, &mut out);
        for packet in queue.receive(&mut buffers)? {
            holder.on_packet(now, packet, &mut out);
        }
        let must_stop = state.beat();
        if must_stop {
            holder.release_all(&mut out);
        }
        out.drain(..).for_each(|id| queue.accept(id));
        queue.flush()?;
        if must_stop {
            return Ok(());
        }
        if now.since(published) >= PUBLISHED {
            published = now;
            state.publish(holder.known());
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
            state.publish(known(&resequencer));
        }
        !state.beat()
    })
}
