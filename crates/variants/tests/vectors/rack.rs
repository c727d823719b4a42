//! Worked examples of RACK-TLP.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration};

/// Five segments, sent at 0, 1, 2, 3 and 4 ms; SRTT and the minimum RTT are 40 ms.
fn five_segments(isn: u32) -> TestSender {
    let composition = variant("rack");
    let quick = Config { min_rto: Duration::from_millis(200), nagle: false, ..config(10) };
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(quick), 40);
    // The handshake gives the SRTT, one segment the minimum.
    s.connection.write(Bytes(SMSS));
    assert_eq!(s.sent(), [1]);
    s.at(80).pass(1);
    for n in 0..5 {
        s.at(1000 + n);
        s.connection.write(Bytes(SMSS));
        assert_eq!(s.sent().len(), 1);
    }
    s
}

/// Reordering has been seen: one segment of an earlier flight was late.
fn five_segments_after_reordering(isn: u32) -> TestSender {
    let mut s = five_segments(isn);
    s.at(1044).pass_all([2, 4]);
    s.pass(3);
    s.pass_all([5, 6]);
    for n in 0..5 {
        s.at(2000 + n);
        s.connection.write(Bytes(SMSS));
        assert_eq!(s.sent().len(), 1);
    }
    s
}

vector!(the_others_are_lost_after_the_reordering_window, |isn| {
    let mut s = five_segments(isn);
    assert_eq!(s.at(1044).pass(6), NOTHING);
    s.at_us(1_052_999);
    assert_eq!(s.sent(), NOTHING);
    s.at(1053);
    assert!(s.sent().starts_with(&[2]));
    assert_eq!(s.pipe(), 1.0); // four are lost, one of them is retransmitted
});

vector!(three_sacked_segments_without_reordering_indicate_a_loss, |isn| {
    let mut s = five_segments(isn);
    s.at(1044);
    let acks = [s.arrive(4), s.arrive(5), s.arrive(6)];
    s.deliver(&acks[2]); // one ACK reports all three
    assert_eq!(s.sent(), [2, 3]);
    assert_eq!(s.pipe(), 2.0); // both are lost and retransmitted
});

vector!(once_reordering_has_been_seen_time_decides, |isn| {
    let mut s = five_segments_after_reordering(isn);
    s.at(2044);
    let acks = [s.arrive(9), s.arrive(10), s.arrive(11)];
    s.deliver(&acks[2]);
    assert_eq!(s.sent(), NOTHING);
    s.at_us(2_050_999);
    assert_eq!(s.sent(), NOTHING);
    s.at(2051);
    assert!(s.sent().starts_with(&[7]));
});

vector!(each_round_with_a_dsack_widens_the_window, |isn| {
    let mut s = five_segments_after_reordering(isn);
    // Four rounds, each with one DSACK for data that was acknowledged long ago.
    let mut now = 2044;
    s.at(now).pass_all([7, 8, 9, 10, 11]);
    for _ in 0..4 {
        s.connection.write(Bytes(SMSS));
        let sent = s.sent();
        let report = Ack { cum: sent[0] - 1, dsack: Some(1), ..Ack::default() };
        s.deliver(&report);
        now += 40;
        s.at(now).pass(sent[0]);
    }
    // Now min(5 * 40 / 4, SRTT): a flight of two segments, of which the second arrives first.
    let srtt = s.info().srtt.unwrap().as_nanos().div_ceil(1000);
    assert!((40_000..41_000).contains(&srtt), "{srtt}");
    s.connection.write(Bytes(2 * SMSS));
    let sent = s.sent();
    s.at(now + 40).pass(sent[1]);
    s.at_us((now + 40) * 1000 + 39_999);
    assert_eq!(s.sent(), NOTHING);
    s.at_us((now + 40) * 1000 + srtt);
    assert_eq!(s.sent(), [sent[0]]);
});

vector!(sixteen_quiet_recoveries_narrow_it_again, |isn| {
    let mut s = five_segments_after_reordering(isn);
    let mut now = 2044;
    s.at(now).pass_all([7, 8, 9, 10, 11]);
    s.connection.write(Bytes(SMSS));
    let sent = s.sent();
    s.deliver(&Ack { cum: sent[0] - 1, dsack: Some(1), ..Ack::default() });
    now += 40;
    s.at(now).pass(sent[0]);
    // The window is now 2 * 40 / 4 = 20 ms. The first of two segments is lost, sixteen times.
    let mut waits = Vec::new();
    for _ in 0..17 {
        s.connection.write(Bytes(2 * SMSS));
        let sent = s.sent();
        now += 40;
        assert_eq!(s.at(now).pass(sent[1]), NOTHING);
        let mut waited = 0;
        while s.at(now + waited).sent() != [sent[0]] {
            waited += 1;
            assert!(waited < 100);
        }
        waits.push(waited);
        now += waited + 40;
        s.at(now).pass(sent[0]);
    }
    assert_eq!(waits[..16], [20; 16]);
    assert_eq!(waits[16], 10);
});

/// One segment in flight, with an SRTT of 100 ms.
fn single_segment(isn: u32, min_rto: u64) -> TestSender {
    let composition = variant("rack");
    let config = Config { min_rto: Duration::from_millis(min_rto), ..config(10) };
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config), 100);
    s.at(200);
    // RTTVAR falls with repeated samples of 100 ms, until the minimum applies.
    for i in 0..40 {
        s.connection.write(Bytes(SMSS));
        let sent = s.sent();
        s.at(200 + 100 * (i + 1)).pass(sent[0]);
    }
    assert_eq!(s.info().srtt, Some(Duration::from_millis(100)));
    assert_eq!(s.info().rto, Some(Duration::from_millis(min_rto)));
    s.connection.write(Bytes(SMSS));
    assert_eq!(s.sent(), [41]);
    s
}

vector!(a_probe_after_two_srtts_and_the_delay_of_an_ack, |isn| {
    let mut s = single_segment(isn, 1000);
    s.at_us(4_424_999);
    assert_eq!(s.sent(), NOTHING);
    s.at(4425); // 2 * 100 + 25
    assert_eq!(s.sent(), [41]);
    assert_eq!(s.connection.send_stats().sent.probe, 1);
});

vector!(the_probe_is_never_later_than_the_timer, |isn| {
    let mut s = single_segment(isn, 200);
    s.at_us(4_399_999);
    assert_eq!(s.sent(), NOTHING);
    s.at(4400);
    assert_eq!(s.sent(), [41]);
    assert_eq!((s.connection.send_stats().sent.probe, s.connection.send_stats().timeouts), (1, 0));
});

vector!(a_probe_that_repairs_a_loss_reduces_the_window_once, |isn| {
    let composition = variant("rack");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(10)), 100);
    s.connection.write(Bytes(3 * SMSS));
    assert_eq!(s.sent(), [1, 2, 3]);
    s.at(100).pass_all([1, 2]); // 3 is lost
    s.at(1000);
    assert_eq!(s.sent(), [3]);
    s.connection.write(Bytes(SMSS));
    assert_eq!(s.sent(), [4]);
    s.arrive(3);
    let ack = s.arrive(4);
    s.deliver(&ack);
    assert_eq!(s.connection.send_stats().cuts.probe, 1);
});

vector!(a_dsack_shows_that_a_probe_was_spurious, |isn| {
    let composition = variant("rack");
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(10)), 100);
    s.connection.write(Bytes(SMSS));
    assert_eq!(s.sent(), [1]);
    s.at(500);
    assert_eq!(s.sent(), [1]);
    let late = s.arrive(1);
    let dsack = s.arrive(1);
    s.deliver(&late);
    s.deliver(&dsack);
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
});
