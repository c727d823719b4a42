//! UDP sockets: what they are bound to, and the datagrams that wait in them. Called by `stack/datagrams.rs`: `deliver` as a
//! datagram arrives, `poll` when a packet may be sent, the rest by calls of the application.
//! Owned by [`crate::Stack`].

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use reknit_units::Bytes;
use reknit_wire::{Datagram, Endpoints, HOP_LIMIT, datagram_packet_len, encode_datagram};

use crate::bindings::Bindings;
use crate::error::Error;
use crate::events::{Event, Events};

/// The memory of a datagram in a queue, in addition to its bytes.
const OVERHEAD: usize = 96;

/// Names a UDP socket. It is never used for another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UdpId(u64);

impl UdpId {
    /// As one number, for other languages. It is not 0.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The reverse of [`UdpId::to_bits`]. Any number is allowed; most name no socket.
    pub fn from_bits(bits: u64) -> UdpId {
        UdpId(bits)
    }
}

/// Options of a UDP socket.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// The most bytes of datagrams that have arrived and were not received; each counts 96 bytes more. Further ones are dropped.
    pub receive_buffer: Bytes,
    /// The most bytes of packets that wait to be sent; each counts 96 bytes more. Then sending would block.
    pub send_buffer: Bytes,
    /// TTL or hop limit of packets that are sent.
    pub hop_limit: u8,
}

impl Default for UdpOptions {
    fn default() -> UdpOptions {
        UdpOptions { receive_buffer: Bytes(208 << 10), send_buffer: Bytes(208 << 10), hop_limit: HOP_LIMIT }
    }
}

/// A datagram that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Its length. If the buffer was shorter, the rest of the datagram is lost.
    pub len: usize,
    /// The sender.
    pub remote: SocketAddr,
    /// The address that it was sent to.
    pub local: SocketAddr,
}

/// To which addresses a socket is bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// These ports of an address of this host, or of all of them (`0.0.0.0`, `[::]`).
    Ports(IpAddr, RangeInclusive<u16>),
    /// All addresses and ports, of any host, that no other socket is bound to.
    Rest,
}

/// Datagrams, and the memory that they count for.
#[derive(Debug)]
struct Queue<T> {
    items: VecDeque<(T, Vec<u8>)>,
    bytes: usize,
    most: usize,
}

impl<T> Queue<T> {
    fn new(most: Bytes) -> Queue<T> {
        Queue { items: VecDeque::new(), bytes: 0, most: most.0 as usize }
    }

    /// False if the queue is full. An empty queue takes a datagram of any length.
    fn has_room(&self, len: usize) -> bool {
        self.items.is_empty() || self.bytes + len + OVERHEAD <= self.most
    }

    fn push(&mut self, item: T, bytes: Vec<u8>) {
        self.bytes += bytes.len() + OVERHEAD;
        self.items.push_back((item, bytes));
    }

    /// Drops those for which `keeps` is false.
    fn retain(&mut self, keeps: impl Fn(&T) -> bool) {
        self.items.retain(|(item, _)| keeps(item));
        self.bytes = self.items.iter().map(|(_, bytes)| bytes.len() + OVERHEAD).sum();
    }

    fn pop(&mut self) -> Option<(T, Vec<u8>)> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes -= bytes.len() + OVERHEAD;
        Some((item, bytes))
    }
}

/// What a connected socket knows of its peer.
#[derive(Debug)]
struct Connection {
    /// Source is this host.
    endpoints: Endpoints,
    /// A datagram was sent to it, so that an ICMP message may answer it.
    has_sent: bool,
    /// An ICMP message has reported this, and the application does not know yet.
    error: Option<Error>,
}

#[derive(Debug)]
struct Socket {
    /// None once it is closed and only sends what is queued.
    bound: Option<Bound>,
    /// Where it sends to and receives from, if it is connected: source is this host.
    connection: Option<Connection>,
    hop_limit: u8,
    arrived: Queue<Endpoints>,
    /// Whole packets.
    to_send: Queue<()>,
    /// Its owner has found nothing, and must be notified of the next datagram.
    wants_read: bool,
    /// Its owner has found the queue full, and must be notified when it has space.
    wants_write: bool,
}

/// All UDP sockets.
#[derive(Debug, Default)]
pub(crate) struct UdpSockets {
    sockets: BTreeMap<UdpId, Socket>,
    bindings: Bindings<UdpId>,
    /// The socket for [`Bound::Rest`].
    rest: Option<UdpId>,
    /// Sockets with something to send, in round-robin order.
    senders: VecDeque<UdpId>,
    count: u64,
}

impl UdpSockets {
    /// True if no socket is bound to any of it.
    pub(crate) fn is_free(&self, bound: &Bound) -> bool {
        match bound {
            Bound::Ports(ip, ports) => self.bindings.is_free(*ip, ports),
            Bound::Rest => self.rest.is_none(),
        }
    }

    /// Adds a socket that is bound to free ports. Called after [`UdpSockets::is_free`].
    pub(crate) fn add(&mut self, bound: Bound, options: &UdpOptions) -> UdpId {
        self.count += 1;
        let id = UdpId(self.count);
        match &bound {
            Bound::Ports(ip, ports) => self.bindings.add(*ip, ports.clone(), id),
            Bound::Rest => self.rest = Some(id),
        }
        let socket = Socket {
            bound: Some(bound),
            connection: None,
            hop_limit: options.hop_limit,
            arrived: Queue::new(options.receive_buffer),
            to_send: Queue::new(options.send_buffer),
            wants_read: true,
            wants_write: false,
        };
        self.sockets.insert(id, socket);
        id
    }

    /// Closes a socket. What waits to be sent is still sent.
    pub(crate) fn remove(&mut self, id: UdpId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        match socket.bound.take() {
            Some(Bound::Ports(ip, ports)) => self.bindings.remove(SocketAddr::new(ip, *ports.start())),
            Some(Bound::Rest) => self.rest = None,
            None => {}
        }
        socket.arrived = Queue::new(Bytes::ZERO);
        if socket.to_send.items.is_empty() {
            self.sockets.remove(&id);
        } else {
            (socket.wants_read, socket.wants_write) = (false, false);
        }
    }

    /// What a socket is bound to. None if there is no such socket.
    pub(crate) fn bound(&self, id: UdpId) -> Option<&Bound> {
        self.sockets.get(&id)?.bound.as_ref()
    }

    /// The socket for a datagram that arrives. A connected one is only for those of its peer.
    pub(crate) fn socket_for(&self, arrived: Endpoints) -> Option<UdpId> {
        let id = self.bindings.at(arrived.destination).or(self.rest)?;
        let connection = self.sockets.get(&id)?.connection.as_ref();
        connection.is_none_or(|connection| connection.endpoints == arrived.reversed()).then_some(id)
    }

    /// The socket exchanges datagrams with this destination only. What others have sent before is dropped.
    pub(crate) fn connect(&mut self, id: UdpId, endpoints: Endpoints) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        socket.connection = Some(Connection { endpoints, has_sent: false, error: None });
        socket.arrived.retain(|from| *from == endpoints.reversed());
    }

    /// The addresses of a connected socket: source is this host.
    pub(crate) fn connection(&self, id: UdpId) -> Option<Endpoints> {
        Some(self.sockets.get(&id)?.connection.as_ref()?.endpoints)
    }

    /// An ICMP message says that datagrams from `quoted.source` to `quoted.destination` do not arrive. True if a connected socket
    /// has sent some.
    pub(crate) fn on_unreachable(&mut self, quoted: Endpoints, error: Error, events: &mut Events) -> bool {
        let Some(id) = self.bindings.at(quoted.source) else { return false };
        let Some(socket) = self.sockets.get_mut(&id) else { return false };
        let connection = socket.connection.as_mut().filter(|known| known.endpoints == quoted && known.has_sent);
        let Some(connection) = connection else { return false };
        connection.error = Some(error);
        if std::mem::take(&mut socket.wants_read) {
            events.push(Event::UdpReadable(id));
        }
        if std::mem::take(&mut socket.wants_write) {
            events.push(Event::UdpWritable(id));
        }
        true
    }

    /// What an ICMP message has reported about a connected socket; reported once.
    pub(crate) fn take_error(&mut self, id: UdpId) -> Option<Error> {
        self.sockets.get_mut(&id)?.connection.as_mut()?.error.take()
    }

    /// A datagram has arrived for this socket. False if its queue is full.
    pub(crate) fn deliver(&mut self, id: UdpId, datagram: &Datagram<'_>, events: &mut Events) -> bool {
        let Some(socket) = self.sockets.get_mut(&id) else { return false };
        if !socket.arrived.has_room(datagram.payload.len()) {
            return false;
        }
        socket.arrived.push(datagram.endpoints, datagram.payload.to_vec());
        if std::mem::take(&mut socket.wants_read) {
            events.push(Event::UdpReadable(id));
        }
        true
    }

    /// The next datagram. None if there is none yet; then the owner is notified of the next.
    pub(crate) fn receive(&mut self, id: UdpId, into: &mut [u8]) -> Option<Received> {
        let socket = self.sockets.get_mut(&id)?;
        let Some((endpoints, bytes)) = socket.arrived.pop() else {
            socket.wants_read = true;
            return None;
        };
        let n = bytes.len().min(into.len());
        into[..n].copy_from_slice(&bytes[..n]);
        Some(Received { len: bytes.len(), remote: endpoints.source, local: endpoints.destination })
    }

    /// Queues a datagram. False if the queue is full; then the owner is notified when it has space.
    pub(crate) fn send(&mut self, id: UdpId, endpoints: Endpoints, payload: &[u8]) -> bool {
        let Some(socket) = self.sockets.get_mut(&id) else { return false };
        if !socket.to_send.has_room(datagram_packet_len(payload.len(), endpoints.source.is_ipv6())) {
            socket.wants_write = true;
            return false;
        }
        let mut packet = Vec::new();
        encode_datagram(endpoints, socket.hop_limit, payload, &mut packet);
        if socket.to_send.items.is_empty() {
            self.senders.push_back(id);
        }
        if let Some(connection) = &mut socket.connection {
            connection.has_sent |= connection.endpoints == endpoints;
        }
        socket.to_send.push((), packet);
        true
    }

    /// True if nothing waits to be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.senders.is_empty()
    }

    /// The next packet to send, of the socket whose turn it is.
    pub(crate) fn poll(&mut self, events: &mut Events) -> Option<Vec<u8>> {
        let id = self.senders.pop_front()?;
        let socket = self.sockets.get_mut(&id)?;
        let ((), packet) = socket.to_send.pop()?;
        if !socket.to_send.items.is_empty() {
            self.senders.push_back(id);
        } else if socket.bound.is_none() {
            self.sockets.remove(&id);
            return Some(packet);
        }
        if socket.wants_write && socket.to_send.bytes <= socket.to_send.most / 2 {
            socket.wants_write = false;
            events.push(Event::UdpWritable(id));
        }
        Some(packet)
    }

    /// True if there is such a socket.
    pub(crate) fn has(&self, id: UdpId) -> bool {
        self.bound(id).is_some()
    }
}
