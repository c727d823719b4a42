//! Opening: backlogs, cookies, ports, TIME-WAIT, and segments that belong to nothing.

use std::net::SocketAddr;

use reknit_stack::{Error, Event, ListenOptions, Options, Shutdown, SocketId, SocketOptions, Stack};
use reknit_tcp::segment::{Flags, Options as TcpOptions, Segment, Timestamps};
use reknit_tcp::{CloseReason, SeqNum, State};
use reknit_units::{Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};

use crate::pair::{CALM, CLIENT, Pair, SERVER, bytes, stack};

const SOON: Duration = Duration::from_secs(1);

/// A segment from `source` to port 80 of the server.
fn arrived(source: SocketAddr, segment: Segment) -> Decoded<'static> {
    let endpoints = Endpoints { source, destination: "10.0.0.2:80".parse().unwrap() };
    Decoded { endpoints, hop_limit: 64, segment, payload: &[] }
}

fn syn(seq: u32) -> Segment {
    let options = TcpOptions { mss: Some(1460), sack_permitted: true, ..TcpOptions::default() };
    Segment { seq: SeqNum(seq), flags: Flags::SYN, window: 60_000, options, ..Segment::default() }
}

/// Everything that the stack wants to send.
fn sent(stack: &mut Stack, now: Instant) -> Vec<Segment> {
    let mut payload = Vec::new();
    std::iter::from_fn(|| stack.poll(now, &mut payload)).map(|transmit| transmit.segment).collect()
}

#[test]
fn a_flood_of_a_million_syns_leaves_memory_flat_and_honest_clients_in() {
    let mut pair = Pair::new(CALM, 1);
    let listener = pair.listen(&ListenOptions { syn_backlog: 128, ..ListenOptions::default() });
    let mut answers = 0;
    for n in 0..1_000_000u32 {
        let source = SocketAddr::new(std::net::Ipv4Addr::from(0x0b00_0000 + n / 4).into(), 1024 + (n % 4) as u16);
        let now = pair.now;
        pair.server().on_segment(now, &arrived(source, syn(n)));
        answers += sent(pair.server(), now).len();
        if n % 100_000 == 0 {
            assert!(pair.server().sockets() <= 128);
        }
    }
    assert_eq!((pair.server().sockets(), answers), (128, 1_000_000));
    assert_eq!(pair.server().counters().cookies_sent, 1_000_000 - 128);

    let client = pair.connect();
    pair.run_for(SOON);
    let server = pair.server().accept(listener).expect("the honest client gets in");
    assert!(pair.has(CLIENT, Event::Connected(client)));
    let now = pair.now;
    let info = pair.server().info(now, server).unwrap().tcp;
    assert!(info.sack, "the cookie has kept the options");
    assert_eq!(info.window_scale, pair.client().info(now, client).unwrap().tcp.window_scale);
    assert!(info.window_scale > 0);
    let data = bytes(0, 0..60_000);
    pair.client().write(client, &data).unwrap();
    pair.run_for(SOON);
    assert_eq!(pair.read_all(SERVER, server), (data, Err(Error::WouldBlock)));
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.server().sockets(), 1, "the half-open ones have expired");
}

#[test]
fn a_cookie_keeps_what_was_offered_and_nothing_else() {
    let mut pair = Pair::new(CALM, 1);
    let mut options = SocketOptions::default();
    options.config.sack = false;
    options.variant = std::sync::Arc::new((reknit_variants::find("sack").unwrap().compose)());
    let listener = pair.listen(&ListenOptions { syn_backlog: 0, socket: options.clone(), ..ListenOptions::default() });
    let client = pair.connect_with(&options);
    pair.client().write(client, b"first").unwrap();
    pair.run_for(SOON);
    let server = pair.server().accept(listener).unwrap();
    let now = pair.now;
    let info = pair.server().info(now, server).unwrap().tcp;
    assert!(!info.sack && info.timestamps && info.window_scale > 0);
    assert_eq!(info.smss.0, 1448);
    assert_eq!(pair.read_all(SERVER, server).0, b"first");
}

#[test]
fn without_cookies_a_full_backlog_ignores_syns() {
    let mut pair = Pair::new(CALM, 1);
    pair.listen(&ListenOptions { syn_backlog: 1, syn_cookies: false, ..ListenOptions::default() });
    let now = pair.now;
    for port in [1, 2, 3] {
        pair.server().on_segment(now, &arrived(SocketAddr::new("11.0.0.1".parse().unwrap(), port), syn(5)));
    }
    assert_eq!(sent(pair.server(), now).len(), 1);
    assert_eq!(pair.server().counters().queue_overflows, 2);
}

#[test]
fn a_full_queue_delays_connections_until_some_are_accepted() {
    let mut pair = Pair::new(CALM, 1);
    let listener = pair.listen(&ListenOptions { backlog: 2, ..ListenOptions::default() });
    let clients = [(); 4].map(|()| {
        let client = pair.connect();
        pair.run_for(Duration::from_millis(100));
        client
    });
    assert!(pair.has(CLIENT, Event::Connected(clients[1])) && !pair.has(CLIENT, Event::Connected(clients[2])));
    for _ in 0..2 {
        assert!(pair.server().accept(listener).is_some());
    }
    assert_eq!(pair.server().accept(listener), None);
    pair.run_for(Duration::from_secs(10));
    assert!(pair.has(CLIENT, Event::Connected(clients[3])));
}

#[test]
fn strangers_get_resets_at_a_limited_rate() {
    let options = Options { addresses: vec!["10.0.0.2".parse().unwrap()], resets_per_second: 10, ..Options::default() };
    let now = Instant::ZERO + Duration::from_secs(5);
    let mut stack = Stack::new(now, options, [1; 32]);
    let source = "10.0.0.1:1000".parse().unwrap();
    let ack = Segment { seq: SeqNum(1), ack: SeqNum(77), flags: Flags::ACK, ..Segment::default() };
    for _ in 0..100 {
        stack.on_segment(now, &arrived(source, ack));
    }
    let answers = sent(&mut stack, now);
    assert_eq!(answers.len(), 10);
    assert!(answers.iter().all(|answer| answer.flags == Flags::RST && answer.seq == SeqNum(77)));
    assert_eq!(stack.counters().resets_withheld, 90);
    stack.on_segment(now + SOON, &arrived(source, syn(5)));
    let answers = sent(&mut stack, now + SOON);
    assert_eq!((answers[0].flags, answers[0].ack), (Flags::RST | Flags::ACK, SeqNum(6)));
    stack.on_segment(now + SOON, &arrived(source, Segment { flags: Flags::RST, ..ack }));
    assert_eq!(sent(&mut stack, now + SOON), [], "a RST is never answered");
    let elsewhere = Endpoints { source, destination: "10.0.0.9:80".parse().unwrap() };
    stack.on_segment(now + SOON, &Decoded { endpoints: elsewhere, ..arrived(source, ack) });
    assert_eq!(sent(&mut stack, now + SOON), [], "nor what is for another host");
}

#[test]
fn a_refused_connection_says_so_and_an_unanswered_one_times_out() {
    let mut pair = Pair::new(CALM, 1);
    let client = pair.connect();
    pair.run_for(SOON);
    assert!(pair.has(CLIENT, Event::Closed(client)));
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::Refused)));
    assert_eq!(pair.client().write(client, b"x"), Err(Error::Ended(CloseReason::Refused)));
    let now = pair.now;
    let mut options = SocketOptions::default();
    options.config.user_timeout = Duration::from_secs(20);
    let nobody = "10.0.0.77:80".parse().unwrap();
    let client = pair.client().connect(now, None, nobody, &options).unwrap();
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::TimedOut)));
}

/// A closed connection whose client is in TIME-WAIT.
fn in_time_wait(options: &SocketOptions) -> (Pair, Endpoints, SeqNum) {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(options);
    let now = pair.now;
    pair.client().close(now, client);
    let (endpoints, next) = wait(&mut pair, server);
    (pair, endpoints, next)
}

/// The client listens on the address of its old connection.
fn listen_again(pair: &mut Pair, endpoints: Endpoints, options: &SocketOptions) {
    let listen = ListenOptions { socket: options.clone(), ..ListenOptions::default() };
    pair.client().listen(endpoints.destination, &listen).unwrap();
}

/// The server closes too; the client has ended its half. Returns the endpoints of a packet to the client, and the peer's
/// next sequence number.
fn wait(pair: &mut Pair, server: SocketId) -> (Endpoints, SeqNum) {
    let (remote, local) = pair.server().addresses(server).unwrap();
    pair.run_for(SOON);
    let last = std::rc::Rc::new(std::cell::Cell::new(SeqNum(0)));
    let seen = last.clone();
    pair.filter = Box::new(move |from, packet| {
        if from == SERVER {
            seen.set(Decoded::read(packet).unwrap().segment.seq);
        }
        crate::pair::Verdict::Pass
    });
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(SOON);
    assert_eq!(pair.client().sockets(), 1);
    pair.filter = Box::new(|_, _| crate::pair::Verdict::Pass);
    (Endpoints { source: remote, destination: local }, last.get().plus(1))
}

/// True if a SYN with this number and timestamp is accepted in TIME-WAIT; otherwise nothing but an ACK is sent.
fn reuses(pair: &mut Pair, endpoints: Endpoints, seq: SeqNum, val: Option<u32>) -> bool {
    let timestamps = val.map(|val| Timestamps { val, ecr: 0 });
    let segment = Segment { options: TcpOptions { timestamps, ..syn(0).options }, ..syn(seq.0) };
    let mut packet = Vec::new();
    encode(endpoints, &segment, &[], &mut packet);
    let now = pair.now;
    pair.client().on_packet(now, &packet);
    let answers = sent(pair.client(), now);
    let reused = answers.iter().any(|answer| answer.flags == Flags::SYN | Flags::ACK);
    assert!(reused || answers.iter().map(|answer| answer.flags).eq([Flags::ACK]));
    assert_eq!(pair.client().counters().time_wait_reused, u64::from(reused));
    reused
}

#[test]
fn time_wait_is_reused_for_a_newer_syn_only() {
    // Without timestamps the sequence numbers decide, with them the timestamps (RFC 6191 §2).
    let stamped = SocketOptions::of(std::sync::Arc::new((reknit_variants::find("sack").unwrap().compose)()));
    let mut plain = stamped.clone();
    plain.config.timestamps = false;
    for (ahead, reused) in [(1, true), (1 << 20, true), (0, false), (u32::MAX, false)] {
        let (mut pair, endpoints, next) = in_time_wait(&plain);
        listen_again(&mut pair, endpoints, &plain);
        assert_eq!(reuses(&mut pair, endpoints, next.plus(ahead), None), reused, "{ahead}");
    }
    for (later_ms, ahead, reused) in [(60_000i32, u32::MAX, true), (-60_000, 1 << 20, false)] {
        let (mut pair, endpoints, next) = in_time_wait(&stamped);
        listen_again(&mut pair, endpoints, &stamped);
        let offset = reknit_tcp::IsnKey::new([2; 16]).timestamp_offset(endpoints.source, endpoints.destination);
        let clock = ((pair.now.as_nanos() / 1_000_000) as u32).wrapping_add(offset);
        let val = clock.wrapping_add_signed(later_ms);
        assert_eq!(reuses(&mut pair, endpoints, next.plus(ahead), Some(val)), reused, "{later_ms}");
    }
}

#[test]
fn time_wait_is_reused_while_the_application_holds_the_socket() {
    let options = SocketOptions::default();
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&options);
    let now = pair.now;
    pair.client().shutdown(now, client, Shutdown::Write).unwrap();
    pair.server().write(server, b"last words").unwrap();
    let (endpoints, next) = wait(&mut pair, server);
    assert_eq!(pair.client().state(client), Some(State::TimeWait));
    listen_again(&mut pair, endpoints, &options);
    assert!(!reuses(&mut pair, endpoints, next.plus(u32::MAX), None));
    assert!(reuses(&mut pair, endpoints, next.plus(1), None));
    // The application still reads what had arrived, and hears of the end.
    let (now, mut data) = (pair.now, [0; 20]);
    assert_eq!(pair.client().read(now, client, &mut data), Ok(10));
    assert_eq!(pair.client().read(now, client, &mut data), Ok(0));
    assert_eq!((pair.client().state(client), pair.client().failure(client)), (Some(State::Closed), None));
    assert_eq!(pair.client().sockets(), 2);
}

#[test]
fn a_newer_syn_that_nobody_listens_for_gets_an_ack() {
    // RFC 9293 section 3.10.7.4, as Linux does; whether the application has closed its socket or not.
    let (mut pair, endpoints, next) = in_time_wait(&SocketOptions::default());
    assert!(!reuses(&mut pair, endpoints, next.plus(1), None));
    assert_eq!(pair.client().sockets(), 1);
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.client().shutdown(now, client, Shutdown::Write).unwrap();
    let (endpoints, next) = wait(&mut pair, server);
    assert!(!reuses(&mut pair, endpoints, next.plus(1), None));
    assert_eq!(pair.client().state(client), Some(State::TimeWait));
}

#[test]
fn the_last_fin_is_acknowledged_again_and_a_rst_ignored() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    let now = pair.now;
    pair.client().close(now, client);
    pair.run_for(SOON);
    // The client's last acknowledgment is lost twice.
    let mut to_lose = 2;
    pair.filter = Box::new(move |from, _| {
        let lose = from == CLIENT && to_lose > 0;
        to_lose -= i32::from(lose);
        if lose { crate::pair::Verdict::Drop } else { crate::pair::Verdict::Pass }
    });
    let now = pair.now;
    pair.server().close(now, server);
    pair.run_for(Duration::from_secs(10));
    assert_eq!(pair.server().sockets(), 0);
    assert_eq!(pair.client().sockets(), 1);
}

#[test]
fn all_ports_can_be_used_and_then_none_is_left() {
    let mut stack = stack(CLIENT);
    let now = Instant::ZERO + Duration::from_secs(1000);
    let options = SocketOptions::default();
    let remote = "10.0.0.2:80".parse().unwrap();
    let connect = |stack: &mut Stack| {
        let id = stack.connect(now, None, remote, &options);
        sent(stack, now);
        id
    };
    for _ in 0..16_384 {
        connect(&mut stack).unwrap();
    }
    assert_eq!(connect(&mut stack), Err(Error::NoPort(remote)));
    let other = "10.0.0.3:80".parse().unwrap();
    assert!(stack.connect(now, None, other, &options).is_ok(), "ports are free for other peers");
}

#[test]
fn wrong_addresses_are_refused_with_a_reason() {
    let mut stack = stack(CLIENT);
    let now = Instant::ZERO + Duration::from_secs(1000);
    let options = SocketOptions::default();
    let mut connect = |local: Option<&str>, remote: &str| {
        let local = local.map(|local| local.parse().unwrap());
        stack.connect(now, local, remote.parse().unwrap(), &options).unwrap_err().to_string()
    };
    assert_eq!(
        connect(Some("10.0.0.9:0"), "10.0.0.2:80"),
        "10.0.0.9:0 is not an address of this stack; it has 10.0.0.1, fd00::1"
    );
    let destination =
        |address| format!("cannot connect to {address}; the address must be that of a host, and the port at least 1");
    for address in ["224.0.0.1:80", "10.0.0.2:0", "0.0.0.0:80", "255.255.255.255:80"] {
        assert_eq!(connect(None, address), destination(address));
    }
    assert_eq!(connect(None, "10.0.0.1:80"), "cannot connect to 10.0.0.1:80: it is an address of this stack itself");
    assert_eq!(
        connect(Some("10.0.0.1:0"), "[fd00::2]:80"),
        "cannot connect to [fd00::2]:80: there is no IPv6 address to connect from"
    );
    let listen = ListenOptions::default();
    let address: SocketAddr = "10.0.0.1:80".parse().unwrap();
    stack.listen(address, &listen).unwrap();
    assert_eq!(stack.listen(address, &listen), Err(Error::InUse(address)));
    let any = stack.listen("10.0.0.1:0".parse().unwrap(), &listen).unwrap();
    assert!(stack.listening_on(any).unwrap().port() >= 49_152);
    let mut options = SocketOptions::default();
    options.config.ack_every = reknit_units::Segments(0);
    let error = stack.connect(now, None, "10.0.0.2:80".parse().unwrap(), &options).unwrap_err();
    assert_eq!(error.to_string(), "ack_every = 0: must be at least 1 segment");
}
