//! No variant works longer on an event than `docs/reference/limits.md` says, and none is without a timer, whatever the peer
//! claims.

use reknit_tcp::{CloseReason, Config, State};
use reknit_testkit::{Ack, SMSS, TestSender, config, variant};
use reknit_units::{Bytes, Segments};
use reknit_variants::VARIANTS;

/// All but those that rely on a simulator to tell them what was lost.
fn names() -> impl Iterator<Item = &'static str> {
    VARIANTS.iter().filter(|variant| !variant.is_simulated_only()).map(|variant| variant.name)
}

/// A flight of `n` segments of which the receiver has claimed all but the first.
fn claimed(name: &str, n: u32) -> TestSender {
    let limited = Config { max_burst: Some(Segments(4)), ..config(n) };
    let mut s = TestSender::new(1000, &variant(name), limited, 100);
    s.take();
    s.at(200).deliver(&Ack { cum: 0, blocks: vec![(2, n)], ..Ack::default() });
    s.take();
    s
}

#[test]
fn a_repeated_claim_costs_the_same_whatever_is_in_flight() {
    for name in names() {
        let visited = [500, 2000].map(|n| {
            let mut s = claimed(name, n);
            let mut most = 0;
            for i in 0..20 {
                let blocks = if i % 2 == 0 { vec![(2, n), (2, n)] } else { vec![(3, n - 1), (2, n)] };
                let before = s.connection.records_visited();
                s.deliver(&Ack { cum: 0, blocks, ..Ack::default() });
                s.take();
                most = most.max(s.connection.records_visited() - before);
            }
            most
        });
        assert!(visited.iter().all(|visited| *visited < 400), "{name}: {visited:?}");
    }
}

#[test]
fn a_further_hole_costs_the_same_however_many_there_are() {
    for name in names() {
        let visited = [400, 1600].map(|n| {
            let mut s = TestSender::new(1000, &variant(name), config(n), 100);
            s.take();
            s.at(200);
            let mut total = 0;
            for i in 1..n / 2 {
                let before = s.connection.records_visited();
                s.deliver(&Ack { cum: 0, blocks: vec![(2 * i, 2 * i)], ..Ack::default() });
                total += s.connection.records_visited() - before;
                s.take();
            }
            total / u64::from(n / 2)
        });
        assert!(visited[1] < 2 * visited[0] + 50, "{name}: {visited:?} in the mean");
    }
}

#[test]
fn a_receiver_that_reneges_again_and_again_is_given_up() {
    for name in names() {
        let composition = variant(name);
        let mut s = TestSender::idle(1000, composition.build(), composition.configure(config(1)), 100);
        s.connection.write(Bytes(SMSS)); // and no more, whose timers would hide it
        s.at(100).take();
        let claim = Ack { cum: 0, blocks: vec![(1, 1)], ..Ack::default() };
        for n in 0..60 {
            if s.info().state == State::Closed {
                break;
            }
            s.at(200 + n * 800).deliver(&claim); // checks that a timer runs
            s.take();
        }
        s.at(86_400_000);
        assert_eq!(s.connection.close_reason(), Some(CloseReason::TimedOut), "{name}");
    }
}

#[test]
fn a_receiver_that_reneges_makes_the_sender_wait_longer_each_time() {
    for (name, rtt) in names().flat_map(|name| [(name, 0), (name, 100)]) {
        let composition = variant(name);
        let mut s = TestSender::idle(1000, composition.build(), composition.configure(config(3)), rtt);
        s.connection.write(Bytes(3 * SMSS));
        s.at(100).take();
        let claim = Ack { cum: 0, blocks: vec![(1, 3)], ..Ack::default() };
        s.at(100 + rtt).deliver(&claim);
        let mut sent = 0;
        for ms in (200..250_000).step_by(10) {
            let again = s.at(ms).take().len();
            if again > 0 {
                sent += again;
                s.deliver(&claim);
            }
        }
        assert!((3..100).contains(&sent), "{name}: {sent} segments in 250 s with a round trip of {rtt} ms");
    }
}
