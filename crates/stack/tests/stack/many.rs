//! Many connections at once, over networks that lose, reorder, duplicate and damage packets.

use reknit_stack::{ListenOptions, SocketOptions};
use reknit_units::Duration;

use crate::pair::{CALM, Echo, Pair, SERVER, WILD, addresses};

fn run(pair: &mut Pair, echo: &mut Echo, connections: usize) {
    let until = pair.now + Duration::from_secs(600);
    while echo.done() < connections {
        echo.react(pair);
        assert!(pair.step(until), "{} of {connections} are done: {:?}", echo.done(), echo.failures);
    }
    echo.react(pair);
}

#[test]
fn three_hundred_connections_echo_over_a_bad_network() {
    let mut pair = Pair::new(WILD, 1);
    pair.listen(&ListenOptions::default());
    let mut echo = Echo::new(20_000);
    for _ in 0..300 {
        echo.add(pair.connect());
        pair.run_for(Duration::from_millis(1));
    }
    run(&mut pair, &mut echo, 300);
    assert_eq!(echo.failures, []);
    for _ in 0..100 {
        pair.run_for(Duration::from_secs(5));
        echo.react(&mut pair);
    }
    assert_eq!(pair.stacks.each_ref().map(reknit_stack::Stack::sockets), [0, 0], "nothing is left after TIME-WAIT");
}

#[test]
fn every_kind_of_variant_serves() {
    for name in ["sack", "newreno", "linux", "bbr", "rr-ta", "pr", "dcr", "door", "reno", "yang"] {
        let variant = reknit_variants::find(name).unwrap();
        let options = SocketOptions::of(std::sync::Arc::new((variant.compose)()));
        let mut pair = Pair::new(WILD, 2);
        pair.listen(&ListenOptions { socket: options.clone(), ..ListenOptions::default() });
        let mut echo = Echo::new(60_000);
        for _ in 0..5 {
            echo.add(pair.connect_with(&options));
        }
        run(&mut pair, &mut echo, 5);
        assert_eq!(echo.failures, [], "{name}");
    }
}

#[test]
fn ipv6_and_ipv4_share_ports() {
    let mut pair = Pair::new(CALM, 3);
    pair.listen(&ListenOptions::default());
    let all_v6 = "[::]:80".parse().unwrap();
    pair.server().listen(all_v6, &ListenOptions::default()).unwrap();
    let mut echo = Echo::new(200_000);
    echo.add(pair.connect());
    let remote = (addresses(SERVER, true), 80).into();
    let now = pair.now;
    echo.add(pair.client().connect(now, None, remote, &SocketOptions::default()).unwrap());
    run(&mut pair, &mut echo, 2);
    assert_eq!(echo.failures, []);
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let sent = || {
        let mut pair = Pair::new(WILD, 9);
        pair.listen(&ListenOptions::default());
        let mut echo = Echo::new(5_000);
        for _ in 0..20 {
            echo.add(pair.connect());
        }
        run(&mut pair, &mut echo, 20);
        (pair.now, pair.stacks.each_ref().map(|stack| *stack.counters()))
    };
    assert_eq!(sent(), sent());
}

#[test]
fn reading_ahead_changes_nothing() {
    let sent = |reads_ahead| {
        let mut pair = Pair::new(WILD, 11);
        pair.reads_ahead = reads_ahead;
        pair.listen(&ListenOptions::default());
        let mut echo = Echo::new(2_000);
        let connections = 1_500; // enough to read ahead
        for _ in 0..connections {
            echo.add(pair.connect());
            pair.run_for(Duration::from_millis(1));
        }
        run(&mut pair, &mut echo, connections);
        assert_eq!(echo.failures, []);
        (pair.now, pair.stacks.each_ref().map(|stack| *stack.counters()))
    };
    assert_eq!(sent(true), sent(false));
}
