//! Segments as bytes: IP packets that any host understands, and capture files that any analyser opens.
//!
//! [`encode`] and [`Decoded::read`] translate between [`reknit_tcp::Segment`] with its payload and an IPv4 or IPv6 packet, with
//! every checksum. [`Capture`] writes packets to a pcapng file.

mod capture;
mod experiment;
mod packet;

pub use capture::{Capture, Interface};
pub use experiment::set_dropped;
pub use packet::{DecodeError, Decoded, encode, set_congested};

use std::net::SocketAddr;

/// The addresses and ports of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoints {
    /// Where it comes from.
    pub source: SocketAddr,
    /// Where it goes.
    pub destination: SocketAddr,
}

impl Endpoints {
    /// Those of the answer.
    #[must_use]
    pub const fn reversed(self) -> Endpoints {
        Endpoints { source: self.destination, destination: self.source }
    }
}
