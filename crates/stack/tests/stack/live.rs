//! What changes while a connection is open: options, variants, windows; TTL and ECN.

use std::sync::Arc;

use reknit_stack::{Error, Event, SocketOptions};
use reknit_tcp::config::KeepAlive;
use reknit_tcp::{CloseReason, State};
use reknit_units::{Bytes, Duration};
use reknit_wire::Decoded;

use crate::pair::{CALM, CLIENT, Pair, SERVER, Verdict, WILD, bytes};

#[test]
fn a_variant_changes_in_the_middle_of_a_transfer() {
    let names = ["linux", "bbr", "reno", "rr-ta", "pr", "rack", "reknit"];
    let variants: Vec<_> = names.iter().filter_map(|name| reknit_variants::find(name).ok()).collect();
    assert!(variants.len() >= 5);
    let mut pair = Pair::new(WILD, 4);
    let (client, server) = pair.connected(&SocketOptions::default());
    let (mut written, mut read, mut changes) = (0, Vec::new(), 0);
    let data = bytes(0, 0..1_500_000);
    let until = pair.now + Duration::from_secs(600);
    while read.len() < data.len() {
        written += pair.client().write(client, &data[written..]).unwrap_or(0);
        assert!(pair.step(until), "{} bytes, {changes} changes", read.len());
        read.extend(pair.read_all(SERVER, server).0);
        if read.len() > changes * 60_000 {
            let now = pair.now;
            let composition = (variants[changes % variants.len()].compose)();
            pair.client().set_variant(now, client, &composition).unwrap();
            changes += 1;
        }
    }
    assert!(read == data);
    assert!(changes > 20);
}

#[test]
fn a_variant_that_needs_sack_is_replaced_in_part_on_a_connection_without_it() {
    let mut options = SocketOptions::of(Arc::new((reknit_variants::find("newreno").unwrap().compose)()));
    options.config.sack = false;
    for name in ["reknit", "rack", "linux"] {
        let mut pair = Pair::new(CALM, 1);
        let (client, server) = pair.connected(&options);
        let now = pair.now;
        let composition = (reknit_variants::find(name).unwrap().compose)();
        pair.client().set_variant(now, client, &composition).unwrap();
        // The only segment is lost, so only a timer can repair it.
        let mut lost = false;
        pair.filter = Box::new(move |from, _| {
            let drops = from == CLIENT && !std::mem::replace(&mut lost, true);
            if drops { Verdict::Drop } else { Verdict::Pass }
        });
        pair.client().write(client, b"data").unwrap();
        pair.run_for(Duration::from_secs(10));
        assert_eq!(pair.read_all(SERVER, server).0, b"data", "{name}");
    }
}

#[test]
fn nagle_can_be_turned_off() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    pair.client().write(client, b"a").unwrap();
    pair.flush();
    pair.client().write(client, b"b").unwrap();
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.read_all(SERVER, server).0, b"a", "the second byte waits for the acknowledgment of the first");
    let now = pair.now;
    pair.client().set_config(now, client, |config| config.nagle = false).unwrap();
    pair.run_for(Duration::from_millis(15));
    assert_eq!(pair.read_all(SERVER, server).0, b"b");
    let error = pair.client().set_config(now, client, |config| config.max_burst = Some(reknit_units::Segments(0)));
    assert_eq!(error.unwrap_err().to_string(), "max_burst = 0: must be at least 1 segment");
}

#[test]
fn keep_alive_notices_a_dead_peer() {
    let mut pair = Pair::new(CALM, 1);
    let (client, _) = pair.connected(&SocketOptions::default());
    pair.run_for(Duration::from_secs(100));
    let now = pair.now;
    let second = Duration::from_secs(1);
    let keep_alive = KeepAlive { idle: second * 10, interval: second, probes: 3 };
    pair.client().set_config(now, client, |config| config.keep_alive = Some(keep_alive)).unwrap();
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.client().failure(client), None);
    assert_eq!(pair.client().state(client), Some(State::Established), "the peer answers");
    pair.filter = Box::new(|_, _| Verdict::Drop);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.client().failure(client), Some(Error::Ended(CloseReason::TimedOut)));
}

#[test]
fn the_window_follows_the_reader() {
    let window = |reads: bool| {
        let mut pair = Pair::new(CALM, 1);
        let (client, server) = pair.connected(&SocketOptions::default());
        for _ in 0..100 {
            while pair.client().write(client, &vec![0; 100_000]).is_ok() {}
            pair.run_for(Duration::from_millis(20));
            if reads {
                let _ = pair.read_all(SERVER, server);
            }
        }
        let now = pair.now;
        let info = pair.server().info(now, server).unwrap();
        (info.receive_window, info.readable)
    };
    assert!(window(true).0 > Bytes(1 << 20), "{:?}", window(true));
    let (slow, waiting) = window(false);
    assert_eq!(slow, Bytes(128 << 10));
    assert!(waiting <= slow);
}

#[test]
fn hop_limits_are_set_and_checked() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions { hop_limit: 255, ..SocketOptions::default() });
    pair.filter = Box::new(|from, packet| {
        assert_eq!(Decoded::read(packet).unwrap().hop_limit, if from == CLIENT { 30 } else { 255 });
        Verdict::Pass
    });
    pair.client().set_hop_limits(client, 30, 255).unwrap();
    pair.client().write(client, b"from here").unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read_all(SERVER, server).0, b"from here");
    pair.server().set_hop_limits(server, 255, 31).unwrap();
    pair.client().write(client, b"from too far").unwrap();
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read_all(SERVER, server), (Vec::new(), Err(Error::WouldBlock)));
}

#[test]
fn congestion_marks_reach_the_sender() {
    let mut options = SocketOptions::of(Arc::new((reknit_variants::find("sack").unwrap().compose)()));
    options.config.ecn = true;
    let mut pair = Pair::new(reknit_testkit::network::Network { marking: 1.0, ..CALM }, 1);
    // Packets pass the network as bytes, so routers mark them there.
    let (client, server) = pair.connected(&options);
    let now = pair.now;
    assert!(pair.client().info(now, client).unwrap().tcp.ecn);
    pair.client().write(client, &bytes(0, 0..50_000)).unwrap();
    let mut payload = Vec::new();
    while let Some(transmit) = pair.stacks[CLIENT].poll(now, &mut payload) {
        let mut packet = Vec::new();
        reknit_wire::encode(transmit.endpoints, &transmit.segment, &payload, &mut packet);
        assert!(reknit_wire::set_congested(&mut packet));
        pair.stacks[SERVER].on_packet(now, &packet);
        payload.clear();
    }
    pair.run_for(Duration::from_secs(1));
    assert_eq!(pair.read_all(SERVER, server).0.len(), 50_000);
    let now = pair.now;
    assert_eq!(pair.client().info(now, client).unwrap().sent.cuts.ecn, 1);
}

#[test]
fn events_come_once_until_they_are_asked_for_again() {
    let mut pair = Pair::new(CALM, 1);
    let (client, server) = pair.connected(&SocketOptions::default());
    for _ in 0..3 {
        pair.client().write(client, b"data").unwrap();
        pair.run_for(Duration::from_millis(100));
    }
    let count = |pair: &Pair| pair.events[SERVER].iter().filter(|e| **e == Event::Readable(server)).count();
    assert_eq!(count(&pair), 1);
    assert_eq!(pair.read_all(SERVER, server).0, b"datadatadata");
    pair.client().write(client, b"more").unwrap();
    pair.run_for(Duration::from_millis(100));
    assert_eq!(count(&pair), 2);
    assert!(!pair.has(CLIENT, Event::Writable(client)), "nothing had to wait for room");
}

#[test]
fn the_times_say_what_limited_a_sender() {
    let seconds = |secs| Duration::from_secs(secs);
    let times = |options: &SocketOptions, reads: bool| {
        let mut pair = Pair::new(CALM, 1);
        let (client, server) = pair.connected(options);
        pair.run_for(seconds(10));
        for _ in 0..10_000 {
            while pair.client().write(client, &vec![0; 100_000]).is_ok() {}
            pair.run_for(Duration::from_millis(1));
            if reads {
                let _ = pair.read_all(SERVER, server);
            }
        }
        let now = pair.now;
        pair.client().info(now, client).unwrap().times
    };
    let close = |time: Duration, expected: Duration| time.abs_diff(expected) < seconds(1);
    let stuck = times(&SocketOptions::default(), false);
    assert!(close(stuck.busy, seconds(10)) && close(stuck.by_peer_window, seconds(10)), "{stuck:?}");
    assert_eq!(stuck.by_send_buffer, Duration::ZERO);
    let small = Bytes(2896); // two segments, so Nagle's algorithm holds nothing back
    let buffer = SocketOptions { send_buffer: small, largest_send_buffer: small, ..SocketOptions::default() };
    let held = times(&buffer, true);
    assert!(close(held.busy, seconds(10)) && close(held.by_send_buffer, seconds(10)), "{held:?}");
    assert_eq!(held.by_peer_window, Duration::ZERO);
}
