//! An end whose TCP is reknit's: a stack with one connection, and its application.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use reknit_stack::{Error, ListenOptions, ListenerId, Options, Shutdown, SocketId, SocketInfo, SocketOptions, Stack};
use reknit_tcp::{Config, State};
use reknit_units::{Bytes, Instant};
use reknit_variants::Composition;
use reknit_wire::{Decoded, Endpoints};

use super::workload::{PayloadDigest, Sink, Source};
use crate::namespace::MTU;

/// The least size of the send buffer.
const SEND_BUFFER: Bytes = Bytes(4 << 20);
/// Bytes per read and write.
const CHUNK: usize = 64 << 10;

/// The application at this end.
pub(crate) enum Application {
    Sends(Source),
    Receives(Sink),
}

/// A host with one connection, and its application.
pub(crate) struct EngineEnd {
    stack: Stack,
    endpoints: Endpoints,
    opens: bool,
    options: SocketOptions,
    listener: Option<ListenerId>,
    socket: Option<SocketId>,
    application: Application,
    /// The part of `chunk` that the send buffer has not taken yet.
    unsent: Range<usize>,
    is_closed: bool,
    last_read: Instant,
    chunk: Vec<u8>,
}

impl EngineEnd {
    pub(crate) fn new(
        endpoints: Endpoints,
        opens: bool,
        variant: Arc<Composition>,
        config: &Config,
        application: Application,
    ) -> io::Result<EngineEnd> {
        let mut secret = [0; 32];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut secret)?;
        let stack = Options {
            addresses: vec![endpoints.source.ip()],
            mtu: MTU,
            detect_black_holes: false, // the paths lose packets, but none for its size
            ..Options::default()
        };
        // Only the options of the engine limit the window, as in simulation.
        let receive_window = config.receive_buffer_size();
        let send_buffer = SEND_BUFFER.max(receive_window);
        let options = SocketOptions {
            config: config.clone(),
            receive_window,
            send_buffer,
            largest_send_buffer: send_buffer,
            ..SocketOptions::of(variant)
        };
        Ok(EngineEnd {
            stack: Stack::new(Instant::ZERO, stack, secret),
            endpoints,
            opens,
            options,
            listener: None,
            socket: None,
            application,
            unsent: 0..0,
            is_closed: false,
            last_read: Instant::ZERO,
            chunk: vec![0; CHUNK],
        })
    }

    /// Opens the connection, or listens.
    pub(crate) fn start(&mut self, now: Instant) -> Result<(), Error> {
        self.last_read = now;
        let Endpoints { source, destination } = self.endpoints;
        if self.opens {
            self.socket = Some(self.stack.connect(now, Some(source), destination, &self.options)?);
        } else {
            let listening = ListenOptions { socket: self.options.clone(), ..ListenOptions::default() };
            self.listener = Some(self.stack.listen(source, &listening)?);
        }
        Ok(())
    }

    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Decoded<'_>) {
        self.stack.on_segment(now, packet);
    }

    pub(crate) fn on_icmp(&mut self, now: Instant, message: &[u8]) {
        self.stack.on_packet(now, message);
    }

    /// Runs timers and the application, then returns the next packet to send.
    pub(crate) fn poll(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool> {
        self.run_application(now)?;
        self.stack.on_timer(now);
        Ok(self.stack.poll_packet(now, packet))
    }

    fn run_application(&mut self, now: Instant) -> io::Result<()> {
        while self.stack.next_event().is_some() {} // it is asked often enough without them
        if let Some(socket) = self.listener.and_then(|listener| self.stack.accept(listener)) {
            self.socket = Some(socket);
            // There is one connection; others are refused.
            self.listener.take().into_iter().for_each(|listener| self.stack.unlisten(now, listener));
        }
        let Some(socket) = self.socket.filter(|socket| self.stack.state(*socket) >= Some(State::Established)) else {
            return Ok(());
        };
        match &mut self.application {
            Application::Sends(source) => {
                while !self.is_closed {
                    if self.unsent.is_empty() {
                        self.unsent = 0..source.take(now, &mut self.chunk)?;
                        self.is_closed = self.unsent.is_empty();
                    }
                    let Ok(n) = self.stack.write(socket, &self.chunk[self.unsent.clone()]) else { break };
                    self.unsent.start += n;
                    if self.is_closed {
                        let _ = self.stack.shutdown(now, socket, Shutdown::Write);
                    }
                }
            }
            Application::Receives(sink) => {
                while !self.is_closed {
                    let Ok(n) = self.stack.read(now, socket, &mut self.chunk) else { break };
                    if n == 0 {
                        self.is_closed = true;
                        let _ = self.stack.shutdown(now, socket, Shutdown::Write);
                    } else {
                        sink.put(&self.chunk[..n]);
                        self.last_read = now;
                    }
                }
            }
        }
        Ok(())
    }

    /// When this end next has something to do without a packet.
    pub(crate) fn deadline(&self) -> Instant {
        self.stack.deadline()
    }

    /// True once both directions are closed, or the connection has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.socket.is_some_and(|socket| self.stack.state(socket) >= Some(State::TimeWait))
    }

    /// Why the connection failed, if it did.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.stack.failure(self.socket?)
    }

    pub(crate) fn last_read(&self) -> Instant {
        self.last_read
    }

    /// The connection's variables and counters.
    pub(crate) fn info(&self, now: Instant) -> Option<SocketInfo> {
        self.stack.info(now, self.socket?)
    }

    pub(crate) fn tally(self) -> PayloadDigest {
        match self.application {
            Application::Sends(source) => source.tally(),
            Application::Receives(sink) => sink.tally(),
        }
    }
}
