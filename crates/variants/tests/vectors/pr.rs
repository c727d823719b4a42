//! Worked examples of TCP-PR; those of the envelope are in the source file.
#![expect(clippy::float_cmp, reason = "windows are exact here")]

use reknit_tcp::facts::Phase;
use reknit_tcp::{Config, Segment, State};
use reknit_testkit::peer::{Peer, ack, plain};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration};

/// Ten segments have been outstanding since 100 ms. The envelope is 100 ms, so their timers expire at 400 ms.
fn ten_segments(isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("pr"), config(10), 100);
    assert_eq!(s.at(100).sent().len(), 10);
    s
}

/// Exactly `n` segments are written at `ms`.
fn write_at(s: &mut TestSender, ms: u64, n: u32) -> Vec<u32> {
    s.at(ms).write(n)
}

vector!(the_longest_round_trip_sets_the_timer, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(10), 100);
    assert_eq!(write_at(&mut s, 1000, 1), [1]);
    // A sample of 300 ms.
    assert_eq!(s.at(1300).sent(), [1]); // three times 100 ms have passed
    let mut s = TestSender::idle(isn, variant("pr").build(), config(10), 100);
    assert_eq!(write_at(&mut s, 1000, 1), [1]);
    s.at(1299).pass(1);
    assert_eq!(s.info().srtt, Some(Duration::from_millis(299)));
    assert_eq!(write_at(&mut s, 2000, 1), [2]);
    s.at_us(2_896_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(2897).sent(), [2]); // mxrtt = 897 ms
});

vector!(a_window_is_halved_once, |isn| {
    // Ten segments, of which the first two were sent a little earlier.
    let mut s = TestSender::idle(isn, variant("pr").build(), config(10), 100);
    assert_eq!(write_at(&mut s, 100, 1), [1]);
    assert_eq!(write_at(&mut s, 110, 1), [2]);
    assert_eq!(write_at(&mut s, 120, 8).len(), 8);
    s.at(400);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
    // Nine are outstanding, more than cwnd, so the retransmission waits.
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.pipe(), 9.0);
    // A second one is lost: it is retransmitted without another reduction.
    s.at(410);
    assert_eq!((s.cwnd(), s.ssthresh(), s.pipe()), (5.0, 5.0, 8.0));
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

vector!(more_than_half_a_window_is_an_extreme_loss, |isn| {
    // Ten segments with a window of ten, one each 10 ms.
    let mut s = TestSender::idle(isn, variant("pr").build(), config(10), 100);
    for n in 1..=10 {
        assert_eq!(write_at(&mut s, 90 + 10 * u64::from(n), 1), [n]);
    }
    // The first is the event, five of the nine memorized follow. As soon as fewer than five are out, what is lost goes
    // again.
    s.at(459);
    assert_eq!(s.cwnd(), 5.0);
    assert_eq!(s.sent(), [1]);
    // The sixth memorized loss.
    s.at(460);
    assert_eq!((s.cwnd(), s.sent()), (1.0, NOTHING.to_vec()));
    // Nothing is sent until 460 + 1000 ms.
    s.at(1459);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.cwnd(), 1.0);
    s.at(1460);
    assert_eq!((s.cwnd(), s.sent()), (1.0, vec![1]));
});

vector!(reordering_within_mxrtt_is_no_loss, |isn| {
    let mut s = ten_segments(isn);
    let mut cwnd = 10.0;
    for n in 2..=9 {
        s.at(200).pass(n);
        cwnd += 1.0;
        assert_eq!(s.cwnd(), cwnd);
    }
    s.at(399).pass(1);
    assert_eq!(s.cwnd(), 19.0);
    let stats = s.connection.send_stats();
    assert_eq!((stats.cuts.total(), stats.sent.fast_retransmit), (0, 0));
});

vector!(a_lost_retransmission_halves_its_own_window, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(10), 100);
    assert_eq!(write_at(&mut s, 100, 10).len(), 10);
    s.at(200).pass_all(2..=10);
    assert_eq!(s.at(400).sent(), [1]);
    assert_eq!(s.cwnd(), 5.0);
    // Lost again: it was sent with a window of five, after the memorized segments.
    assert_eq!(s.at(700).sent(), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (2.5, 2.5));
});

vector!(retransmissions_with_a_window_of_one_back_off, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(1), 100);
    assert_eq!(write_at(&mut s, 100, 1), [1]);
    // 100 + 300, + 300 (it was sent once), + 600, + 1200.
    for ms in [400, 700, 1300, 2500] {
        s.at_us(ms * 1000 - 1);
        assert_eq!(s.sent(), NOTHING);
        assert_eq!(s.at(ms).sent(), [1]);
    }
    // Karn: no sample from it; the next segment's ends the back-off.
    s.at(2600).pass(1);
    assert_eq!(write_at(&mut s, 3000, 1), [2]);
    s.at(3100).pass(2);
    assert_eq!(write_at(&mut s, 4000, 1), [3]);
    assert_eq!(s.at(4300).sent(), [3]);
});

vector!(duplicate_acks_and_single_losses_never_stop_the_ack_clock, |isn| {
    let mut s = ten_segments(isn);
    // Each SACK brings at least one new segment, and slow start one more.
    for n in 2..=10 {
        assert!(!s.at(200).pass(n).is_empty(), "{n}");
    }
    // The loss halves the window with which segment 1 was sent, and the outstanding segments fall to five.
    s.at(400);
    assert_eq!(s.cwnd(), 5.0);
    assert_eq!(s.sent(), NOTHING);
});

vector!(a_closed_window_is_probed_and_the_probe_is_no_loss, |isn| {
    let mut s = TestSender::new(isn, &variant("pr"), config(2), 100);
    assert_eq!(s.at(100).sent(), [1, 2]);
    s.at(200);
    s.arrive(1);
    let ack = Ack { closed: true, ..s.arrive(2) };
    s.deliver(&ack);
    assert_eq!(s.sent(), NOTHING);
    // The persist timer: after 1 s, then 2 s later, then 4 s.
    for (i, ms) in (0..).zip([1200, 3200, 7200]) {
        s.at(ms - 1);
        assert_eq!(s.connection.send_stats().sent.window_probe, i);
        assert_eq!(s.at(ms).sent(), [3]);
        s.deliver(&ack);
        assert_eq!(s.connection.send_stats().sent.window_probe, i + 1);
    }
    let stats = s.connection.send_stats();
    assert_eq!((stats.cuts.total(), stats.sent.fast_retransmit), (0, 0));
});

vector!(a_receiver_that_discards_sacked_data_is_detected, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(4), 100);
    assert_eq!(write_at(&mut s, 100, 3), [1, 2, 3]);
    // It has 2 and 3 when 1 arrives, but acknowledges only 1: it has discarded them.
    s.at(200).pass_all([2, 3]);
    s.deliver(&Ack { cum: 1, ..Ack::default() });
    s.at(1199); // the smallest RTO is 1 s
    assert_eq!(s.sent(), NOTHING);
    s.at(1200);
    assert!(s.sent().starts_with(&[2]));
});

vector!(the_user_timeout_needs_no_retransmission_timer, |isn| {
    let quick = Config { user_timeout: Duration::from_secs(100), ..config(4) };
    let mut s = TestSender::idle(isn, variant("pr").build(), quick, 100);
    assert_eq!(write_at(&mut s, 100, 3), [1, 2, 3]);
    s.at(99_000);
    assert_eq!(s.info().state, State::Established);
    s.at(170_000);
    assert_eq!(s.info().state, State::Closed);
});

vector!(the_last_segment_and_the_fin_have_timers_too, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(4), 100);
    s.connection.write(Bytes(SMSS));
    s.connection.close();
    assert_eq!(s.at(100).sent(), [1]);
    assert_eq!(s.at(400).sent(), [1]);
});

vector!(a_receiver_that_reneges_twice_stops_no_timer, |isn| {
    let mut s = TestSender::idle(isn, variant("pr").build(), config(1), 100);
    assert_eq!(write_at(&mut s, 100, 1), [1]); // and no more, whose timers would hide it
    let claim = Ack { cum: 0, blocks: vec![(1, 1)], ..Ack::default() };
    for ms in [200, 1000, 3000] {
        s.at(ms).deliver(&claim); // checks that a timer runs
        assert!(s.connection.deadline().is_set(), "after {ms} ms");
        s.sent();
    }
    s.at(1_000_000);
    assert_eq!(s.info().state, State::Closed);
});

vector!(a_peer_that_delays_its_acks_delays_no_retransmission_beyond_the_largest_rto, |isn| {
    let quick = Config { max_rto: Duration::from_secs(10), ..config(1) };
    let mut s = TestSender::idle(isn, variant("pr").build(), quick, 100);
    let (mut ms, mut n) = (1000, 0);
    for delay in [290, 800, 2000, 5000] {
        n += 1;
        assert_eq!(write_at(&mut s, ms, 1), [n]);
        ms += delay;
        s.at(ms).pass(n);
        ms += 100_000;
    }
    assert_eq!(s.info().srtt, Some(Duration::from_secs(5)));
    assert_eq!(write_at(&mut s, ms, 1), [n + 1]);
    s.at(ms + 9999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(ms + 10_000).sent(), [n + 1]);
});

/// Without SACK, ten segments.
fn without_sack(isn: u32) -> TestSender {
    let no_sack = Config { sack: false, dsack: false, ..config(10) };
    let mut s = TestSender::new(isn, &variant("pr"), no_sack, 100);
    assert_eq!(s.at(100).sent().len(), 10);
    s
}

vector!(without_sack_each_duplicate_ack_makes_room_for_a_segment, |isn| {
    let mut s = without_sack(isn);
    assert_eq!(s.at(200).pass_all([2, 3, 4, 5]), [11, 12, 13, 14]);
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
    assert_eq!(s.at(400).sent(), [1]); // at once: no other segment has a timer
    assert_eq!(s.cwnd(), 5.0);
});

vector!(without_sack_the_timer_of_the_next_hole_starts_when_it_becomes_the_first, |isn| {
    let mut s = without_sack(isn);
    // 1 and 3 are lost.
    assert_eq!(s.at(400).sent(), [1]);
    assert_eq!(s.cwnd(), 5.0);
    // Ten are outstanding; the sixth duplicate ACK makes room for a window of five.
    assert_eq!(s.at(410).pass_all([2, 4, 5, 6, 7]), NOTHING);
    assert_eq!(s.pass(8), [11]);
    s.at(500).pass(1);
    assert_eq!(s.info().phase, Phase::Open);
    // It became the first at 500, and it belongs to the same loss.
    let mxrtt = s.info().srtt.unwrap() * 3;
    s.at_us(500_000 + mxrtt.as_nanos() / 1000 - 1);
    assert!(!s.sent().contains(&3));
    s.at_us(500_000 + mxrtt.as_nanos() / 1000 + 1);
    assert!(s.sent().contains(&3));
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

#[test]
fn a_window_that_closes_on_a_probe_is_probed() {
    let mut peer = Peer::established_as(&variant("pr"), plain());
    let offering = |window| Segment { window, ..ack(1, 1) };
    peer.send(offering(500));
    peer.write(3000);
    peer.at(1020);
    assert_eq!(peer.take_sent(), [". 1:501(500) ack 1"]); // too little for a segment, and nothing else to wait for
    peer.send(offering(0)); // checks that a timer runs
    assert!(!peer.at(60_000).take_sent().is_empty());
}

vector!(an_rtt_sample_is_at_most_the_time_since_the_first_transmission, |isn| {
    let mut s =
        TestSender::new(isn, &variant("pr"), Config { timestamps: true, mss: SMSS as u16 + 12, ..config(1) }, 100);
    assert_eq!(s.at(100).sent(), [1]);
    assert_eq!(s.at(400).sent(), [1]);
    let ack = s.at(450).arrive(1);
    s.deliver(&Ack { ecr: Some(1), ..ack }); // long before the connection
    assert_eq!(s.info().srtt, Some(Duration::from_millis(100)));
});
