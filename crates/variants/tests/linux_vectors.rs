//! Linux's mechanisms, step by step: the first from a trace of Linux 6.18 (`two paths 44 ms apart, 10 Mbit/s, 62 ms`).
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_testkit::{Ack, NOTHING, SMSS, Script, config, variant, vector};
use reknit_units::Bytes;

/// An unlimited transfer with timestamps: the first window leaves at `rtt_ms`.
fn linux(isn: u32, window: u32, rtt_ms: u64) -> Script {
    let mut s = Script::new(isn, &variant("linux"), Config { timestamps: true, ..config(window) }, rtt_ms);
    assert_eq!(s.sent(), (1..=window).collect::<Vec<_>>());
    s
}

/// Segment `n`, which left `sent` ms after time zero, arrives.
fn pass(s: &mut Script, n: u32, sent: u32) -> Vec<u32> {
    let ack = Ack { ecr: Some(10_000 + sent), ..s.arrive(n) };
    s.deliver(&ack);
    s.sent()
}

vector!(a_trace_of_the_kernel_first_recovery_and_undo, |isn| {
    let mut s = linux(isn, 10, 62);
    assert_eq!(pass(s.at(125), 1, 62), [11, 12]);
    assert_eq!(pass(s.at(127), 3, 62), [13]);
    assert_eq!(pass(s.at(129), 5, 62), [14]);
    assert_eq!(pass(s.at(132), 7, 62), [2]); // as many SACKed as the degree of reordering
    assert_eq!(pass(s.at(134), 9, 62), [4]);
    // The original of 2: a retransmission is still under way, so nothing is undone and nothing marked lost.
    assert_eq!(pass(s.at(170), 2, 62), [15]);
    // The original of 4: no retransmission is under way any more.
    assert_eq!(pass(s.at(172), 4, 62), [16, 17, 18, 19]);
    assert_eq!(s.ssthresh(), f64::INFINITY);
    assert_eq!(pass(s.at(175), 6, 62), [20, 21]);
    assert_eq!(pass(s.at(177), 8, 62), [22, 23]);
});

vector!(duplicates_that_are_reported_after_the_recovery_undo_it, |isn| {
    let mut s = Script::new(isn, &variant("linux"), config(10), 100);
    s.sent();
    s.at(200).pass_all([2, 3]);
    assert_eq!(s.pass(4), [1]);
    assert_eq!(s.ssthresh(), 7.0); // 717/1024 of 10
    s.at(210).pass_all(5..=12);
    s.at(250).pass(1);
    assert_eq!((s.cwnd() < 10.0, s.ssthresh()), (true, 7.0));
    // The copy arrives, and is reported.
    s.at(300).pass(1);
    assert_eq!((s.cwnd() >= 10.0, s.ssthresh()), (true, f64::INFINITY));
});

vector!(an_ack_of_something_sent_once_undoes_a_timeout, |isn| {
    let mut s = linux(isn, 4, 100);
    s.at(302);
    assert_eq!(s.sent(), [5]); // the probe: 2 SRTT and 2 ms
    s.at(601);
    assert_eq!(s.sent(), NOTHING);
    s.at(602); // SRTT and 200 ms after the probe
    assert_eq!(s.sent(), [1]);
    // All but the probe, of which 299 ms is not more than SRTT, are lost.
    assert_eq!((s.ssthresh(), s.cwnd()), (2.0, 1.0));
    pass(s.at(620), 1, 100); // the first original, late
    assert_eq!((s.ssthresh(), s.cwnd()), (f64::INFINITY, 4.0));
    assert_eq!(s.connection.send_stats().undos, 1);
});

vector!(each_round_trip_with_a_dsack_makes_a_step, |isn| {
    let mut s = linux(isn, 10, 100);
    // Reordering is seen: 2 comes after 3.
    pass(s.at(200), 1, 100);
    s.at(201);
    pass(&mut s, 3, 100);
    pass(&mut s, 2, 100);
    for n in 4..=10 {
        pass(&mut s, n, 100);
    }
    // One hole and everything after it: lost a quarter of the smallest RTT after it was overtaken, and 2 ms.
    let sent = s.info().flight_size.0 / SMSS;
    assert!(sent >= 10);
    s.at(310);
    let hole = 11;
    let mut retransmitted = Vec::new();
    for n in hole + 1..=hole + 6 {
        retransmitted.extend(pass(&mut s, n, 201));
    }
    assert!(!retransmitted.contains(&hole));
    s.at(324);
    assert!(!s.sent().contains(&hole));
    s.at(340);
    assert!(s.sent().contains(&hole));
});

vector!(the_window_grows_by_sacked_segments_once_reordering_was_seen, |isn| {
    let mut s = linux(isn, 10, 100);
    s.at(200);
    pass(&mut s, 2, 100);
    assert_eq!(s.cwnd(), 10.0); // not in order, and nothing known of reordering
    pass(&mut s, 3, 100);
    // 1 comes late by three: a degree of four.
    pass(&mut s, 5, 100);
    assert_eq!(s.sent(), NOTHING);
    pass(&mut s, 1, 100);
    let before = s.cwnd();
    pass(&mut s, 6, 100);
    assert_eq!(s.cwnd(), before + 1.0);
});

vector!(repeated_expiry_of_the_same_segment_reduces_once, |isn| {
    let mut s = linux(isn, 8, 100);
    s.at(602);
    assert_eq!(s.ssthresh(), 5.0);
    s.at(1300);
    assert_eq!(s.ssthresh(), 5.0);
    assert_eq!(s.connection.send_stats().timeouts, 2);
});

#[test]
fn linux_sets_its_own_timers_and_bursts() {
    let configured = variant("linux").configure(Config::default());
    assert_eq!(configured.max_burst, None);
    assert_eq!(configured.max_rto, reknit_units::Duration::from_secs(120));
    assert_eq!(configured.receive_buffer_size(), Bytes(4 << 20));
}
