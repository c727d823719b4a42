//! The headers of a TCP packet of which only the beginning is known.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reknit_tcp::segment::Flags;

use crate::packet::RawOptions;
use crate::{Endpoints, ip, kind};

const TCP_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The offset of a fragment.
const OFFSET: u16 = 0x1fff;

/// What the headers of a TCP packet say. Checksums are not verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpHeaders {
    /// Its addresses.
    pub endpoints: Endpoints,
    /// The first sequence number.
    pub seq: u32,
    /// The acknowledgment number, which is valid if ACK is set.
    pub ack: u32,
    /// Bytes of data.
    pub payload: u32,
    /// The control bits.
    pub flags: Flags,
    /// TSval of the timestamps option.
    pub timestamp: Option<u32>,
}

impl TcpHeaders {
    /// Reads a packet of `len` bytes from its IP header on, of which `bytes` are the first. None if it is not TCP, or a fragment
    /// without the TCP header.
    pub fn read(bytes: &[u8], len: usize) -> Option<TcpHeaders> {
        let (at, source, destination) = addresses(bytes)?;
        let tcp: &[u8; TCP_HEADER] = bytes.get(at..at + TCP_HEADER)?.try_into().ok()?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let number = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let end = at + usize::from(tcp[12] >> 4) * 4;
        Some(TcpHeaders {
            endpoints: Endpoints {
                source: SocketAddr::new(source, port(0)),
                destination: SocketAddr::new(destination, port(2)),
            },
            seq: number(4),
            ack: number(8),
            payload: len.checked_sub(end)? as u32,
            flags: Flags::from_bits(tcp[13]),
            timestamp: bytes.get(at + TCP_HEADER..end).and_then(timestamp),
        })
    }

    /// The sequence numbers that it occupies: its data, and one each for SYN and FIN.
    pub fn seq_len(&self) -> u32 {
        self.payload + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}

/// Where the TCP header begins, source and destination.
fn addresses(bytes: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let v4 = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?).into());
    let v6 = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?).into());
    match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == ip::TCP && u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & OFFSET == 0 => {
            Some((usize::from(bytes[0] & 15) * 4, v4(12)?, v4(16)?))
        }
        6 if *bytes.get(6)? == ip::TCP => Some((IPV6_HEADER, v6(8)?, v6(24)?)),
        _ => None,
    }
}

fn timestamp(options: &[u8]) -> Option<u32> {
    RawOptions::new(options).find_map(|option| match *option {
        [kind::TIMESTAMPS, 10, a, b, c, d, ..] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use reknit_tcp::segment::{Options, Timestamps};
    use reknit_tcp::{Segment, SeqNum};

    use super::*;
    use crate::encode;

    #[test]
    fn the_first_bytes_say_as_much_as_the_whole_packet() {
        for [source, destination] in [["10.0.0.1:2", "10.0.0.2:3"], ["[fd00::1]:2", "[fd00::2]:3"]] {
            let endpoints = Endpoints { source: source.parse().unwrap(), destination: destination.parse().unwrap() };
            let options = Options { timestamps: Some(Timestamps { val: 77, ecr: 5 }), ..Options::default() };
            let (flags, len) = (Flags::ACK | Flags::FIN, 1000);
            let segment = Segment { seq: SeqNum(u32::MAX), ack: SeqNum(9), len, flags, options, ..Segment::default() };
            let mut bytes = Vec::new();
            encode(endpoints, &segment, &[1; 1000], &mut bytes);
            let whole = TcpHeaders::read(&bytes, bytes.len()).unwrap();
            assert_eq!((whole.endpoints, whole.seq, whole.ack, whole.flags), (endpoints, u32::MAX, 9, flags));
            assert_eq!((whole.payload, whole.seq_len(), whole.timestamp), (1000, 1001, Some(77)));
            let headers = bytes.len() - 1000;
            assert_eq!(TcpHeaders::read(&bytes[..headers], bytes.len()), Some(whole));
            for short in 0..headers - 12 {
                assert_eq!(TcpHeaders::read(&bytes[..short], bytes.len()), None, "{short}");
            }
            assert_eq!(TcpHeaders::read(&bytes, headers - 1), None);
        }
    }

    #[test]
    fn other_protocols_and_later_fragments_are_none() {
        let mut bytes = vec![0; 60];
        (bytes[0], bytes[9]) = (0x45, ip::TCP);
        assert!(TcpHeaders::read(&bytes, 60).is_some());
        bytes[7] = 1;
        assert_eq!(TcpHeaders::read(&bytes, 60), None);
        (bytes[7], bytes[9]) = (0, 17);
        assert_eq!(TcpHeaders::read(&bytes, 60), None);
    }
}
