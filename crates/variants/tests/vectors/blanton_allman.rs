//! Worked examples of Blanton and Allman's thresholds, and of measuring N. The limits and the averages are tested in
//! the source file.

use reknit_testkit::{TestSender, config, variant, vector};
use reknit_units::Share;
use reknit_variants::Composition;
use reknit_variants::threshold::blanton_allman::{BlantonAllmanConfig, Rule};

fn start(isn: u32, composition: &Composition) -> TestSender {
    let mut s = TestSender::new(isn, composition, config(50), 100);
    assert_eq!(s.sent().len(), 50);
    s
}

/// The threshold after each segment that arrives behind this many later ones. Between them there is enough traffic in
/// order for the window to grow back.
fn thresholds<const LEN: usize>(s: &mut TestSender, behind: [u32; LEN]) -> [u32; LEN] {
    behind.map(|behind| {
        s.pass_late(behind);
        let dup_thresh = s.info().dup_thresh.0;
        s.pass_in_order(40);
        dup_thresh
    })
}

vector!(inc_climbs_by_one_and_a_timeout_resets_it, |isn| {
    let mut s = start(isn, &variant("ba-inc"));
    assert_eq!(thresholds(&mut s, [9, 9, 9]), [4, 5, 6]);
    s.at(30_000);
    s.sent();
    s.pass_the_rest();
    s.pass_in_order(8);
    assert!(s.connection.send_stats().timeouts > 0);
    assert_eq!(s.info().dup_thresh.0, 3);
});

vector!(avg_goes_halfway_to_n_and_never_down, |isn| {
    let mut s = start(isn, &variant("ba-avg"));
    assert_eq!(thresholds(&mut s, [9, 9, 20, 4]), [6, 8, 14, 14]);
    assert_eq!(s.connection.send_stats().spurious_cuts, 3);
});

vector!(ewma_follows_every_late_segment, |isn| {
    let mut s = start(isn, &variant("ba-ewma"));
    // The third arrives before the threshold of 6 is reached, so it is measured without a fast retransmit.
    assert_eq!(thresholds(&mut s, [8, 8, 4, 12]), [5, 6, 5, 7]);
    assert_eq!(s.connection.send_stats().spurious_cuts, 3);
});

vector!(only_ewma_learns_from_a_hole_that_fills_in_time, |isn| {
    for name in ["ba-inc", "ba-avg", "ba-ewma"] {
        let mut s = start(isn, &variant(name));
        assert_eq!(thresholds(&mut s, [2]), [3]);
        assert_eq!(s.connection.send_stats().cuts.total(), 0);
    }
    // 2.75, 2.5625, 3.921875; without either of the first two, the third average would exceed 4.
    let mut s = start(isn, &variant("ba-ewma"));
    assert_eq!(thresholds(&mut s, [2, 2, 8]), [3, 3, 4]);
});

vector!(the_window_limits_the_threshold, |isn| {
    let mut s = start(isn, &variant("ba-avg"));
    s.pass_late(49); // N = 49: ceil((3 + 49) / 2) = 26, in a window of 25 segments
    assert_eq!((s.info().cwnd.0 / reknit_testkit::SMSS, s.info().dup_thresh.0), (25, 22));
    s.pass_in_order(4); // 29 segments: 0.9 * 29 = 26.1
    assert_eq!((s.info().cwnd.0 / reknit_testkit::SMSS, s.info().dup_thresh.0), (29, 26));
});

/// An average that is always the latest N, so the threshold shows N.
fn only_the_latest() -> Composition {
    let config = BlantonAllmanConfig { rule: Rule::Ewma, gain: Share::ONE, ..BlantonAllmanConfig::default() };
    Composition { dup_thresh: config.into(), ..variant("ba-ewma") }
}

vector!(n_counts_what_had_been_sacked_when_the_hole_was_covered, |isn| {
    let mut s = start(isn, &only_the_latest());
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.pass_all([5, 1, 6, 7, 8, 9]);
    assert_eq!(s.info().dup_thresh.0, 3);
    s.pass(1);
    assert_eq!(s.info().dup_thresh.0, 4);
});

vector!(n_does_not_count_what_the_same_ack_covers, |isn| {
    let mut s = start(isn, &only_the_latest());
    s.pass_all([2, 3, 4, 5]);
    s.arrive(6); // its ACK is lost
    s.pass_all([1, 1]); // the second ACK covers 1 and 6
    assert_eq!(s.info().dup_thresh.0, 4);
});

vector!(n_is_that_of_the_first_of_several_holes, |isn| {
    let mut s = TestSender::new(isn, &only_the_latest(), config(10), 100);
    s.sent();
    let retransmitted = s.pass_all([2, 4, 5, 6, 7, 8, 9]);
    assert!(retransmitted.contains(&1) && retransmitted.contains(&3), "{retransmitted:?}");
    s.pass_all([1, 3]); // seven were SACKed above 1, six above 3
    s.pass(1);
    assert_eq!(s.connection.send_stats().spurious_cuts, 0);
    s.pass(3);
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
    s.pass_in_order(10); // so that the window does not limit the threshold
    assert_eq!(s.info().dup_thresh.0, 7);
});

vector!(n_of_a_hole_that_is_filled_above_another, |isn| {
    let mut s = start(
        isn,
        &Composition {
            dup_thresh: BlantonAllmanConfig { rule: Rule::Ewma, gain: Share::ONE, ..BlantonAllmanConfig::default() }
                .into(),
            postponements: vec![reknit_variants::wait::paxson_snd::FixedWaitConfig::default().into()],
            ..variant("ba-ewma")
        },
    );
    s.pass_all([3, 5, 6, 7, 8]);
    s.pass(4); // four above it
    assert_eq!(s.info().dup_thresh.0, 4);
});

vector!(a_lost_ack_of_the_original_leaves_n_to_the_ack_of_the_copy, |isn| {
    let mut s = start(isn, &only_the_latest());
    s.pass_all([2, 3, 4, 5]);
    s.arrive(1); // the original; its ACK is lost
    s.pass(1);
    assert_eq!((s.connection.send_stats().spurious_cuts, s.info().dup_thresh.0), (1, 4));
});

vector!(a_real_loss_changes_nothing, |isn| {
    for name in ["ba-inc", "ba-avg", "ba-ewma"] {
        let mut s = start(isn, &variant(name));
        s.pass_all(2..=9);
        s.pass(1); // the copy
        s.pass_the_rest();
        s.pass_in_order(8);
        assert_eq!((s.info().dup_thresh.0, s.connection.send_stats().spurious_cuts), (3, 0), "{name}");
    }
});
