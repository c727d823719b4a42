//! The 4-tuple of a connection, and its keyed hashes: that for the table of flows is computed first for each arriving segment,
//! those for ports as this host connects, that for a SYN cookie as a SYN is answered with one and as the cookie comes back.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use reknit_wire::Endpoints;
use siphasher::sip::SipHasher13;

/// The addresses of a connection, as this host sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FourTuple {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

impl FourTuple {
    /// The flow of a packet that arrives.
    pub(crate) fn of_arrival(endpoints: Endpoints) -> FourTuple {
        FourTuple { local: endpoints.destination, remote: endpoints.source }
    }

    /// True if the remote end can be another host: its address is not multicast, not reserved (0/8, 240/4), and not loopback
    /// unless the local one is too (RFC 9293 §3.9.2.3, RFC 1122 §3.2.1.3).
    pub(crate) fn is_between_hosts(&self) -> bool {
        let remote = self.remote.ip();
        let is_outside = !remote.to_canonical().is_loopback() || self.local.ip().is_loopback();
        is_host(remote) && is_outside && self.remote.port() != 0 && self.local != self.remote
    }

    /// The addresses of a packet that is sent.
    pub(crate) fn endpoints(&self) -> Endpoints {
        Endpoints { source: self.local, destination: self.remote }
    }
}

/// True if the address can belong to a single host: it is not multicast and not reserved (0/8, 240/4).
pub(crate) fn is_host(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => !matches!(ip.octets()[0], 0 | 224..),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    }
}

/// The purpose of a hash. Hashes for different purposes are unrelated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HashDomain {
    /// The bucket in the table of flows.
    Bucket,
    /// The first port to try (RFC 6056 §3.3.4, F).
    PortOffset,
    /// The counter of ports to use (RFC 6056 §3.3.4, G).
    PortCounter,
    /// A SYN cookie of this period and initial sequence number.
    Cookie(u64),
}

/// The secret of a stack. Without it, an attacker cannot choose flows that collide in the table, or guess ports and
/// cookies.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; 16]);

impl Secret {
    pub(crate) const fn new(key: [u8; 16]) -> Secret {
        Secret(key)
    }

    /// The hash of `flow`; with [`HashDomain::PortOffset`] and [`HashDomain::PortCounter`] without the local port, which is not
    /// chosen yet.
    pub(crate) fn hash(&self, flow: &FourTuple, purpose: HashDomain) -> u64 {
        let mut hasher = SipHasher13::new_with_key(&self.0);
        let (tag, extra) = match purpose {
            HashDomain::Bucket => (0, 0),
            HashDomain::PortOffset => (1, 0),
            HashDomain::PortCounter => (2, 0),
            HashDomain::Cookie(extra) => (3, extra),
        };
        let without_port = matches!(purpose, HashDomain::PortOffset | HashDomain::PortCounter);
        let local_port = if without_port { 0 } else { flow.local.port() };
        let ports = u64::from(local_port) << 16 | u64::from(flow.remote.port());
        hasher.write_u64(tag << 32 | ports);
        if tag == 3 {
            hasher.write_u64(extra);
        }
        for address in [flow.local.ip(), flow.remote.ip()] {
            match address {
                IpAddr::V4(ip) => hasher.write_u32(u32::from(ip)),
                IpAddr::V6(ip) => hasher.write(&ip.octets()),
            }
        }
        hasher.finish()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
