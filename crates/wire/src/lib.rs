//! Segments as IP packets, and capture files.
//!
//! [`encode()`] and [`Decoded::read`] convert between a [`reknit_tcp::Segment`] with its payload and an IPv4 or IPv6
//! packet, with all checksums. [`Icmp`] reads the ICMP messages that concern TCP. [`Capture`] writes packets to a pcapng file.

mod capture;
mod checksum;
mod encode;
mod experiment;
mod icmp;
mod kind;
mod packet;

pub use capture::{Capture, Interface};
pub use encode::{HOP_LIMIT, encode, encode_headers, encode_headers_for_offload, encode_with};
pub use experiment::set_dropped;
pub use icmp::{Icmp, IcmpKind};
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
