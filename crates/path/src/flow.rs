//! The identity of flows.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher13;

/// Reduces addresses and ports, which routers hash, to [`Packet::flow`](crate::Packet::flow). The protocol is TCP. The
/// two directions of a connection are different flows.
pub fn flow_hash(source: SocketAddr, destination: SocketAddr) -> u32 {
    let mut hasher = SipHasher13::new();
    for end in [source, destination] {
        match end.ip() {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
        }
        hasher.write(&end.port().to_be_bytes());
    }
    hasher.finish() as u32
}
