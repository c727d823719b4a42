//! Reads IP packets with TCP segments.

use std::net::SocketAddr;

use etherparse::{Ipv4Header, Ipv6Header, NetSlice, SlicedPacket, TcpSlice, TransportSlice};
use reknit_tcp::experiment::KIND;
use reknit_tcp::segment::{Ecn, Flags, Options, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Segment, SeqNum};

use crate::{Endpoints, checksum, experiment, ip, kind};

fn ecn_from_wire(bits: u8) -> Ecn {
    match bits & 3 {
        0 => Ecn::NotCapable,
        1 => Ecn::Capable1,
        2 => Ecn::Ect0,
        _ => Ecn::Congested,
    }
}

/// A parsed packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decoded<'a> {
    /// Its addresses.
    pub endpoints: Endpoints,
    /// The TTL or hop limit with which it arrived.
    pub hop_limit: u8,
    /// Its segment.
    pub segment: Segment,
    /// The segment's payload.
    pub payload: &'a [u8],
}

/// Why a packet cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Invalid or truncated.
    #[error("malformed packet: {0}")]
    Malformed(String),
    /// It is not a complete TCP segment.
    #[error("no TCP segment")]
    NotTcp,
    /// Corrupted.
    #[error("wrong {0} checksum")]
    Checksum(&'static str),
}

impl Decoded<'_> {
    /// Reads an IPv4 or IPv6 packet, and verifies its checksums.
    ///
    /// # Errors
    /// If the packet is corrupted, or is not a complete TCP segment.
    pub fn read(packet: &[u8]) -> Result<Decoded<'_>, DecodeError> {
        Decoded::read_checking(packet, true)
    }

    /// Reads a packet whose TCP checksum the device has verified, or that never left this machine and has none.
    ///
    /// # Errors
    /// If the packet is corrupted, or is not a complete TCP segment.
    pub fn read_verified(packet: &[u8]) -> Result<Decoded<'_>, DecodeError> {
        Decoded::read_checking(packet, false)
    }

    fn read_checking(packet: &[u8], checks: bool) -> Result<Decoded<'_>, DecodeError> {
        let sliced = SlicedPacket::from_ip(packet).map_err(|error| DecodeError::Malformed(error.to_string()))?;
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return Err(DecodeError::NotTcp) };
        // Sums are computed over the bytes as received, so that reserved bits are included.
        let (source, destination, hop_limit, ecn, addresses) = match &sliced.net {
            Some(NetSlice::Ipv4(ip)) => {
                let ip = ip.header();
                if !checksum::is_intact(checksum::sum(ip.slice())) {
                    return Err(DecodeError::Checksum("IPv4"));
                }
                let (source, destination) = (ip.source_addr().into(), ip.destination_addr().into());
                (source, destination, ip.ttl(), ip.ecn().value(), &ip.slice()[12..20])
            }
            Some(NetSlice::Ipv6(ip)) => {
                let ip = ip.header();
                let (source, destination) = (ip.source_addr().into(), ip.destination_addr().into());
                (source, destination, ip.hop_limit(), ip.traffic_class(), &ip.slice()[8..])
            }
            _ => return Err(DecodeError::NotTcp),
        };
        let whole = tcp.slice();
        if checks
            && !checksum::is_intact(checksum::pseudo_header(addresses, ip::TCP, whole.len()) + checksum::sum(whole))
        {
            return Err(DecodeError::Checksum("TCP"));
        }
        let payload = tcp.payload();
        let len = u16::try_from(payload.len()).map_err(|_| DecodeError::NotTcp)?;
        Ok(Decoded {
            endpoints: Endpoints {
                source: SocketAddr::new(source, tcp.source_port()),
                destination: SocketAddr::new(destination, tcp.destination_port()),
            },
            hop_limit,
            segment: segment_from_wire(&tcp, len, ecn_from_wire(ecn)),
            payload,
        })
    }
}

/// The addresses of an IP packet and the ports of its TCP or UDP header; the ports are 0 if it has none. Checksums are not
/// verified. None if it is not an IP packet.
pub fn endpoints(packet: &[u8]) -> Option<Endpoints> {
    let sliced = SlicedPacket::from_ip(packet).ok()?;
    let (source, destination) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        Some(NetSlice::Ipv6(ip)) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        _ => return None,
    };
    let (from, to) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (udp.source_port(), udp.destination_port()),
        _ => (0, 0),
    };
    Some(Endpoints { source: SocketAddr::new(source, from), destination: SocketAddr::new(destination, to) })
}

fn segment_from_wire(tcp: &TcpSlice<'_>, len: u16, ecn: Ecn) -> Segment {
    Segment {
        seq: SeqNum(tcp.sequence_number()),
        ack: SeqNum(tcp.acknowledgment_number()),
        window: tcp.window_size(),
        len,
        flags: Flags::from_bits(tcp.header_slice()[13]),
        ecn,
        options: options_from_wire(tcp.options()),
    }
}

/// The options one by one, with kind and length, without NOPs. Unknown ones can be skipped by their length (RFC 9293
/// §3.2, MUST-6 and MUST-7); what follows an invalid one cannot be read.
pub(crate) struct RawOptions<'a> {
    rest: &'a [u8],
}

impl<'a> RawOptions<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> RawOptions<'a> {
        RawOptions { rest: raw }
    }

    /// The number of bytes after the last option that was read.
    pub(crate) fn rest_len(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        while let [kind::NOP, after @ ..] = self.rest {
            self.rest = after;
        }
        match *self.rest {
            [kind, len, ..] if kind != kind::END && len >= 2 => {
                let (option, after) = self.rest.split_at_checked(usize::from(len))?;
                self.rest = after;
                Some(option)
            }
            _ => None,
        }
    }
}

/// The options that the engine knows (RFC 9293 §3.2, RFC 7323, RFC 2018). One of a wrong length is skipped.
fn options_from_wire(raw: &[u8]) -> Options {
    let mut options = Options::default();
    for option in RawOptions::new(raw) {
        match *option {
            [kind::MSS, 4, high, low] => options.mss = Some(u16::from_be_bytes([high, low])),
            [kind::WINDOW_SCALE, 3, shift] => options.window_scale = Some(shift),
            [kind::SACK_PERMITTED, 2] => options.sack_permitted = true,
            [kind::TIMESTAMPS, 10, ref clocks @ ..] => {
                options.timestamps = pairs(clocks).next().map(|(val, ecr)| Timestamps { val, ecr });
            }
            [kind::SACK, 10 | 18 | 26 | 34, ref blocks @ ..] => options.sack = sack_from_wire(blocks),
            [KIND, ..] => options.experiment = experiment::read(option).unwrap_or(options.experiment),
            _ => {}
        }
    }
    options
}

fn sack_from_wire(bytes: &[u8]) -> SackBlocks {
    let mut blocks = SackBlocks::EMPTY;
    pairs(bytes).for_each(|(left, right)| blocks.push(SackBlock { left: SeqNum(left), right: SeqNum(right) }));
    blocks
}

fn pairs(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs.iter().map(|&[a, b, c, d, e, f, g, h]| (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

/// Marks an IPv4 or IPv6 packet as a congested router would. A packet that is not ECN-capable is not changed.
pub fn set_congested(packet: &mut [u8]) -> bool {
    match packet.first().map(|byte| byte >> 4) {
        Some(4) if packet.len() >= Ipv4Header::MIN_LEN && packet[1] & 3 != 0 => {
            packet[1] |= 3;
            if let Ok((ip, _)) = Ipv4Header::from_slice(packet) {
                packet[10..12].copy_from_slice(&ip.calc_header_checksum().to_be_bytes());
            }
            true
        }
        Some(6) if packet.len() >= Ipv6Header::LEN && packet[1] >> 4 & 3 != 0 => {
            packet[1] |= 0x30;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
