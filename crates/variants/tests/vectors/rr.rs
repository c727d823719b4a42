//! Worked examples of RR-TCP's threshold and timeouts in a whole connection. Those of the histogram, the costs and the
//! steps of the ratio are in the source files.
#![expect(clippy::float_cmp, reason = "ratios and windows are compared where they are exact")]

use reknit_tcp::Connection;
use reknit_tcp::experiment::Features;
use reknit_tcp::facts::Phase;
use reknit_tcp::seams::Memory;
use reknit_testkit::{NOTHING, TestSender, config, variant, vector};
use reknit_units::{Duration, Instant, Segments};
use reknit_variants::threshold::rr::dup_thresh::{self, SharedState};
use reknit_variants::{Composition, Custom};

/// Time zero of the examples.
fn start() -> Instant {
    Instant::ZERO + Duration::from_secs(10)
}

/// The variant `name`, whose connections share what they have measured.
pub(crate) fn sharing(name: &str) -> Composition {
    let text = format!("name = \"sharing\"\nbase = \"{name}\"\n[dup_thresh]\nshare = true\n");
    Custom::parse("sharing.toml", &text).unwrap().composition
}

/// The reordering lengths that `connection` leaves to the next one.
pub(crate) fn lengths_of(connection: &Connection) -> Vec<u32> {
    let mut memory = Memory::default();
    connection.remember(&mut memory);
    memory.get::<SharedState>().unwrap().events.iter().map(|(_, length)| length.0).collect()
}

/// The connection starts with these reordering lengths, measured at time zero, and this FA ratio.
fn recall(s: &mut TestSender, lengths: &[u32], fa: f64) {
    let mut memory = Memory::default();
    memory.keep(SharedState { events: lengths.iter().map(|length| (start(), Segments(*length))).collect(), fa });
    s.connection.recall(start(), &memory);
}

/// A connection that starts with these reordering lengths and this FA ratio.
fn knowing(isn: u32, name: &str, window: u32, lengths: &[u32], fa: f64) -> TestSender {
    let mut s = TestSender::new(isn, &sharing(name), config(window), 100);
    recall(&mut s, lengths, fa);
    s.sent();
    s
}

fn ratio(s: &TestSender) -> f64 {
    let mut shown = Vec::new();
    s.connection.show_sender(&mut |name, value| shown.push((name.to_string(), value)));
    assert_eq!((shown.len(), shown[0].0.as_str()), (1, "dup_thresh.fa_ratio"));
    shown[0].1
}

fn lengths(s: &TestSender) -> Vec<u32> {
    lengths_of(&s.connection)
}

vector!(the_threshold_lies_above_the_percentile, |isn| {
    let ten = [1, 1, 2, 2, 3, 3, 4, 4, 8, 20];
    for (lengths, ratio, dup_thresh) in [
        (&ten[..], 0.9, 9), // the paper's example
        (&ten, 0.6467, 5),
        (&ten, 0.99, 21),
        (&ten, 0.0, 3),
        (&[4], 0.9, 5),
        (&[90], 0.9, 64),
        (&[], 0.9, 3),
    ] {
        let s = knowing(isn, "rr-ta", 4, lengths, ratio);
        assert_eq!(s.info().dup_thresh, Segments(dup_thresh), "{lengths:?} {ratio}");
    }
});

vector!(a_measured_length_raises_the_threshold, |isn| {
    for name in ["rr-fa", "rr-faes", "rr-ta", "rr-taes", "rr-hg", "rr-share"] {
        // 1 arrives two segments late, so three duplicate ACKs are needed, the smallest threshold.
        let mut s = knowing(isn, name, 10, &[], 0.9);
        s.pass_all([2, 3, 1]);
        assert_eq!((lengths(&s), s.info().dup_thresh), (vec![2], Segments(3)));
        // 9 is sent again after three duplicates; its original comes when the receiver is four further, its copy when
        // it is five further: 4.5, so 5, and five duplicates are to be outlived.
        s.pass_all(4..=8);
        assert!(s.pass_all([10, 11, 12]).contains(&9));
        s.pass_all([13, 9, 14]);
        s.pass(9);
        assert_eq!((lengths(&s), s.info().dup_thresh), (vec![2, 5], Segments(6)), "{name}");
    }
});

vector!(a_false_fast_retransmit_raises_the_ratio_by_a_step, |isn| {
    for (name, expected) in [("rr-ta", 0.91), ("rr-taes", 0.91), ("rr-hg", 0.91), ("rr-fa", 0.9)] {
        let mut s = TestSender::new(isn, &variant(name), config(8), 100);
        s.sent();
        s.pass_all([2, 3, 4]);
        assert_eq!(s.cwnd(), 4.0);
        s.pass(1);
        s.pass_all([5, 6, 7, 8]);
        s.pass(1);
        assert_eq!((ratio(&s), s.cwnd(), s.info().phase), (expected, 8.0, Phase::Open), "{name}");
    }
});

vector!(a_timeout_lowers_the_ratio_by_its_cost, |isn| {
    // W = 16, R = 100 ms, no false fast retransmit yet, so 8 segments; the RTO of 1 s that expires costs 177.
    let mut s = knowing(isn, "rr-ta", 16, &[20], 0.9);
    s.at(200).pass(1);
    assert_eq!(s.cwnd(), 17.0); // W has been sampled before that
    s.at(1201);
    assert_eq!(s.connection.send_stats().timeouts, 1);
    assert!((ratio(&s) - (0.9 - 0.01 * 177.0 / 8.0)).abs() < 1e-9, "{}", ratio(&s));
    // The measured lengths are kept.
    assert_eq!(lengths(&s), [20]);
    // A fixed ratio does not change.
    let mut s = knowing(isn, "rr-fa", 16, &[20], 0.9);
    s.at(1101);
    assert_eq!((s.connection.send_stats().timeouts, ratio(&s)), (1, 0.9));
});

vector!(events_are_kept_for_eighty_seconds, |isn| {
    let mut s = TestSender::idle(isn, sharing("rr-ta").build(), config(4), 100);
    recall(&mut s, &[9], 0.7);
    s.at(80_000).write(1);
    s.pass(1);
    assert_eq!((lengths(&s), s.info().dup_thresh), (vec![9], Segments(10)));
    s.at_us(80_000_001).write(1);
    s.pass(2);
    // The ratio is kept when the events expire.
    assert_eq!((lengths(&s), s.info().dup_thresh, ratio(&s)), (vec![], Segments(3), 0.7));
});

/// The window is 4, the threshold is 10. 1 is late, and seven segments sent after it arrive until `arrives_ms`.
fn idle_until(isn: u32, name: &str, arrives_ms: u64) -> TestSender {
    let mut s = knowing(isn, name, 4, &[9], 0.9);
    s.at(150);
    let one_window_beyond: Vec<u32> = (2..=5).flat_map(|n| s.pass(n)).collect();
    assert_eq!(one_window_beyond, [5, 6, 7, 8]);
    assert_eq!(s.pass_all(6..=8), NOTHING);
    s.at(arrives_ms);
    s.pass(1);
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
    s
}

vector!(an_exhausted_limited_transmit_is_measured, |isn| {
    // I = 900 ms, R = 100 ms, W = 4, d = 3: 33 segments, where a false fast retransmit costs 2.
    let s = idle_until(isn, "rr-ta", 1050);
    assert!((ratio(&s) - (0.9 - 0.01 * 33.0 / 2.0)).abs() < 1e-9, "{}", ratio(&s));
    // I = 120 ms: the cost is 1.8, which is less.
    assert_eq!(ratio(&idle_until(isn, "rr-ta", 270)), 0.9);
    assert_eq!(ratio(&idle_until(isn, "rr-fa", 1050)), 0.9);
});

/// As before, but the window of 4 is the maximum window of the connection: nothing is sent beyond it.
fn idle_at_the_largest_window(isn: u32, largest_window_exhausts: bool) -> TestSender {
    let threshold =
        dup_thresh::RrTcpConfig { largest_window_exhausts, share: true, ..dup_thresh::RrTcpConfig::default() };
    let composition = Composition { dup_thresh: threshold.into(), ..variant("rr-ta") };
    let capped = reknit_tcp::Config { max_window: Some(Segments(4)), ..config(4) };
    let mut s = TestSender::new(isn, &composition, capped, 100);
    recall(&mut s, &[9], 0.9);
    s.sent();
    s.at(150);
    assert_eq!(s.pass_all([2, 3, 4]), NOTHING);
    s.at(1050);
    s.pass(1);
    s
}

vector!(a_full_largest_window_exhausts_limited_transmit_at_the_first_duplicate, |isn| {
    // I = 900 ms, R = 100 ms, W = 4, d = 2: 34 segments.
    let s = idle_at_the_largest_window(isn, true);
    assert!((ratio(&s) - (0.9 - 0.01 * 34.0 / 2.0)).abs() < 1e-9, "{}", ratio(&s));
    assert_eq!(ratio(&idle_at_the_largest_window(isn, false)), 0.9);
});

vector!(the_maximum_window_may_limit_only_cwnd, |isn| {
    let caps_cwnd = reknit_tcp::Config {
        max_window: Some(Segments(4)),
        max_window_caps: reknit_tcp::config::MaxWindowCaps::Cwnd,
        ..config(4)
    };
    let mut s = TestSender::new(isn, &variant("sack"), caps_cwnd, 100);
    s.sent();
    assert_eq!(s.pass_all([2, 3]), [5, 6]);
    assert_eq!(s.cwnd(), 4.0);
});

/// 1 is sent at 100 ms and retransmitted at 300 ms, after three duplicate ACKs. One copy arrives at 450 ms, the other
/// at 620 ms, which causes a DSACK, unless that is lost.
fn both_copies(isn: u32, name: &str, dsack_arrives: bool) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(8), 100);
    s.sent();
    s.at(300);
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.at(450);
    s.pass(1);
    s.at(620);
    let dsack = s.arrive(1);
    assert_eq!(dsack.dsack, Some(1));
    if dsack_arrives {
        s.deliver(&dsack);
    }
    s
}

vector!(es_the_mean_of_both_times, |isn| {
    // ((450 - 100) + (620 - 300)) / 2 = 335 ms; the handshake took 100 ms, and nothing else was timed.
    let srtt = Duration::from_micros((7 * 100_000 + 335_000) / 8);
    for name in ["rr-faes", "rr-taes", "rr-share"] {
        assert_eq!(both_copies(isn, name, true).info().srtt, Some(srtt), "{name}");
    }
    assert_eq!(both_copies(isn, "rr-ta", true).info().srtt, Some(Duration::from_millis(100)));
});

vector!(es_a_segment_sent_three_times_gives_no_sample, |isn| {
    let mut s = TestSender::new(isn, &variant("rr-faes"), config(8), 100);
    s.sent();
    s.at(300);
    assert!(s.pass_all([2, 3, 4]).contains(&1));
    s.at(1400); // the timer retransmits it again
    assert!(s.sent().contains(&1));
    s.pass(1);
    s.pass(1);
    assert_eq!(s.info().srtt, Some(Duration::from_millis(100)));
});

vector!(es_without_a_dsack_no_sample, |isn| {
    assert_eq!(both_copies(isn, "rr-faes", false).info().srtt, Some(Duration::from_millis(100)));
});

vector!(es_takes_no_sample_if_the_first_ack_was_lost, |isn| {
    let mut s = TestSender::new(isn, &variant("rr-faes"), config(8), 100);
    s.sent();
    s.at(300);
    s.pass_all([2, 3, 4]);
    s.arrive(1); // its ACK is lost
    s.at(620);
    s.pass(1);
    assert_eq!(s.info().srtt, Some(Duration::from_millis(100)));
});

vector!(hg_takes_the_time_of_each_segment, |isn| {
    let patient = reknit_tcp::Config { min_rto: Duration::from_millis(1), ..config(40) };
    let mut s = TestSender::new(isn, &variant("rr-hg"), patient, 100);
    s.sent();
    s.at(260);
    s.pass_all(1..=31);
    // Too few: 100 ms from the handshake, then the timed first segment of 160 ms.
    assert_eq!(s.info().rto, Some(Duration::from_micros(107_500) + Duration::from_micros(52_500) * 4));
    s.at(270);
    s.pass(32);
    assert_eq!(s.info().rto, Some(Duration::from_millis(171)));
});

vector!(rtx_needs_the_bit_at_both_ends, |isn| {
    // Neither end offers the option: as -MEAN.
    let alone = Composition { header_support: Vec::new(), ..sharing("rr-ta-rtx") };
    let mut s = TestSender::new(isn, &alone, config(9), 100);
    assert_eq!(s.info().features, Features::NONE);
    s.sent();
    s.pass_all([2, 3, 4, 5, 1, 6, 7, 8, 9, 1]);
    assert_eq!(lengths(&s), [6]);
});

vector!(only_connections_that_share_start_with_what_others_measured, |isn| {
    let mut memory = Memory::default();
    memory.keep(SharedState { events: vec![(start(), Segments(9))], fa: 0.7 });
    let after = |composition: &Composition, seconds: u64| {
        let mut s = TestSender::new(isn, composition, config(4), 100);
        s.connection.recall(start() + Duration::from_secs(seconds), &memory);
        (ratio(&s), s.info().dup_thresh)
    };
    assert_eq!(after(&variant("rr-share"), 80), (0.7, Segments(10)));
    assert_eq!(after(&variant("rr-share"), 81), (0.9, Segments(3)));
    assert_eq!(after(&variant("rr-taes"), 0), (0.9, Segments(3)));
    let mut memory = Memory::default();
    TestSender::new(isn, &variant("rr-taes"), config(4), 100).connection.remember(&mut memory);
    assert_eq!(memory.get::<SharedState>(), None);
});
