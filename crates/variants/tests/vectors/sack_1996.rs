//! Worked examples of a counted pipe, and of a timer that restarts at a fast retransmit.

use reknit_tcp::Config;
use reknit_testkit::{NOTHING, TestSender, config, variant, vector};
use reknit_units::Duration;
use reknit_variants::Composition;
use reknit_variants::base::rfc6298;

fn ten_segments(isn: u32, name: &str) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    s
}

vector!(each_duplicate_ack_makes_room_for_one_segment, |isn| {
    let mut s = ten_segments(isn, "sack-1996");
    assert_eq!(s.pass_all([2, 3]), [11, 12]);
    assert_eq!(s.pass(4), [1]); // twelve less three, plus the retransmission; cwnd is 5
    assert_eq!(s.pass_all(5..=9), NOTHING);
    assert_eq!(s.pass(10), [13]);
    assert_eq!(s.pass(11), [14]);
});

vector!(lost_segments_stay_in_the_pipe, |isn| {
    // Seven of ten are lost.
    let recovery = |name| {
        let mut s = ten_segments(isn, name);
        assert_eq!(s.pass_all([8, 9]), [11, 12]);
        let first = s.pass(10);
        (first, s.pass_all([11, 12, 1]))
    };
    assert_eq!(recovery("sack").0, [1, 2, 3]);
    assert_eq!(recovery("sack-1996"), (vec![1], vec![]));
});

vector!(the_timer_restarts_at_a_fast_retransmit_if_configured, |isn| {
    let timeouts = |restart_on_retransmission| {
        let estimator = rfc6298::Rfc6298Config { restart_on_retransmission, ..rfc6298::Rfc6298Config::default() };
        let variant = Composition { rto_estimator: estimator.into(), ..variant("sack") };
        let mut s = TestSender::new(isn, &variant, Config { min_rto: Duration::from_millis(10), ..config(10) }, 100);
        assert_eq!(s.at(100).sent().len(), 10);
        // The RTO is 300 ms.
        s.at(350).pass_all([2, 3]);
        assert_eq!(s.pass(4), [1]);
        s.at(401).sent();
        s.connection.send_stats().timeouts
    };
    assert_eq!([false, true].map(timeouts), [1, 0]);
});
