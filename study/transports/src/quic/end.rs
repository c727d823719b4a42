//! One end of a connection of quinn or of its fork noq. Each of the two modules includes this file; `proto` is its crate, and
//! `calls` has the few functions in which the two differ.

use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use reknit_sim::{Counters, Endpoint, Ends, Opening, Transmit};
use reknit_units::Instant;

use super::calls;
use super::cipher::Plain;
use super::proto::{
    self, ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent, Dir,
    EcnCodepoint, EndpointConfig, Event, ServerConfig, StreamId, TransportConfig,
};
use crate::clock::{from_std, to_std};
use crate::quic::{CID, HEADERS, stream_data};

/// What the application writes at a time.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];

struct End {
    endpoint: proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    peer: SocketAddr,
    stream: Option<StreamId>,
    /// Bytes that the application has not written yet.
    unwritten: u64,
    received: u64,
    /// The congestion window after the last event.
    window: u64,
    /// How often it became smaller.
    cuts: u64,
    undos: u64,
    /// Packets that belong to no connection.
    responses: VecDeque<Vec<u8>>,
}

/// Both ends of a new connection with these settings, with the windows of the variants.
pub(super) fn open(opening: &Opening, mut config: TransportConfig) -> Ends {
    let window = u32::try_from(opening.receive_buffer.0).unwrap_or(u32::MAX);
    config.receive_window(window.into()).stream_receive_window(window.into());
    // As with the variants, only the receiver limits what the application may write, and idle connections stay.
    config.send_window(1 << 40).max_idle_timeout(None);
    let config = Arc::new(config);
    Ends { sender: Box::new(End::connect(opening, config.clone())), receiver: Box::new(End::listen(opening, config)) }
}

impl End {
    /// The end that opens the connection.
    fn connect(opening: &Opening, transport: Arc<TransportConfig>) -> End {
        let mut end = End::new(opening.seed, None, 2);
        let mut config = ClientConfig::new(Arc::new(Plain));
        let first = SeededIds(opening.seed ^ 3).generate_cid();
        config.transport_config(transport).initial_dst_cid_provider(Arc::new(move || first));
        let connection = end.endpoint.connect(to_std(opening.now), config, end.peer, "receiver");
        end.connection = Some(connection.expect("a new endpoint can connect"));
        end
    }

    /// The end that waits for it.
    fn listen(opening: &Opening, transport: Arc<TransportConfig>) -> End {
        let mut config = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        config.transport_config(transport);
        End::new(opening.seed ^ 1, Some(Arc::new(config)), 1)
    }

    fn new(seed: u64, server: Option<Arc<ServerConfig>>, peer: u8) -> End {
        let mut config = EndpointConfig::new(Arc::new(Plain));
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        config.rng_seed(Some(key));
        calls::set_ids(&mut config, move || Box::new(SeededIds(seed)));
        End {
            endpoint: calls::endpoint(config, server),
            connection: None,
            peer: SocketAddr::from((Ipv4Addr::new(10, 0, 0, peer), 4433)),
            stream: None,
            unwritten: 0,
            received: 0,
            window: 0,
            cuts: 0,
            undos: 0,
            responses: VecDeque::new(),
        }
    }

    /// Does what events ask for, and lets the application write and read.
    fn drive(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { .. } = event {
                self.unwritten = 0;
            }
        }
        let (window, undos) = calls::window(connection);
        self.cuts += u64::from(window < self.window);
        (self.window, self.undos) = (window, undos);
        if connection.side().is_client() {
            write(connection, &mut self.stream, &mut self.unwritten);
        } else {
            self.received += read(connection, &mut self.stream);
        }
    }
}

fn write(connection: &mut Connection, stream: &mut Option<StreamId>, unwritten: &mut u64) {
    *stream = stream.or_else(|| connection.streams().open(Dir::Uni));
    let Some(id) = *stream else { return };
    while *unwritten > 0 {
        let len = usize::try_from(*unwritten).unwrap_or(usize::MAX).min(CHUNK.len());
        let Some(written) = calls::write(connection, id, Bytes::from_static(&CHUNK[..len])) else { return };
        *unwritten -= written as u64;
        if *unwritten == 0 {
            let _ = connection.send_stream(id).finish(); // the peer may have stopped the stream
        }
    }
}

fn read(connection: &mut Connection, stream: &mut Option<StreamId>) -> u64 {
    *stream = stream.or_else(|| connection.streams().accept(Dir::Uni));
    let Some(id) = *stream else { return 0 };
    let mut received = 0;
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            received += chunk.bytes.len() as u64;
        }
        let _ = chunks.finalize(); // asks to transmit, which is done after every event
    }
    received
}

impl Endpoint for End {
    fn write(&mut self, _: Instant, len: u64) {
        self.unwritten += len;
        self.drive();
    }

    fn handle(&mut self, now: Instant, packet: &[u8]) {
        let Some((mark, datagram)) = packet.split_first() else { return };
        let (now, ecn) = (to_std(now), EcnCodepoint::from_bits(*mark));
        let mut buffer = Vec::new();
        let event = calls::handle(&mut self.endpoint, now, self.peer, ecn, BytesMut::from(datagram), &mut buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                if let Ok(connection) = self.endpoint.accept(incoming, now, &mut buffer, None) {
                    self.connection = Some(connection);
                }
            }
            Some(DatagramEvent::Response(_)) => self.responses.push_back(buffer),
            None => {}
        }
        self.drive();
    }

    fn on_deadline(&mut self, now: Instant) {
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(to_std(now));
        }
        self.drive();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        // The first byte of a packet stands for the ECN field of the IP header.
        let (mark, mut packet) = if let Some(response) = self.responses.pop_front() {
            (0, response)
        } else {
            let mut datagram = Vec::with_capacity(1500);
            let transmit = calls::poll_transmit(&mut self.connection.as_mut()?.1, to_std(now), &mut datagram)?;
            self.drive();
            (transmit.ecn.map_or(0, |mark| mark as u8), datagram)
        };
        let size = reknit_units::Bytes(packet.len() as u64 + HEADERS);
        let data = stream_data(&packet);
        packet.insert(0, mark);
        Some(Transmit { packet, size, data })
    }

    fn deadline(&mut self, _: Instant) -> Instant {
        let at = self.connection.as_mut().and_then(|(_, connection)| connection.poll_timeout());
        at.map_or(Instant::NEVER, from_std)
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn counters(&self) -> Counters {
        // The crates count the losses that may reduce the window, but not whether they do. Probe timeouts are not counted.
        Counters { cuts: Some(self.cuts), undos: Some(self.undos), timeouts: None }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("received", &self.received).finish_non_exhaustive()
    }
}

/// Connection IDs that depend only on a seed (`SplitMix64`).
struct SeededIds(u64);

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ConnectionId::new(&(mixed ^ mixed >> 31).to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}
