//! An end whose TCP is the engine, with its application.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use reknit_tcp::segment::Flags;
use reknit_tcp::{CloseReason, Config, Identity, Info, IsnKey, Output, State, Stream, reset_for};
use reknit_units::{Bytes, Instant};
use reknit_variants::Composition;
use reknit_wire::{Decoded, Endpoints, encode};

use crate::workload::{Sink, Source, Tally};

/// Size of the send buffer.
const SEND_BUFFER: Bytes = Bytes(4 << 20);
/// Bytes per read and write.
const CHUNK: usize = 64 << 10;

/// The application at this end.
pub(crate) enum Application {
    Sends(Source),
    Receives(Sink),
}

/// A connection of the engine, and its application.
pub(crate) struct EngineEnd {
    endpoints: Endpoints,
    listens: bool,
    composition: Arc<Composition>,
    config: Arc<Config>,
    key: IsnKey,
    stream: Option<Stream>,
    application: Application,
    exhausted: bool,
    last_read: Instant,
    /// Packets to send that are not part of the connection.
    refusals: Vec<Vec<u8>>,
    payload: Vec<u8>,
    chunk: Vec<u8>,
}

impl EngineEnd {
    pub(crate) fn new(
        endpoints: Endpoints,
        opens: bool,
        composition: Arc<Composition>,
        config: &Config,
        application: Application,
    ) -> io::Result<EngineEnd> {
        let mut key = [0; 16];
        io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut key)?;
        Ok(EngineEnd {
            endpoints,
            listens: !opens,
            config: Arc::new(composition.configure(config.clone())),
            composition,
            key: IsnKey::new(key),
            stream: None,
            application,
            exhausted: false,
            last_read: Instant::ZERO,
            refusals: Vec::new(),
            payload: Vec::new(),
            chunk: vec![0; CHUNK],
        })
    }

    /// Opens the connection, if this end does.
    pub(crate) fn start(&mut self, now: Instant) {
        self.last_read = now;
        if !self.listens {
            let (plugins, identity) = (self.composition.build(), self.identity(now));
            let stream = Stream::connect(now, &self.config, plugins, identity, SEND_BUFFER);
            self.stream = Some(self.with_secret(stream));
        }
    }

    fn identity(&self, now: Instant) -> Identity {
        let Endpoints { source, destination } = self.endpoints;
        Identity {
            isn: self.key.isn(now, source, destination),
            timestamp_offset: self.key.timestamp_offset(source, destination),
        }
    }

    fn with_secret(&self, mut stream: Stream) -> Stream {
        stream.set_secret(self.key.secret(self.endpoints.source, self.endpoints.destination));
        stream
    }

    /// A packet arrives. If it belongs to no connection, it is answered with a RST, as any host does.
    pub(crate) fn on_packet(&mut self, now: Instant, packet: &Decoded<'_>) {
        let incoming = packet.endpoints.reversed();
        if self.stream.is_none() && self.listens && incoming.source == self.endpoints.source {
            self.accept(now, incoming.destination, packet);
        }
        match &mut self.stream {
            Some(stream) if incoming == self.endpoints => stream.on_segment(now, &packet.segment, packet.payload),
            _ if packet.segment.flags.has(Flags::RST) => {}
            _ => {
                let mut refusal = Vec::new();
                encode(incoming, &reset_for(&packet.segment), &[], &mut refusal);
                self.refusals.push(refusal);
            }
        }
    }

    fn accept(&mut self, now: Instant, remote: SocketAddr, packet: &Decoded<'_>) {
        if packet.segment.flags.has(Flags::SYN) && !packet.segment.flags.has(Flags::ACK) {
            self.endpoints.destination = remote;
            let (plugins, identity) = (self.composition.build(), self.identity(now));
            let stream = Stream::listen(now, &self.config, plugins, identity, SEND_BUFFER);
            self.stream = Some(self.with_secret(stream));
        }
    }

    /// Runs timers and the application, then returns the next packet to send.
    pub(crate) fn poll(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(refusal) = self.refusals.pop() {
            *packet = refusal;
            return Ok(true);
        }
        self.run_application(now)?;
        let Some(stream) = &mut self.stream else { return Ok(false) };
        if stream.connection().deadline() <= now {
            stream.on_timer(now);
        }
        self.payload.clear();
        match stream.poll(now, &mut self.payload) {
            Output::Send(segment) => {
                encode(self.endpoints, &segment, &self.payload, packet);
                Ok(true)
            }
            Output::WakeAt(_) | Output::Idle => Ok(false),
        }
    }

    fn run_application(&mut self, now: Instant) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        if stream.connection().state() < State::Established {
            return Ok(());
        }
        match &mut self.application {
            Application::Sends(source) => {
                while !self.exhausted && stream.writable() >= self.chunk.len() {
                    let n = source.take(now, &mut self.chunk)?;
                    if n == 0 {
                        self.exhausted = true;
                        stream.close();
                    }
                    stream.write(&self.chunk[..n]);
                }
            }
            Application::Receives(sink) => loop {
                let n = stream.read(now, &mut self.chunk);
                if n == 0 {
                    break;
                }
                sink.put(&self.chunk[..n]);
                self.last_read = now;
            },
        }
        if matches!(self.application, Application::Receives(_)) && stream.connection().is_read_closed() {
            stream.close();
        }
        Ok(())
    }

    /// When this end next has something to do without a packet.
    pub(crate) fn deadline(&self) -> Instant {
        self.stream.as_ref().map_or(Instant::NEVER, |stream| stream.connection().deadline())
    }

    /// True once both directions are closed, or the connection has failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.connection().state() >= State::TimeWait)
    }

    /// Why the connection failed, if it did.
    pub(crate) fn failure(&self) -> Option<CloseReason> {
        let reason = self.stream.as_ref()?.connection().close_reason()?;
        (reason != CloseReason::Finished).then_some(reason)
    }

    pub(crate) fn last_read(&self) -> Instant {
        self.last_read
    }

    pub(crate) fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }

    pub(crate) fn info(&self, now: Instant) -> Option<Info> {
        self.stream.as_ref().map(|stream| stream.connection().info(now))
    }

    pub(crate) fn tally(self) -> Tally {
        match self.application {
            Application::Sends(source) => source.tally(),
            Application::Receives(sink) => sink.tally(),
        }
    }
}
