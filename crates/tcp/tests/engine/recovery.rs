//! The standard responses to loss, one rule at a time: limited transmit, fast retransmit, pipe, NewReno, PRR, byte
//! counting, postponement, timeout.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Context;
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{Plugin, Postponement, RecoveryEntry};
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Duration, Instant, Segments};
use reknit_variants::Composition;
use reknit_variants::algorithms::{self, LimitedTransmit};
use reknit_variants::base::progress::Progress;
use reknit_variants::base::{aimd, fixed_threshold, limited_transmit, prr, sack};

fn dup_thresh(dup_thresh: u32, limited_transmit: LimitedTransmit, base: Composition) -> Composition {
    Composition {
        dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(dup_thresh) }.into(),
        limited_transmit,
        ..base
    }
}

vector!(limited_transmit_then_fast_retransmit, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(4), 100);
    assert_eq!(s.sent(), [1, 2, 3, 4]);
    assert_eq!(s.pass(2), [5]);
    assert_eq!(s.pass(3), [6]);
    assert_eq!(s.pass(4), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (2.0, 2.0));
});

vector!(without_new_data_limited_transmit_sends_nothing, |isn| {
    let composition = variant("sack");
    let mut s = TestSender::idle(isn, composition.build(), config(4), 100);
    s.connection.write(reknit_units::Bytes(4 * SMSS));
    assert_eq!(s.sent(), [1, 2, 3, 4]);
    assert_eq!(s.pass_all([2, 3]), NOTHING);
    assert_eq!(s.pass(4), [1]);
});

vector!(pipe_limits_recovery, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    assert_eq!(s.pass(2), [11]);
    assert_eq!(s.pass(3), [12]);
    assert_eq!(s.pass(4), [1]);
    assert_eq!((s.cwnd(), s.ssthresh(), s.pipe()), (5.0, 5.0, 9.0));
    for (n, pipe) in [(5, 8.0), (6, 7.0), (7, 6.0), (8, 5.0)] {
        assert_eq!(s.pass(n), NOTHING);
        assert_eq!(s.pipe(), pipe);
    }
    assert_eq!(s.pass(9), [13]);
});

vector!(newreno_stays_in_recovery_on_a_partial_ack, |isn| {
    let mut s = TestSender::new(isn, &variant("newreno"), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    assert_eq!(s.pass_all([2, 3]), [11, 12]); // limited transmit
    // The third duplicate.
    assert_eq!(s.pass(5), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (8.0, 5.0));
    s.pass_all([6, 7, 8, 9, 10, 11, 12]);
    let before = s.cwnd();
    assert_eq!(before, 15.0);
    assert_eq!(s.pass(1)[0], 4); // the partial ACK
    assert_eq!(s.cwnd(), before - 3.0 + 1.0);
    s.pass(4); // covers everything up to 12
    assert_eq!(s.connection.send_stats().cuts.total(), 1);
    assert_eq!(s.info().phase, reknit_tcp::facts::Phase::Open);
});

vector!(reno_leaves_on_a_partial_ack_and_halves_again, |isn| {
    let mut s = TestSender::new(isn, &variant("reno"), config(10), 100);
    assert_eq!(s.sent().len(), 10);
    assert_eq!(s.pass_all([2, 3]), [11, 12]);
    assert_eq!(s.pass(5), [1]);
    assert_eq!(s.ssthresh(), 5.0);
    s.pass_all([6, 7, 8, 9, 10]);
    s.pass(1); // the partial ACK ends recovery
    assert_eq!((s.cwnd(), s.connection.send_stats().cuts.total()), (5.0, 1));
    // The segments in flight after the second loss cause three more duplicates.
    assert_eq!(s.pass_all([11, 12, 13]), [4]);
    assert_eq!(s.connection.send_stats().cuts.total(), 2);
});

vector!(slow_start_counts_bytes_up_to_two_segments_and_one_after_a_timeout, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(10), 100);
    s.sent();
    // Slow start: an ACK of three segments adds two.
    s.arrive(1);
    s.arrive(2);
    let ack = s.arrive(3);
    s.deliver(&ack);
    assert_eq!(s.cwnd(), 12.0);
    // After a timeout: one.
    s.sent();
    s.at(1500);
    assert_eq!(s.sent(), [4]);
    s.arrive(4);
    s.arrive(5);
    let ack = s.arrive(6);
    s.deliver(&ack);
    assert_eq!(s.cwnd(), 2.0);
});

vector!(slow_start_counts_each_byte_once, |isn| {
    let run = |progress| {
        let growth = aimd::RenoConfig { progress }.into();
        let composition = Composition { congestion_control: growth, ..Composition::default() };
        let mut s = TestSender::new(isn, &composition, config(10), 100);
        s.sent();
        [2, 1].map(|n| {
            s.pass(n);
            s.cwnd()
        })
    };
    // The segment that was SACKed first counts when it is SACKed, or when SND.UNA passes it.
    assert_eq!(run(Progress::Delivered), [11.0, 12.0]);
    assert_eq!(run(Progress::Acked), [10.0, 12.0]);
});

vector!(congestion_avoidance_adds_one_segment_per_window, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(20), 100);
    assert_eq!(s.sent().len(), 20);
    s.pass_all(2..=22);
    s.pass(1); // recovery is over when everything sent before is acknowledged
    let (mut next, end) = (23, 60);
    while s.info().phase != reknit_tcp::facts::Phase::Open {
        s.pass(next);
        next += 1;
        assert!(next < end);
    }
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
    s.pass_all(next..next + 9);
    assert_eq!(s.cwnd(), 10.0);
    s.pass(next + 9);
    assert_eq!(s.cwnd(), 11.0);
});

vector!(prr_sends_in_proportion_to_what_is_delivered, |isn| {
    let composition = Composition {
        fast_recovery: prr::PrrConfig::default().into(),
        limited_transmit: LimitedTransmit::Off {},
        ..Composition::default()
    };
    let mut s = TestSender::new(isn, &composition, config(20), 100);
    assert_eq!(s.sent().len(), 20);
    assert_eq!(s.pass_all([2, 3]), NOTHING);
    // RecoverFS is 18: two of 20 were SACKed before. After n deliveries, n times 10/18 were sent, rounded up.
    let sndcnt: Vec<usize> = (4..=8).map(|n| s.pass(n).len()).collect();
    assert_eq!(sndcnt, [1, 1, 0, 1, 0]);
    assert_eq!(s.ssthresh(), 10.0);
});

vector!(a_late_segment_that_was_sent_twice_measures_no_reordering, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(6), 100);
    assert_eq!(s.sent(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(s.pass(2), [7]);
    assert_eq!(s.pass(3), [8]);
    assert_eq!(s.pass(4), [1]);
    assert_eq!(s.pass(5), NOTHING);
    assert_eq!(s.pass(1), NOTHING);
    assert!(s.lengths().is_empty()); // sent twice: ambiguous until there is a DSACK
    s.pass(6);
    assert_eq!(s.info().acknowledged, 6 * SMSS);
});

vector!(without_sack_rack_sends_new_data_on_the_first_two_duplicates, |isn| {
    // RFC 3042 §2.
    let mut s = TestSender::new(isn, &variant("rack"), Config { sack: false, ..config(10) }, 100);
    assert_eq!(s.sent().len(), 10);
    assert_eq!([s.pass(2), s.pass(3)], [[11], [12]]);
    assert_eq!(s.pass(4), [1]);
});

vector!(limited_transmit_for_every_second_duplicate, |isn| {
    let composition = dup_thresh(20, LimitedTransmit::EverySecond {}, Composition::default());
    let mut s = TestSender::new(isn, &composition, config(20), 100);
    assert_eq!(s.sent().len(), 20);
    let sent: Vec<usize> = (2..=9).map(|n| s.pass(n).len()).collect();
    assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1]);
});

vector!(limited_transmit_for_each_sack_up_to_a_window, |isn| {
    let composition = dup_thresh(20, limited_transmit::PerSackConfig { windows: 1.0 }.into(), Composition::default());
    let mut s = TestSender::new(isn, &composition, config(6), 100);
    assert_eq!(s.sent().len(), 6);
    let sent: Vec<usize> = (2..=8).map(|n| s.pass(n).len()).collect();
    assert_eq!(sent, [1, 1, 1, 1, 1, 1, 0]);
});

vector!(limited_transmit_for_each_sack_below_the_threshold_is_rfc_3042, |isn| {
    let per_sack = limited_transmit::PerSackConfig { windows: 1.0 }.into();
    let run = |limited_transmit| {
        let composition = dup_thresh(3, limited_transmit, Composition::default());
        let mut s = TestSender::new(isn, &composition, config(6), 100);
        s.sent();
        (2..=12).map(|n| s.pass(n)).collect::<Vec<_>>()
    };
    assert_eq!(run(per_sack), run(LimitedTransmit::Rfc3042 {}));
});

vector!(an_ack_that_reports_three_segments_starts_recovery_but_not_as_in_ns_2, |isn| {
    let run = |start| {
        let composition = Composition {
            loss_detector: sack::SackedAboveConfig { start, ..sack::SackedAboveConfig::default() }.into(),
            ..Composition::default()
        };
        let mut s = TestSender::new(isn, &composition, config(12), 100);
        s.sent();
        s.arrive(2);
        s.arrive(3); // their ACKs are lost
        [4, 5, 6].map(|n| s.pass(n).contains(&1))
    };
    assert_eq!(run(sack::Start::Rfc6675), [true, false, false]);
    assert_eq!(run(sack::Start::RepeatedAcks), [false, false, true]);
});

vector!(early_retransmit_needs_a_small_flight_and_nothing_to_send, |isn| {
    let run = |guard, more| {
        let composition = Composition {
            loss_detector: sack::SackedAboveConfig { guard, ..sack::SackedAboveConfig::default() }.into(),
            ..Composition::default()
        };
        let mut s = TestSender::idle(isn, composition.build(), config(3), 100);
        s.connection.write(reknit_units::Bytes(SMSS * if more { 9 } else { 3 }));
        assert_eq!(s.sent(), [1, 2, 3]);
        let first = s.pass(2);
        (first, s.pass(3))
    };
    assert_eq!(run(sack::Guard::Er, false), (vec![], vec![1]));
    assert_eq!(run(sack::Guard::Off, false), (vec![], vec![]));
    // If there is data to send, limited transmit sends it and the guard prevents early retransmit.
    assert_eq!(run(sack::Guard::Er, true), (vec![4], vec![5]));
});

vector!(inflation_by_the_duplicates_that_arrived, |isn| {
    let per_dup = limited_transmit::PerSackConfig { windows: 1.0 }.into();
    let composition = dup_thresh(6, per_dup, variant("newreno"));
    let mut s = TestSender::new(isn, &composition, config(12), 100);
    assert_eq!(s.sent().len(), 12);
    assert_eq!(s.pass_all(2..=6).len(), 5); // limited transmit
    assert_eq!(s.pass(7), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (12.0, 6.0)); // 6 + 6
    s.pass(8);
    assert_eq!(s.cwnd(), 13.0);
    // Further duplicates release new data: eight segments by the time the window is 25.
    s.pass_all(9..=20);
    assert_eq!((s.cwnd(), s.info().flight_size.0 / SMSS), (25.0, 25));
    let all_of_the_start = Ack { cum: 17, ..Ack::default() };
    s.deliver(&all_of_the_start); // full ACK, FlightSize 8
    assert_eq!(s.cwnd(), 6.0); // min(6, 8 + 1)
});

#[derive(Clone, Debug)]
struct Wait(Option<Duration>);

impl Plugin for Wait {}

impl Postponement for Wait {
    fn may_enter(&mut self, cx: &Context<'_>, _hole: SegId) -> RecoveryEntry {
        self.0.map_or(RecoveryEntry::Now, |wait| RecoveryEntry::At(cx.now + wait))
    }
}

fn postponed() -> Composition {
    Composition {
        postponements: [None, Some(Duration::from_millis(28))]
            .map(|wait| algorithms::Postponement::unlisted("wait", move || Box::new(Wait(wait))))
            .into(),
        ..Composition::default()
    }
}

vector!(the_longest_postponement_applies, |isn| {
    let mut s = TestSender::new(isn, &postponed(), config(10), 10);
    s.sent();
    s.at(100).pass_all([2, 3, 4]);
    s.at(127);
    assert_eq!(s.sent(), NOTHING);
    s.at(128);
    assert_eq!(s.sent(), [1]);
    assert_eq!(s.cwnd(), 5.0);
});

vector!(a_postponed_hole_that_closes_is_never_retransmitted, |isn| {
    let mut s = TestSender::new(isn, &postponed(), config(10), 10);
    s.sent();
    s.at(100).pass_all([2, 3, 4]);
    s.at(120).pass(1);
    s.at(200);
    assert!(!s.sent().contains(&1));
    assert_eq!(s.connection.send_stats().cuts.total(), 0);
});

vector!(the_limit_of_the_window_also_limits_limited_transmit, |isn| {
    let capped = Config { max_window: Some(Segments(6)), ..config(6) };
    let mut s = TestSender::new(isn, &variant("sack"), capped, 100);
    assert_eq!(s.sent().len(), 6);
    assert_eq!(s.pass_all([2, 3]), NOTHING);
    assert_eq!(s.pass(4), [1]);
});

vector!(any_hole_is_retransmitted_before_new_data, |isn| {
    let any = Config { retransmit: reknit_tcp::config::Retransmit::AnyHole, ..config(12) };
    let mut s = TestSender::new(isn, &variant("sack"), any, 100);
    s.sent();
    // 1 and 10 are missing. 10 is a hole below the highest SACK, but fewer than three segments above it are SACKed.
    s.pass_all([2, 3, 4]);
    s.pass_all([5, 6, 7, 8, 9]);
    assert_eq!(s.pass(11)[0], 10);
});

vector!(a_timeout_retransmits_in_slow_start, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    s.at(1099);
    assert_eq!(s.sent(), NOTHING);
    s.at(1200);
    assert_eq!(s.sent(), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 4.0));
    // With back-off the next expiry comes two seconds later, and reduces nothing more.
    s.at(3050);
    assert_eq!(s.sent(), NOTHING);
    s.at(3300);
    assert_eq!(s.sent(), [1]);
    assert_eq!((s.connection.send_stats().timeouts, s.connection.send_stats().cuts.timeout), (2, 1));
    assert_eq!(s.ssthresh(), 4.0);
    assert_eq!(s.pass(1), [2, 3]);
});

vector!(after_an_idle_rto_the_window_is_at_most_the_initial_one, |isn| {
    // RFC 5681 §4.1.
    for idle_restart in [true, false] {
        let restarting = Config { idle_restart, ..config(10) };
        let mut s = TestSender::idle(isn, variant("sack").build(), restarting, 100);
        let sent = s.at(100).write(10);
        s.at(200).pass_all(sent);
        assert_eq!(s.cwnd(), 20.0);
        assert_eq!(s.at(5000).write(30).len(), if idle_restart { 10 } else { 20 });
    }
});

#[test]
fn time_starts_as_the_script_says() {
    let mut s = TestSender::new(1000, &variant("sack"), config(2), 0);
    s.at(5);
    assert_eq!(s.info().acknowledged, 0);
    assert!(s.connection.deadline() > Instant::ZERO);
}
