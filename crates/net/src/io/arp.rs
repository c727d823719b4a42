//! The Address Resolution Protocol (RFC 826) for a host with one address and one router. [`super::EthernetIo`] passes it what
//! arrives, and sends what it returns.

use std::net::Ipv4Addr;

/// The address of an Ethernet interface.
pub(super) type LinkAddress = [u8; 6];

/// The frame to all hosts.
pub(super) const BROADCAST: LinkAddress = [0xff; 6];
/// Ethernet with IPv4: the kinds of addresses, and their lengths.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const LEN: usize = 28;

/// A message, without the header of its frame.
pub(super) type Message = [u8; LEN];

/// What the host knows.
#[derive(Debug)]
pub(super) struct Arp {
    own: (LinkAddress, Ipv4Addr),
    router: Ipv4Addr,
    /// The router's interface, once it has answered.
    known: Option<LinkAddress>,
}

impl Arp {
    pub(super) fn new(own: (LinkAddress, Ipv4Addr), router: Ipv4Addr) -> Arp {
        Arp { own, router, known: None }
    }

    /// The router's interface. None before it has answered.
    pub(super) fn router(&self) -> Option<LinkAddress> {
        self.known
    }

    /// Asks for the router's interface. Sent to [`BROADCAST`].
    pub(super) fn request(&self) -> Message {
        self.message(REQUEST, ([0; 6], self.router))
    }

    /// A message has arrived: the answer, and where to send it.
    pub(super) fn on_message(&mut self, message: &[u8]) -> Option<(LinkAddress, Message)> {
        let message = message.first_chunk::<LEN>().filter(|message| message.starts_with(&ETHERNET_IPV4))?;
        let ip = |at: usize| Ipv4Addr::new(message[at], message[at + 1], message[at + 2], message[at + 3]);
        let link = *message[8..].first_chunk::<6>()?;
        let (sender, target) = (ip(14), ip(24));
        if sender == self.router && target == self.own.1 {
            self.known = Some(link);
        }
        let asks_for_us = message[6..8] == [0, REQUEST] && target == self.own.1;
        asks_for_us.then(|| (link, self.message(REPLY, (link, sender))))
    }

    fn message(&self, operation: u8, target: (LinkAddress, Ipv4Addr)) -> Message {
        let mut message = [0; LEN];
        message[..6].copy_from_slice(&ETHERNET_IPV4);
        message[7] = operation;
        for (at, (link, ip)) in [(8, self.own), (18, target)] {
            message[at..at + 6].copy_from_slice(&link);
            message[at + 6..at + 10].copy_from_slice(&ip.octets());
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hosts_find_each_other() {
        let [one, two] = [1, 2].map(|n| ([n; 6], Ipv4Addr::new(10, 0, 0, n)));
        let (mut host, mut router) = (Arp::new(one, two.1), Arp::new(two, one.1));
        let request = host.request();
        let (to, reply) = router.on_message(&request).unwrap();
        assert_eq!((to, router.router()), (one.0, Some(one.0)));
        assert_eq!((host.on_message(&reply), host.router()), (None, Some(two.0)));
        // Not for this host, of another kind, or truncated.
        let mut other = Arp::new(([3; 6], Ipv4Addr::new(10, 0, 0, 3)), one.1);
        assert_eq!((other.on_message(&request), other.router()), (None, None));
        let mut wrong = request;
        wrong[4] = 8;
        assert_eq!(router.on_message(&wrong), None);
        assert!((0..LEN).all(|len| router.on_message(&request[..len]).is_none()));
    }
}
