//! A transfer between two live ends over an emulated path.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use reknit_path::{Direction, Pipe, Profile};
use reknit_tcp::stats::SendStats;
use reknit_tcp::{CloseReason, Config, Info};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::{Composition, UnknownVariant};
use reknit_wire::Endpoints;

use crate::clock::Clock;
use crate::emulator::{Emulator, Side, Stopped, Tap};
use crate::end::End;
use crate::engine_end::{Application, EngineEnd};
use crate::kernel_end::{KernelCounters, KernelEnd, Task};
use crate::observer::Observer;
pub use crate::workload::{Payload, Tally};
use crate::workload::{Sink, Source};

/// Port of the end that accepts.
const SERVER_PORT: u16 = 7700;
/// Port of our engine when it opens.
const CLIENT_PORT: u16 = 40_077;

/// The TCP of one end.
#[derive(Clone, Debug)]
pub enum Stack {
    /// The running kernel's, with this congestion control.
    Kernel(String),
    /// Our engine, with these plug-ins; the name is for people.
    Engine(String, Arc<Composition>),
}

impl FromStr for Stack {
    type Err = UnknownVariant;

    /// `kernel:cubic` or the name of a variant.
    fn from_str(text: &str) -> Result<Stack, UnknownVariant> {
        match text.split_once(':') {
            Some(("kernel", congestion_control)) => Ok(Stack::Kernel(congestion_control.to_owned())),
            _ if text == "kernel" => Ok(Stack::Kernel("cubic".to_owned())),
            _ => {
                let variant = reknit_variants::find(text)?;
                Ok(Stack::Engine(variant.name.to_owned(), Arc::new((variant.compose)())))
            }
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stack::Kernel(congestion_control) => write!(f, "kernel:{congestion_control}"),
            Stack::Engine(name, _) => f.write_str(name),
        }
    }
}

/// Which end opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Opener {
    /// The end that sends data.
    #[default]
    Sender,
    /// The end that receives it.
    Receiver,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The path; data goes forward.
    pub profile: Profile,
    /// Options of our engine.
    pub tcp: Config,
    /// The end that sends data.
    pub sender: Stack,
    /// The end that receives it.
    pub receiver: Stack,
    /// Which of them opens the connection.
    pub opener: Opener,
    /// What is sent.
    pub payload: Payload,
    /// How long at the most.
    pub duration: Duration,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Seed of the path's random decisions.
    pub seed: u64,
    /// Capture file of the sender's side.
    pub capture_sender: Option<PathBuf>,
    /// Capture file of the receiver's side.
    pub capture_receiver: Option<PathBuf>,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Bytes that arrived in order.
    pub delivered: Bytes,
    /// From the opening to the last byte, or to the end of an endless transfer.
    pub elapsed: Duration,
    /// What the sender's application wrote; empty if the transfer was stopped.
    pub sent: Tally,
    /// What the receiver's application read; empty if the transfer was stopped.
    pub received: Tally,
    /// Data segments that the sender sent.
    pub segments: u64,
    /// Of these, sent again.
    pub retransmissions: u64,
    /// Data segments that arrived although everything in them had arrived, copies by the network apart.
    pub spurious_retransmissions: u64,
    /// RST segments, both ways.
    pub resets: u64,
    /// FIN segments that arrived, from the sender and from the receiver.
    pub fins: [u64; 2],
    /// What the sender counted, if it was our engine.
    pub engine: Option<SendStats>,
    /// The sender's variables at the end, if it was our engine; else the receiver's, if that was.
    pub info: Option<Info>,
    /// What the sender's kernel counted, if it was one.
    pub kernel: Option<KernelCounters>,
}

impl Outcome {
    /// Bytes in order per second, in bits.
    pub fn goodput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.delivered.0 as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Expiries of the sender's retransmission timer.
    pub fn timeouts(&self) -> u64 {
        match (&self.engine, &self.kernel) {
            (Some(engine), _) => engine.timeouts,
            (None, Some(kernel)) => kernel.get("TCPTimeouts"),
            (None, None) => 0,
        }
    }
}

/// Why a transfer did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine does not let us.
    #[error("cannot set up {what}: {source} (`reknit doctor` says what this machine can run)")]
    SetUp {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Reading or writing failed on the way.
    #[error("{what}: {source}")]
    Failed {
        /// Whose.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Our engine's connection failed.
    #[error("our engine's connection failed: {0}")]
    Closed(CloseReason),
    /// It took too long.
    #[error("not finished after {0}")]
    TooLate(Duration),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Runs the transfer. `cancel` ends it early.
///
/// # Errors
/// If the machine cannot run it, or the transfer fails or takes longer than `spec.duration`; an endless transfer ends
/// well at that time.
pub fn run(spec: &Spec, cancel: &AtomicBool) -> Result<Outcome, TestbedError> {
    let clock = Clock::start();
    let stop_at = clock.now() + spec.duration;
    let (ready, all_ready) = mpsc::channel();
    let (go_sender, go_receiver) = (mpsc::channel(), mpsc::channel());
    let sender = make_end(spec, true, clock, stop_at, ready.clone(), go_sender.1)?;
    let receiver = make_end(spec, false, clock, stop_at, ready, go_receiver.1)?;
    // Each kernel end says when it is ready to accept; then both may go.
    while all_ready.recv().is_ok() {}
    let began = clock.now();
    drop((go_sender.0, go_receiver.0));
    let sides = [
        make_side(spec, sender, Direction::Forward, spec.capture_sender.as_deref(), clock, began)?,
        make_side(spec, receiver, Direction::Reverse, spec.capture_receiver.as_deref(), clock, began)?,
    ];
    let mut emulator = Emulator { clock, sides, cancel };
    let stopped = emulator.run(stop_at).map_err(|source| TestbedError::Failed { what: "the emulated path", source })?;
    match stopped {
        Stopped::Cancelled => Err(TestbedError::Cancelled),
        Stopped::TimeIsUp if spec.payload != Payload::Endless => Err(TestbedError::TooLate(spec.duration)),
        Stopped::Done | Stopped::Failed | Stopped::TimeIsUp => conclude(emulator.sides, began, clock.now(), stopped),
    }
}

fn addresses(ipv6: bool) -> [IpAddr; 2] {
    if ipv6 {
        [1, 2].map(|n| IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, n)))
    } else {
        [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 77, 0, n)))
    }
}

fn make_end(
    spec: &Spec,
    is_sender: bool,
    clock: Clock,
    stop_at: Instant,
    ready: mpsc::Sender<Infallible>,
    go: mpsc::Receiver<Infallible>,
) -> Result<End, TestbedError> {
    let opens = is_sender == (spec.opener == Opener::Sender);
    let [sender, receiver] = addresses(spec.ipv6);
    let (local, remote) = if is_sender { (sender, receiver) } else { (receiver, sender) };
    let (local_port, remote_port) = if opens { (CLIENT_PORT, SERVER_PORT) } else { (SERVER_PORT, CLIENT_PORT) };
    let local = SocketAddr::new(local, local_port);
    let remote = SocketAddr::new(remote, remote_port);
    let set_up = |what| move |source| TestbedError::SetUp { what, source };
    match if is_sender { &spec.sender } else { &spec.receiver } {
        Stack::Kernel(congestion_control) => {
            let task = Task {
                local,
                remote,
                opens,
                sends: is_sender.then(|| (spec.payload.clone(), stop_at)),
                congestion_control: congestion_control.clone(),
                clock,
                patience: std::time::Duration::from_nanos(spec.duration.as_nanos()),
            };
            let end = KernelEnd::start(task, ready, go).map_err(set_up("a network namespace with a TUN device"))?;
            Ok(End::Kernel(end))
        }
        Stack::Engine(_, composition) => {
            let application = if is_sender {
                Application::Sends(Source::new(&spec.payload, stop_at).map_err(set_up("the data to send"))?)
            } else {
                Application::Receives(Sink::default())
            };
            let mut tcp = spec.tcp.clone();
            if spec.ipv6 {
                tcp.mss = tcp.mss.min(1440);
            }
            let endpoints = Endpoints { source: local, destination: remote };
            let end = EngineEnd::new(endpoints, opens, composition.clone(), &tcp, application)
                .map_err(set_up("our engine"))?;
            Ok(End::Engine(Box::new(end)))
        }
    }
}

fn make_side(
    spec: &Spec,
    mut end: End,
    direction: Direction,
    capture: Option<&Path>,
    clock: Clock,
    began: Instant,
) -> Result<Side<End>, TestbedError> {
    let name = if direction == Direction::Forward { "sender" } else { "receiver" };
    let tap = match capture {
        Some(path) => Some(Tap::new(path, name, clock).map_err(|error| {
            let source = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            TestbedError::Failed { what: "the capture file", source }
        })?),
        None => None,
    };
    if let End::Engine(engine) = &mut end {
        engine.start(began);
    }
    let pipe = Pipe::new(&spec.profile, direction, spec.seed);
    Ok(Side { end, pipe, tap, observer: Observer::default() })
}

/// What is left of one end.
#[derive(Default)]
struct Rest {
    tally: Tally,
    last_read: Option<Instant>,
    engine: Option<SendStats>,
    info: Option<Info>,
    kernel: Option<KernelCounters>,
}

fn finish_end(end: End, now: Instant, stopped: Stopped, what: &'static str) -> Result<Rest, TestbedError> {
    match end {
        End::Engine(end) => {
            if let Some(reason) = end.failure() {
                return Err(TestbedError::Closed(reason));
            }
            let engine = end.stream().map(|stream| stream.connection().send_stats().clone());
            let (info, last_read) = (end.info(now), end.last_read());
            Ok(Rest { engine, info, last_read: Some(last_read), tally: end.tally(), kernel: None })
        }
        End::Kernel(end) => {
            if stopped != Stopped::Done {
                end.stop();
            }
            let report = end.join().map_err(|source| TestbedError::Failed { what, source })?;
            Ok(Rest {
                tally: report.tally,
                last_read: Some(report.last_read),
                kernel: Some(report.counters),
                ..Rest::default()
            })
        }
    }
}

fn conclude(sides: [Side<End>; 2], began: Instant, now: Instant, stopped: Stopped) -> Result<Outcome, TestbedError> {
    let [sender, receiver] = sides;
    for tap in [sender.tap, receiver.tap].into_iter().flatten() {
        tap.finish().map_err(|source| TestbedError::Failed { what: "the capture file", source })?;
    }
    let (data, acks) = (sender.observer, receiver.observer);
    // Both ends are to be finished, even if the first of them has failed.
    let sender = finish_end(sender.end, now, stopped, "the sender's kernel");
    let receiver = finish_end(receiver.end, now, stopped, "the receiver's kernel");
    let (sender, receiver) = (sender?, receiver?);
    let until = if stopped == Stopped::Done { receiver.last_read.unwrap_or(now) } else { now };
    Ok(Outcome {
        delivered: Bytes(data.in_order()),
        elapsed: until.since(began),
        sent: sender.tally,
        received: receiver.tally,
        segments: data.segments_sent,
        retransmissions: data.retransmissions,
        spurious_retransmissions: data.duplicates_delivered,
        resets: data.resets + acks.resets,
        fins: [data.fins, acks.fins],
        engine: sender.engine,
        info: sender.info.or(receiver.info),
        kernel: sender.kernel,
    })
}
