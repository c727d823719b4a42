//! Fragments of IP packets (RFC 791 §3.2, RFC 8200 §4.5).

use std::net::IpAddr;

use crate::checksum;
use crate::ip::put;

const V4_HEADER: usize = 20;
const V6_HEADER: usize = 40;
const FRAGMENT_HEADER: usize = 8;
/// Next-header values of extension headers that may come before the fragment header: hop-by-hop options, routing, destination
/// options.
const BEFORE: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// The longest packet.
const LONGEST: usize = 65_535;

/// Which packet a fragment belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FragmentKey {
    /// Its source.
    pub source: IpAddr,
    /// Its destination.
    pub destination: IpAddr,
    /// Its protocol; 0 with IPv6, where only the first fragment counts.
    protocol: u8,
    id: u32,
}

/// A fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fragment<'a> {
    /// Which packet it belongs to.
    pub key: FragmentKey,
    /// Where its payload begins in that of the packet.
    pub offset: usize,
    /// It is not the last.
    pub more: bool,
    /// Its payload.
    pub payload: &'a [u8],
    /// The headers before it.
    header: &'a [u8],
    /// The length of its packet.
    packet_len: usize,
    /// Where these say what follows them, and what it is.
    next_header: (usize, u8),
}

impl Fragment<'_> {
    /// Reads an IPv4 or IPv6 packet. None if it is not a fragment, or not a valid one.
    pub fn read(packet: &[u8]) -> Option<Fragment<'_>> {
        let fragment = Fragment::read_headers(packet)?;
        let has_all = packet.len() >= fragment.packet_len;
        let has_whole_units = !fragment.more || fragment.payload.len().is_multiple_of(8);
        let fits = fragment.header.len() + fragment.offset + fragment.payload.len() <= LONGEST;
        (has_all && has_whole_units && fits && !fragment.payload.is_empty()).then_some(fragment)
    }

    /// As [`Fragment::read`], of a packet of which only the beginning is there.
    pub fn read_headers(packet: &[u8]) -> Option<Fragment<'_>> {
        match packet.first()? >> 4 {
            4 => read_v4(packet),
            6 => read_v6(packet),
            _ => None,
        }
    }

    /// The headers of the whole packet, from its first fragment, and room for `len` bytes of payload, all zero.
    pub fn whole(&self, len: usize) -> Vec<u8> {
        let mut packet = self.header.to_vec();
        let (at, protocol) = self.next_header;
        if self.key.source.is_ipv4() {
            let total = (packet.len() + len).min(LONGEST) as u16;
            put(&mut packet, 2, total.to_be_bytes());
            put(&mut packet, 6, [0, 0]);
            put(&mut packet, 10, [0, 0]);
            let sum = !checksum::fold(checksum::sum(&packet));
            put(&mut packet, 10, sum.to_ne_bytes());
        } else {
            packet[at] = protocol;
            let total = (packet.len() - V6_HEADER + len).min(LONGEST) as u16;
            put(&mut packet, 4, total.to_be_bytes());
        }
        packet.resize(packet.len() + len, 0);
        packet
    }
}

fn read_v4(packet: &[u8]) -> Option<Fragment<'_>> {
    let header_len = usize::from(packet[0] & 15) * 4;
    let header = packet.get(..header_len).filter(|header| header.len() >= V4_HEADER)?;
    let field = u16::from_be_bytes([header[6], header[7]]);
    let (more, offset) = (field & 0x2000 != 0, usize::from(field & 0x1fff) * 8);
    if !more && offset == 0 || !checksum::is_intact(checksum::sum(header)) {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let address = |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let id = u32::from(u16::from_be_bytes([header[4], header[5]]));
    Some(Fragment {
        key: FragmentKey { source: address(12), destination: address(16), protocol: header[9], id },
        offset,
        more,
        payload: packet[..packet.len().min(total)].get(header_len..)?,
        header,
        packet_len: total,
        next_header: (9, header[9]),
    })
}

fn read_v6(packet: &[u8]) -> Option<Fragment<'_>> {
    let ip = packet.get(..V6_HEADER)?;
    let total = V6_HEADER + usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let packet = &packet[..packet.len().min(total)];
    let (mut named_at, mut at) = (6, V6_HEADER);
    while BEFORE.contains(packet.get(named_at)?) {
        let len = (usize::from(*packet.get(at + 1)?) + 1) * 8;
        (named_at, at) = (at, at + len);
    }
    if *packet.get(named_at)? != FRAGMENT {
        return None;
    }
    let own = packet.get(at..at + FRAGMENT_HEADER)?;
    let field = u16::from_be_bytes([own[2], own[3]]);
    let address = |at: usize| <[u8; 16]>::try_from(&ip[at..at + 16]).ok().map(IpAddr::from);
    let id = u32::from_be_bytes([own[4], own[5], own[6], own[7]]);
    Some(Fragment {
        key: FragmentKey { source: address(8)?, destination: address(24)?, protocol: 0, id },
        offset: usize::from(field & 0xfff8),
        more: field & 1 != 0,
        payload: &packet[at + FRAGMENT_HEADER..],
        header: &packet[..at],
        packet_len: total,
        next_header: (named_at, own[0]),
    })
}
