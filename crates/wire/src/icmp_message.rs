//! ICMP messages that a host sends: answers to echo requests, and errors about packets that it cannot use.

use std::net::IpAddr;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use reknit_tcp::segment::Ecn;

use crate::encode::HOP_LIMIT;
use crate::ip::put;
use crate::{checksum, ip};

/// Types of echo messages: request and reply of IPv4 (RFC 792) and IPv6 (RFC 4443 §4).
const ECHO_V4: (u8, u8) = (8, 0);
const ECHO_V6: (u8, u8) = (128, 129);
/// The longest IPv4 packet with an error (RFC 1812 §4.3.2.3), and that of IPv6 (RFC 4443 §2.4(c)).
const LONGEST_V4: usize = 576;
const LONGEST_V6: usize = 1280;

/// An echo request (ping).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EchoRequest<'a> {
    /// Who asks.
    pub source: IpAddr,
    /// Who is asked.
    pub destination: IpAddr,
    /// The ICMP message.
    message: &'a [u8],
}

impl EchoRequest<'_> {
    /// Reads an IPv4 or IPv6 packet. None if it is not an echo request, or is corrupted.
    pub fn read(packet: &[u8]) -> Option<EchoRequest<'_>> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let (source, destination, message, request, pseudo): (IpAddr, IpAddr, _, _, _) =
            match (&sliced.net?, sliced.transport?) {
                (NetSlice::Ipv4(ip), TransportSlice::Icmpv4(icmp)) => {
                    let ip = ip.header();
                    (ip.source_addr().into(), ip.destination_addr().into(), icmp.slice(), ECHO_V4.0, 0)
                }
                (NetSlice::Ipv6(ip), TransportSlice::Icmpv6(icmp)) => {
                    let ip = ip.header();
                    let sum = checksum::pseudo_header(&ip.slice()[8..], ip::ICMP_V6, icmp.slice().len());
                    (ip.source_addr().into(), ip.destination_addr().into(), icmp.slice(), ECHO_V6.0, sum)
                }
                _ => return None,
            };
        let is_request = message.len() >= 8 && message[..2] == [request, 0];
        (is_request && checksum::is_intact(pseudo + checksum::sum(message))).then_some(EchoRequest {
            source,
            destination,
            message,
        })
    }

    /// The length of the packet with the reply.
    pub fn reply_len(&self) -> usize {
        self.message.len() + if self.source.is_ipv6() { 40 } else { 20 }
    }

    /// Writes the packet with the reply to `into`, which is cleared first.
    pub fn reply(&self, into: &mut Vec<u8>) {
        let reply = if self.source.is_ipv6() { ECHO_V6.1 } else { ECHO_V4.1 };
        put_message(self.destination, self.source, [reply, 0], &self.message[4..], into);
    }
}

/// Why a packet is of no use. The codes are those of RFC 792, RFC 1122 §3.2.2.1, RFC 1812 §5.2.7.1 and RFC 4443 §3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IcmpError {
    /// There is no route to the destination's network.
    NoRoute,
    /// The destination does not answer.
    HostUnreachable,
    /// Nobody listens on this port.
    PortUnreachable,
    /// A rule forbids it.
    Prohibited,
    /// It is larger than the MTU of the next hop, in bytes (RFC 1191 §4, RFC 8201 §4).
    TooBig(u16),
    /// Fragments of the packet did not arrive in time.
    ReassemblyTimeExceeded,
}

impl IcmpError {
    /// Type and code.
    fn codes(self, is_v6: bool) -> [u8; 2] {
        if is_v6 {
            return match self {
                IcmpError::NoRoute => [1, 0],
                IcmpError::Prohibited => [1, 1],
                IcmpError::HostUnreachable => [1, 3],
                IcmpError::TooBig(_) => [2, 0],
                IcmpError::PortUnreachable => [1, 4],
                IcmpError::ReassemblyTimeExceeded => [3, 1],
            };
        }
        match self {
            IcmpError::NoRoute => [3, 0],
            IcmpError::HostUnreachable => [3, 1],
            IcmpError::PortUnreachable => [3, 3],
            IcmpError::TooBig(_) => [3, 4],
            IcmpError::Prohibited => [3, 13],
            IcmpError::ReassemblyTimeExceeded => [11, 1],
        }
    }
}

/// Writes the packet with an ICMP error from `source` to `destination` to `into`, which is cleared first. It quotes as much of
/// `packet` as it may.
///
/// # Panics
/// If the two addresses are of different families.
pub fn encode_icmp_error(source: IpAddr, destination: IpAddr, error: IcmpError, packet: &[u8], into: &mut Vec<u8>) {
    let is_v6 = source.is_ipv6();
    let room = if is_v6 { LONGEST_V6 - 48 } else { LONGEST_V4 - 28 };
    // RFC 1191 §4 and RFC 4443 §3.2 end these four bytes with the MTU.
    let mtu = if let IcmpError::TooBig(mtu) = error { mtu } else { 0 };
    let mut body = u32::from(mtu).to_be_bytes().to_vec();
    body.extend_from_slice(&packet[..packet.len().min(room)]);
    put_message(source, destination, error.codes(is_v6), &body, into);
}

/// Writes a message: its type and code, and what follows the checksum.
fn put_message(source: IpAddr, destination: IpAddr, codes: [u8; 2], body: &[u8], into: &mut Vec<u8>) {
    let is_v6 = source.is_ipv6();
    let protocol = if is_v6 { ip::ICMP_V6 } else { ip::ICMP_V4 };
    let header = ip::Header { source, destination, protocol, hop_limit: HOP_LIMIT, ecn: Ecn::NotCapable };
    let pseudo = header.put(4 + body.len(), into);
    let pseudo = if is_v6 { pseudo } else { 0 };
    let at = into.len();
    into.extend_from_slice(&[codes[0], codes[1], 0, 0]);
    into.extend_from_slice(body);
    let sum = !checksum::fold(pseudo + checksum::sum(&into[at..]));
    put(into, at + 2, sum.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;
    use reknit_tcp::{Segment, SeqNum};

    use super::*;
    use crate::{Endpoints, Icmp, IcmpKind, encode};

    fn request(is_v6: bool) -> Vec<u8> {
        let mut packet = Vec::new();
        let data: Vec<u8> = (0..57).collect();
        if is_v6 {
            let builder = PacketBuilder::ipv6([1; 16], [2; 16], 60).icmpv6_echo_request(7, 9);
            builder.write(&mut packet, &data).unwrap();
        } else {
            let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 60).icmpv4_echo_request(7, 9);
            builder.write(&mut packet, &data).unwrap();
        }
        packet
    }

    #[test]
    fn an_echo_reply_returns_what_was_sent() {
        for is_v6 in [false, true] {
            let packet = request(is_v6);
            let echo = EchoRequest::read(&packet).unwrap();
            let mut reply = Vec::new();
            echo.reply(&mut reply);
            assert_eq!(reply.len(), echo.reply_len());
            let sliced = SlicedPacket::from_ip(&reply).unwrap();
            let (codes, body) = match sliced.transport.unwrap() {
                TransportSlice::Icmpv4(icmp) => (icmp.slice()[..2].to_vec(), icmp.slice()[4..].to_vec()),
                TransportSlice::Icmpv6(icmp) => {
                    let (source, destination) = (echo.destination, echo.source);
                    let (IpAddr::V6(from), IpAddr::V6(to)) = (source, destination) else { panic!("IPv6") };
                    assert!(icmp.is_checksum_valid(from.octets(), to.octets()));
                    (icmp.slice()[..2].to_vec(), icmp.slice()[4..].to_vec())
                }
                _ => panic!("no ICMP"),
            };
            assert_eq!(codes, [if is_v6 { 129 } else { 0 }, 0]);
            assert_eq!(body, packet[packet.len() - body.len()..]);
            assert!(EchoRequest::read(&reply).is_none(), "a reply is no request");
            for at in (if is_v6 { 40 } else { 20 })..packet.len() {
                let mut damaged = packet.clone();
                damaged[at] ^= 1;
                assert!(EchoRequest::read(&damaged).is_none(), "byte {at}");
            }
        }
    }

    #[test]
    fn an_error_is_read_as_it_was_meant() {
        for (source, destination) in [("10.0.0.1:80", "10.0.0.2:4000"), ("[fd00::1]:80", "[fd00::2]:4000")] {
            let quoted = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
            let mut packet = Vec::new();
            encode(quoted, &Segment { seq: SeqNum(77), ..Segment::default() }, &[5; 1400], &mut packet);
            for (error, kind) in [
                (IcmpError::PortUnreachable, IcmpKind::PortUnreachable),
                (IcmpError::HostUnreachable, IcmpKind::HostUnreachable),
                (IcmpError::NoRoute, IcmpKind::HostUnreachable),
                (IcmpError::Prohibited, IcmpKind::HostUnreachable),
            ] {
                let mut message = Vec::new();
                encode_icmp_error(quoted.destination.ip(), quoted.source.ip(), error, &packet, &mut message);
                assert!(message.len() <= if quoted.source.is_ipv6() { LONGEST_V6 } else { LONGEST_V4 });
                let read = Icmp::read(&message).unwrap();
                assert_eq!((read.kind, read.quoted, read.seq, read.len), (kind, quoted, SeqNum(77), packet.len()));
            }
        }
    }
}
