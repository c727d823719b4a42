//! Worked examples of F-RTO, and its combination with DSACK.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::facts::Phase;
use reknit_testkit::{NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::Bytes;

const BASIC: [&str; 2] = ["frto-2002", "frto"];
const ALL: [&str; 3] = ["frto-2002", "frto", "frto-sack"];

/// Eight segments are in flight when the timer retransmits the first.
fn timed_out(isn: u32, name: &str) -> TestSender {
    let mut s = TestSender::new(isn, &variant(name), config(8), 100);
    assert_eq!(s.sent(), [1, 2, 3, 4, 5, 6, 7, 8]);
    s.at(1100);
    assert_eq!(s.sent(), [1]);
    assert_eq!(s.ssthresh(), 4.0);
    s
}

fn spurious_cuts(s: &TestSender) -> u64 {
    s.connection.send_stats().spurious_cuts
}

vector!(two_advances_mean_a_spurious_timeout_and_the_window_stays_halved, |isn| {
    let mut s = timed_out(isn, "frto-2002");
    assert_eq!(s.pass(1), [9, 10]);
    assert_eq!(s.cwnd(), 4.0);
    assert_eq!(s.pass(2), NOTHING); // FlightSize is 8
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (4.0, 4.0, Phase::Open));
    assert_eq!((spurious_cuts(&s), s.connection.send_stats().undos), (1, 0));
    let rest = s.pass_all(3..=10);
    assert!(rest.iter().all(|n| *n > 10), "{rest:?}");
});

vector!(two_advances_mean_a_spurious_timeout_and_the_old_window, |isn| {
    for name in ["frto", "frto-sack"] {
        let mut s = timed_out(isn, name);
        assert_eq!(s.pass(1), [9, 10]);
        // FlightSize 8 plus the segment just acknowledged, but at most the old window.
        assert_eq!(s.pass(2), NOTHING);
        assert_eq!((s.cwnd(), s.ssthresh(), spurious_cuts(&s)), (8.0, 8.0, 1), "{name}");
        let rest = s.pass_all(3..=10);
        assert!(rest.iter().all(|n| *n > 10), "{name} {rest:?}");
    }
});

vector!(a_duplicate_first_means_a_loss, |isn| {
    for name in BASIC {
        let mut s = timed_out(isn, name);
        assert_eq!(s.pass(2), NOTHING);
        assert_eq!(s.cwnd(), 1.0);
        assert_eq!(s.pass(1), [3, 4], "{name}"); // slow start
        assert_eq!(spurious_cuts(&s), 0);
    }
});

vector!(with_sack_a_duplicate_first_only_waits, |isn| {
    let mut s = timed_out(isn, "frto-sack");
    assert_eq!(s.pass(2), NOTHING);
    assert_eq!(s.pass(1), [9, 10]);
    s.pass(3);
    assert_eq!(spurious_cuts(&s), 1);
});

/// In the paper's example, 2, 3 and 4 are retransmitted at once. Here 10 is still in flight, so a window of three has
/// room for two.
fn falls_back_from_three(isn: u32, name: &str) {
    let mut s = timed_out(isn, name);
    assert_eq!(s.pass(1), [9, 10]);
    assert_eq!(s.pass(9), [2, 3], "{name}");
    assert_eq!(s.cwnd(), 3.0);
    assert_eq!(s.pass(10), [4]);
    assert_eq!((spurious_cuts(&s), s.info().phase), (0, Phase::Loss));
}

vector!(a_duplicate_second_means_a_loss, |isn| {
    for name in BASIC {
        falls_back_from_three(isn, name);
    }
});

vector!(the_paper_continues_when_everything_is_acknowledged, |isn| {
    let mut s = timed_out(isn, "frto-2002");
    s.pass_all([]);
    for n in 1..8 {
        s.arrive(n);
    }
    assert_eq!(s.pass(8), [9, 10]);
    let sent = s.pass(9);
    assert_eq!((s.cwnd(), spurious_cuts(&s)), (4.0, 1));
    assert_eq!(sent, [11, 12, 13]);
});

vector!(the_rfc_then_assumes_a_loss, |isn| {
    for name in ["frto", "frto-sack"] {
        let mut s = timed_out(isn, name);
        for n in 1..8 {
            s.arrive(n);
        }
        assert_eq!(s.pass(8), [9, 10]);
        assert_eq!((s.cwnd(), s.info().phase), (2.0, Phase::Open), "{name}");
        s.pass(9);
        assert_eq!(spurious_cuts(&s), 0);
    }
});

vector!(without_new_data_recovery_is_conventional, |isn| {
    for name in ALL {
        let composition = variant(name);
        let mut s = TestSender::idle(isn, composition.build(), composition.configure(config(8)), 100);
        s.connection.write(Bytes(8 * SMSS));
        s.sent();
        s.at(1100);
        assert_eq!(s.sent(), [1]);
        assert_eq!(s.pass(1), [2, 3], "{name}");
        assert_eq!(s.cwnd(), 2.0);
    }
});

vector!(a_sacked_original_proves_the_timeout_spurious, |isn| {
    let mut s = timed_out(isn, "frto-sack");
    assert_eq!(s.pass(1), [9, 10]);
    s.pass(3);
    assert_eq!((spurious_cuts(&s), s.info().phase), (1, Phase::Disorder));
});

vector!(a_sack_for_new_data_proves_a_loss, |isn| {
    falls_back_from_three(isn, "frto-sack");
});

vector!(an_ack_for_many_segments_releases_no_burst, |isn| {
    // §3 of the paper: an ACK for a whole window must not release more than three segments.
    let mut s = TestSender::new(isn, &variant("frto-2002"), config(20), 100);
    s.sent();
    s.at(1100);
    s.sent();
    assert_eq!(s.pass(1), [21, 22]);
    for n in 2..20 {
        s.arrive(n);
    }
    assert_eq!(s.pass(20), [23, 24, 25]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 10.0));
});

vector!(a_repeated_timeout_probes_again, |isn| {
    for name in ALL {
        let mut s = timed_out(isn, name);
        s.at(3100);
        assert_eq!(s.sent(), [1]);
        assert_eq!(s.pass(1), [9, 10], "{name}");
        s.pass(2);
        assert_eq!((spurious_cuts(&s), s.ssthresh()), (1, if name == "frto-2002" { 4.0 } else { 8.0 }));
    }
});

vector!(a_timeout_while_another_is_repaired_is_conventional, |isn| {
    for name in ["frto", "frto-sack"] {
        let mut s = timed_out(isn, name);
        s.pass_all([1, 9]); // a loss after all: 2 and 3 are retransmitted
        s.at(5000);
        assert_eq!(s.sent(), [2], "{name}");
        assert_eq!(s.pass(2), [3, 4]); // and not 11
    }
});

vector!(a_timeout_in_fast_recovery_is_conventional_with_sack, |isn| {
    for name in ["frto", "frto-sack"] {
        let mut s = TestSender::new(isn, &variant(name), config(8), 100);
        s.sent();
        assert_eq!(s.pass_all([2, 3, 4]), [9, 10, 1]);
        s.at(1100);
        assert_eq!(s.sent(), [1]);
        let sent = s.pass(1);
        assert!(sent.starts_with(&[5]), "{name} {sent:?}");
    }
});

vector!(without_sack_the_cumulative_ack_decides, |isn| {
    for name in ALL {
        let mut s = TestSender::new(isn, &variant(name), Config { sack: false, ..config(8) }, 100);
        s.sent();
        s.at(1100);
        assert_eq!(s.sent(), [1]);
        assert_eq!(s.pass(1), [9, 10]);
        s.pass(2);
        assert_eq!(spurious_cuts(&s), 1, "{name}");
    }
});

vector!(with_an_ecn_echo_the_window_is_not_restored_and_nothing_is_retransmitted, |isn| {
    let mut s = TestSender::new(isn, &variant("frto"), Config { ecn: true, ..config(8) }, 100);
    s.sent();
    s.at(1100);
    s.sent();
    assert_eq!(s.pass(1), [9, 10]);
    let mut ack = s.arrive(2);
    ack.ece = true;
    s.deliver(&ack);
    assert_eq!((s.cwnd(), s.info().phase, s.connection.send_stats().undos), (2.0, Phase::Open, 0));
    let rest = s.pass_all(3..=8);
    assert!(rest.iter().all(|n| *n > 10), "{rest:?}");
});

vector!(dsack_undoes_the_halving_later, |isn| {
    let mut s = timed_out(isn, "frto-2002+dsack");
    assert_eq!(s.pass(1), [9, 10]);
    s.pass(2);
    assert_eq!((s.cwnd(), s.ssthresh(), spurious_cuts(&s)), (4.0, 4.0, 1));
    s.pass(1); // the copy
    assert_eq!((s.cwnd(), s.ssthresh(), spurious_cuts(&s)), (4.0, 8.0, 2));
    s.pass_all(3..=8);
    assert!(s.cwnd() > 6.0, "slow start: {}", s.cwnd());
});

vector!(without_a_dsack_the_halving_is_kept, |isn| {
    let mut s = timed_out(isn, "frto-2002+dsack");
    s.pass_all([1, 2]);
    s.pass_all(3..=8);
    assert_eq!(s.ssthresh(), 4.0);
});
