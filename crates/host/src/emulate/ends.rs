//! The threads that live in the namespaces of the two ends, and the programs that they run there.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use tun_rs::SyncDevice;

use super::children::{self, Unacknowledged};
use super::connections::{self, Accepted};
use super::names::Names;
use super::namespaces::{self, Subnet};
use crate::service::clock;

/// How long a server has until it must accept connections.
const SERVER_START: Duration = Duration::from_secs(5);

/// How the command ended.
pub(super) struct CommandExit {
    /// Its exit code.
    pub(super) code: u8,
    /// Packets from inside that found the device's queue full.
    pub(super) dropped: u64,
    /// The default congestion control inside.
    pub(super) congestion_control: String,
    /// What was then not acknowledged, and how long the command had ended.
    pub(super) unacknowledged: Unacknowledged,
    pub(super) waited: Duration,
}

/// The inner end.
pub(super) struct InnerNamespace {
    launch: Option<Sender<Command>>,
    /// The command's process, once it runs.
    started: Receiver<io::Result<u32>>,
    /// Becomes readable when everything inside has ended.
    pub(super) ended: Arc<EventFd>,
    /// The command has ended.
    pub(super) idle: Arc<AtomicBool>,
    /// Set to stop waiting for data in closed sockets.
    pub(super) hurry: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<CommandExit>>>,
}

impl InnerNamespace {
    /// Creates the namespace; returns its device too.
    pub(super) fn start(subnet: Subnet, names: Names, v6_beyond: bool) -> io::Result<(InnerNamespace, SyncDevice)> {
        let (hand_over, device) = channel();
        let (launch, launched) = channel::<Command>();
        let (report, started) = channel();
        let ended = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?);
        let idle = Arc::new(AtomicBool::new(false));
        let hurry = Arc::new(AtomicBool::new(false));
        let (their_end, their_idle, their_hurry) = (ended.clone(), idle.clone(), hurry.clone());
        let thread = thread::Builder::new().name("inner end".to_owned()).spawn(move || {
            let made = namespaces::enter_empty()
                .and_then(|()| names.show())
                .and_then(|()| namespaces::become_inner(subnet, v6_beyond));
            let _ = hand_over.send(made);
            let ended = match launched.recv() {
                Ok(command) => run(command, &report, &their_idle, &their_hurry),
                Err(_) => Ok((0, Duration::ZERO)),
            };
            let unacknowledged = children::unacknowledged();
            let dropped = namespaces::dropped(namespaces::INNER);
            let congestion_control = namespaces::congestion_control();
            let _ = their_end.write(1);
            let (code, waited) = ended?;
            Ok(CommandExit { code, dropped, congestion_control, unacknowledged, waited })
        })?;
        let device = device.recv().map_err(|_| io::Error::other("the thread of the inner end died"))??;
        Ok((InnerNamespace { launch: Some(launch), started, ended, idle, hurry, thread: Some(thread) }, device))
    }

    /// Starts the command; returns the number of its process.
    pub(super) fn launch(&mut self, command: Command) -> io::Result<u32> {
        let gone = || io::Error::other("the thread of the inner end died");
        self.launch.take().ok_or_else(gone)?.send(command).map_err(|_| gone())?;
        self.started.recv().map_err(|_| gone())?
    }

    /// How the command ended.
    pub(super) fn join(mut self) -> io::Result<CommandExit> {
        let thread = self.thread.take().ok_or_else(|| io::Error::other("the inner end was joined twice"))?;
        thread.join().map_err(|_| io::Error::other("the thread of the inner end panicked"))?
    }
}

/// Runs the command to its end, then ends the processes that it has left behind. Returns the exit code, and how long the command
/// has ended.
fn run(
    mut command: Command,
    report: &Sender<io::Result<u32>>,
    idle: &AtomicBool,
    hurry: &AtomicBool,
) -> io::Result<(u8, Duration)> {
    let mut child = match children::start(&mut command) {
        Ok(child) => child,
        Err(error) => {
            let _ = report.send(Err(error));
            return Ok((0, Duration::ZERO));
        }
    };
    let _ = report.send(Ok(child.id()));
    let status = child.wait();
    let ended = clock::now();
    idle.store(true, Ordering::Relaxed);
    children::linger(|| hurry.load(Ordering::Relaxed));
    children::end_all();
    Ok((children::exit_code(status?), ended.elapsed()))
}

/// A request to the thread of the outer end.
enum Request {
    /// Accept connections to this port of any address, unless a program does already.
    Listen(u16, Sender<()>),
    /// Run this, and answer when it accepts connections.
    Serve(Command, Sender<io::Result<()>>),
}

/// A private outer end. Dropping it ends its server.
pub(super) struct OuterNamespace {
    /// The server is about to be ended, so its messages about that are not shown.
    ending: Arc<AtomicBool>,
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl OuterNamespace {
    /// Creates the namespace; returns its device too. `everywhere`: it answers for every address, and connections to
    /// others than its own go to `accepted`.
    pub(super) fn start(
        subnet: Subnet,
        everywhere: bool,
        accepted: Sender<Accepted>,
    ) -> io::Result<(OuterNamespace, SyncDevice)> {
        let (hand_over, device) = channel();
        let (requests, requested) = channel();
        let ending = Arc::new(AtomicBool::new(false));
        let theirs = ending.clone();
        let thread = thread::Builder::new().name("outer end".to_owned()).spawn(move || {
            let made = namespaces::enter_empty().and_then(|()| namespaces::become_outer(subnet, everywhere));
            let failed = made.is_err();
            let _ = hand_over.send(made);
            if !failed {
                serve(&requested, &accepted, &theirs);
            }
        })?;
        let device = device.recv().map_err(|_| io::Error::other("the thread of the outer end died"))??;
        Ok((OuterNamespace { ending, requests: Some(requests), thread: Some(thread) }, device))
    }

    fn request<T>(&self, make: impl FnOnce(Sender<T>) -> Request) -> Option<T> {
        let (answer, answered) = channel();
        self.requests.as_ref()?.send(make(answer)).ok()?;
        answered.recv().ok()
    }

    /// Accepts connections to this port of any address.
    pub(super) fn listen(&self, port: u16) {
        self.request(|answer| Request::Listen(port, answer));
    }

    /// Runs `line` in a shell; returns when it accepts connections.
    pub(super) fn serve(&self, line: &std::ffi::OsStr, environment: &[(String, String)]) -> io::Result<()> {
        let mut command = children::command(&["/bin/sh".into(), "-c".into(), line.to_owned()], environment);
        // Ctrl-C in the terminal is for the command, which may still need its server.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let died = || io::Error::other("the thread of the outer end died");
        self.request(|answer| Request::Serve(command, answer)).ok_or_else(died)?
    }
}

impl Drop for OuterNamespace {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves the requests until the channel is closed; then ends the processes at this end.
fn serve(requests: &Receiver<Request>, accepted: &Sender<Accepted>, ending: &Arc<AtomicBool>) {
    let mut server = None;
    for request in requests {
        match request {
            Request::Listen(port, answer) => {
                connections::accept(port, accepted);
                let _ = answer.send(());
            }
            Request::Serve(mut command, answer) => {
                let started = children::start(&mut command).and_then(|mut child| {
                    if let Some(said) = child.stderr.take() {
                        pass_on(said, ending.clone())?;
                    }
                    let ready = wait_until_it_serves(&mut child);
                    server = Some(child);
                    ready
                });
                let _ = answer.send(started);
            }
        }
    }
    children::end_all();
    if let Some(mut child) = server {
        let _ = child.wait();
    }
}

/// Prints the server's standard error until it is ended.
fn pass_on(mut said: ChildStderr, ending: Arc<AtomicBool>) -> io::Result<()> {
    thread::Builder::new().name("server's errors".to_owned()).spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(n @ 1..) = said.read(&mut chunk) {
            if !ending.load(Ordering::Relaxed) {
                let _ = io::stderr().write_all(&chunk[..n]);
            }
        }
    })?;
    Ok(())
}

fn wait_until_it_serves(server: &mut std::process::Child) -> io::Result<()> {
    let began = clock::now();
    let mut state = Ok(None);
    let done = children::wait_until(SERVER_START, clock::now, || {
        state = server.try_wait();
        !matches!(state, Ok(None)) || children::has_server()
    });
    let waited = began.elapsed().as_secs_f64();
    match state? {
        Some(status) => {
            let status = status.to_string().replace(": ", " ");
            let why = format!("ended after {waited:.1} s, before it accepted connections ({status})");
            Err(io::Error::other(why))
        }
        None if done => Ok(()),
        None => Err(io::Error::other(format!("accepted no connections within {waited:.1} s"))),
    }
}
