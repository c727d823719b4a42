//! An end whose TCP is the running kernel's, in a network namespace of its own.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use reknit_units::Instant;
use tun_rs::SyncDevice;

use crate::clock::Clock;
use crate::namespace;
use crate::workload::{Payload, Sink, Source, Tally};

/// Bytes per read and write.
const CHUNK: usize = 64 << 10;

/// What the kernel end has to do.
pub(crate) struct Task {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// It opens the connection; else it accepts one.
    pub(crate) opens: bool,
    /// What it sends, until when; else it receives.
    pub(crate) sends: Option<(Payload, Instant)>,
    /// Congestion control, as the kernel calls it.
    pub(crate) congestion_control: String,
    pub(crate) clock: Clock,
    /// No read or write takes longer.
    pub(crate) patience: Duration,
}

/// What the end's thread shares with the one that started it.
#[derive(Default)]
struct Shared {
    /// The connection's socket, once there is one.
    socket: Mutex<Option<TcpStream>>,
    /// The socket was shut down on purpose.
    stopped: AtomicBool,
    failed: AtomicBool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TcpStream>> {
        self.socket.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// What it did.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tally: Tally,
    /// When the last byte was read.
    pub(crate) last_read: Instant,
    pub(crate) counters: KernelCounters,
}

/// Counters of the kernel's TCP (`/proc/net/snmp` and `/proc/net/netstat`) by their names there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelCounters(BTreeMap<String, u64>);

impl KernelCounters {
    /// The counter called `name`, such as `TCPTimeouts`; 0 if the kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The counters of the calling thread's network namespace.
    fn read() -> KernelCounters {
        let mut counters = BTreeMap::new();
        for file in ["snmp", "netstat"] {
            let text = fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.chunks_exact(2).filter(|pair| pair[0].starts_with("Tcp")) {
                let names = pair[0].split_whitespace().skip(1);
                let values = pair[1].split_whitespace().skip(1);
                for (name, value) in names.zip(values) {
                    counters.insert(name.to_owned(), value.parse().unwrap_or(0));
                }
            }
        }
        KernelCounters(counters)
    }
}

/// An end at work in its thread.
pub(crate) struct KernelEnd {
    pub(crate) device: SyncDevice,
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<Report>>,
}

impl KernelEnd {
    /// Makes the namespace and gets ready; hangs `ready` up then, and begins when `go` is hung up.
    pub(crate) fn start(task: Task, ready: Sender<Infallible>, go: Receiver<Infallible>) -> io::Result<KernelEnd> {
        let (hand_over, device) = std::sync::mpsc::channel();
        let shared = Arc::new(Shared::default());
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("kernel end".to_owned()).spawn(move || {
            let device = namespace::enter(task.local.ip(), task.remote.ip());
            let failed = device.as_ref().err().map(|error| io::Error::new(error.kind(), error.to_string()));
            let _ = hand_over.send(device);
            if let Some(error) = failed {
                return Err(error);
            }
            let report = task.run(&theirs, ready, &go);
            theirs.failed.store(report.is_err(), Ordering::Relaxed);
            report
        })?;
        let device = device.recv().map_err(|_| io::Error::other("the kernel end's thread died"))??;
        Ok(KernelEnd { device, shared, thread })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// True if the task ended with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Ends whatever the task is waiting for; that counts as its regular end.
    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        if let Some(socket) = self.shared.lock().as_ref() {
            // It may be closed already.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    pub(crate) fn join(self) -> io::Result<Report> {
        self.thread.join().map_err(|_| io::Error::other("the kernel end's thread panicked"))?
    }
}

impl Task {
    fn run(self, shared: &Shared, ready: Sender<Infallible>, go: &Receiver<Infallible>) -> io::Result<Report> {
        let listener = if self.opens { None } else { Some(TcpListener::bind(self.local)?) };
        drop(ready); // nothing is ever sent: hanging up is the signal
        let _ = go.recv();
        let stream = match listener {
            Some(listener) => accept(&listener, self.patience)?,
            None => TcpStream::connect_timeout(&self.remote, self.patience)?,
        };
        setsockopt(&stream, sockopt::TcpCongestion, &self.congestion_control.clone().into())?;
        stream.set_read_timeout(Some(self.patience))?;
        stream.set_write_timeout(Some(self.patience))?;
        *shared.lock() = Some(stream.try_clone()?);
        let done = match &self.sends {
            Some((payload, stop_at)) => self.send(&stream, payload, *stop_at),
            None => self.receive(&stream),
        };
        let (tally, last_read) = match done {
            Err(_) if shared.stopped.load(Ordering::Relaxed) => (Tally::default(), self.clock.now()),
            other => other?,
        };
        Ok(Report { tally, last_read, counters: KernelCounters::read() })
    }

    fn send(&self, mut stream: &TcpStream, payload: &Payload, stop_at: Instant) -> io::Result<(Tally, Instant)> {
        let mut source = Source::new(payload, stop_at)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let n = source.take(self.clock.now(), &mut chunk)?;
            if n == 0 {
                break;
            }
            stream.write_all(&chunk[..n])?;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // The peer closes when it has everything.
        let rest = stream.read(&mut chunk)?;
        if rest > 0 {
            return Err(io::Error::other("the receiver sent data"));
        }
        Ok((source.tally(), self.clock.now()))
    }

    fn receive(&self, mut stream: &TcpStream) -> io::Result<(Tally, Instant)> {
        let mut sink = Sink::default();
        let mut chunk = vec![0; CHUNK];
        let mut last_read = self.clock.now();
        loop {
            let n = stream.read(&mut chunk)?;
            if n == 0 {
                break;
            }
            last_read = self.clock.now();
            sink.put(&chunk[..n]);
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        Ok((sink.tally(), last_read))
    }
}

/// `accept` with a limit; the standard library has none.
fn accept(listener: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::MAX);
    if poll(&mut fds, timeout)? == 0 {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody connected"));
    }
    Ok(listener.accept()?.0)
}
