//! Worked examples of the time-delayed fast retransmit and of the fixed wait of `paxson-snd`. That the delay is never
//! reduced is tested in the source file: a hole that was retransmitted after a wait cannot have been open for less.

use reknit_testkit::{NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Duration, Segments};
use reknit_variants::algorithms::LimitedTransmit;
use reknit_variants::base::fixed_threshold;
use reknit_variants::{Composition, wait::paxson_snd};

/// The first duplicate ACK arrives at 300 ms; the hole is retransmitted without a wait at 310 ms and covered at 328 ms;
/// its copy is reported at 350 ms.
fn after_one_verdict(isn: u32, name: &str, rtt_ms: u64) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(20), rtt_ms);
    s.sent();
    s.at(300).pass(2);
    assert!(s.at(310).pass_all([3, 4]).contains(&1));
    s.at(328).pass(1);
    s.at(350).pass(1);
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
    s
}

/// How many milliseconds after the third duplicate ACK, which arrives at `at`, segment 5 is retransmitted.
fn wait(s: &mut TestSender, at: u64) -> u64 {
    assert!(!s.at(at).pass_all([6, 7, 8]).contains(&5));
    (1..100).find(|ms| s.at(at + ms).sent().contains(&5)).unwrap()
}

vector!(the_wait_is_the_time_for_which_the_hole_was_open, |isn| {
    assert_eq!(wait(&mut after_one_verdict(isn, "ba-timedel", 200), 700), 28);
});

vector!(the_wait_grows_by_a_step, |isn| {
    assert_eq!(wait(&mut after_one_verdict(isn, "ba-timeinc", 200), 700), 10);
});

vector!(half_of_srtt_is_the_longest_wait, |isn| {
    let mut s = after_one_verdict(isn, "ba-timedel", 40);
    assert_eq!(s.info().srtt, Some(Duration::from_millis(40)));
    assert_eq!(wait(&mut s, 700), 20);
});

vector!(a_hole_that_closes_is_not_retransmitted, |isn| {
    let mut s = after_one_verdict(isn, "ba-timedel", 200);
    s.at(700).pass_all([6, 7, 8]);
    let cwnd = s.info().cwnd;
    s.at(720).pass(5);
    s.at(800);
    assert!(!s.sent().contains(&5));
    assert!(s.info().cwnd >= cwnd);
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

vector!(the_next_hole_starts_a_new_wait, |isn| {
    let mut s = after_one_verdict(isn, "ba-timedel", 200);
    s.at(700).pass_all([6, 7, 8]);
    s.at(710).pass_all([10, 11, 12]);
    s.at(720).pass(5); // the ACK that shows 9 to be missing, with three SACKed above it
    s.at(747);
    assert!(!s.sent().contains(&9));
    s.at(748);
    assert!(s.sent().contains(&9));
});

vector!(a_timeout_ends_the_wait_and_keeps_the_delay, |isn| {
    let mut s = after_one_verdict(isn, "ba-timedel", 200);
    let expires = s.connection.deadline().as_nanos() / 1_000_000 - 10_000;
    s.at(expires - 10).pass_all([6, 7, 8]);
    assert!(s.at(expires).sent().contains(&5));
    s.at(expires + 50);
    assert_eq!(s.sent(), NOTHING);
    let cuts = s.connection.send_stats().cuts;
    assert_eq!((cuts.fast_retransmit, cuts.timeout), (1, 1));
    s.pass_the_rest();
    let flight = (s.pass_in_order(8), s.info().flight_size.0 / SMSS).1;
    assert!(flight > 4, "{flight}");
    // Everything up to `cum` has arrived; the next three duplicate ACKs start another wait.
    let cum = (s.info().acknowledged / SMSS) as u32;
    let at = expires + 100;
    assert!(!s.at(at).pass_all([cum + 2, cum + 3, cum + 4]).contains(&(cum + 1)));
    assert!(!s.at(at + 27).sent().contains(&(cum + 1)));
    assert!(s.at(at + 28).sent().contains(&(cum + 1)));
});

vector!(limited_transmit_continues_during_the_wait, |isn| {
    let composition = Composition {
        dup_thresh: fixed_threshold::FixedConfig::default().into(),
        postponements: vec![paxson_snd::FixedWaitConfig { wait: Duration::from_millis(100) }.into()],
        limited_transmit: LimitedTransmit::EverySecond {},
        ..Composition::default()
    };
    let mut s = TestSender::new(isn, &composition, config(20), 100);
    s.sent();
    let sent: Vec<usize> = (2..=9).map(|n| s.pass(n).len()).collect();
    assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1]);
});

fn two_duplicates_at_100(isn: u32, composition: &Composition) -> TestSender {
    let mut s = TestSender::new(isn, composition, config(10), 10);
    s.sent();
    s.at(90).pass(2);
    s.at(100).pass(3);
    s
}

vector!(paxson_waits_20_ms_after_the_second_duplicate_ack, |isn| {
    let mut s = two_duplicates_at_100(isn, &variant("paxson-snd"));
    assert_eq!(s.at(119).sent(), NOTHING);
    assert_eq!(s.at(120).sent(), [1]);
    assert_eq!(s.info().dup_thresh, Segments(2));
});

vector!(paxson_does_not_retransmit_a_hole_that_closes, |isn| {
    let mut s = two_duplicates_at_100(isn, &variant("paxson-snd"));
    s.at(115).pass(1);
    s.at(200);
    assert!(!s.sent().contains(&1));
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
});

vector!(without_a_wait_two_duplicates_retransmit_at_once, |isn| {
    let at_once = paxson_snd::FixedWaitConfig { wait: Duration::ZERO };
    let composition = Composition { postponements: vec![at_once.into()], ..variant("paxson-snd") };
    let mut s = TestSender::new(isn, &composition, config(10), 10);
    s.sent();
    s.pass(2);
    assert!(s.pass(3).contains(&1));
});
