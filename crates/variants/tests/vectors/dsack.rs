//! Worked examples of DSACK detection.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::facts::Phase;
use reknit_testkit::{TestSender, config, variant, vector};
use reknit_units::{Duration, Segments};
use reknit_variants::Composition;
use reknit_variants::base::fixed_threshold;
use reknit_variants::base::limited_transmit;
use reknit_variants::undo::dsack_det::{DsackConfig, Duplication};

/// 2, 3, 4 overtake 1, which is retransmitted; then the original and everything else arrive, and finally the copy.
fn needless_fast_retransmit(isn: u32, name: &str) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(8), 100);
    assert_eq!(s.sent(), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(s.pass_all([2, 3, 4]), [9, 10, 1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (4.0, 4.0));
    s.pass(1);
    s.pass_all([5, 6, 7, 8]);
    assert_eq!((s.cwnd(), s.info().phase), (4.0, Phase::Recovery));
    s.pass(1);
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
    assert_eq!(s.connection.send_stats().spurious_retransmissions, 1);
    assert_eq!(s.info().phase, Phase::Open);
    s
}

vector!(the_old_window_is_restored_at_once, |isn| {
    let s = needless_fast_retransmit(isn, "dsack-r");
    assert_eq!((s.cwnd(), s.ssthresh()), (8.0, f64::INFINITY));
});

vector!(slow_start_to_the_old_window, |isn| {
    let s = needless_fast_retransmit(isn, "dsack-ss");
    assert_eq!((s.cwnd(), s.ssthresh()), (4.0, 8.0));
});

vector!(slow_start_to_the_old_window_by_blanton_and_allman, |isn| {
    let s = needless_fast_retransmit(isn, "ba-r");
    assert_eq!((s.cwnd(), s.ssthresh()), (4.0, 8.0));
});

vector!(blanton_and_allman_send_on_every_second_duplicate_ack, |isn| {
    // With a threshold that cannot be reached, only limited transmit acts.
    let composition =
        Composition { dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(20) }.into(), ..variant("ba-r") };
    let mut s = TestSender::new(isn, &composition, config(12), 100);
    s.sent();
    let sent: Vec<usize> = (2..=9).map(|n| s.pass(n).len()).collect();
    assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1]);
});

vector!(genuine_losses_are_not_undone, |isn| {
    let mut s = TestSender::new(isn, &variant("dsack-r"), config(8), 100);
    s.sent();
    // 1 and 5 are lost and repaired; no duplicate is reported.
    s.pass_all([2, 3, 4, 6, 7, 8, 9, 10]);
    s.pass_all([1, 5]);
    s.pass_all([11, 12]);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
    assert_eq!(s.ssthresh(), 4.0);
});

vector!(one_of_two_is_not_enough, |isn| {
    let mut s = TestSender::new(isn, &variant("dsack-r"), config(8), 100);
    s.sent();
    // 5 is lost, 1 only late: both are retransmitted.
    let retransmitted = s.pass_all([2, 3, 4, 6, 7, 8, 9, 10]);
    assert!(retransmitted.contains(&1) && retransmitted.contains(&5), "{retransmitted:?}");
    s.pass(1); // the original
    s.pass(1); // its copy: D1
    assert_eq!(s.connection.send_stats().spurious_retransmissions, 1);
    s.pass(5); // the copy of 5, the only one that arrives
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
});

vector!(a_window_of_lost_acks_undoes_nothing, |isn| {
    let composition = variant("dsack-r");
    let mut s = TestSender::idle(isn, composition.build(), config(4), 100);
    s.connection.write(reknit_units::Bytes(4 * reknit_testkit::SMSS));
    assert_eq!(s.sent(), [1, 2, 3, 4]);
    for n in 1..=4 {
        s.arrive(n); // all ACKs are lost
    }
    s.at(1500);
    assert_eq!(s.sent(), [1]);
    let ack = s.arrive(1);
    assert_eq!((ack.cum, ack.dsack), (4, Some(1)));
    s.deliver(&ack);
    assert_eq!((s.ssthresh(), s.connection.send_stats().spurious_cuts), (2.0, 0));
});

fn duplicated_by_the_network(isn: u32, duplication: Duplication) -> TestSender {
    let config = DsackConfig { duplication, ..DsackConfig::default() };
    let composition = Composition { spurious_detectors: vec![config.into()], ..variant("dsack-r") };
    let mut s = TestSender::new(isn, &composition, reknit_testkit::config(8), 100);
    s.sent();
    s.pass_all([1, 3]);
    s.pass(3); // sent once, arrives twice
    assert_eq!(s.connection.send_stats().network_duplicates, 1);
    assert!(s.pass_all([4, 5]).contains(&2));
    s.pass_all([2, 2]); // a late original and its copy
    assert_eq!(s.connection.send_stats().spurious_retransmissions, 1);
    s
}

vector!(duplication_by_the_network_turns_detection_off, |isn| {
    let s = duplicated_by_the_network(isn, Duplication::Disable);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
});

vector!(duplication_by_the_network_is_ignored_if_configured, |isn| {
    let s = duplicated_by_the_network(isn, Duplication::Ignore);
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
});

vector!(a_segment_sent_three_times_is_ambiguous, |isn| {
    let mut s = TestSender::new(isn, &variant("dsack-r"), config(8), 100);
    s.sent();
    assert_eq!(s.pass_all([2, 3, 4]), [9, 10, 1]);
    s.at(2500); // the timer retransmits it again
    assert!(s.sent().contains(&1));
    s.pass(1);
    s.pass(1);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
});

vector!(an_ecn_echo_blocks_the_undo, |isn| {
    let ecn = reknit_tcp::Config { ecn: true, min_rto: Duration::from_secs(1), ..config(8) };
    let mut s = TestSender::new(isn, &variant("dsack-r"), ecn, 100);
    s.sent();
    s.pass_all([2, 3, 4]);
    s.pass(1);
    s.pass_all([5, 6, 7, 8]);
    let mut ack = s.arrive(1);
    ack.ece = true;
    s.deliver(&ack);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
    assert_eq!(s.ssthresh(), 4.0);
});

vector!(the_restored_window_is_sent_in_bursts, |isn| {
    // At most `max_burst` segments for each ACK until the old window is full again.
    let limited = reknit_tcp::Config { max_burst: Some(reknit_units::Segments(4)), ..config(16) };
    let mut s = TestSender::new(isn, &variant("dsack-r"), limited, 100);
    assert_eq!(s.sent().len(), 16);
    s.pass_all([2, 3, 4]);
    s.pass(1);
    s.pass_all(5..=16);
    s.sent();
    assert_eq!(s.pass(1).len(), 4);
    assert_eq!(s.cwnd(), 16.0);
});

vector!(an_undo_after_the_episode_does_not_affect_a_new_disorder, |isn| {
    let limited_transmit = limited_transmit::PerSackConfig { windows: 1.0 }.into();
    let composition = Composition { limited_transmit, ..variant("dsack-r") };
    let mut s = TestSender::new(isn, &composition, config(20), 100);
    s.sent();
    s.pass_all([2, 3, 4]);
    s.pass(1);
    s.pass_in_order(18); // to the end of what was sent before the fast retransmit
    assert_eq!(s.info().phase, Phase::Open);
    s.pass_all([24, 25]);
    s.arrive(23); // its ACK is lost, so the ACK of the copy both ends this disorder and brings the verdict
    s.pass(1);
    assert_eq!((s.connection.send_stats().spurious_cuts, s.info().phase), (1, Phase::Open));
    // The next disorder begins with the first segment of limited transmit, without what was left from the last one.
    assert_eq!(s.pass(27).len(), 1);
});

/// Two spurious fast retransmits. The DSACK for the first arrives after the second has begun, then the one for the second.
/// The windows before, between and after the copies, and the number of undos.
fn two_open_reductions(isn: u32, open: u32) -> ([f64; 3], u64) {
    let detector = DsackConfig { open, ..DsackConfig::default() };
    let composition = Composition { spurious_detectors: vec![detector.into()], ..variant("dsack-r") };
    let mut s = TestSender::new(isn, &composition, config(16), 100);
    assert_eq!(s.sent().len(), 16);
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.pass(1);
    s.pass_in_order(14); // to the end of what was sent before the fast retransmit
    assert_eq!((s.cwnd(), s.info().phase), (8.0, Phase::Open));
    let next = 19;
    s.at(300);
    assert!(s.pass_all([next + 1, next + 2, next + 3]).contains(&next));
    let reduced = s.cwnd();
    s.pass(1); // the copy
    let between = s.cwnd();
    s.pass(next);
    s.pass(next);
    ([reduced, between, s.cwnd()], s.connection.send_stats().undos)
}

vector!(each_open_reduction_is_undone_by_its_own_evidence, |isn| {
    // The second reduction remains when the first is undone.
    assert_eq!(two_open_reductions(isn, 2), ([4.0, 8.0, 16.0], 2));
});

vector!(only_the_last_reduction_is_undone_by_default, |isn| {
    assert_eq!(two_open_reductions(isn, 1), ([4.0, 4.0, 8.0], 1));
});
