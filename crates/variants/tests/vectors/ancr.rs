//! Worked examples of TCP-aNCR.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_variants::Composition;
use reknit_variants::threshold::ancr::AncrConfig;
use reknit_variants::threshold::ncr::Mode;

fn start(isn: u32, composition: &Composition, config: Config) -> TestSender {
    let window = config.initial_window.0 as usize;
    let mut s = TestSender::new(isn, composition, config, 100);
    assert_eq!(s.sent().len(), window);
    s
}

/// The variant with `ReorExtR = -1`.
fn not_adaptive(name: &str, mode: Mode) -> Composition {
    Composition { dup_thresh: AncrConfig { mode, adaptive: false }.into(), ..variant(name) }
}

fn careful() -> Composition {
    not_adaptive("ancr-careful", Mode::Careful)
}

fn aggressive() -> Composition {
    not_adaptive("ancr-aggressive", Mode::Aggressive)
}

/// Passes `n` segments from `first` on. Returns what the sender sends after each, and its threshold.
fn arrivals(s: &mut TestSender, first: u32, n: u32) -> Vec<(Vec<u32>, u32)> {
    (first..first + n).map(|n| (s.pass(n), s.info().dup_thresh.0)).collect()
}

/// The original of segment `n` arrives, which was sent when the handshake was over: 100 ms after time zero.
fn pass_original(s: &mut TestSender, n: u32) -> Vec<u32> {
    let ack = Ack { ecr: Some(10_100), ..s.arrive(n) };
    s.deliver(&ack);
    s.sent()
}

vector!(before_anything_was_late_the_threshold_is_three, |isn| {
    for name in ["ancr-careful", "ancr-aggressive"] {
        let mut s = start(isn, &variant(name), config(10));
        s.pass_all([2, 3]);
        assert_eq!((s.info().dup_thresh.0, s.pass(4)), (3, vec![1]), "{name}");
        assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
    }
});

vector!(a_late_segment_does_not_end_slow_start, |isn| {
    let mut s = start(isn, &variant("ancr-aggressive"), config(10));
    assert_eq!(s.pass_all([2, 3]), [11, 12]);
    assert_eq!(s.pass(1), [13]);
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, f64::INFINITY)); // (T.3): ncr-aggressive has an ssthresh of 10
    assert_eq!(s.info().phase, Phase::Open);
});

vector!(without_adaptation_careful_is_that_of_ncr, |isn| {
    let mut s = start(isn, &careful(), config(10));
    let sent = [Some(11), None, Some(12), None, Some(13), None, Some(14), None, Some(15)];
    let dup_thresh = [8, 8, 8, 8, 9, 9, 10, 10, 10];
    let expected: Vec<_> = sent.map(|n| n.into_iter().collect()).into_iter().zip(dup_thresh).collect();
    assert_eq!(arrivals(&mut s, 2, 9), expected);
    assert_eq!(s.pass(11), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(without_adaptation_aggressive_is_that_of_ncr, |isn| {
    let mut s = start(isn, &aggressive(), config(10));
    let expected = [(11, 6), (12, 6), (13, 7), (14, 7), (15, 8), (16, 8), (17, 9), (18, 9)];
    assert_eq!(arrivals(&mut s, 2, 8), expected.map(|(sent, dup_thresh)| (vec![sent], dup_thresh)));
    assert_eq!(s.pass(10), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
});

vector!(an_advance_with_sacked_data_left_lets_the_window_grow, |isn| {
    let mut s = start(isn, &careful(), config(10));
    assert_eq!(s.pass_all([2, 4, 5]), [11, 12]); // skipped: 2
    // (T.1), (I.3): skipped is 0 again, and the pipe is 8. One segment makes that 9 and skipped 1.
    assert_eq!(s.pass(1), [13]);
    assert_eq!(s.cwnd(), 12.0); // slow start: two segments acknowledged
    // S6 leaves a pipe of 8 with 1 skipped: two segments make that 10 and 3.
    assert_eq!(s.pass(6), [14, 15]);
    assert_eq!(s.pass(7), NOTHING);
});

vector!(an_ack_of_many_segments_sends_at_most_an_initial_window, |isn| {
    let mut s = start(isn, &aggressive(), config(3));
    s.pass_all(1..=9); // slow start: cwnd is 12
    assert_eq!(s.cwnd(), 12.0);
    for n in 11..=14 {
        s.arrive(n);
    }
    assert_eq!(s.pass(15), [22, 23, 24]);
    assert_eq!(s.pass(16), [25, 26, 27]); // (E.6): the rest
    assert_eq!(s.pass(17), [28]);
});

vector!(a_timestamp_shows_how_late_a_retransmitted_segment_was, |isn| {
    let mut s = start(isn, &variant("ancr-aggressive"), Config { timestamps: true, mss: 2000, ..config(20) });
    s.at(200);
    assert!(s.pass_all(2..=11).contains(&1)); // after S4
    pass_original(&mut s, 1); // late by 11 of 20 segments
    s.pass(1);
    s.pass_in_order(11);
    assert_eq!((s.info().phase, s.cwnd(), s.info().flight_size.0 / SMSS), (Phase::Open, 10.0, 10));
    // FlightSizePrev is 10: 0.55 of it is 6. So is half of FlightSize when S33 has been sent; then it is more.
    assert_eq!(arrivals(&mut s, 24, 3), [(vec![33], 6), (vec![34], 6), (vec![35], 6)]);
    s.pass_all([27, 28, 23]);
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
});

vector!(a_dsack_shows_how_late_it_was, |isn| {
    let mut s = start(isn, &variant("ancr-careful"), config(20));
    // (D.1): the first DSACK does not count. The second segment was late by 5 of 12. Two thirds of FlightSize are 7.
    for (cuts, dup_thresh) in [(1, 3), (2, 5)] {
        s.pass_late(4);
        s.pass_in_order(40);
        assert_eq!((s.connection.send_stats().cuts.total(), s.info().dup_thresh.0), (cuts, dup_thresh));
    }
    assert_eq!(s.info().flight_size.0 / SMSS, 10);
});

vector!(a_timeout_forgets, |isn| {
    let mut s = start(isn, &variant("ancr-aggressive"), Config { timestamps: true, mss: 2000, ..config(20) });
    s.at(200);
    s.pass_all(2..=11);
    pass_original(&mut s, 1);
    s.pass(1);
    s.pass_in_order(11);
    s.at(5000);
    assert!(s.connection.send_stats().timeouts > 0);
    s.sent();
    s.pass_the_rest();
    s.pass_in_order(40);
    assert_eq!(s.info().dup_thresh.0, 3);
});

vector!(under_permanent_reordering_a_loss_reduces_from_what_was_in_the_pipe_lately, |isn| {
    let mut s = start(isn, &aggressive(), config(4));
    s.pass(2);
    for n in 0..12 {
        s.pass_all([4 + 2 * n, 1 + 2 * n]); // one segment is always SACKed
        assert_eq!(s.info().phase, Phase::Disorder);
    }
    assert_eq!(s.cwnd(), 28.0);
    // (T.2) came with the ACKs of S4, S10 and S22. By the last one, up to 24 segments had been in the pipe.
    let repeated = (28..60).find(|n| s.pass(*n).contains(&25));
    assert!(repeated.is_some());
    assert_eq!((s.info().phase, s.ssthresh()), (Phase::Recovery, 12.0));
});

vector!(without_sack_the_base_is_used, |isn| {
    let composition = variant("ancr-careful");
    let no_sack = Config { sack: false, dsack: false, ..config(10) };
    let mut s = start(isn, &composition, no_sack);
    assert_eq!(s.pass_all([2, 3]), [11, 12]); // RFC 3042
    assert_eq!(s.pass(4), [1]);
    assert_eq!(s.ssthresh(), 5.0);
});
