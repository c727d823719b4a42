//! The path MTU to each peer, if it is known. Set by `Stack::remember` when a connection has learned it, read when a connection
//! starts. Owned by [`crate::Stack`].

use std::collections::BTreeMap;
use std::net::IpAddr;

use reknit_units::{Duration, Instant};

/// After this time a larger MTU is tried again (RFC 1191 §6.3, RFC 8201 §4).
pub(crate) const LIFETIME: Duration = Duration::from_secs(600);
/// The most peers that are remembered.
const MOST: usize = 1024;

/// Path MTUs that are smaller than the interface's.
#[derive(Debug, Default)]
pub(crate) struct PathMtus {
    mtus: BTreeMap<IpAddr, (u16, Instant)>,
}

impl PathMtus {
    pub(crate) fn get(&mut self, now: Instant, peer: IpAddr) -> Option<u16> {
        let (mtu, expires) = *self.mtus.get(&peer)?;
        if expires <= now {
            self.mtus.remove(&peer);
            return None;
        }
        Some(mtu)
    }

    pub(crate) fn set(&mut self, now: Instant, peer: IpAddr, mtu: u16) {
        if self.mtus.len() >= MOST && !self.mtus.contains_key(&peer) {
            let oldest = self.mtus.iter().min_by_key(|(_, (_, expires))| *expires).map(|(peer, _)| *peer);
            oldest.and_then(|peer| self.mtus.remove(&peer));
        }
        self.mtus.insert(peer, (mtu, now + LIFETIME));
    }
}
