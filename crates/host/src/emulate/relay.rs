//! The uplink of a private outer end, which has no route to the outside. This process relays what arrives there with ordinary
//! sockets, without privileges: it accepts TCP connections to any address and opens one to the same address outside, and
//! passes on UDP datagrams and, where the machine allows it, pings. Called by [`super::bridge`] for each packet at the outer end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use etherparse::{Icmpv4Slice, Icmpv4Type, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};

use super::ends::OuterNamespace;
use crate::namespace::MTU;

/// A flow of datagrams without answers for this long is forgotten (RFC 4787 §4.3 asks for at least 2 minutes).
const IDLE: Duration = Duration::from_mins(2);
/// The same for questions to a name server, and pings.
const IDLE_SHORT: Duration = Duration::from_secs(10);
const DNS: u16 = 53;
/// The most flows of datagrams and pings at once, each with a thread.
const MAX_FLOWS: usize = 1000;
/// The most TCP ports on which connections are accepted, each with a thread.
const MAX_PORTS: usize = 4000;
/// Time to live of packets that the relay makes.
const TTL: u8 = 64;
/// Bytes of an IPv4 and a UDP header.
const HEADERS: usize = 28;

/// What is relayed.
pub(super) enum Scope {
    /// Only name queries to the outer end.
    Names,
    /// Everything that is not for the outer end itself.
    Everything(OuterNamespace),
    /// Nothing: there is only the outer end.
    Nothing(OuterNamespace),
}

/// The services that this machine provides at the address of the outer end, unless a server there does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gateway {
    pub(super) address: Ipv4Addr,
    /// The name server for queries from inside, if they must go there.
    pub(super) resolver: Option<IpAddr>,
    /// Servers on this machine's loopback device answer everything else.
    pub(super) loopback: bool,
}

impl Gateway {
    /// Where this machine's sockets reach `port` of the gateway; none if only the outer end itself has it.
    fn reach(self, port: u16) -> Option<SocketAddr> {
        match self.resolver {
            Some(server) if port == DNS => Some(SocketAddr::new(server, DNS)),
            _ => self.loopback.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        }
    }

    /// Where a connection to `destination` leads, which was accepted at the outer end.
    pub(super) fn target(self, destination: SocketAddr) -> SocketAddr {
        let reached = || self.reach(destination.port()).unwrap_or(destination);
        if destination.ip() == self.address { reached() } else { destination }
    }
}

/// Relays what arrives at the outer end.
pub(super) struct Relay {
    gateway: Gateway,
    scope: Scope,
    /// The packets that it sends to the command.
    pub(super) packets: OwnedFd,
    answers: Arc<UnixDatagram>,
    flows: BTreeMap<Key, Flow>,
    ports: BTreeSet<u16>,
    /// Pings are passed on; else the outer end answers them for every address.
    pings: bool,
}

/// What a flow carries.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Datagrams,
    /// The identifier of the pings is the port of their source.
    Pings,
}

/// A flow, as the command sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    kind: Kind,
    source: SocketAddrV4,
    destination: SocketAddrV4,
}

struct Flow {
    socket: Arc<UdpSocket>,
    alive: Arc<AtomicBool>,
}

impl Relay {
    pub(super) fn new(gateway: Gateway, scope: Scope) -> io::Result<Relay> {
        let (packets, answers) = UnixDatagram::pair()?;
        let (flows, ports) = (BTreeMap::new(), BTreeSet::new());
        let pings = matches!(scope, Scope::Everything(_)) && ping_socket().is_ok();
        Ok(Relay { gateway, scope, packets: packets.into(), answers: Arc::new(answers), flows, ports, pings })
    }

    /// The server's end, if there is one.
    pub(super) fn outer(&self) -> Option<&OuterNamespace> {
        match &self.scope {
            Scope::Names => None,
            Scope::Everything(outer) | Scope::Nothing(outer) => Some(outer),
        }
    }

    /// A packet leaves the path at the outer end. True if the relay has taken it; otherwise it is for the device.
    pub(super) fn takes(&mut self, packet: &[u8]) -> bool {
        let Ok(sliced) = SlicedPacket::from_ip(packet) else { return false };
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { return false };
        let header = ip.header();
        let (source, destination) = (header.source_addr(), header.destination_addr());
        match &sliced.transport {
            Some(TransportSlice::Udp(udp)) => {
                let source = SocketAddrV4::new(source, udp.source_port());
                let destination = SocketAddrV4::new(destination, udp.destination_port());
                let Some(beyond) = self.beyond(destination) else { return false };
                self.pass_on(Key { kind: Kind::Datagrams, source, destination }, beyond, udp.payload());
                true
            }
            Some(TransportSlice::Icmpv4(icmp)) if self.pings => self.takes_ping(source, destination, icmp),
            Some(TransportSlice::Tcp(tcp)) if tcp.syn() && !tcp.ack() => {
                self.expect_connection(SocketAddrV4::new(destination, tcp.destination_port()));
                false
            }
            _ => false,
        }
    }

    fn takes_ping(&mut self, source: Ipv4Addr, destination: Ipv4Addr, icmp: &Icmpv4Slice<'_>) -> bool {
        let Icmpv4Type::EchoRequest(echo) = icmp.icmp_type() else { return false };
        if destination == self.gateway.address {
            return false; // the outer end answers
        }
        let destination = SocketAddrV4::new(destination, 0);
        let Some(beyond) = self.beyond(destination) else { return false };
        let source = SocketAddrV4::new(source, echo.id);
        self.pass_on(Key { kind: Kind::Pings, source, destination }, beyond, icmp.slice());
        true
    }

    /// Where outside this machine's sockets reach `destination`; none if it is the outer end itself.
    fn beyond(&self, destination: SocketAddrV4) -> Option<SocketAddr> {
        if *destination.ip() == self.gateway.address {
            return self.gateway.reach(destination.port());
        }
        matches!(self.scope, Scope::Everything(_)).then_some(SocketAddr::V4(destination))
    }

    /// A connection to `destination` is about to arrive at the outer end.
    fn expect_connection(&mut self, destination: SocketAddrV4) {
        let Scope::Everything(outer) = &self.scope else { return };
        let port = destination.port();
        if self.beyond(destination).is_some() && self.ports.len() < MAX_PORTS && self.ports.insert(port) {
            outer.listen(port);
        }
    }

    fn pass_on(&mut self, key: Key, beyond: SocketAddr, payload: &[u8]) {
        if self.flows.get(&key).is_none_or(|flow| !flow.alive.load(Ordering::Relaxed)) {
            self.flows.retain(|_, flow| flow.alive.load(Ordering::Relaxed));
            if self.flows.len() >= MAX_FLOWS {
                return;
            }
            match open_flow(key, beyond, self.answers.clone()) {
                Ok(flow) => drop(self.flows.insert(key, flow)),
                Err(_) => return, // as if the network had no route
            }
        }
        if let Some(flow) = self.flows.get(&key) {
            let _ = flow.socket.send(payload);
        }
    }
}

/// A socket for pings, which the kernel numbers (`icmp(7)`, `ping_group_range`).
fn ping_socket() -> io::Result<UdpSocket> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(UdpSocket::from(socket(AddressFamily::Inet, SockType::Datagram, flags, SockProtocol::Icmp)?))
}

/// Opens a socket towards `beyond`, and a thread that converts arriving data into packets from the destination of `key`.
fn open_flow(key: Key, beyond: SocketAddr, answers: Arc<UnixDatagram>) -> io::Result<Flow> {
    let any: IpAddr =
        if beyond.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    let socket = match key.kind {
        Kind::Datagrams => UdpSocket::bind((any, 0))?,
        Kind::Pings => ping_socket()?,
    };
    socket.connect(beyond)?;
    let is_short = key.kind == Kind::Pings || key.destination.port() == DNS;
    socket.set_read_timeout(Some(if is_short { IDLE_SHORT } else { IDLE }))?;
    let (socket, alive) = (Arc::new(socket), Arc::new(AtomicBool::new(true)));
    let flow = Flow { socket: socket.clone(), alive: alive.clone() };
    thread::Builder::new().name("relay".to_owned()).spawn(move || {
        let mut payload = vec![0; usize::from(u16::MAX)];
        loop {
            match socket.recv(&mut payload) {
                // An answer that does not fit a packet is lost.
                Ok(n) if n + HEADERS <= usize::from(MTU) => {
                    if let Some(packet) = answer(key, &payload[..n]) {
                        let _ = answers.send(&packet);
                    }
                }
                // A port that is closed may be open later.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(_) => break,
            }
        }
        alive.store(false, Ordering::Relaxed);
    })?;
    Ok(flow)
}

/// The packet that brings an answer to the command; none if it is not an answer.
fn answer(key: Key, payload: &[u8]) -> Option<Vec<u8>> {
    match key.kind {
        Kind::Datagrams => Some(datagram(key.destination, key.source, payload)),
        Kind::Pings => {
            let icmp = Icmpv4Slice::from_slice(payload).ok()?;
            let Icmpv4Type::EchoReply(echo) = icmp.icmp_type() else { return None };
            let (from, to) = (key.destination.ip().octets(), key.source.ip().octets());
            // The kernel has changed the identifier to its own.
            let builder = PacketBuilder::ipv4(from, to, TTL).icmpv4_echo_reply(key.source.port(), echo.seq);
            let mut packet = Vec::with_capacity(builder.size(icmp.payload().len()));
            builder.write(&mut packet, icmp.payload()).ok()?;
            Some(packet)
        }
    }
}

/// The IPv4 packet with this datagram.
fn datagram(source: SocketAddrV4, destination: SocketAddrV4, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(source.ip().octets(), destination.ip().octets(), TTL)
        .udp(source.port(), destination.port());
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    // It fits: the caller checks the length, and a vector accepts every write.
    let _ = builder.write(&mut packet, payload);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_packet_from_the_address_that_was_asked() {
        let [asked, client] = ["192.0.2.7:53", "10.77.0.2:4000"].map(|text| text.parse().unwrap());
        let packet = datagram(asked, client, b"answer");
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let endpoints = reknit_wire::endpoints(&packet).unwrap();
        assert_eq!((endpoints.source, endpoints.destination), (asked.into(), client.into()));
        let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("no datagram") };
        assert_eq!(udp.payload(), b"answer");
        let expected = udp.to_header().calc_checksum_ipv4_raw(asked.ip().octets(), client.ip().octets(), b"answer");
        assert_eq!(Ok(udp.checksum()), expected);
    }

    #[test]
    fn the_gateway_is_this_machine_unless_a_server_is_there() {
        let address = Ipv4Addr::new(10, 77, 0, 1);
        let at = |loopback, resolver, port| Gateway { address, resolver, loopback }.target((address, port).into());
        let server: IpAddr = "127.0.0.53".parse().unwrap();
        assert_eq!(at(true, None, 8000), "127.0.0.1:8000".parse().unwrap());
        assert_eq!(at(true, Some(server), 53), "127.0.0.53:53".parse().unwrap());
        assert_eq!(at(false, Some(server), 8000), "10.77.0.1:8000".parse().unwrap());
        let elsewhere = "192.0.2.7:80".parse().unwrap();
        assert_eq!(Gateway { address, resolver: None, loopback: true }.target(elsewhere), elsewhere);
    }

    #[test]
    fn the_answer_to_a_ping_has_the_identifier_of_the_question() {
        let [asked, client] = ["192.0.2.7:0", "10.77.0.2:4000"].map(|text| text.parse().unwrap());
        let key = Key { kind: Kind::Pings, source: client, destination: asked };
        let arrived = [0, 0, 0, 0, 0, 77, 0, 5, b'x', b'y']; // an echo reply with the kernel's identifier, 77
        let packet = answer(key, &arrived).unwrap();
        let sliced = SlicedPacket::from_ip(&packet).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else { panic!("no IPv4") };
        assert_eq!((ip.header().source_addr(), ip.header().destination_addr()), (*asked.ip(), *client.ip()));
        let Some(TransportSlice::Icmpv4(icmp)) = &sliced.transport else { panic!("no ICMP") };
        let Icmpv4Type::EchoReply(echo) = icmp.icmp_type() else { panic!("no answer") };
        assert_eq!((echo.id, echo.seq, icmp.payload()), (4000, 5, &b"xy"[..]));
        let question = [8, 0, 0, 0, 0, 77, 0, 5];
        assert_eq!(answer(key, &question), None);
    }
}
