//! BBR version 1 over a link of 10 Mbit/s and 100 ms, a bandwidth-delay product of 86 segments.

use reknit_testkit::bottleneck::{Bottleneck, Look};
use reknit_testkit::{ISNS, TestSender, config, variant};
use reknit_units::{Bytes, Rate};

const RATE: Rate = Rate::from_bits_per_second(10_000_000);
const RTT_US: u64 = 100_000;
const S: u64 = 1_000_000;

/// The gain of Startup and its inverse, less the margin of 1 %.
const HIGH: f64 = 2.885 * 0.99;
const DRAIN: f64 = 0.99 / 2.885;

/// A link with a sender that always has data to send.
fn link(queue: usize) -> Bottleneck {
    let mut link = Bottleneck::new(script(), RTT_US, RATE, RTT_US, queue);
    link.write(1 << 30);
    link
}

fn script() -> TestSender {
    let composition = variant("bbr1");
    TestSender::idle(ISNS[0], composition.build(), composition.configure(config(10)), RTT_US / 1000)
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.03
}

/// cwnd at this time if nothing is lost.
fn cwnd_without_loss(at_us: u64) -> Bytes {
    let mut link = link(1000);
    link.run(at_us);
    link.script.info().cwnd
}

/// When, from `since` on, the pacing rate first was `gain` times that of the link.
fn first_at(looks: &[Look], since: u64, gain: f64) -> u64 {
    let found = looks.iter().find(|look| look.at_us >= since && is_near(look.pace(RATE), gain));
    found.map(|look| look.at_us).expect("it never was")
}

#[test]
fn startup_doubles_the_rate_and_ends_after_three_flat_rounds() {
    let mut link = link(1000);
    let looks = link.run(3 * S);
    // The first ten segments leave as a burst.
    assert!(looks[0].info.flight_size.0 >= 10 * reknit_testkit::SMSS);
    let full = first_at(&looks, 0, HIGH);
    let drain = first_at(&looks, full, DRAIN);
    // 10 segments to 86 is a little more than three doublings.
    assert!((4 * RTT_US..8 * RTT_US).contains(&full), "full at {full} us");
    // Rounds are up to three times as long with the queue that Startup builds.
    assert!((3 * RTT_US..10 * RTT_US).contains(&(drain - full)), "drain at {drain} us after full at {full}");
    let most = looks.iter().map(|look| look.info.pipe.0).max().unwrap() as f64 / reknit_testkit::SMSS as f64;
    assert!(most < 3.1 * link.bdp(), "{most} segments in flight");
    assert_eq!(link.lost, 0);
}

#[test]
fn drain_ends_with_one_bdp_in_flight() {
    let mut link = link(1000);
    let looks = link.run(3 * S);
    let drain = first_at(&looks, first_at(&looks, 0, HIGH), DRAIN);
    let last = looks.iter().rfind(|look| is_near(look.pace(RATE), DRAIN)).unwrap();
    assert!(last.at_us - drain < 5 * RTT_US, "{} us", last.at_us - drain);
    let end = looks.iter().find(|look| look.at_us > last.at_us).unwrap();
    let in_flight = end.info.pipe.0 as f64 / reknit_testkit::SMSS as f64;
    // Three quanta of two segments on top.
    assert!((0.9..1.15).contains(&(in_flight / link.bdp())), "{in_flight} segments in flight");
}

#[test]
fn probe_bw_uses_each_gain_for_a_round_trip() {
    let mut link = link(1000);
    link.run(3 * S);
    let looks = link.run(9 * S);
    let gains = [1.25 * 0.99, 0.75 * 0.99, 0.99];
    let others = looks.iter().filter(|look| gains.iter().all(|gain| !is_near(look.pace(RATE), *gain))).count();
    assert!(others * 50 < looks.len(), "{others} of {}", looks.len());
    // A cycle of eight round trips: in six seconds about seven rises.
    let probing: Vec<bool> = looks.iter().map(|look| is_near(look.pace(RATE), gains[0])).collect();
    let rises = probing.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    assert!((6..=8).contains(&rises), "{rises} cycles");
    let most = looks.iter().map(Look::cwnd).fold(0.0, f64::max);
    assert!(most <= 2.0 * 1.1 * link.bdp() + 10.0, "cwnd of {most}");
}

#[test]
fn probe_rtt_reduces_the_window_to_four_segments_every_ten_seconds() {
    let mut link = link(1000);
    let looks = link.run(35 * S);
    let is_low: Vec<bool> = looks.iter().map(|look| look.at_us > S && look.cwnd() <= 4.0).collect();
    let edges = |low: bool| {
        let turns = is_low.windows(2).enumerate().filter(move |(_, pair)| pair[0] != low && pair[1] == low);
        turns.map(|(i, _)| looks[i + 1].at_us).collect::<Vec<_>>()
    };
    let (begins, ends) = (edges(true), edges(false));
    assert_eq!(begins.len(), 3, "{begins:?}");
    for (begin, end) in begins.iter().zip(&ends) {
        assert!((200_000..200_000 + 5 * RTT_US).contains(&(end - begin)), "{begin} to {end}");
    }
    for pair in begins.windows(2) {
        assert!((10 * S..11 * S).contains(&(pair[1] - pair[0])), "{begins:?}");
    }
}

#[test]
fn a_loss_causes_a_round_of_packet_conservation_and_the_window_is_restored() {
    let mut link = link(1000);
    link.run(4 * S);
    let before = link.script.info().cwnd;
    link.losses = vec![link.sent + 1];
    let looks = link.run(6 * S);
    let recovery: Vec<_> = looks.iter().filter(|look| look.info.phase == reknit_tcp::facts::Phase::Recovery).collect();
    let first = recovery.first().expect("a recovery");
    // The data in flight plus what the ACK has delivered.
    assert!(first.info.cwnd < before);
    assert!(first.info.cwnd.0 <= first.info.pipe.0 + 2 * reknit_testkit::SMSS);
    let after = looks.iter().find(|look| look.at_us > recovery.last().unwrap().at_us).unwrap();
    // The target follows the estimates, also without a loss.
    let undisturbed = cwnd_without_loss(after.at_us);
    assert!(after.info.cwnd >= before.min(undisturbed), "{} after {before}, {undisturbed}", after.info.cwnd);
    assert_eq!(link.lost, 1);
}

#[test]
fn random_losses_do_not_reduce_the_throughput() {
    let mut link = link(200);
    link.losses = (1..1000).map(|n| n * 67).collect(); // 1.5 %
    link.run(20 * S);
    let utilisation = link.script.info().acknowledged as f64 * 8.0 / (RATE.bits_per_second() as f64 * 20.0);
    assert!(utilisation > 0.85, "{utilisation}");
}

#[test]
fn after_an_idle_period_it_paces_at_the_bandwidth() {
    let mut link = Bottleneck::new(script(), RTT_US, RATE, RTT_US, 1000);
    link.write(2000);
    link.run(6 * S);
    assert!(link.script.info().flight_size.0 == 0, "not done");
    link.run(9 * S);
    link.write(200);
    let before = link.sent;
    let looks = link.run(9 * S + RTT_US / 2);
    let paces: Vec<f64> = looks.iter().map(|look| look.pace(RATE)).collect();
    assert!(paces.iter().all(|pace| is_near(*pace, 0.99)), "{paces:?}");
    // Half a round trip at the bandwidth is half of the bandwidth-delay product.
    let sent = (link.sent - before) as f64;
    assert!((sent / link.bdp() - 0.5).abs() < 0.1, "{sent}");
}

#[test]
fn a_timeout_reduces_cwnd_to_one_segment_and_the_window_is_restored() {
    let mut link = link(1000);
    link.run(4 * S);
    let before = link.script.info().cwnd;
    // Everything sent in three seconds is lost, including the first retransmissions.
    link.losses = (link.sent + 1..link.sent + 3000).collect();
    let looks = link.run(7 * S);
    let smallest = looks.iter().map(|look| look.info.cwnd).min().unwrap();
    assert_eq!(smallest.0, reknit_testkit::SMSS);
    link.losses.clear();
    link.run(12 * S);
    assert!(link.script.info().cwnd.0 * 10 >= before.0 * 9, "{} after {before}", link.script.info().cwnd);
}
