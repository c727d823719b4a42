//! Worked examples of TCP-DCR.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_testkit::{NOTHING, TestSender, config, variant, vector};
use reknit_units::Duration;
use reknit_variants::Composition;
use reknit_variants::time::dcr;

/// Ten segments are outstanding, the SRTT is 100 ms, the RTO 1 s.
fn ten_segments(isn: u32) -> TestSender {
    let mut s = TestSender::new(isn, &variant("dcr"), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    s
}

vector!(an_advance_within_a_round_trip_ends_the_wait, |isn| {
    let mut s = ten_segments(isn);
    for (n, new) in [(2, 11), (3, 12), (4, 13), (5, 14)] {
        assert_eq!(s.at(80 + 10 * u64::from(n)).pass(n), [new]);
    }
    // Rule 3: the window is not reduced; slow start lets it grow by two, and FlightSize is 9.
    assert_eq!(s.at(180).pass(1), [15, 16, 17]);
    assert_eq!((s.cwnd(), s.ssthresh()), (12.0, f64::INFINITY));
    s.at(400);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
});

vector!(after_a_round_trip_the_segment_is_lost, |isn| {
    let mut s = ten_segments(isn);
    for n in 2..=10 {
        assert_eq!(s.at(80 + 10 * u64::from(n)).pass(n), [n + 9]);
    }
    s.at_us(199_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(200).sent(), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(one_duplicate_is_enough, |isn| {
    let mut s = ten_segments(isn);
    assert_eq!(s.at(100).pass(2), [11]);
    s.at_us(199_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(200).sent(), [1]);
});

/// RTO = SRTT + 4 * RTTVAR = 300 ms after the handshake; the timer runs since 100 ms.
fn short_timeout(isn: u32, before_timeout: bool) -> TestSender {
    let tcp = Config { min_rto: Duration::from_millis(10), ..config(10) };
    let detector = dcr::DelayedResponseConfig { before_timeout, ..dcr::DelayedResponseConfig::default() };
    let variant = Composition { loss_detector: detector.into(), ..variant("dcr") };
    let mut s = TestSender::new(isn, &variant, tcp, 100);
    assert_eq!(s.at(100).sent().len(), 10);
    s
}

vector!(the_wait_takes_a_round_trip_whatever_the_timer_says, |isn| {
    let mut s = short_timeout(isn, false);
    // 150 ms before the timer expires.
    assert_eq!(s.at(250).pass(2), [11]);
    s.at_us(349_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(350).sent(), [1]);
    assert_eq!(s.connection.send_stats().timeouts, 0);
});

vector!(the_retransmission_is_sent_before_the_timer_expires_if_configured, |isn| {
    let mut s = short_timeout(isn, true);
    assert_eq!(s.at(250).pass(2), [11]);
    s.at_us(299_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(300).sent(), [1]);
    assert_eq!(s.connection.send_stats().timeouts, 0);
});

vector!(the_next_hole_has_waited_since_its_own_duplicate, |isn| {
    // 20 ms later than in the worked example, so that the round trip of segment 1 leaves the SRTT at 100 ms.
    let mut s = ten_segments(isn);
    assert_eq!(s.at(120).pass_all([2, 3]), [11, 12]);
    assert_eq!(s.at(150).pass(5), [13]);
    s.at(200).pass(1); // the ACK covers the first two
    assert_eq!(s.info().srtt, Some(Duration::from_millis(100)));
    s.at_us(249_999);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.at(250).sent(), [4]);
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

vector!(in_recovery_three_duplicates_mean_loss, |isn| {
    let mut s = ten_segments(isn);
    assert_eq!(s.at(100).pass(2), [11]);
    assert_eq!(s.at(200).sent(), [1]);
    s.pass_all([4, 5]);
    assert_eq!(s.pipe(), 8.0); // 11 minus three SACKed; 1 is lost and retransmitted
    s.pass(6);
    assert_eq!(s.pipe(), 6.0); // one more is SACKed, and 3 is lost
});

vector!(a_timeout_ends_the_wait, |isn| {
    let mut s = short_timeout(isn, false);
    // The timer expires at 400 ms, before the wait is over.
    assert_eq!(s.at(350).pass(2), [11]);
    assert_eq!(s.at(400).sent(), [1]);
    assert_eq!(s.connection.send_stats().timeouts, 1);
    s.at(450);
    assert_eq!(s.sent(), NOTHING);
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

vector!(without_time_for_a_wait_the_segment_is_retransmitted_at_once_if_configured, |isn| {
    let mut s = short_timeout(isn, true);
    assert_eq!(s.at(350).pass(2), [1]);
    assert_eq!(s.connection.send_stats().timeouts, 0);
});

vector!(a_duplicate_of_nothing_new_starts_no_wait, |isn| {
    let mut s = ten_segments(isn);
    s.deliver(&reknit_testkit::Ack::default());
    s.at(500);
    assert_eq!(s.sent(), NOTHING);
});

vector!(flight_size_stays_within_two_windows, |isn| {
    let mut s = TestSender::new(isn, &variant("dcr"), config(2), 100);
    assert_eq!(s.sent(), [1, 2]);
    assert_eq!(s.pass(2), [3]);
    assert_eq!(s.pass(3), [4]);
    assert_eq!(s.pass(4), NOTHING);
});
