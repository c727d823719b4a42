//! Worked examples of Leung-Ma with the whole engine; the rules are tested in the source file.

use reknit_testkit::{TestSender, config, variant, vector};

fn start(isn: u32) -> TestSender {
    with("leung-ma-port", isn)
}

fn with(name: &str, isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(50), 100);
    assert_eq!(s.sent().len(), 50);
    s
}

/// Lengths of 10, 20 and 5: the first two after a fast retransmit, the third without one.
fn three_events(isn: u32) -> TestSender {
    let mut s = start(isn);
    for (length, dup_thresh) in [(10, 10), (20, 14), (5, 12)] {
        s.pass_late(length);
        assert_eq!(s.info().dup_thresh.0, dup_thresh);
        s.pass_in_order(40);
    }
    assert_eq!(s.connection.send_stats().spurious_cuts, 2);
    s
}

vector!(the_threshold_follows_average_and_deviation, |isn| {
    three_events(isn);
});

vector!(a_series_of_timeouts_counts_once, |isn| {
    for (until, timeouts) in [(1_500, 1), (10_000, 3)] {
        let mut s = three_events(isn);
        s.at(until);
        s.sent();
        assert_eq!(s.connection.send_stats().timeouts, timeouts);
        s.pass_the_rest();
        s.pass_in_order(8); // so that the window does not limit the threshold
        assert_eq!(s.info().dup_thresh.0, 6);
    }
});

vector!(a_spuriously_retransmitted_hole_counts_with_the_length_of_its_original, |isn| {
    let mut s = start(isn);
    s.pass_all((2..=11).chain([1]));
    s.pass_all(12..=15);
    s.pass(1); // the copy, fourteen further on; the mean of both would be 12
    assert_eq!(s.info().dup_thresh.0, 10);
});

vector!(a_length_hidden_by_a_lost_ack_does_not_count, |isn| {
    let mut s = start(isn);
    s.pass_all(2..=11);
    s.arrive(12);
    s.pass_all([1, 1]);
    assert_eq!(s.connection.send_stats().spurious_cuts, 1);
    assert_eq!(s.info().dup_thresh.0, 3);
});

vector!(the_default_adds_four_deviations_and_leaves_room_for_one_round_trip, |isn| {
    let mut s = with("leung-ma", isn);
    for (length, dup_thresh) in [(10, 10), (20, 22), (5, 25)] {
        s.pass_late(length);
        assert_eq!(s.info().dup_thresh.0, dup_thresh);
        s.pass_in_order(40);
    }
});
