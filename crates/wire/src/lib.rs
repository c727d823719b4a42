//! Segments, datagrams and ICMP messages as IP packets, and capture files.
//!
//! [`encode()`] and [`Decoded::read`] convert between a [`reknit_tcp::Segment`] with its payload and an IPv4 or IPv6
//! packet, with all checksums; [`encode_datagram`] and [`Datagram::read`] do so for UDP. [`Icmp`] and [`DatagramError`] read the ICMP
//! messages that concern TCP and UDP, [`EchoRequest`] and [`encode_icmp_error`] write those that a host sends. [`Fragment`] reads fragments of packets.
//! [`TcpHeaders`] reads the headers of a packet that was not captured whole.
//! [`Capture`] writes packets to a pcapng file.

mod capture;
mod checksum;
mod datagram;
mod encode;
mod experiment;
mod fragment;
mod headers;
mod icmp;
mod icmp_message;
mod ip;
mod kind;
mod packet;

pub use capture::{Capture, Interface};
pub use datagram::{Datagram, datagram_packet_len, encode_datagram};
pub use encode::{HOP_LIMIT, encode, encode_headers, encode_headers_for_offload, encode_with};
pub use experiment::set_dropped;
pub use fragment::{Fragment, FragmentKey};
pub use headers::TcpHeaders;
pub use icmp::{DatagramError, Icmp, IcmpKind};
pub use icmp_message::{EchoRequest, IcmpError, encode_icmp_error};
pub use packet::{DecodeError, Decoded, endpoints, set_congested};

use std::net::SocketAddr;

/// The addresses and ports of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoints {
    /// Source address and port.
    pub source: SocketAddr,
    /// Destination address and port.
    pub destination: SocketAddr,
}

impl Endpoints {
    /// Source and destination exchanged.
    #[must_use]
    pub const fn reversed(self) -> Endpoints {
        Endpoints { source: self.destination, destination: self.source }
    }
}
