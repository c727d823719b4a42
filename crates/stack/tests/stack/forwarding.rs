//! A stack that takes connections to any address.

use std::net::SocketAddr;

use reknit_stack::{Error, Event, IcmpError, Options, Request, SocketId, SocketOptions, Stack};
use reknit_tcp::CloseReason;
use reknit_units::Duration;

use crate::pair::{CALM, CLIENT, Pair, SERVER, WILD, addresses, bytes};

/// A pair whose server forwards, with room for two requests.
fn forwarding(network: reknit_testkit::network::Network) -> Pair {
    let mut pair = Pair::new(network, 1);
    let options = Options { addresses: vec![addresses(SERVER, false)], max_requests: 2, ..Options::default() };
    pair.stacks[SERVER] = Stack::new(pair.now, options, [9; 32]);
    pair
}

fn connect(pair: &mut Pair, remote: &str) -> SocketId {
    let now = pair.now;
    let id = pair.client().connect(now, None, remote.parse().unwrap(), &SocketOptions::default()).unwrap();
    pair.run_for(Duration::from_millis(100));
    id
}

#[test]
fn the_program_sees_who_wants_whom_before_it_answers() {
    let mut pair = forwarding(WILD);
    let client = connect(&mut pair, "192.0.2.7:4433");
    pair.run_for(Duration::from_secs(5));
    assert!(pair.has(SERVER, Event::Requested));
    let request = pair.server().next_request().unwrap();
    let remote: SocketAddr = "192.0.2.7:4433".parse().unwrap();
    assert_eq!((request.local, request.remote), (remote, pair.client().addresses(client).unwrap().0));
    assert_eq!(request.options.mss, Some(1460));
    assert!(pair.server().next_request().is_none(), "a SYN that is sent again is the same request");
    assert!(!pair.has(CLIENT, Event::Connected(client)), "nothing was answered");
    let now = pair.now;
    let server = pair.server().accept_request(now, request.id, &SocketOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(10));
    assert!(pair.has(CLIENT, Event::Connected(client)) && pair.has(SERVER, Event::Connected(server)));
    assert_eq!(pair.server().addresses(server).unwrap().0, remote);
    let data = bytes(0, 0..5000);
    assert_eq!(pair.server().write(server, &data), Ok(5000));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.read_all(CLIENT, client), (data, Err(Error::WouldBlock)));
}

#[test]
fn requests_are_refused_or_ignored() {
    let mut pair = forwarding(CALM);
    let refused = connect(&mut pair, "192.0.2.7:80");
    let request = pair.server().next_request().unwrap();
    pair.server().refuse_request(request.id);
    pair.run_for(Duration::from_millis(100));
    assert_eq!(pair.client().failure(refused), Some(Error::Ended(CloseReason::Refused)));
    let ignored = connect(&mut pair, "192.0.2.8:80");
    let request = pair.server().next_request().unwrap();
    pair.server().ignore_request(request.id);
    assert_eq!(pair.client().failure(ignored), None);
    let now = pair.now;
    let gone = pair.server().accept_request(now, request.id, &SocketOptions::default());
    assert_eq!(gone, Err(Error::NoSocket));
}

#[test]
fn only_so_many_wait_and_old_ones_are_forgotten() {
    let mut pair = forwarding(CALM);
    for port in 1..=3 {
        connect(&mut pair, &format!("192.0.2.7:{port}"));
    }
    let first = pair.server().next_request().unwrap();
    assert_eq!((first.local.port(), pair.server().next_request().unwrap().local.port()), (1, 2));
    assert!(pair.server().next_request().is_none(), "there is room for two");
    assert_eq!(pair.server().counters().queue_overflows, 1);
    assert!(pair.server().sockets() == 0, "nothing else is kept");
    pair.run_for(Duration::from_secs(70));
    connect(&mut pair, "192.0.2.7:4");
    let now = pair.now;
    let old = pair.server().accept_request(now, first.id, &SocketOptions::default());
    assert_eq!(old, Err(Error::NoSocket));
}

/// A client whose SYN was answered with a cookie, and the request that it then makes.
fn answered_with_cookie(pair: &mut Pair, remote: &str) -> (SocketId, Request) {
    let client = connect(pair, remote);
    let request = pair.server().next_request().unwrap();
    assert!(!request.answers_cookie);
    let now = pair.now;
    pair.server().answer_request_with_cookie(now, request.id, &SocketOptions::default()).unwrap();
    assert_eq!((pair.server().sockets(), pair.server().next_request()), (0, None), "nothing is kept");
    pair.run_for(Duration::from_millis(100));
    assert!(pair.has(CLIENT, Event::Connected(client)));
    (client, pair.server().next_request().unwrap())
}

#[test]
fn what_answers_a_cookie_waits_until_the_program_accepts_it() {
    let mut pair = forwarding(CALM);
    let (client, request) = answered_with_cookie(&mut pair, "192.0.2.7:80");
    assert!(request.answers_cookie && request.options.sack_permitted);
    assert_eq!(request.options.mss, Some(1460));
    let data = bytes(0, 0..50_000);
    assert_eq!(pair.client().write(client, &data), Ok(data.len()));
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.client().failure(client), None, "its data is ignored until the program decides");
    let now = pair.now;
    assert_eq!(pair.server().answer_request_with_cookie(now, request.id, &SocketOptions::default()), Ok(()));
    let server = pair.server().accept_request(now, request.id, &SocketOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(20));
    assert!(pair.has(SERVER, Event::Connected(server)));
    assert_eq!(pair.read_all(SERVER, server), (data, Err(Error::WouldBlock)));
    assert_eq!((pair.server().counters().cookies_sent, pair.server().counters().cookies_accepted), (1, 1));
}

#[test]
fn what_answers_a_cookie_is_refused_by_a_reset() {
    let mut pair = forwarding(CALM);
    for (port, by_icmp) in [(80, false), (81, true)] {
        let (client, request) = answered_with_cookie(&mut pair, &format!("192.0.2.7:{port}"));
        let now = pair.now;
        if by_icmp {
            pair.server().refuse_request_by_icmp(now, request.id, IcmpError::HostUnreachable);
        } else {
            pair.server().refuse_request(request.id);
        }
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Reset)));
    }
}

#[test]
fn a_peer_that_gives_up_cancels_its_request() {
    let mut pair = forwarding(CALM);
    let client = connect(&mut pair, "192.0.2.7:80");
    let request = pair.server().next_request().unwrap();
    let now = pair.now;
    let server = pair.server().accept_request(now, request.id, &SocketOptions::default()).unwrap();
    pair.client().abort(now, client); // before the SYN-ACK comes
    pair.run_for(Duration::from_secs(1));
    assert!(pair.has(SERVER, Event::Closed(server)), "{:?}", pair.server().state(server));
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server().sockets(), 0);
}

#[test]
fn without_forwarding_other_addresses_are_ignored() {
    let mut pair = Pair::new(CALM, 1);
    let client = connect(&mut pair, "192.0.2.7:80");
    assert_eq!((pair.client().failure(client), pair.server().counters().segments_in), (None, 0));
}
