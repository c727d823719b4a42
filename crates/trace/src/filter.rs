//! Which packets of a capture count.

use crate::packet::Endpoint;

/// A part of a capture. The default is all of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// One of the two ends has an address of this network.
    pub host: Option<Network>,
    /// One of the two ends has this port.
    pub port: Option<u16>,
    /// Packets from then on.
    pub from: Option<Time>,
    /// Packets until then.
    pub to: Option<Time>,
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// The first address; IPv4 as an IPv4-mapped IPv6 address.
    pub address: [u8; 16],
    /// How many of its 128 bits count.
    pub bits: u32,
}

/// A time in a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Nanoseconds since the first packet.
    Since(u64),
    /// Nanoseconds since 1970.
    At(u64),
}

impl Network {
    /// True if the address belongs to the network.
    pub fn has(&self, address: [u8; 16]) -> bool {
        let differs = u128::from_be_bytes(self.address) ^ u128::from_be_bytes(address);
        differs.checked_shr(128 - self.bits.min(128)).unwrap_or(0) == 0
    }
}

impl Filter {
    /// True if packets between these ends count.
    pub(crate) fn has_ends(&self, ends: &[Endpoint; 2]) -> bool {
        let has = |which: &dyn Fn(&Endpoint) -> bool| ends.iter().any(which);
        self.host.is_none_or(|network| has(&|end| network.has(end.address)))
            && self.port.is_none_or(|port| has(&|end| end.port == port))
    }

    /// The times; none if all count.
    pub(crate) fn times(&self) -> Option<Times> {
        let Filter { from, to, .. } = *self;
        (from.is_some() || to.is_some()).then_some(Times { from, to, first: None })
    }
}

/// The times that count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    from: Option<Time>,
    to: Option<Time>,
    first: Option<u64>,
}

impl Times {
    /// True if a packet that was captured at `at`, nanoseconds since 1970, counts.
    pub(crate) fn contain(&mut self, at: u64) -> bool {
        let first = *self.first.get_or_insert(at);
        let nanos = |time: Time| match time {
            Time::Since(span) => first.saturating_add(span),
            Time::At(at) => at,
        };
        self.from.is_none_or(|from| nanos(from) <= at) && self.to.is_none_or(|to| at <= nanos(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(address: [u8; 4], port: u16) -> Endpoint {
        let mut mapped = [0; 16];
        mapped[10..12].fill(0xff);
        mapped[12..].copy_from_slice(&address);
        Endpoint { address: mapped, port }
    }

    #[test]
    fn ends_and_times_are_those_that_were_asked_for() {
        let ends = [end([10, 0, 0, 1], 40_000), end([192, 0, 2, 7], 443)];
        let network = |address, bits: u32| Some(Network { address: end(address, 0).address, bits: 96 + bits });
        for (host, port, expected) in [
            (None, None, true),
            (network([192, 0, 2, 7], 32), Some(443), true),
            (network([192, 0, 2, 8], 32), None, false),
            (network([192, 0, 2, 0], 24), Some(40_000), true),
            (network([0, 0, 0, 0], 0), None, true),
            (None, Some(80), false),
        ] {
            assert_eq!(Filter { host, port, ..Filter::default() }.has_ends(&ends), expected, "{host:?} {port:?}");
        }
        assert!(Filter::default().times().is_none());
        let times = |from, to| Filter { from, to, ..Filter::default() }.times().unwrap();
        let mut some = times(Some(Time::Since(10)), Some(Time::At(120)));
        assert_eq!([100, 109, 110, 120, 121].map(|at| some.contain(at)), [false, false, true, true, false]);
    }
}
