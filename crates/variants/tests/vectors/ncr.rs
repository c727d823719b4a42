//! Worked examples of TCP-NCR.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::{NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::Bytes;

/// Ten segments are outstanding and the first is missing.
fn ten_segments(isn: u32, name: &str) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    s
}

/// Passes `n` segments from `first` on. Returns what the sender sends after each, and its threshold.
fn arrivals(s: &mut TestSender, first: u32, n: u32) -> Vec<(Vec<u32>, u32)> {
    (first..first + n).map(|n| (s.pass(n), s.info().dup_thresh.0)).collect()
}

vector!(aggressive_sends_for_each_sacked_segment, |isn| {
    let mut s = ten_segments(isn, "ncr-aggressive");
    let expected = [(11, 6), (12, 6), (13, 7), (14, 7), (15, 8), (16, 8), (17, 9), (18, 9)];
    assert_eq!(arrivals(&mut s, 2, 8), expected.map(|(sent, dup_thresh)| (vec![sent], dup_thresh)));
    assert_eq!(s.pass(10), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(careful_sends_for_every_second, |isn| {
    let mut s = ten_segments(isn, "ncr-careful");
    let sent = [Some(11), None, Some(12), None, Some(13), None, Some(14), None, Some(15)];
    let dup_thresh = [8, 8, 8, 8, 9, 9, 10, 10, 10];
    let expected: Vec<_> = sent.map(|n| n.into_iter().collect()).into_iter().zip(dup_thresh).collect();
    assert_eq!(arrivals(&mut s, 2, 9), expected);
    assert_eq!(s.pass(11), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(an_ack_that_advances_shows_reordering, |isn| {
    let mut s = ten_segments(isn, "ncr-aggressive");
    assert_eq!(s.pass_all([2, 3, 4]), [11, 12, 13]);
    assert_eq!(s.pass(1), [14]);
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
    assert_eq!(s.info().phase, Phase::Open);
});

vector!(without_new_data_the_threshold_stays, |isn| {
    for (name, dups) in [("ncr-aggressive", 5), ("ncr-careful", 7)] {
        let composition = variant(name);
        let mut s = TestSender::idle(isn, composition.build(), config(10), 100);
        s.connection.write(Bytes(10 * SMSS));
        assert_eq!(s.sent().len(), 10);
        assert_eq!(s.pass_all(2..=dups), NOTHING, "{name}");
        assert_eq!(s.pass(dups + 1), [1], "{name}");
    }
});

vector!(with_a_window_of_four_the_threshold_is_three_or_four, |isn| {
    let mut s = TestSender::new(isn, &variant("ncr-aggressive"), config(4), 100);
    assert_eq!(s.sent().len(), 4);
    assert_eq!(s.pass_all([2, 3]), [5, 6]);
    assert_eq!(s.pass(4), [1]);
    let mut s = TestSender::new(isn, &variant("ncr-careful"), config(4), 100);
    assert_eq!(s.sent().len(), 4);
    assert_eq!(s.pass_all([2, 3, 4]), [5, 6]);
    assert_eq!(s.pass(5), [1]);
});

vector!(an_advance_with_sacked_data_left_keeps_the_flight_size_from_before, |isn| {
    let mut s = ten_segments(isn, "ncr-careful");
    assert_eq!(s.pass_all([2, 4, 5]), [11, 12]); // Skipped: 2
    // (T.1): FlightSize is 12 - 2, so cwnd stays 10. (T.4): Skipped is 0 again, and the pipe is 8. One segment
    // makes that 9 and Skipped 1, which is more than FlightSizePrev - 1.
    assert_eq!(s.pass(1), [13]);
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
    assert_eq!(s.info().dup_thresh.0, 8); // 2/3 of 11, rounded up
    // Skipped is 1 now: S6 leaves a pipe of 8, S7 one of 8 with 2 skipped.
    assert_eq!(s.pass(6), [14]);
    assert_eq!(s.pass(7), NOTHING);
});

vector!(an_advance_keeps_the_growth_of_less_than_a_segment, |isn| {
    let mut s = TestSender::new(isn, &variant("ncr-aggressive"), Config { byte_counting: false, ..config(10) }, 100);
    assert_eq!(s.sent().len(), 10);
    s.pass_all([2, 1]); // ends slow start
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
    s.pass_all([3, 4, 5]);
    let grown = s.cwnd();
    assert!(grown > 10.2 && grown < 10.4, "{grown}"); // three tenths
    s.pass_all([7, 6]);
    assert_eq!((s.cwnd(), s.ssthresh()), (grown, 10.0));
});

vector!(the_pipe_compensates_for_lost_acks, |isn| {
    let mut s = ten_segments(isn, "ncr-aggressive");
    s.arrive(2);
    s.arrive(3);
    assert_eq!(s.pass(4), [11, 12, 13]);
});

vector!(a_timeout_also_reduces_from_before_the_disorder, |isn| {
    let mut s = ten_segments(isn, "ncr-aggressive");
    assert_eq!(s.pass_all([2, 3, 4]), [11, 12, 13]);
    s.at(5000);
    assert_eq!(s.sent()[0], 1);
    assert_eq!((s.connection.send_stats().timeouts > 0, s.ssthresh()), (true, 5.0));
});

vector!(without_sack_the_base_is_used, |isn| {
    let composition = variant("ncr-careful");
    let no_sack = Config { sack: false, dsack: false, ..config(10) };
    let mut s = TestSender::new(isn, &composition, no_sack, 100);
    assert_eq!(s.sent().len(), 10);
    assert_eq!(s.pass_all([2, 3]), [11, 12]); // RFC 3042
    assert_eq!(s.pass(4), [1]);
    assert_eq!(s.ssthresh(), 5.0);
});
