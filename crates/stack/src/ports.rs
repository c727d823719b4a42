//! Ephemeral ports that an off-path attacker cannot guess (RFC 6056). Chosen as an application connects, or binds to port 0.
//! Owned by [`crate::Stack`].

use crate::flow::{FourTuple, HashDomain, Secret};

/// The range of RFC 6056 §3.2: all ports above the well-known ones would be allowed; this is IANA's range, which servers
/// do not use.
const FIRST: u16 = 49_152;
const COUNT: u32 = 65_536 - 49_152;
/// Counters, so that connections to one peer do not reveal how many there are to others.
const COUNTERS: usize = 256;

/// The double-hash algorithm (RFC 6056 §3.3.4).
#[derive(Debug)]
pub(crate) struct Ports {
    counters: Vec<u16>,
}

impl Ports {
    pub(crate) fn new() -> Ports {
        Ports { counters: vec![0; COUNTERS] }
    }

    /// A port for `flow`, whose local port is ignored: the first for which `is_free` holds. None if all are in use.
    pub(crate) fn choose(
        &mut self,
        secret: &Secret,
        mut flow: FourTuple,
        is_free: impl Fn(&FourTuple) -> bool,
    ) -> Option<u16> {
        let offset = secret.hash(&flow, HashDomain::PortOffset);
        let counter = &mut self.counters[secret.hash(&flow, HashDomain::PortCounter) as usize % COUNTERS];
        for _ in 0..COUNT {
            let at = (offset.wrapping_add(u64::from(*counter)) % u64::from(COUNT)) as u16;
            *counter = counter.wrapping_add(1);
            let port = FIRST + at;
            flow.local.set_port(port);
            if is_free(&flow) {
                return Some(port);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(remote: &str) -> FourTuple {
        FourTuple { local: "10.0.0.1:0".parse().unwrap(), remote: remote.parse().unwrap() }
    }

    #[test]
    fn ports_to_one_peer_follow_each_other_and_differ_from_those_to_another() {
        let secret = Secret::new([3; 16]);
        let mut ports = Ports::new();
        let mut choose = |remote| ports.choose(&secret, flow(remote), |_| true).unwrap();
        let first = choose("10.0.0.2:80");
        let next = choose("10.0.0.2:80");
        assert_eq!((u32::from(next) + COUNT - u32::from(first)) % COUNT, 1);
        let other = choose("10.0.0.3:80");
        assert!(other != next && other != next.wrapping_add(1));
        assert!([first, next, other].iter().all(|port| *port >= FIRST));
    }

    #[test]
    fn every_free_port_is_found_and_then_there_is_none() {
        let secret = Secret::new([3; 16]);
        let mut ports = Ports::new();
        let only = |flow: &FourTuple| flow.local.port() == 50_000;
        assert_eq!(ports.choose(&secret, flow("10.0.0.2:80"), only), Some(50_000));
        assert_eq!(ports.choose(&secret, flow("10.0.0.2:80"), |_| false), None);
    }
}
