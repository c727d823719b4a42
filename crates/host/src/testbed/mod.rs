//! A transfer between two live ends over an emulated path.
//!
//! | module | responsibility |
//! |---|---|
//! | `tcp` | the TCP of an end, as the user names it |
//! | `end`, `engine_end`, `kernel_end` | an end: the engine, or the kernel in a namespace |
//! | `workload` | the data of a transfer |
//! | `emulator` | forwards the packets between the ends |
//! | `observer`, `outcome` | what is measured, and the result |

mod emulator;
mod end;
mod engine_end;
mod kernel_end;
mod observer;
mod outcome;
mod tcp;
#[cfg(test)]
mod two_clocks;
mod workload;

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use reknit_path::{Direction, Phases, Pipe, Profile};
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_tcp::{Config, Info};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::Endpoints;

use self::emulator::{Emulator, Side, Stopped};
use self::end::TestHost;
use self::engine_end::{Application, EngineEnd};
pub use self::kernel_end::KernelCounters;
use self::kernel_end::{KernelEnd, Task};
use self::observer::Observer;
pub use self::outcome::{StopReason, TransferResult};
pub use self::tcp::{KernelTcp, Tcp, TcpError};
pub use self::workload::{Payload, PayloadDigest};
use self::workload::{Sink, Source};
use crate::capture::CaptureFile;
use crate::clock::Clock;
use crate::priority::RealTime;
use crate::punctuality::{Lateness, TimingAccuracy, waited_for_cpu};

/// Port of the end that accepts.
const SERVER_PORT: u16 = 7700;
/// Port of the engine if it opens the connection.
const CLIENT_PORT: u16 = 40_077;

/// Which end opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Initiator {
    /// The end that sends data.
    #[default]
    Sender,
    /// The end that receives data.
    Receiver,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The path; data goes forward.
    pub profile: Profile,
    /// Options of the engine.
    pub tcp: Config,
    /// The end that sends data.
    pub sender: Tcp,
    /// The end that receives data.
    pub receiver: Tcp,
    /// Which end opens the connection.
    pub opener: Initiator,
    /// The data to send.
    pub payload: Payload,
    /// Length of the transfer, or its time limit.
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

/// What to do if the kernel refuses.
fn as_root(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied { "run it as root; " } else { "" }
}

/// Why a transfer failed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The machine does not allow it.
    #[error("cannot set up {what}: {source}; {}`reknit doctor` says what this machine can run", as_root(source))]
    SetUp {
        /// What could not be set up.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// Reading or writing failed during the transfer.
    #[error("{what}: {source}")]
    Failed {
        /// Where it failed.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A capture file could not be written.
    #[error("the capture file: {0}")]
    Capture(io::Error),
    /// The engine's connection failed.
    #[error("the connection of reknit's TCP failed: {0}")]
    Closed(reknit_stack::Error),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// Runs the transfer. `cancel` ends it early.
///
/// # Errors
/// If the machine cannot run it, or the transfer fails. It is no error if the transfer is not finished after
/// `spec.duration`; see [`TransferResult::ending`].
pub fn run(spec: &Spec, cancel: &AtomicBool) -> Result<TransferResult, TestbedError> {
    let clock = Clock::start();
    let stop_at = clock.now() + spec.duration;
    let (ready, all_ready) = mpsc::channel();
    let (go_sender, go_receiver) = (mpsc::channel(), mpsc::channel());
    let sender = make_end(spec, true, clock, stop_at, ready.clone(), go_sender.1)?;
    let receiver = make_end(spec, false, clock, stop_at, ready, go_receiver.1)?;
    // Each kernel end reports when it is ready to accept; then both may begin.
    while all_ready.recv().is_ok() {}
    let began = clock.now();
    drop((go_sender.0, go_receiver.0));
    let sides = [
        make_side(spec, sender, Direction::Forward, spec.capture_sender.as_deref(), clock, began)?,
        make_side(spec, receiver, Direction::Reverse, spec.capture_receiver.as_deref(), clock, began)?,
    ];
    let waited_before = waited_for_cpu();
    let mut emulator = Emulator { clock, sides, cancel, lateness: Lateness::default() };
    let real_time = RealTime::begin();
    let stopped = emulator.run(stop_at).map_err(|source| TestbedError::Failed { what: "the emulated path", source })?;
    drop(real_time);
    if stopped == Stopped::Cancelled {
        return Err(TestbedError::Cancelled);
    }
    let span = Span { began, now: clock.now(), stopped };
    let waited = waited_for_cpu().saturating_sub(waited_before);
    let outcome = conclude(emulator.sides, span, &emulator.lateness, waited)?;
    let unfinished = stopped == Stopped::TimeIsUp && spec.payload != Payload::Endless;
    Ok(if unfinished { TransferResult { ending: StopReason::Unfinished, ..outcome } } else { outcome })
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
) -> Result<TestHost, TestbedError> {
    let opens = is_sender == (spec.opener == Initiator::Sender);
    let [sender, receiver] = addresses(spec.ipv6);
    let (local, remote) = if is_sender { (sender, receiver) } else { (receiver, sender) };
    let (local_port, remote_port) = if opens { (CLIENT_PORT, SERVER_PORT) } else { (SERVER_PORT, CLIENT_PORT) };
    let local = SocketAddr::new(local, local_port);
    let remote = SocketAddr::new(remote, remote_port);
    let set_up = |what| move |source| TestbedError::SetUp { what, source };
    match if is_sender { &spec.sender } else { &spec.receiver } {
        Tcp::Kernel(kernel) => {
            let task = Task {
                local,
                remote,
                opens,
                sends: is_sender.then(|| (spec.payload.clone(), stop_at)),
                kernel: kernel.clone(),
                clock,
            };
            let end = KernelEnd::start(task, ready, go).map_err(set_up("a network namespace with a TUN device"))?;
            Ok(TestHost::Kernel(end))
        }
        Tcp::Engine(_, composition) => {
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
                .map_err(set_up("reknit's TCP"))?;
            Ok(TestHost::Engine(Box::new(end)))
        }
    }
}

fn make_side(
    spec: &Spec,
    mut end: TestHost,
    direction: Direction,
    capture: Option<&Path>,
    clock: Clock,
    began: Instant,
) -> Result<Side<TestHost>, TestbedError> {
    let name = if direction == Direction::Forward { "sender" } else { "receiver" };
    let capture = match capture {
        Some(path) => Some(CaptureFile::new(path, name, clock).map_err(|error| {
            let source = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            TestbedError::Capture(source)
        })?),
        None => None,
    };
    if let TestHost::Engine(engine) = &mut end {
        engine.start(began).map_err(TestbedError::Closed)?;
    }
    let pipe = Pipe::new(&spec.profile, direction, spec.seed, Phases::Drawn);
    Ok(Side { end, pipe, capture, observer: Observer::default() })
}

/// Begin and end of the transfer, and how it stopped.
#[derive(Clone, Copy)]
struct Span {
    began: Instant,
    now: Instant,
    stopped: Stopped,
}

/// The results of one end.
#[derive(Default)]
struct EndResults {
    tally: PayloadDigest,
    last_read: Option<Instant>,
    engine: Option<SendStats>,
    receive: Option<ReceiveStats>,
    info: Option<Info>,
    kernel: Option<KernelCounters>,
    waited_for_cpu: Duration,
    refused: u64,
}

fn finish_end(end: TestHost, span: Span, what: &'static str) -> Result<EndResults, TestbedError> {
    match end {
        TestHost::Engine(end) => {
            if let Some(error) = end.failure() {
                return Err(TestbedError::Closed(error));
            }
            let (socket, last_read) = (end.info(span.now), Some(end.last_read()));
            let engine = socket.as_ref().map(|socket| socket.sent.clone());
            let receive = socket.as_ref().map(|socket| socket.received);
            let info = socket.map(|socket| socket.tcp);
            Ok(EndResults { engine, receive, info, last_read, tally: end.tally(), ..EndResults::default() })
        }
        TestHost::Kernel(end) => {
            if span.stopped != Stopped::Done {
                end.stop();
            }
            let refused = end.refused;
            let report = end.join().map_err(|source| TestbedError::Failed { what, source })?;
            Ok(EndResults {
                tally: report.tally,
                last_read: Some(report.last_read),
                kernel: Some(report.counters),
                waited_for_cpu: report.waited_for_cpu,
                refused,
                ..EndResults::default()
            })
        }
    }
}

/// Collects the results. `waited` is how long the emulator's thread was ready to run but had no processor.
fn conclude(
    sides: [Side<TestHost>; 2],
    span: Span,
    lateness: &Lateness,
    waited: Duration,
) -> Result<TransferResult, TestbedError> {
    let [sender, receiver] = sides;
    for capture in [sender.capture, receiver.capture].into_iter().flatten() {
        capture.finish().map_err(TestbedError::Capture)?;
    }
    let (data, acks) = (sender.observer, receiver.observer);
    // Both ends must be finished, even if the first one has failed.
    let sender = finish_end(sender.end, span, "the sender's kernel");
    let receiver = finish_end(receiver.end, span, "the receiver's kernel");
    let (sender, receiver) = (sender?, receiver?);
    let until = if span.stopped == Stopped::Done { receiver.last_read.unwrap_or(span.now) } else { span.now };
    let elapsed = until.since(span.began);
    let waited = waited + sender.waited_for_cpu + receiver.waited_for_cpu;
    Ok(TransferResult {
        ending: if span.stopped == Stopped::Done { StopReason::Finished } else { StopReason::Stopped },
        delivered: Bytes(data.in_order()),
        elapsed,
        sent: sender.tally,
        received: receiver.tally,
        segments: data.segments_sent,
        retransmissions: data.retransmissions,
        spurious_retransmissions: data.duplicates_delivered,
        resets: data.resets + acks.resets,
        fins: [data.fins, acks.fins],
        engine: sender.engine,
        info: sender.info.or(receiver.info),
        receive: receiver.receive,
        kernel: sender.kernel,
        receiver_kernel: receiver.kernel,
        punctuality: TimingAccuracy::new(lateness, waited, elapsed, sender.refused + receiver.refused),
    })
}
