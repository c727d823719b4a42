//! BBR version 3 over a link of 10 Mbit/s and 100 ms, a bandwidth-delay product of 86 segments: test cases of
//! draft-ietf-ccwg-bbr-06, appendix A.

use reknit_testkit::bottleneck::{Bottleneck, Look};
use reknit_testkit::{ISNS, SMSS, TestSender, config, variant};
use reknit_units::Rate;
use reknit_variants::bbr::v3;
use reknit_variants::composition::Composition;

const RATE: Rate = Rate::from_bits_per_second(10_000_000);
const RTT_US: u64 = 100_000;
const S: u64 = 1_000_000;

fn script() -> TestSender {
    script_of(&variant("bbr"))
}

fn script_of(composition: &Composition) -> TestSender {
    TestSender::idle(ISNS[0], composition.build(), composition.configure(config(10)), RTT_US / 1000)
}

/// A link with a sender that always has data to send.
fn link(queue: usize) -> Bottleneck {
    link_from(script(), queue)
}

fn link_from(script: TestSender, queue: usize) -> Bottleneck {
    let mut link = Bottleneck::new(script, RTT_US, RATE, RTT_US, queue);
    link.write(1 << 30);
    link
}

/// The pacing rate is `gain` times that of the link, less the margin of 1 %.
fn paces(look: &Look, gain: f64) -> bool {
    (look.pace(RATE) / (gain * 0.99) - 1.0).abs() < 0.03
}

fn first_at(looks: &[Look], gain: f64) -> u64 {
    looks.iter().find(|look| paces(look, gain)).map(|look| look.at_us).expect("it never was")
}

fn in_flight(look: &Look) -> f64 {
    look.info.pipe.0 as f64 / SMSS as f64
}

fn utilisation(link: &Bottleneck, seconds: u64) -> f64 {
    link.script.info().acknowledged as f64 * 8.0 / (link.rate.bits_per_second() * seconds) as f64
}

#[test]
fn startup_ends_on_a_plateau_of_three_rounds() {
    let mut link = link(1000);
    let looks = link.run(3 * S);
    let full = first_at(&looks, 2.77);
    let drain = first_at(&looks, 0.5);
    assert!((3 * RTT_US..8 * RTT_US).contains(&full), "full at {full} us");
    assert!((3 * RTT_US..8 * RTT_US).contains(&(drain - full)), "drain at {drain} us after full at {full}");
    assert_eq!(link.lost, 0);
}

#[test]
fn startup_ends_on_losses() {
    // The queue holds a fifth of the bandwidth-delay product.
    let mut link = link(17);
    let looks = link.run(3 * S);
    let most = looks.iter().map(in_flight).fold(0.0, f64::max);
    assert!(most < 2.6 * link.bdp(), "{most} segments in flight");
    let later = link.lost;
    link.run(20 * S);
    let share = (link.lost - later) as f64 / link.sent as f64;
    assert!(share < 0.02, "{share} lost after Startup");
    assert!(utilisation(&link, 20) > 0.8, "{}", utilisation(&link, 20));
}

#[test]
fn drain_ends_with_one_bdp_in_flight() {
    let mut link = link(1000);
    let looks = link.run(3 * S);
    let last = looks.iter().rfind(|look| paces(look, 0.5)).unwrap();
    let end = looks.iter().find(|look| look.at_us > last.at_us).unwrap();
    assert!((0.9..1.1).contains(&(in_flight(end) / link.bdp())), "{} segments in flight", in_flight(end));
}

#[test]
fn probe_bw_goes_down_cruises_refills_and_goes_up() {
    let mut link = link(1000);
    link.run(2 * S);
    let looks = link.run(5 * S);
    for gain in [0.9, 1.0, 1.25] {
        assert!(looks.iter().any(|look| paces(look, gain)), "never at {gain}");
    }
    // Probing waits two to three seconds, or 63 rounds.
    link.run(60 * S);
    let looks = link.run(100 * S);
    let probing: Vec<_> = looks.iter().map(|look| paces(look, 1.25)).collect();
    let rises = probing.windows(2).filter(|pair| !pair[0] && pair[1]).count();
    assert!((9..=20).contains(&rises), "{rises} probes in 40 s");
    assert!(utilisation(&link, 100) > 0.93, "{}", utilisation(&link, 100));
}

#[test]
fn probe_rtt_halves_the_data_in_flight_every_five_seconds() {
    let mut link = link(1000);
    link.run(4 * S);
    let looks = link.run(40 * S);
    let half = link.bdp() * 0.5;
    let is_low: Vec<_> = looks.iter().map(|look| look.cwnd() < half * 1.05).collect();
    let edges = |low: bool| {
        let turns = is_low.windows(2).enumerate().filter(move |(_, pair)| pair[0] != low && pair[1] == low);
        turns.map(|(i, _)| looks[i + 1].at_us).collect::<Vec<_>>()
    };
    let (begins, ends) = (edges(true), edges(false));
    assert!((6..=7).contains(&begins.len()), "{begins:?}");
    for (begin, end) in begins.iter().zip(&ends) {
        assert!((200_000..200_000 + 4 * RTT_US).contains(&(end - begin)), "{begin} to {end}");
    }
    for pair in begins.windows(2) {
        assert!((5 * S..6 * S).contains(&(pair[1] - pair[0])), "{begins:?}");
    }
}

#[test]
fn a_queue_of_a_tenth_of_the_bdp_is_enough_and_little_is_lost() {
    let mut link = link(9);
    link.run(30 * S);
    assert!(utilisation(&link, 30) > 0.75, "{}", utilisation(&link, 30));
    assert!((link.lost as f64) < 0.03 * link.sent as f64, "{} of {} lost", link.lost, link.sent);
}

#[test]
fn the_rate_follows_a_tenfold_increase_of_the_bandwidth() {
    let mut link = link(1000);
    link.run(10 * S);
    link.rate = Rate::from_bits_per_second(100_000_000);
    let looks = link.run(30 * S);
    let pace = looks.last().unwrap().pace(link.rate);
    assert!((0.85..1.4).contains(&pace), "{pace}");
}

#[test]
fn the_rate_follows_a_decrease_of_the_bandwidth_to_a_tenth() {
    // With the other parts of `bbr`, ProbeRTT always begins before the round ends in which the bandwidth of the probe is
    // measured, so the filter forgets nothing (see the header of the variant).
    let composition = Composition { congestion_control: v3::BbrConfig::default().into(), ..variant("rack") };
    let mut link = link_from(script_of(&composition), 100);
    link.run(10 * S);
    link.rate = Rate::from_bits_per_second(1_000_000);
    let looks = link.run(40 * S);
    let pace = looks.last().unwrap().pace(link.rate);
    assert!((0.45..1.4).contains(&pace), "{pace}");
}

#[test]
fn startup_does_not_end_while_the_application_limits_the_rate() {
    let mut link = Bottleneck::new(script(), RTT_US, RATE, RTT_US, 1000);
    for step in 0..40 {
        link.write(5);
        let looks = link.run(RTT_US * (step + 2));
        assert!(looks.iter().all(|look| !paces(look, 0.5)));
    }
    let looks = link.run(5 * S);
    assert!(looks.iter().all(|look| look.cwnd() >= 10.0));
}

#[test]
fn with_a_bdp_below_one_segment_cwnd_is_at_least_four() {
    let mut link = Bottleneck::new(script(), RTT_US, Rate::from_bits_per_second(100_000), 10_000, 100);
    link.write(1 << 20);
    link.run(30 * S);
    let info = link.script.info();
    assert!(info.cwnd.0 >= 4 * SMSS, "{}", info.cwnd);
    assert!(utilisation(&link, 30) > 0.9, "{}", utilisation(&link, 30));
}
