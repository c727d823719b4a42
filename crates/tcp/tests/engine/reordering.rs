//! How reordering is measured (RR-TCP §4.1): which segments have a length, and which cases are ambiguous.

use reknit_testkit::{TestSender, config, variant, vector};

vector!(one_late_segment_has_the_number_of_those_that_overtook_it_as_length, |isn| {
    // A threshold of 3 would retransmit the segment. To measure only, any larger one works.
    let mut s = patient(isn, 6);
    s.pass_all([2, 3, 4, 5, 1, 6]);
    assert_eq!(s.lengths(), [4]);
});

vector!(a_lost_ack_hides_the_event, |isn| {
    let mut s = patient(isn, 6);
    s.pass_all([2, 3, 4]);
    s.arrive(5); // its ACK is lost
    s.pass_all([1, 6]);
    assert!(s.lengths().is_empty());
});

vector!(an_overtaken_ack_hides_the_event, |isn| {
    let mut s = patient(isn, 6);
    s.pass_all([2, 3]);
    let late = [s.arrive(4), s.arrive(5)];
    s.pass(1);
    for ack in &late {
        s.deliver(ack); // stale: changes nothing
    }
    s.pass(6);
    assert!(s.lengths().is_empty());
    assert_eq!(s.connection.send_stats().stale_acks, 2);
});

vector!(two_late_segments_have_separate_lengths, |isn| {
    let mut s = patient(isn, 5);
    s.pass_all([3, 4, 1, 2, 5]);
    assert_eq!(s.lengths(), [2, 3]);
});

vector!(delayed_acks_in_order_measure_nothing, |isn| {
    let mut s = patient(isn, 4);
    s.arrive(1);
    s.pass(2);
    s.arrive(3);
    s.pass(4);
    assert!(s.lengths().is_empty());
});

vector!(both_copies_of_a_retransmitted_segment_count_with_their_mean, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(9), 100);
    s.sent();
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.pass_all([5, 1]); // r1 = 4
    assert!(s.lengths().is_empty());
    s.pass_all([6, 7, 8, 9]);
    s.pass(1); // r2 = 8
    assert_eq!(s.lengths(), [6]);
});

vector!(a_lost_segment_is_no_event, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(9), 100);
    s.sent();
    s.pass_all([2, 3, 4, 5]);
    s.pass(1); // the copy; the original never arrives
    s.pass_all([6, 7, 8, 9]);
    s.at(20_000);
    assert!(s.lengths().is_empty());
});

/// A sender that does not retransmit in these examples.
fn patient(isn: u32, window: u32) -> TestSender {
    let composition = reknit_variants::Composition {
        dup_thresh: reknit_variants::base::fixed_threshold::FixedConfig { dup_thresh: reknit_units::Segments(20) }
            .into(),
        ..variant("sack")
    };
    let mut s = TestSender::new(isn, &composition, config(window), 100);
    s.sent();
    s
}
