//! UDP, ping and fragments.

use std::net::SocketAddr;

use reknit_stack::{Error, Event, IcmpError, ListenOptions, Options, SocketOptions, Stack, UdpOptions};
use reknit_testkit::fragments::fragments;
use reknit_units::{Bytes, Duration};
use reknit_wire::{EchoRequest, Endpoints, Icmp, IcmpKind, encode_datagram};

use crate::pair::{CALM, CLIENT, Pair, SERVER, addresses, bytes};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn of(end: usize, is_v6: bool, port: u16) -> SocketAddr {
    SocketAddr::new(addresses(end, is_v6), port)
}

/// The packets that a stack sends now.
fn packets(stack: &mut Stack, now: reknit_units::Instant) -> Vec<Vec<u8>> {
    let mut packet = Vec::new();
    std::iter::from_fn(|| stack.poll_packet(now, &mut packet).then(|| packet.clone())).collect()
}

fn forwarding() -> Pair {
    let mut pair = Pair::new(CALM, 1);
    let options = Options { addresses: vec![addresses(SERVER, false)], max_requests: 2, ..Options::default() };
    pair.stacks[SERVER] = Stack::new(pair.now, options, [9; 32]);
    pair
}

#[test]
fn datagrams_keep_their_bounds_and_addresses() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let server = pair.server().bind_udp(address("[::]:53"), &UdpOptions::default()).unwrap();
        let client = pair.client().bind_udp(of(CLIENT, is_v6, 0), &UdpOptions::default()).unwrap();
        let own = pair.client().udp_address(client).unwrap();
        assert!(own.port() >= 49_152);
        for len in [0, 1, 1000] {
            pair.client().send_udp(client, None, of(SERVER, is_v6, 53), &bytes(1, 0..len)).unwrap();
        }
        pair.run_for(Duration::from_secs(1));
        assert!(pair.has(SERVER, Event::UdpReadable(server)));
        let mut into = [0; 2000];
        for len in [0, 1, 1000] {
            let received = pair.server().receive_udp(server, &mut into).unwrap();
            assert_eq!((received.len, received.remote, received.local), (len, own, of(SERVER, is_v6, 53)));
            assert_eq!(into[..len], bytes(1, 0..len));
        }
        assert_eq!(pair.server().receive_udp(server, &mut into), Err(Error::WouldBlock));
        pair.server().send_udp(server, None, own, b"answer").unwrap();
        pair.run_for(Duration::from_secs(1));
        let received = pair.client().receive_udp(client, &mut into[..3]).unwrap();
        assert_eq!((received.len, received.remote, &into[..3]), (6, of(SERVER, is_v6, 53), &b"ans"[..]));
    }
}

#[test]
fn a_connected_socket_hears_only_its_peer() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let options = UdpOptions::default();
        let own = of(CLIENT, is_v6, 4000);
        let client = pair.client().bind_udp(address("[::]:4000"), &options).unwrap();
        let servers = [53, 54].map(|port| pair.server().bind_udp(of(SERVER, is_v6, port), &options).unwrap());
        for server in servers {
            pair.server().send_udp(server, None, own, b"early").unwrap();
        }
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.client().send_udp_to_peer(client, b"x"), Err(Error::NotConnected));
        assert_eq!(pair.client().udp_peer(client), None);
        pair.client().connect_udp(client, of(SERVER, is_v6, 53)).unwrap();
        assert_eq!(pair.client().udp_peer(client), Some(of(SERVER, is_v6, 53)));
        for server in servers {
            pair.server().send_udp(server, None, own, b"late").unwrap();
        }
        pair.client().send_udp_to_peer(client, b"to the peer").unwrap();
        pair.run_for(Duration::from_secs(1));
        let mut into = [0; 100];
        for expected in ["early", "late"] {
            let received = pair.client().receive_udp(client, &mut into).unwrap();
            assert_eq!((received.remote, &into[..received.len]), (of(SERVER, is_v6, 53), expected.as_bytes()));
        }
        assert_eq!(pair.client().receive_udp(client, &mut into), Err(Error::WouldBlock));
        assert_eq!(pair.client().counters().icmp_sent, 1, "the other one finds nobody");
        let received = pair.server().receive_udp(servers[0], &mut into).unwrap();
        assert_eq!((received.remote, received.local), (own, of(SERVER, is_v6, 53)));
        let many = pair.client().bind_udp_ports(addresses(CLIENT, is_v6), 100..=200, &options).unwrap();
        assert_eq!(pair.client().connect_udp(many, of(SERVER, is_v6, 53)), Err(Error::ManyPorts));
    }
}

#[test]
fn a_connected_socket_reports_that_nobody_listens() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let [connected, other] = [4000, 4001].map(|port| {
            let socket = pair.client().bind_udp(of(CLIENT, is_v6, port), &UdpOptions::default()).unwrap();
            pair.client().send_udp(socket, None, of(SERVER, is_v6, 53), b"?").unwrap();
            socket
        });
        pair.client().connect_udp(connected, of(SERVER, is_v6, 53)).unwrap();
        let mut into = [0; 100];
        pair.run_for(Duration::from_secs(1));
        for socket in [connected, other] {
            let nothing = pair.client().receive_udp(socket, &mut into);
            assert_eq!(nothing, Err(Error::WouldBlock), "it had not connected when it sent");
        }
        for again in [false, true] {
            pair.client().send_udp_to_peer(connected, b"?").unwrap();
            pair.run_for(Duration::from_secs(1));
            assert!(pair.has(CLIENT, Event::UdpReadable(connected)));
            pair.events[CLIENT].clear();
            if again {
                assert_eq!(pair.client().receive_udp(connected, &mut into), Err(Error::Refused));
            } else {
                assert_eq!(pair.client().send_udp_to_peer(connected, b"?"), Err(Error::Refused));
            }
            assert_eq!(pair.client().receive_udp(connected, &mut into), Err(Error::WouldBlock));
        }
        let counters = pair.client().counters();
        assert_eq!((counters.icmp_accepted, counters.icmp_ignored), (2, 2));
    }
}

#[test]
fn queues_are_bounded_and_drops_are_counted() {
    let mut pair = Pair::new(CALM, 1);
    let options =
        UdpOptions { receive_buffer: Bytes(5 * 1096), send_buffer: Bytes(10 * 1124), ..UdpOptions::default() };
    let server = pair.server().bind_udp(of(SERVER, false, 53), &options).unwrap();
    let client = pair.client().bind_udp(of(CLIENT, false, 1000), &options).unwrap();
    for _ in 0..10 {
        pair.client().send_udp(client, None, of(SERVER, false, 53), &[7; 1000]).unwrap();
    }
    let full = pair.client().send_udp(client, None, of(SERVER, false, 53), &[7; 1000]);
    assert_eq!(full, Err(Error::WouldBlock));
    pair.run_for(Duration::from_secs(1));
    assert!(pair.has(CLIENT, Event::UdpWritable(client)));
    let counters = *pair.server().counters();
    assert_eq!((counters.datagrams_in, counters.datagrams_dropped), (10, 5));
    assert_eq!(pair.client().counters().datagrams_out, 10);
    let received = std::iter::from_fn(|| pair.server().receive_udp(server, &mut [0; 1000]).ok());
    assert_eq!(received.count(), 5);
}

#[test]
fn sockets_that_are_closed_send_the_rest_and_free_their_ports() {
    let mut pair = Pair::new(CALM, 1);
    let server = pair.server().bind_udp(of(SERVER, false, 53), &UdpOptions::default()).unwrap();
    let client = pair.client().bind_udp(of(CLIENT, false, 1000), &UdpOptions::default()).unwrap();
    pair.client().send_udp(client, None, of(SERVER, false, 53), b"last").unwrap();
    pair.client().close_udp(client);
    assert_eq!(pair.client().receive_udp(client, &mut [0]), Err(Error::NoSocket));
    pair.client().bind_udp(of(CLIENT, false, 1000), &UdpOptions::default()).unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.server().receive_udp(server, &mut [0; 9]).unwrap().len, 4);
    assert!(pair.client().is_finished());
}

#[test]
fn wrong_addresses_and_sizes_are_errors() {
    let mut pair = Pair::new(CALM, 1);
    let stack = pair.client();
    let options = UdpOptions::default();
    let first = stack.bind_udp(of(CLIENT, false, 53), &options).unwrap();
    assert_eq!(stack.bind_udp(of(CLIENT, false, 53), &options), Err(Error::InUse(of(CLIENT, false, 53))));
    assert!(matches!(stack.bind_udp(address("10.9.9.9:1"), &options), Err(Error::NotLocal(..))));
    assert!(matches!(stack.bind_udp_ports(addresses(CLIENT, false), 0..=9, &options), Err(Error::NoPorts(0, 9))));
    assert_eq!(stack.forward_udp(&options), Err(Error::NoForwarding));
    let peer = of(SERVER, false, 53);
    let send = |stack: &mut Stack, from, to, len: usize| stack.send_udp(first, from, to, &vec![0; len]);
    assert_eq!(send(stack, None, peer, 1473), Err(Error::TooLong(1473, 1472)));
    assert_eq!(send(stack, None, peer, 1472), Ok(()));
    assert_eq!(send(stack, None, of(CLIENT, false, 9), 1), Err(Error::Own(of(CLIENT, false, 9))));
    assert_eq!(send(stack, None, of(SERVER, true, 9), 1), Err(Error::NoFamily(of(SERVER, true, 9))));
    assert!(matches!(send(stack, None, address("255.255.255.255:9"), 1), Err(Error::NoDestination(_))));
    let other = of(CLIENT, false, 54);
    assert_eq!(send(stack, Some(other), peer, 1), Err(Error::NotBound(other)));
}

#[test]
fn a_range_of_ports_and_all_ports() {
    let mut pair = Pair::new(CALM, 1);
    let some = pair.server().bind_udp_ports(addresses(SERVER, false), 100..=199, &UdpOptions::default()).unwrap();
    let all = pair.server().bind_udp_ports("0.0.0.0".parse().unwrap(), 1..=u16::MAX, &UdpOptions::default()).unwrap();
    let client = pair.client().bind_udp(of(CLIENT, false, 1000), &UdpOptions::default()).unwrap();
    for port in [150, 200, 65_535] {
        pair.client().send_udp(client, None, of(SERVER, false, port), b"x").unwrap();
    }
    pair.run_for(Duration::from_secs(1));
    let mut ports = |id| {
        let found = std::iter::from_fn(|| pair.server().receive_udp(id, &mut [0; 9]).ok());
        found.map(|received| received.local.port()).collect::<Vec<u16>>()
    };
    assert_eq!((ports(some), ports(all)), (vec![150], vec![200, 65_535]));
    let from = of(SERVER, false, 199);
    assert_eq!(pair.server().send_udp(some, Some(from), of(CLIENT, false, 1000), b"y"), Ok(()));

    let ports = 7000..=7099;
    let listener = pair.server().listen_ports("0.0.0.0".parse().unwrap(), ports, &ListenOptions::default()).unwrap();
    for port in [7000, 7042, 7099] {
        let now = pair.now;
        pair.client().connect(now, None, of(SERVER, false, port), &SocketOptions::default()).unwrap();
        pair.run_for(Duration::from_millis(500));
        let accepted = pair.server().accept(listener).unwrap();
        assert_eq!(pair.server().addresses(accepted).unwrap().0.port(), port);
    }
    let taken = pair.server().listen("0.0.0.0:7050".parse().unwrap(), &ListenOptions::default());
    assert!(matches!(taken, Err(Error::InUse(_))));
}

#[test]
fn a_forwarding_stack_gets_datagrams_to_any_address_and_answers_from_there() {
    let mut pair = forwarding();
    let forwarder = pair.server().forward_udp(&UdpOptions::default()).unwrap();
    assert!(matches!(pair.server().forward_udp(&UdpOptions::default()), Err(Error::InUse(_))));
    let own = pair.server().bind_udp(of(SERVER, false, 53), &UdpOptions::default()).unwrap();
    let client = pair.client().bind_udp(of(CLIENT, false, 1000), &UdpOptions::default()).unwrap();
    let foreign = address("192.0.2.7:53");
    pair.client().send_udp(client, None, foreign, b"question").unwrap();
    pair.client().send_udp(client, None, of(SERVER, false, 53), b"other").unwrap();
    pair.run_for(Duration::from_secs(1));
    let received = pair.server().receive_udp(forwarder, &mut [0; 9]).unwrap();
    assert_eq!((received.local, received.remote, received.len), (foreign, of(CLIENT, false, 1000), 8));
    assert_eq!(pair.server().receive_udp(own, &mut [0; 9]).unwrap().len, 5);
    assert_eq!(pair.server().send_udp(forwarder, None, received.remote, b"x"), Err(Error::NoSource));
    pair.server().send_udp(forwarder, Some(foreign), received.remote, b"answer").unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.client().receive_udp(client, &mut [0; 9]).unwrap().remote, foreign);
}

#[test]
fn a_port_without_a_socket_is_unreachable_at_a_limited_rate() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let options = Options { addresses: vec![addresses(SERVER, is_v6)], icmp_per_second: 10, ..Options::default() };
        pair.stacks[SERVER] = Stack::new(pair.now, options, [9; 32]);
        let endpoints = Endpoints { source: of(CLIENT, is_v6, 9), destination: of(SERVER, is_v6, 53) };
        let mut packet = Vec::new();
        encode_datagram(endpoints, 64, &[1; 1000], &mut packet);
        let now = pair.now;
        for _ in 0..100 {
            pair.server().on_packet(now, &packet);
        }
        let answers = packets(pair.server(), now);
        assert_eq!(answers.len(), 10);
        assert_eq!((pair.server().counters().icmp_sent, pair.server().counters().icmp_withheld), (10, 90));
        let answer = &answers[0];
        let (ip, codes) = if is_v6 { (40, [1, 4]) } else { (20, [3, 3]) };
        assert_eq!(answer[ip..ip + 2], codes);
        assert_eq!(answer[ip + 8..], packet[..answer.len() - ip - 8], "it quotes the packet");
        for forged in [of(SERVER, is_v6, 9), address(if is_v6 { "[ff02::1]:9" } else { "224.0.0.1:9" })] {
            encode_datagram(Endpoints { source: forged, ..endpoints }, 64, &[1; 10], &mut packet);
            pair.server().on_packet(now + Duration::from_secs(5), &packet);
            assert!(packets(pair.server(), now).is_empty(), "{forged}");
        }
    }
}

#[test]
fn a_request_is_refused_by_icmp() {
    let mut pair = forwarding();
    for error in [IcmpError::HostUnreachable, IcmpError::NoRoute, IcmpError::Prohibited, IcmpError::PortUnreachable] {
        let now = pair.now;
        let remote = address("192.0.2.7:80");
        let client = pair.client().connect(now, None, remote, &SocketOptions::default()).unwrap();
        pair.run_for(Duration::from_millis(100));
        let request = pair.server().next_request().unwrap();
        let now = pair.now;
        pair.server().refuse_request_by_icmp(now, request.id, error);
        let answer = packets(pair.server(), now).remove(0);
        let icmp = Icmp::read(&answer).unwrap();
        assert_eq!(icmp.kind == IcmpKind::PortUnreachable, error == IcmpError::PortUnreachable);
        pair.client().on_packet(now, &answer);
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.client().failure(client), Some(Error::Unreachable));
        let now = pair.now;
        pair.client().close(now, client);
    }
}

#[test]
fn pings_are_answered_for_our_addresses() {
    for is_v6 in [false, true] {
        let mut pair = forwarding();
        let own = addresses(SERVER, is_v6);
        if is_v6 {
            pair.stacks[SERVER] = crate::pair::stack(SERVER);
        }
        let ping = |destination: std::net::IpAddr| {
            let mut packet = Vec::new();
            let data = [5; 700];
            match (addresses(CLIENT, is_v6), destination) {
                (std::net::IpAddr::V4(from), std::net::IpAddr::V4(to)) => {
                    let builder = etherparse::PacketBuilder::ipv4(from.octets(), to.octets(), 64);
                    builder.icmpv4_echo_request(1, 2).write(&mut packet, &data).unwrap();
                }
                (std::net::IpAddr::V6(from), std::net::IpAddr::V6(to)) => {
                    let builder = etherparse::PacketBuilder::ipv6(from.octets(), to.octets(), 64);
                    builder.icmpv6_echo_request(1, 2).write(&mut packet, &data).unwrap();
                }
                _ => unreachable!("one family"),
            }
            packet
        };
        let now = pair.now;
        let request = ping(own);
        assert!(EchoRequest::read(&request).is_some());
        // It may come in fragments.
        for piece in fragments(&request, 400, 3) {
            pair.server().on_packet(now, &piece);
        }
        for _ in 0..3000 {
            pair.server().on_packet(now, &request);
        }
        let foreign = if is_v6 { "2001:db8::7" } else { "192.0.2.7" };
        pair.server().on_packet(now, &ping(foreign.parse().unwrap()));
        let answers = packets(pair.server(), now);
        assert_eq!((answers.len(), pair.server().counters().echo_replies), (1000, 1000));
        assert_eq!(answers[0][answers[0].len() - 700..], [5; 700]);
    }
}

#[test]
fn datagrams_and_segments_are_put_together_from_fragments() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let server = pair.server().bind_udp(of(SERVER, is_v6, 53), &UdpOptions::default()).unwrap();
        let endpoints = Endpoints { source: of(CLIENT, is_v6, 9), destination: of(SERVER, is_v6, 53) };
        let mut packet = Vec::new();
        let data = bytes(3, 0..60_000);
        encode_datagram(endpoints, 64, &data, &mut packet);
        let now = pair.now;
        for piece in fragments(&packet, 1480, 3).iter().rev() {
            pair.server().on_packet(now, piece);
        }
        let mut into = vec![0; 65_536];
        assert_eq!(pair.server().receive_udp(server, &mut into).unwrap().len, 60_000);
        assert_eq!(into[..60_000], data);
        assert_eq!(pair.server().counters().packets_reassembled, 1);

        let listener = pair.server().listen(of(SERVER, is_v6, 80), &ListenOptions::default()).unwrap();
        pair.client().connect(now, None, of(SERVER, is_v6, 80), &SocketOptions::default()).unwrap();
        for _ in 0..3 {
            for packet in packets(pair.client(), now) {
                for piece in fragments(&packet, 8, 4) {
                    pair.server().on_packet(now, &piece);
                }
            }
            for packet in packets(pair.server(), now) {
                pair.client().on_packet(now, &packet);
            }
        }
        assert!(pair.server().accept(listener).is_some());
    }
}

#[test]
fn a_reassembly_that_takes_too_long_is_reported() {
    for is_v6 in [false, true] {
        let mut pair = Pair::new(CALM, 1);
        let endpoints = Endpoints { source: of(CLIENT, is_v6, 9), destination: of(SERVER, is_v6, 53) };
        let mut packet = Vec::new();
        encode_datagram(endpoints, 64, &[7; 2000], &mut packet);
        let now = pair.now;
        let first = fragments(&packet, 1000, 3).remove(0);
        pair.server().on_packet(now, &first);
        let deadline = pair.server().deadline();
        assert_eq!(deadline, now + Duration::from_secs(60));
        pair.server().on_timer(deadline);
        let answer = packets(pair.server(), deadline).remove(0);
        let (ip, codes) = if is_v6 { (40, [3, 1]) } else { (20, [11, 1]) };
        assert_eq!(answer[ip..ip + 2], codes);
        assert_eq!(answer[ip + 8..], first[..answer.len() - ip - 8]);
        assert_eq!(pair.server().counters().reassembly_timeouts, 1);
    }
}

#[test]
fn fragments_in_fragments_cost_no_more_than_others() {
    let mut pair = Pair::new(CALM, 1);
    let endpoints = Endpoints { source: of(CLIENT, true, 9), destination: of(SERVER, true, 53) };
    let mut packet = Vec::new();
    encode_datagram(endpoints, 64, b"deep", &mut packet);
    for _ in 0..5000 {
        packet = fragments(&packet, 65_528, 3).remove(0);
    }
    let now = pair.now;
    pair.server().on_packet(now, &packet);
    assert!(packets(pair.server(), now).len() <= 1);
}
