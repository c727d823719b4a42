//! Refusals of a moment ago. A client that repeats its SYN before it learns of one gets the same answer again: the server is not
//! asked once more, and the client counts once.

use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reknit_net::{IcmpError, TcpRequest};

/// A SYN that was sent before its client learned of the refusal arrives within this time.
const MOMENT: Duration = Duration::from_secs(1);
/// The most that are remembered.
const MOST: usize = 4096;

/// How a client learns that there is no connection to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// By a RST: the server refuses.
    Reset,
    /// By an ICMP message: the server cannot be reached.
    Icmp(IcmpError),
}

impl Refusal {
    /// The one for an error of the connection to the server. None if the server has not answered: neither is the client.
    pub(crate) fn of(error: ErrorKind) -> Option<Refusal> {
        match error {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Some(Refusal::Reset),
            ErrorKind::HostUnreachable => Some(Refusal::Icmp(IcmpError::HostUnreachable)),
            ErrorKind::NetworkUnreachable => Some(Refusal::Icmp(IcmpError::NoRoute)),
            _ => None,
        }
    }

    /// Answers the client.
    pub(crate) fn tell(self, request: TcpRequest) {
        match self {
            Refusal::Reset => request.refuse(),
            Refusal::Icmp(error) => request.refuse_by_icmp(error),
        }
    }
}

/// The client and the address that it asked for.
type Flow = (SocketAddr, SocketAddr);

#[derive(Debug, Default)]
struct Known {
    by_flow: BTreeMap<Flow, Refusal>,
    /// In the order of their ends.
    until: VecDeque<(Instant, Flow)>,
}

impl Known {
    fn forget_old(&mut self, now: Instant) {
        while let Some((_, flow)) = self.until.pop_front_if(|(until, _)| *until <= now) {
            self.by_flow.remove(&flow);
        }
    }
}

/// Those that are remembered.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Known>);

impl Refusals {
    /// A client is refused.
    pub(crate) fn add(&self, now: Instant, flow: Flow, refusal: Refusal) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget_old(now);
        if known.until.len() < MOST && known.by_flow.insert(flow, refusal).is_none() {
            known.until.push_back((now + MOMENT, flow));
        }
    }

    /// How this client was refused a moment ago.
    pub(crate) fn find(&self, now: Instant, flow: Flow) -> Option<Refusal> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.forget_old(now);
        known.by_flow.get(&flow).copied()
    }
}

#[cfg(test)]
mod tests {
    use reknit_host::service::clock;

    use super::*;

    #[test]
    fn a_refusal_is_remembered_for_a_moment() {
        let flow = |port| (SocketAddr::from(([192, 0, 2, 1], port)), SocketAddr::from(([203, 0, 113, 1], 443)));
        let (refusals, began) = (Refusals::default(), clock::now());
        let after = |ms| began + Duration::from_millis(ms);
        refusals.add(began, flow(1), Refusal::Reset);
        refusals.add(after(600), flow(2), Refusal::Icmp(IcmpError::NoRoute));
        let find = |ms, port| refusals.find(after(ms), flow(port));
        assert_eq!([find(900, 1), find(900, 3)], [Some(Refusal::Reset), None]);
        assert_eq!([find(1000, 1), find(1000, 2)], [None, Some(Refusal::Icmp(IcmpError::NoRoute))]);
        assert_eq!(find(1600, 2), None);
        (0..5000).for_each(|port| refusals.add(after(2000), flow(port), Refusal::Reset));
        assert_eq!((find(2500, 4095), find(2500, 4096)), (Some(Refusal::Reset), None));
        assert_eq!(find(3000, 0), None);
    }
}
