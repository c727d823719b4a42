//! ICMP messages that concern a TCP segment or a UDP datagram: destination unreachable, packet too big, time exceeded.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use reknit_tcp::SeqNum;

use crate::{Endpoints, checksum, ip};

/// What an ICMP message reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpKind {
    /// The packet was larger than `mtu`, the MTU of the next hop in bytes, 0 if the router does not say (RFC 1191 §4, RFC
    /// 8201 §4).
    TooBig {
        /// The MTU of the next hop.
        mtu: u16,
    },
    /// The port or the protocol is unreachable: nobody listens there.
    PortUnreachable,
    /// The host or the network is unreachable, or communication is prohibited.
    HostUnreachable,
    /// The hop limit was reached. It may be a passing routing loop.
    TimeExceeded,
}

/// An ICMP message about a TCP segment that this host has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Icmp {
    /// What it reports.
    pub kind: IcmpKind,
    /// The addresses of the quoted packet: source is this host.
    pub quoted: Endpoints,
    /// The quoted sequence number.
    pub seq: SeqNum,
    /// The length of the quoted packet in bytes, with its IP header.
    pub len: usize,
}

impl Icmp {
    /// Reads an IPv4 or IPv6 packet. None if it is not an ICMP error that quotes a TCP segment, or is corrupted.
    pub fn read(packet: &[u8]) -> Option<Icmp> {
        let (kind, quoted) = read_message(packet)?;
        let (quoted, tcp, len) = read_quoted(quoted, ip::TCP)?;
        Some(Icmp { kind, quoted, seq: SeqNum(u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])), len })
    }
}

/// An ICMP message about a UDP datagram that this host has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DatagramError {
    /// What it reports.
    pub kind: IcmpKind,
    /// The addresses of the quoted packet: source is this host.
    pub quoted: Endpoints,
}

impl DatagramError {
    /// Reads an IPv4 or IPv6 packet. None if it is not an ICMP error that quotes a UDP datagram, or is corrupted.
    pub fn read(packet: &[u8]) -> Option<DatagramError> {
        let (kind, quoted) = read_message(packet)?;
        let (quoted, _, _) = read_quoted(quoted, ip::UDP)?;
        Some(DatagramError { kind, quoted })
    }
}

/// What an ICMP error reports, and the packet that it quotes.
fn read_message(packet: &[u8]) -> Option<(IcmpKind, &[u8])> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    match (&sliced.net?, sliced.transport?) {
        (NetSlice::Ipv4(_), TransportSlice::Icmpv4(icmp)) => {
            let bytes = icmp.slice();
            if !checksum::is_intact(checksum::sum(bytes)) {
                return None;
            }
            Some((kind_v4(bytes)?, bytes.get(8..)?))
        }
        (NetSlice::Ipv6(v6), TransportSlice::Icmpv6(icmp)) => {
            let bytes = icmp.slice();
            let pseudo = checksum::pseudo_header(&v6.header().slice()[8..], ip::ICMP_V6, bytes.len());
            if !checksum::is_intact(pseudo + checksum::sum(bytes)) {
                return None;
            }
            Some((kind_v6(bytes)?, bytes.get(8..)?))
        }
        _ => None,
    }
}

/// RFC 792, RFC 1122 §3.2.2.1, RFC 1191 §4.
fn kind_v4(bytes: &[u8]) -> Option<IcmpKind> {
    Some(match (bytes[0], bytes[1]) {
        (3, 4) => IcmpKind::TooBig { mtu: u16::from_be_bytes([bytes[6], bytes[7]]) },
        (3, 2 | 3) => IcmpKind::PortUnreachable,
        (3, _) => IcmpKind::HostUnreachable,
        (11, 0) => IcmpKind::TimeExceeded,
        _ => return None,
    })
}

/// RFC 4443 §3.
fn kind_v6(bytes: &[u8]) -> Option<IcmpKind> {
    Some(match (bytes[0], bytes[1]) {
        (2, _) => {
            let mtu = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
            IcmpKind::TooBig { mtu: mtu.min(u32::from(u16::MAX)) as u16 }
        }
        (1, 4) => IcmpKind::PortUnreachable,
        (1, _) => IcmpKind::HostUnreachable,
        (3, 0) => IcmpKind::TimeExceeded,
        _ => return None,
    })
}

/// The addresses, the first eight bytes of the transport header, and the length of the quoted packet of this `protocol`. More of
/// it than these bytes need not be there.
fn read_quoted(bytes: &[u8], protocol: u8) -> Option<(Endpoints, &[u8; 8], usize)> {
    let (source, destination, transport, len) = match bytes.first()? >> 4 {
        4 => {
            let header = usize::from(bytes[0] & 15) * 4;
            let ip = bytes.get(..header).filter(|ip| ip.len() >= 20 && ip[9] == protocol)?;
            // A later fragment has no transport header.
            if u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff != 0 {
                return None;
            }
            let address = |at: usize| IpAddr::from([ip[at], ip[at + 1], ip[at + 2], ip[at + 3]]);
            let len = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
            (address(12), address(16), &bytes[header..], len)
        }
        6 => {
            let ip = bytes.get(..40).filter(|ip| ip[6] == protocol)?;
            let address = |at: usize| <[u8; 16]>::try_from(&ip[at..at + 16]).ok().map(IpAddr::from);
            let len = 40 + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
            (address(8)?, address(24)?, &bytes[40..], len)
        }
        _ => return None,
    };
    let transport = transport.first_chunk::<8>()?;
    let port = |at: usize| u16::from_be_bytes([transport[at], transport[at + 1]]);
    let endpoints =
        Endpoints { source: SocketAddr::new(source, port(0)), destination: SocketAddr::new(destination, port(2)) };
    Some((endpoints, transport, len))
}

#[cfg(test)]
mod tests {
    use etherparse::{Icmpv4Type, Icmpv6Type, PacketBuilder, icmpv4, icmpv6};
    use reknit_tcp::Segment;

    use super::*;
    use crate::encode;

    fn quoted_packet(source: &str, destination: &str) -> (Endpoints, Vec<u8>) {
        let endpoints = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
        let mut packet = Vec::new();
        encode(endpoints, &Segment { seq: SeqNum(0x0102_0304), ..Segment::default() }, &[7; 1000], &mut packet);
        (endpoints, packet)
    }

    #[test]
    fn fragmentation_needed_quotes_the_first_bytes() {
        let (quoted, packet) = quoted_packet("10.0.0.1:80", "10.0.0.2:4000");
        let header = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1400 };
        let mut message = Vec::new();
        PacketBuilder::ipv4([10, 9, 9, 9], [10, 0, 0, 1], 60)
            .icmpv4(Icmpv4Type::DestinationUnreachable(header))
            .write(&mut message, &packet[..28])
            .unwrap();
        let icmp = Icmp::read(&message).unwrap();
        assert_eq!(icmp, Icmp { kind: IcmpKind::TooBig { mtu: 1400 }, quoted, seq: SeqNum(0x0102_0304), len: 1040 });
        for at in 20..message.len() {
            let mut damaged = message.clone();
            damaged[at] ^= 1;
            assert_eq!(Icmp::read(&damaged), None, "byte {at}");
        }
        for len in 0..message.len() {
            assert_eq!(Icmp::read(&message[..len]), None);
        }
    }

    #[test]
    fn ipv6_messages_are_read() {
        let (quoted, packet) = quoted_packet("[fd00::1]:80", "[fd00::2]:4000");
        let message = |kind| {
            let mut message = Vec::new();
            let builder = PacketBuilder::ipv6(quoted.destination_octets(), quoted.source_octets(), 60).icmpv6(kind);
            builder.write(&mut message, &packet).unwrap();
            Icmp::read(&message).unwrap()
        };
        let too_big = message(Icmpv6Type::PacketTooBig { mtu: 1280 });
        assert_eq!((too_big.kind, too_big.quoted, too_big.len), (IcmpKind::TooBig { mtu: 1280 }, quoted, 1060));
        let port = message(Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port));
        assert_eq!(port.kind, IcmpKind::PortUnreachable);
    }

    #[test]
    fn errors_about_datagrams_are_not_those_about_segments() {
        for (source, destination) in [("10.0.0.1:80", "10.0.0.2:4000"), ("[fd00::1]:80", "[fd00::2]:4000")] {
            let (quoted, segment) = quoted_packet(source, destination);
            let (mut datagram, mut message) = (Vec::new(), Vec::new());
            crate::encode_datagram(quoted, 64, &[7; 100], &mut datagram);
            let mut error = |packet: &[u8]| {
                let (from, to) = (quoted.destination.ip(), quoted.source.ip());
                crate::encode_icmp_error(from, to, crate::IcmpError::PortUnreachable, packet, &mut message);
                (Icmp::read(&message).is_some(), DatagramError::read(&message))
            };
            assert_eq!(error(&segment), (true, None));
            assert_eq!(error(&datagram), (false, Some(DatagramError { kind: IcmpKind::PortUnreachable, quoted })));
        }
    }

    impl Endpoints {
        fn source_octets(&self) -> [u8; 16] {
            octets(self.source)
        }

        fn destination_octets(&self) -> [u8; 16] {
            octets(self.destination)
        }
    }

    fn octets(address: SocketAddr) -> [u8; 16] {
        match address.ip() {
            IpAddr::V6(ip) => ip.octets(),
            IpAddr::V4(_) => unreachable!("an IPv6 address"),
        }
    }
}
