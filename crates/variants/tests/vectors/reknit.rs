//! Worked examples of `reknit`.
#![expect(clippy::float_cmp, reason = "windows are exact here")]

use reknit_tcp::{Config, Segment, SeqNum};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};

/// Ten segments were sent at 100 ms; the round trip takes 100 ms.
fn ten_segments(isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("reknit"), config(10), 100);
    assert_eq!(s.at(100).sent().len(), 10);
    s
}

/// The same with timestamps.
fn with_timestamps(isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("reknit"), Config { timestamps: true, mss: 2000, ..config(10) }, 100);
    assert_eq!(s.at(100).take().len(), 10);
    s
}

fn tsval(segment: &Segment) -> u32 {
    segment.options.timestamps.unwrap().val
}

vector!(three_sacked_segments_repair_the_hole_and_keep_the_window, |isn| {
    let mut s = ten_segments(isn);
    assert!(!s.at(200).pass_all([2, 3]).contains(&1));
    assert_eq!(s.pass(4).first(), Some(&1));
    assert_eq!((s.cwnd(), s.ssthresh()), (13.0, f64::INFINITY)); // slow start goes on
});

vector!(slow_start_pauses_above_32_segments_while_a_repair_is_undecided, |isn| {
    let mut s = TestSender::new(isn, &variant("reknit"), config(40), 100);
    assert_eq!(s.at(100).sent().len(), 40);
    assert!(s.at(200).pass_all([2, 3, 4]).contains(&1));
    assert_eq!((s.cwnd(), s.ssthresh()), (42.0, f64::INFINITY)); // until the repair
});

vector!(a_late_original_is_learned_and_costs_nothing, |isn| {
    let mut s = ten_segments(isn);
    assert!(s.at(200).pass_all([2, 3, 4]).contains(&1));
    // 30 ms after the retransmission, sooner than any round trip took: this is the original.
    s.at(230).pass(1);
    s.at(300).pass_all(5..=10);
    s.at(310).pass(1); // the retransmission arrives, too: a DSACK
    assert_eq!(s.ssthresh(), f64::INFINITY);
    // From now on, a hole may stay open for 30 ms and a margin.
    let hole = (s.info().acknowledged / SMSS) as u32 + 1;
    assert!(!s.at(360).pass_all(hole + 1..=hole + 5).contains(&hole));
    assert!(!s.at(375).sent().contains(&hole));
    assert!(s.at(450).sent().contains(&hole));
    assert_eq!(s.ssthresh(), f64::INFINITY);
});

vector!(a_retransmission_that_arrives_shows_that_earlier_segments_are_missing, |isn| {
    let mut s = ten_segments(isn);
    assert!(s.at(200).pass_all(2..=8).contains(&1));
    // Segments 9 and 10 are lost, and so is everything that was sent after the retransmission.
    assert!(s.at(300).pass(1).contains(&9));
});

vector!(in_order_slow_start_ends_when_the_rtt_has_risen, |isn| {
    let mut s = TestSender::new(isn, &variant("reknit"), config(20), 100);
    assert_eq!(s.at(100).sent().len(), 20);
    s.at(200).pass_all(1..=20);
    assert_eq!(s.ssthresh(), f64::INFINITY);
    s.at(330).pass_all(21..=30);
    assert_eq!(s.ssthresh(), 48.0);
    // Segment 31 is late, so this path reorders: the RTT may rise without a queue.
    s.at(331).pass(32);
    s.at(332).pass(31);
    assert_eq!(s.ssthresh(), f64::INFINITY);
});

vector!(a_loss_reduces_the_window_once_its_repair_is_certain, |isn| {
    let mut s = ten_segments(isn);
    assert!(s.at(200).pass_all(2..=10).contains(&1));
    assert_eq!(s.ssthresh(), f64::INFINITY);
    // The retransmission is acknowledged after a round trip, and the original had one and a half to arrive.
    s.at(300).pass(1);
    s.at(340);
    assert_eq!(s.ssthresh(), f64::INFINITY);
    s.at(360);
    assert!(s.ssthresh() < 20.0, "{}", s.ssthresh());
});

vector!(losses_of_what_was_sent_before_a_burst_was_found_belong_to_it, |isn| {
    let mut s = TestSender::new(isn, &variant("reknit"), config(40), 100);
    s.at(100).sent();
    // The first twelve are lost. This is known at 200 ms, and the window is reduced at 210 ms.
    s.at(200).pass(13);
    let sent_before = s.at(205).pass(14);
    assert!(s.at(210).pass(15).contains(&1));
    let reduced = s.ssthresh();
    assert!(reduced < 40.0);
    s.at(220).pass_all(16..sent_before[0]);
    // The first that was sent at 205 ms is lost too: retransmissions that were sent later arrive.
    assert!(s.at(310).pass_all(1..=12).contains(&sent_before[0]));
    s.at(410).pass_the_rest();
    s.at(500).pass_the_rest();
    assert_eq!(s.ssthresh(), reduced);
});

vector!(a_reduction_is_undone_when_the_original_arrives_after_all, |isn| {
    let mut s = ten_segments(isn);
    assert!(s.at(200).pass_all(2..=10).contains(&1));
    s.at(300).pass(1);
    let before = s.cwnd();
    s.at(360);
    assert!(s.ssthresh() < f64::INFINITY);
    let reduced = s.cwnd();
    s.sent();
    s.at(380).pass(1); // DSACK: both copies have arrived
    assert!(s.cwnd() >= before, "{before} -> {reduced} -> {}", s.cwnd());
});

/// The receiver has taken no timestamp since this one. The clock of these examples begins at 10 s.
const IN_ORDER_MS: u32 = 10_100;

vector!(a_retransmission_carries_the_first_timestamp, |isn| {
    let mut s = with_timestamps(isn);
    for n in 2..=4 {
        let ack = s.at(200).arrive(n);
        s.deliver(&Ack { ecr: Some(IN_ORDER_MS), ..ack });
    }
    let sent = s.take();
    let first = SeqNum(isn).plus(1);
    let repair = sent.iter().find(|segment| segment.seq == first).unwrap();
    let new = sent.iter().find(|segment| segment.seq != first).unwrap();
    assert_eq!(tsval(new).wrapping_sub(tsval(repair)), 100);
});

vector!(a_retransmission_carries_the_newest_timestamp_that_was_echoed, |isn| {
    let mut s = with_timestamps(isn);
    for n in 2..=4 {
        let ack = s.at(200).arrive(n);
        s.deliver(&Ack { ecr: Some(10_150), ..ack }); // of a segment that filled an earlier hole
    }
    let sent = s.take();
    let first = SeqNum(isn).plus(1);
    let repair = sent.iter().find(|segment| segment.seq == first).unwrap();
    let new = sent.iter().find(|segment| segment.seq != first).unwrap();
    assert_eq!(tsval(new).wrapping_sub(tsval(repair)), 50);
});

vector!(an_overtaken_ack_is_read, |isn| {
    let mut s = with_timestamps(isn);
    let ack = |number, age_ms| Ack { blocks: vec![(number, number)], age_ms, ..Ack::default() };
    s.at(200).deliver(&ack(5, 0));
    s.take();
    // The receiver sent it 50 ms before the one that has arrived. It makes room for new data.
    s.deliver(&ack(3, 50));
    assert!(s.take().iter().any(|segment| segment.len > 0));
    // After more than 8 s, it might belong to an earlier cycle of the sequence numbers.
    s.deliver(&ack(4, 8100));
    assert!(s.take().iter().all(|segment| segment.len == 0));
});

vector!(two_unanswered_probes_end_in_a_restart, |isn| {
    let mut s = ten_segments(isn);
    // Without an ACK for a second, the smallest timeout of this connection; then for two.
    assert_eq!(s.at(1099).sent(), NOTHING);
    assert_eq!(s.at(1100).sent().len(), 1);
    assert_eq!(s.at(3100).sent().len(), 1);
    assert_eq!(s.ssthresh(), f64::INFINITY);
    s.at(7100);
    assert_eq!(s.sent().first(), Some(&1));
    assert!(s.ssthresh() < f64::INFINITY);
});
