//! An end that uses the TCP of the running kernel, in a separate network namespace.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, socket, sockopt};
use reknit_units::{Duration as Span, Instant};
use tun_rs::SyncDevice;

use super::tcp::KernelTcp;
use super::workload::{Payload, PayloadDigest, Sink, Source};
use crate::clock::Clock;
use crate::namespace;
use crate::priority::RealTime;
use crate::punctuality::waited_for_cpu;

/// Bytes per read and write.
const CHUNK: usize = 64 << 10;
/// Longest wait for a connection before the thread checks whether it must stop, in ms.
const NAP: u8 = 50;
/// If the queue of the device is full, a packet is written again after this time,
const PAUSE: Duration = Duration::from_micros(100);
/// up to this many times.
const ATTEMPTS: u32 = 20;

/// The task of a kernel end.
pub(crate) struct Task {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// True if it opens the connection, false if it accepts one.
    pub(crate) opens: bool,
    /// What it sends, and until when; none if it receives.
    pub(crate) sends: Option<(Payload, Instant)>,
    pub(crate) kernel: KernelTcp,
    pub(crate) clock: Clock,
}

/// State shared by the end's thread and the thread that started it.
#[derive(Default)]
struct Shared {
    /// The socket of the connection, once it exists.
    socket: Mutex<Option<TcpStream>>,
    /// True if the task must end.
    stopped: AtomicBool,
    failed: AtomicBool,
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<TcpStream>> {
        self.socket.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Ends the task's wait; the task then counts as finished.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Some(socket) = self.lock().as_ref() {
            // The socket may already be closed.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// From now on [`Shared::stop`] shuts down `socket`.
    fn take_charge_of(&self, socket: TcpStream) {
        *self.lock() = Some(socket);
        if self.is_stopped() {
            self.stop();
        }
    }

    /// Returns when `descriptor` is ready, or with an error when the task is stopped.
    fn wait_for(&self, descriptor: BorrowedFd<'_>, events: PollFlags) -> io::Result<()> {
        let mut descriptors = [PollFd::new(descriptor, events)];
        while !self.is_stopped() {
            match poll(&mut descriptors, NAP) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::TimedOut, "stopped before the connection was established"))
    }
}

/// The result of the task.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) tally: PayloadDigest,
    /// When the last byte was read.
    pub(crate) last_read: Instant,
    pub(crate) counters: KernelCounters,
    /// How long its thread was ready to run but had no processor.
    pub(crate) waited_for_cpu: Span,
}

/// Counters of the kernel's TCP, with the names in `/proc/net/snmp` and `/proc/net/netstat`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelCounters(BTreeMap<String, u64>);

impl KernelCounters {
    /// The counter `name`, such as `TCPTimeouts`; 0 if the kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// The counters that are not 0.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        self.0.iter().filter(|(_, count)| **count > 0).map(|(name, count)| (name.clone(), *count)).collect()
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

/// A kernel end whose thread is running. Dropping it stops the task, and the namespace ends with the thread.
pub(crate) struct KernelEnd {
    pub(crate) device: SyncDevice,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<Report>>>,
    /// Packets that the device finally refused.
    pub(crate) refused: u64,
}

impl Drop for KernelEnd {
    fn drop(&mut self) {
        self.stop();
    }
}

impl KernelEnd {
    /// Creates the namespace and prepares the task; closes `ready` then, and begins when `go` is closed.
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
        Ok(KernelEnd { device, shared, thread: Some(thread), refused: 0 })
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Passes a packet to the kernel. If the queue of the device is full, tries again a little later; if it stays full, the
    /// packet is lost, as in any network.
    pub(crate) fn deliver(&mut self, packet: &[u8]) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            match self.device.send(packet) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_out_of_buffers(&error) => {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        self.refused += 1;
        Ok(())
    }

    /// Takes a packet that the kernel sends; none if there is none now.
    pub(crate) fn take(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.device.recv(packet) {
                Ok(n) => return Ok(Some(n)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// True if the task ended with an error.
    pub(crate) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Ends whatever the task is waiting for; the task then counts as finished.
    pub(crate) fn stop(&self) {
        self.shared.stop();
    }

    pub(crate) fn join(mut self) -> io::Result<Report> {
        let Some(thread) = self.thread.take() else { return Err(io::Error::other("the kernel end was joined twice")) };
        thread.join().map_err(|_| io::Error::other("the kernel end's thread panicked"))?
    }
}

fn is_out_of_buffers(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ENOBUFS as i32)
}

impl Task {
    fn run(self, shared: &Shared, ready: Sender<Infallible>, go: &Receiver<Infallible>) -> io::Result<Report> {
        let _real_time = RealTime::begin();
        let (tally, last_read) = match self.transfer(shared, ready, go) {
            Err(_) if shared.is_stopped() => (PayloadDigest::default(), self.clock.now()),
            other => other?,
        };
        let waited_for_cpu = waited_for_cpu();
        Ok(Report { tally, last_read, counters: KernelCounters::read(), waited_for_cpu })
    }

    /// Reads and writes have no timeout: the emulator has a time limit, and stops them then.
    fn transfer(
        &self,
        shared: &Shared,
        ready: Sender<Infallible>,
        go: &Receiver<Infallible>,
    ) -> io::Result<(PayloadDigest, Instant)> {
        self.kernel.apply().map_err(io::Error::other)?;
        let listener = if self.opens { None } else { Some(TcpListener::bind(self.local)?) };
        if let Some(listener) = &listener {
            self.choose_congestion_control(listener)?; // connections inherit it
        }
        drop(ready); // nothing is ever sent: closing it is the signal
        let _ = go.recv();
        let stream = match listener {
            Some(listener) => {
                shared.wait_for(listener.as_fd(), PollFlags::POLLIN)?;
                listener.accept()?.0
            }
            None => self.connect(shared)?,
        };
        shared.take_charge_of(stream.try_clone()?);
        match &self.sends {
            Some((payload, stop_at)) => self.send(&stream, payload, *stop_at),
            None => self.receive(&stream),
        }
    }

    /// Set before the connection exists, because one that begins with bbr stays paced after a switch.
    fn choose_congestion_control(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::TcpCongestion, &self.kernel.congestion_control.clone().into())?)
    }

    /// Opens the connection, unless the task is stopped first.
    fn connect(&self, shared: &Shared) -> io::Result<TcpStream> {
        let family = if self.remote.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(family, SockType::Stream, flags, None)?;
        self.choose_congestion_control(&socket)?;
        match nix::sys::socket::connect(socket.as_raw_fd(), &SockaddrStorage::from(self.remote)) {
            Ok(()) | Err(Errno::EINPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        shared.wait_for(socket.as_fd(), PollFlags::POLLOUT)?;
        let stream = TcpStream::from(socket);
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    fn send(
        &self,
        mut stream: &TcpStream,
        payload: &Payload,
        stop_at: Instant,
    ) -> io::Result<(PayloadDigest, Instant)> {
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
        // The peer closes when it has received everything.
        let rest = read(stream, &mut chunk)?;
        if rest > 0 {
            return Err(io::Error::other("the receiver sent data"));
        }
        Ok((source.tally(), self.clock.now()))
    }

    fn receive(&self, stream: &TcpStream) -> io::Result<(PayloadDigest, Instant)> {
        let mut sink = Sink::default();
        let mut chunk = vec![0; CHUNK];
        let mut last_read = self.clock.now();
        loop {
            let n = read(stream, &mut chunk)?;
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

/// `read` that is retried after a signal.
fn read(mut stream: &TcpStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
