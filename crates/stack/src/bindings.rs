//! Which sockets are bound to which local addresses and ports. Asked for each segment without a connection and each datagram;
//! changed only as listeners and UDP sockets are opened and closed.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

/// Ranges of ports of an address, each with the name of its socket. Ranges of the same address do not overlap.
#[derive(Debug)]
pub(crate) struct Bindings<I> {
    /// By address and first port, with the last.
    ranges: BTreeMap<(IpAddr, u16), (u16, I)>,
}

impl<I> Default for Bindings<I> {
    fn default() -> Bindings<I> {
        Bindings { ranges: BTreeMap::new() }
    }
}

impl<I: Copy> Bindings<I> {
    /// True if no socket is bound to any of these.
    pub(crate) fn is_free(&self, ip: IpAddr, ports: &RangeInclusive<u16>) -> bool {
        let last = self.ranges.range((ip, 0)..=(ip, *ports.end())).next_back();
        last.is_none_or(|(_, (last, _))| last < ports.start())
    }

    /// Binds a socket to ports that are free. Called after [`Bindings::is_free`].
    pub(crate) fn add(&mut self, ip: IpAddr, ports: RangeInclusive<u16>, id: I) {
        self.ranges.insert((ip, *ports.start()), (*ports.end(), id));
    }

    /// Removes the socket whose first port is that of `first`.
    pub(crate) fn remove(&mut self, first: SocketAddr) {
        self.ranges.remove(&(first.ip(), first.port()));
    }

    /// True if a socket is bound to exactly this address and port, and to no others.
    pub(crate) fn has_only(&self, local: &SocketAddr) -> bool {
        self.ranges.get(&(local.ip(), local.port())).is_some_and(|(last, _)| *last == local.port())
    }

    /// The socket for packets to `local`: one on this address, else one on all addresses of the family, else one on `[::]`, which
    /// is for both families.
    pub(crate) fn at(&self, local: SocketAddr) -> Option<I> {
        let of_family = || if local.is_ipv4() { self.on(Ipv4Addr::UNSPECIFIED.into(), local.port()) } else { None };
        let of_both = || self.on(Ipv6Addr::UNSPECIFIED.into(), local.port());
        self.on(local.ip(), local.port()).or_else(of_family).or_else(of_both)
    }

    fn on(&self, ip: IpAddr, port: u16) -> Option<I> {
        let (_, (last, id)) = self.ranges.range((ip, 0)..=(ip, port)).next_back()?;
        (*last >= port).then_some(*id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_found_and_do_not_overlap() {
        let mut bindings = Bindings::default();
        let ip: IpAddr = "10.0.0.1".parse().unwrap();
        bindings.add(ip, 100..=200, 'a');
        bindings.add(ip, 300..=300, 'b');
        bindings.add("0.0.0.0".parse().unwrap(), 1..=u16::MAX, 'c');
        bindings.add("::".parse().unwrap(), 80..=80, 'd');
        let at = |address: &str| bindings.at(address.parse().unwrap());
        assert_eq!([at("10.0.0.1:99"), at("10.0.0.1:100"), at("10.0.0.1:200")], [Some('c'), Some('a'), Some('a')]);
        assert_eq!([at("10.0.0.1:300"), at("10.0.0.1:301"), at("10.0.0.2:80")], [Some('b'), Some('c'), Some('c')]);
        assert_eq!([at("[fd00::1]:80"), at("[fd00::1]:81")], [Some('d'), None]);
        for (ports, is_free) in [(1..=99, true), (1..=100, false), (150..=160, false), (200..=299, false)] {
            assert_eq!(bindings.is_free(ip, &ports), is_free, "{ports:?}");
        }
        assert!(bindings.is_free(ip, &(201..=299)) && bindings.is_free(ip, &(301..=u16::MAX)));
        assert!(bindings.has_only(&"10.0.0.1:300".parse().unwrap()));
        assert!(!bindings.has_only(&"10.0.0.1:100".parse().unwrap()));
        bindings.remove("10.0.0.1:100".parse().unwrap());
        assert!(bindings.is_free(ip, &(1..=299)));
    }
}
