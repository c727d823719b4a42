//! UDP datagrams (RFC 768) as IP packets.

use std::net::{IpAddr, SocketAddr};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use reknit_tcp::segment::Ecn;

use crate::ip::put;
use crate::{Endpoints, checksum, ip};

/// Bytes of the header.
const HEADER: usize = 8;
/// Where it has its checksum.
const CHECKSUM_AT: usize = 6;

/// A UDP datagram that was read from a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// Its addresses.
    pub endpoints: Endpoints,
    /// The TTL or hop limit with which it arrived.
    pub hop_limit: u8,
    /// Its payload.
    pub payload: &'a [u8],
    /// The whole packet, which an ICMP message about it quotes.
    pub packet: &'a [u8],
}

impl Datagram<'_> {
    /// Reads an IPv4 or IPv6 packet. None if it is not a complete UDP datagram, or is corrupted. Over IPv4 it may have no
    /// checksum.
    pub fn read(packet: &[u8]) -> Option<Datagram<'_>> {
        Datagram::read_checking(packet, true)
    }

    /// Reads a packet whose UDP checksum the device has verified, or that never left this machine and has none.
    pub fn read_verified(packet: &[u8]) -> Option<Datagram<'_>> {
        Datagram::read_checking(packet, false)
    }

    fn read_checking(packet: &[u8], checks: bool) -> Option<Datagram<'_>> {
        let sliced = SlicedPacket::from_ip(packet).ok()?;
        let Some(TransportSlice::Udp(udp)) = sliced.transport else { return None };
        let whole = udp.slice();
        let (source, destination, hop_limit, addresses): (IpAddr, IpAddr, u8, &[u8]) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) if checksum::is_intact(checksum::sum(ip.header().slice())) => {
                let ip = ip.header();
                (ip.source_addr().into(), ip.destination_addr().into(), ip.ttl(), &ip.slice()[12..20])
            }
            Some(NetSlice::Ipv6(ip)) => {
                let ip = ip.header();
                (ip.source_addr().into(), ip.destination_addr().into(), ip.hop_limit(), &ip.slice()[8..])
            }
            _ => return None,
        };
        let has_none = udp.checksum() == 0 && source.is_ipv4();
        let sum = || checksum::pseudo_header(addresses, ip::UDP, whole.len()) + checksum::sum(whole);
        // Over IPv6 a checksum is required (RFC 8200 §8.1).
        if checks && !has_none && (udp.checksum() == 0 || !checksum::is_intact(sum())) {
            return None;
        }
        let endpoints = Endpoints {
            source: SocketAddr::new(source, udp.source_port()),
            destination: SocketAddr::new(destination, udp.destination_port()),
        };
        Some(Datagram { endpoints, hop_limit, payload: udp.payload(), packet })
    }
}

/// The length of the IP packet of a datagram with `len` bytes of payload.
pub fn datagram_packet_len(len: usize, is_v6: bool) -> usize {
    len + HEADER + if is_v6 { 40 } else { 20 }
}

/// Writes the IP packet of a datagram to `into`, which is cleared first.
///
/// # Panics
/// If the two addresses are of different families, or the datagram is too long for a packet.
pub fn encode_datagram(endpoints: Endpoints, hop_limit: u8, payload: &[u8], into: &mut Vec<u8>) {
    let Endpoints { source, destination } = endpoints;
    let header = ip::Header {
        source: source.ip(),
        destination: destination.ip(),
        protocol: ip::UDP,
        hop_limit,
        ecn: Ecn::NotCapable,
    };
    let len = u16::try_from(HEADER + payload.len()).expect("a datagram fits a packet");
    let pseudo = header.put(usize::from(len), into);
    let mut udp = [0; HEADER];
    put(&mut udp, 0, source.port().to_be_bytes());
    put(&mut udp, 2, destination.port().to_be_bytes());
    put(&mut udp, 4, len.to_be_bytes());
    let sum = !checksum::fold(pseudo + checksum::sum(&udp) + checksum::sum(payload));
    // Zero would mean that there is none (RFC 768).
    put(&mut udp, CHECKSUM_AT, if sum == 0 { u16::MAX } else { sum }.to_ne_bytes());
    into.extend_from_slice(&udp);
    into.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, destination: &str, payload: &[u8]) -> (Endpoints, Vec<u8>) {
        let endpoints = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
        let mut packet = Vec::new();
        encode_datagram(endpoints, 61, payload, &mut packet);
        assert_eq!(packet.len(), datagram_packet_len(payload.len(), endpoints.source.is_ipv6()));
        (endpoints, packet)
    }

    #[test]
    fn what_was_written_is_read_and_damage_is_found() {
        for (source, destination) in [("10.0.0.1:53", "10.0.0.2:4000"), ("[fd00::1]:53", "[fd00::2]:4000")] {
            for len in [0, 1, 2, 512, 1400] {
                let payload: Vec<u8> = (0..len).map(|n| (n * 7) as u8).collect();
                let (endpoints, packet) = packet(source, destination, &payload);
                let read = Datagram::read(&packet).unwrap();
                assert_eq!(read, Datagram { endpoints, hop_limit: 61, payload: &payload, packet: &packet });
                let transport = packet.len() - 8 - len;
                for at in transport..packet.len() {
                    let mut damaged = packet.clone();
                    damaged[at] ^= 4;
                    assert_eq!(Datagram::read(&damaged), None, "byte {at}");
                }
            }
        }
    }

    #[test]
    fn only_ipv4_may_have_no_checksum() {
        let (_, mut v4) = packet("10.0.0.1:53", "10.0.0.2:4000", b"x");
        v4[20 + CHECKSUM_AT..20 + CHECKSUM_AT + 2].fill(0);
        assert!(Datagram::read(&v4).is_some());
        let (_, mut v6) = packet("[fd00::1]:53", "[fd00::2]:4000", b"x");
        v6[40 + CHECKSUM_AT..40 + CHECKSUM_AT + 2].fill(0);
        assert!(Datagram::read(&v6).is_none() && Datagram::read_verified(&v6).is_some());
    }
}
