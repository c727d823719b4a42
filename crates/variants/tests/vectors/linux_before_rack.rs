//! Worked examples of `linux-3.18`: the functions of the kernel that each follows from are named in `linux/fack.rs`.

#![expect(clippy::float_cmp, reason = "the pipe is a whole number of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::{Ack, NOTHING, TestSender, config, variant, vector};
use reknit_units::Segments;
use reknit_variants::Composition;
use reknit_variants::linux::fack::LinuxFackConfig;

/// `window` segments were sent at 100 ms; the round trip takes 100 ms.
fn sent(isn: u32, window: u32) -> TestSender {
    with(isn, &variant("linux-3.18"), window)
}

/// The same with timestamps.
fn with(isn: u32, composition: &Composition, window: u32) -> TestSender {
    let config = Config { timestamps: true, mss: 2000, ..config(window) };
    let mut s = TestSender::new(isn, composition, config, 100);
    assert_eq!(s.at(100).sent().len(), window as usize);
    s
}

/// The application writes only `n` segments.
fn limited(isn: u32, n: u32) -> TestSender {
    let composition = variant("linux-3.18");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(20)), 100);
    s.at(100);
    assert_eq!(s.write(n).len(), n as usize);
    s
}

/// The original of segment `n` arrives.
fn pass_original(s: &mut TestSender, n: u32) -> Vec<u32> {
    let ack = Ack { ecr: Some(10_100), ..s.arrive(n) };
    s.deliver(&ack);
    s.sent()
}

/// Segment 1 was late by five, and was retransmitted in the meantime.
fn after_reordering(isn: u32, window: u32) -> TestSender {
    let mut s = sent(isn, window);
    s.at(200).pass_all(2..=6);
    assert_eq!(s.info().phase, Phase::Recovery);
    pass_original(&mut s, 1);
    s.pass(1);
    assert_eq!((s.info().phase, s.connection.send_stats().undos), (Phase::Open, 1));
    s
}

vector!(with_fack_the_distance_counts_not_what_is_sacked, |isn| {
    let mut s = sent(isn, 10);
    assert!(!s.at(200).pass(3).contains(&1));
    assert_eq!(s.pass(4), [1]); // S1 is three below S4
    assert_eq!((s.info().phase, s.info().dup_thresh.0), (Phase::Recovery, 3));
    assert_eq!(s.pass(5), NOTHING);
    assert_eq!(s.pipe(), 7.0); // of 11, three are SACKed, two are lost, one was retransmitted; S2 is three below S5
    assert_eq!(s.pass(6), [2]);
});

vector!(without_fack_what_is_sacked_counts, |isn| {
    let mut composition = variant("linux-3.18");
    composition.loss_detector = LinuxFackConfig { fack: false, ..LinuxFackConfig::default() }.into();
    let mut s = with(isn, &composition, 10);
    assert!(!s.at(200).pass_all([3, 4]).contains(&1));
    assert_eq!(s.pass(5), [1]);
});

vector!(reordering_ends_fack_and_raises_the_threshold, |isn| {
    let mut s = after_reordering(isn, 20);
    assert_eq!(s.info().dup_thresh, Segments(6)); // S1 to S6, both counted
    assert!(!s.pass_all(9..=13).contains(&7)); // five are SACKed
    assert!(s.pass(14).contains(&7));
});

vector!(the_threshold_is_at_most_127, |isn| {
    let mut s = sent(isn, 200);
    s.at(200).pass_all(2..=180);
    pass_original(&mut s, 1);
    s.pass(1);
    assert_eq!(s.info().dup_thresh, Segments(127));
});

vector!(a_retransmission_is_lost_if_something_sent_after_it_is_sacked, |isn| {
    let mut s = sent(isn, 10);
    assert!(s.at(200).pass_all(2..=4).contains(&1));
    let new = s.pass_all(5..=8).into_iter().max();
    assert_eq!(s.at(300).pass(new.unwrap()).first(), Some(&1));
});

vector!(early_retransmit_waits_a_quarter_of_the_round_trip, |isn| {
    let mut s = limited(isn, 3);
    assert_eq!(s.at(200).pass_all([2, 3]), NOTHING);
    assert_eq!(s.at(231).sent(), NOTHING); // in the tick after 225 ms
    assert_eq!(s.at(232).sent(), [1]);
    assert_eq!(s.info().phase, Phase::Recovery);
});

vector!(a_late_segment_ends_early_retransmit, |isn| {
    let mut s = limited(isn, 10);
    s.at(200).pass_all([2, 1]);
    s.pass_all(3..=7);
    assert_eq!(s.pass_all([9, 10]), NOTHING);
    assert_eq!(s.at(300).sent(), NOTHING);
});

vector!(a_probe_is_sent_after_two_round_trips, |isn| {
    let mut s = limited(isn, 3);
    assert_eq!(s.at(300).sent(), NOTHING);
    assert_eq!(s.at(304).sent(), [3]);
});

vector!(a_timeout_marks_everything_lost, |isn| {
    let mut s = limited(isn, 10);
    s.at(1000);
    assert_eq!((s.info().phase, s.info().pipe.0 / reknit_testkit::SMSS), (Phase::Loss, 1));
});
