//! The process that reads the queues. It writes a byte to its standard input, a socket of the supervisor, as long as all its
//! threads run.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use reknit_host::service::{self, clock};
use reknit_host::{PacketSocket, RealTime};
use reknit_path::equaliser::Equal;
use reknit_path::resequencer::{Limits, Resequencer};

use crate::metrics;
use crate::queue::Queue;
use crate::reader::{self, Interfaces, State};
use crate::settings::{Mode, Settings};
use crate::supervisor::signals;

/// How often the supervisor hears of it, in ms.
const BEAT_MS: u16 = 25;
/// The worker decides this much earlier than its supervisor that it hangs, for one of its threads.
const EARLIER: Duration = Duration::from_millis(50);
/// Packets of each queue that are held at a time.
const HELD: usize = 1000;

/// A thread, and when it was last seen to run.
struct Reader {
    state: Arc<State>,
    thread: JoinHandle<io::Result<()>>,
    beats: u64,
    seen: Instant,
}

/// Runs until a signal, or until the supervisor has ended.
pub(crate) fn work(settings: &Settings) -> Result<(), String> {
    let text = |error: io::Error| reknit_config::without_numbers(&error.to_string()).into_owned();
    // If the supervisor is killed, everything that is held goes on, and the packets pass without us.
    set_pdeathsig(Signal::SIGTERM).map_err(|error| text(error.into()))?;
    let signals = signals().map_err(text)?;
    let to_supervisor = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(text)?);
    let listener = service::bind(settings.metrics)?;
    let mut readers = start(settings)?;
    let states: Vec<Arc<State>> = readers.iter().map(|reader| reader.state.clone()).collect();
    service::serve(listener, move || metrics::text(&states.iter().map(|state| state.known()).collect::<Vec<_>>()));
    let _punctual = RealTime::begin();
    let silence = settings.mode.longest_silence().saturating_sub(EARLIER);
    run(&mut readers, silence, &signals, to_supervisor);
    for reader in &readers {
        reader.state.stop();
    }
    for reader in readers {
        match reader.thread.join() {
            Ok(ended) => ended.map_err(text)?,
            Err(_) => return Err("a reader panicked".to_owned()),
        }
    }
    Ok(())
}

fn start(settings: &Settings) -> Result<Vec<Reader>, String> {
    let limits = Limits { time: settings.limit, of_flow: HELD, of_all: HELD };
    match settings.mode {
        Mode::Observe => {
            let sockets: Vec<PacketSocket> =
                settings.interfaces.iter().map(|name| PacketSocket::open(name)).collect::<Result<_, _>>()?;
            Ok(sockets.into_iter().map(|socket| spawn(move |state| reader::watch(&socket, limits, state))).collect())
        }
        Mode::Resequence => Ok(queues(settings)?
            .into_iter()
            .map(|queue| spawn(move |state| reader::hold(queue, Resequencer::new(limits), state)))
            .collect()),
        Mode::Equalise { difference } => {
            let equal = Equal { difference, longest: settings.limit, most: HELD };
            let hold = |queue| {
                let interfaces = Interfaces::new(&settings.interfaces, equal);
                spawn(move |state| reader::hold(queue, interfaces, state))
            };
            Ok(queues(settings)?.into_iter().map(hold).collect())
        }
    }
}

fn queues(settings: &Settings) -> Result<Vec<Queue>, String> {
    settings.queue_numbers().map(Queue::open).collect()
}

fn spawn(read: impl FnOnce(&State) -> io::Result<()> + Send + 'static) -> Reader {
    let state = Arc::new(State::default());
    let shared = state.clone();
    Reader { state, thread: thread::spawn(move || read(&shared)), beats: 0, seen: clock::now() }
}

/// Tells the supervisor that all readers run, as long as none is silent for longer than `silence`.
fn run(readers: &mut [Reader], silence: Duration, signals: &SignalFd, mut to_supervisor: UnixStream) {
    loop {
        let asked = poll(&mut [PollFd::new(signals.as_fd(), PollFlags::POLLIN)], PollTimeout::from(BEAT_MS));
        if asked.is_ok_and(|count| count > 0) || readers.iter().any(|reader| reader.thread.is_finished()) {
            return;
        }
        for reader in readers.iter_mut() {
            let beats = reader.state.beats();
            if beats != reader.beats {
                (reader.beats, reader.seen) = (beats, clock::now());
            }
        }
        let all_run = readers.iter().all(|reader| reader.seen.elapsed() < silence);
        if all_run && to_supervisor.write_all(b".").is_err() {
            return;
        }
    }
}
