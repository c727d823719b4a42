//! Loss recovery beyond the worked examples: combinations of events that real stacks have handled wrongly.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::config::RttSamples;
use reknit_tcp::facts::{Phase, Spurious};
use reknit_tcp::stats::{Cuts, SendStats};
use reknit_testkit::{Ack, NOTHING, TestSender, config, variant, vector};
use reknit_units::{Duration, Segments};
use reknit_variants::Composition;
use reknit_variants::algorithms::SpuriousResponse;
use reknit_variants::base::cubic;

use crate::spurious::declared;

/// A connection of `variant` on which nothing has been written yet.
fn idle(isn: u32, name: &str, config: Config) -> TestSender {
    let composition = variant(name);
    TestSender::idle(isn, composition.build(), composition.configure(config), 100)
}

fn stats(s: &TestSender) -> &SendStats {
    s.connection.send_stats()
}

vector!(a_duplicate_of_a_probe_does_not_excuse_an_earlier_loss, |isn| {
    let mut s = idle(isn, "rack", config(20));
    assert_eq!(s.write(20).len(), 20);
    s.at(200).pass_all(2..=20); // 1 is lost
    s.at(400).pass(1);
    assert_eq!((s.cwnd(), stats(&s).cuts.fast_retransmit), (14.0, 1));
    // Much later a probe is spurious, because the ACK was only slow.
    s.at(5000);
    assert_eq!(s.write(1), [21]);
    s.at(5600);
    assert_eq!(s.sent(), [21]);
    s.pass_all([21, 21]);
    assert_eq!((s.cwnd(), stats(&s).spurious_cuts, stats(&s).undos), (14.0, 0, 0));
});

vector!(loss_of_data_sent_in_recovery_is_a_separate_congestion_event, |isn| {
    for name in ["sack", "rack"] {
        let mut s = TestSender::new(isn, &variant(name), config(20), 100);
        s.sent();
        let mut sent = s.at(200).pass_all(2..=20); // 1 is lost
        sent.retain(|n| *n > 20);
        let lost = sent[sent.len() - 5];
        sent.retain(|n| *n != lost);
        s.at(300).pass_all(sent);
        s.at(340).pass(1);
        assert_eq!(stats(&s).cuts.fast_retransmit, 2, "{name}");
    }
});

vector!(a_window_both_marked_and_lost_is_reduced_once, |isn| {
    for marked_from in [2, 10] {
        let mut s = TestSender::new(isn, &variant("sack"), Config { ecn: true, ..config(20) }, 100);
        s.sent();
        s.at(300);
        let mut cwr = Vec::new();
        let mut pass = |s: &mut TestSender, n: u32| {
            let ack = s.arrive(n);
            s.deliver(&Ack { ece: n >= marked_from && cwr.is_empty(), ..ack });
            let flagged =
                s.sent_with_flags().into_iter().filter(|(_, flags)| flags.has(reknit_tcp::segment::Flags::CWR));
            cwr.extend(flagged.map(|(n, _)| n));
        };
        (2..=20).for_each(|n| pass(&mut s, n));
        pass(&mut s, 1);
        (21..=30).for_each(|n| pass(&mut s, n));
        assert_eq!((s.ssthresh(), stats(&s).cuts.total()), (10.0, 1), "marked from {marked_from}");
        assert_eq!(cwr.len(), 1, "CWR once, on new data");
        assert!(cwr[0] > 20);
    }
});

vector!(a_reduction_starts_from_what_was_in_flight_when_the_ack_came, |isn| {
    let mut s = idle(isn, "sack", Config { ecn: true, ..config(40) });
    assert_eq!(s.write(40).len(), 40);
    s.at(200);
    s.deliver(&Ack { cum: 40, ece: true, ..Ack::default() });
    assert_eq!((s.cwnd(), s.ssthresh()), (20.0, 20.0));
});

vector!(a_probe_that_repaired_a_loss_reduces_what_was_in_flight, |isn| {
    let mut s = idle(isn, "rack", config(40));
    assert_eq!(s.write(40).len(), 40);
    s.at(200).pass_all(1..=39); // 40 is lost
    s.at(1000);
    assert_eq!(s.sent(), [40]);
    assert_eq!(s.write(20).len(), 20);
    s.deliver(&Ack { cum: 60, ..Ack::default() });
    assert_eq!(stats(&s).cuts, Cuts { probe: 1, ..Cuts::default() });
    assert_eq!(s.ssthresh(), 21.0 * 0.7);
});

vector!(a_lost_ack_is_no_reordering, |isn| {
    for ack_of_3_is_lost in [false, true] {
        let mut s = idle(isn, "rack", Config { nagle: false, ..config(20) });
        s.write(1);
        s.at(200).pass(1);
        s.at(1000);
        assert_eq!(s.write(8).len(), 8);
        s.at(1100);
        let ack = s.arrive(3);
        if !ack_of_3_is_lost {
            s.deliver(&ack);
        }
        let ack = s.arrive(6);
        s.deliver(&ack);
        // Three SACKed segments and no reordering so far, so there is no reordering window.
        assert_eq!(s.pass_all([7, 8]), [2, 4]);
    }
});

vector!(the_rtt_of_the_segment_sent_last_counts_even_if_it_is_late, |isn| {
    // RFC 8985 section 6.2, step 2.
    let mut s = idle(isn, "rack", Config { min_rto: Duration::from_millis(200), nagle: false, ..config(20) });
    s.write(1);
    s.at(140).pass(1); // the minimum: 40 ms
    for n in 0..5 {
        s.at(1000 + n);
        s.write(1);
    }
    s.at(1044).pass_all([2, 4]);
    s.pass_all([3, 5, 6]); // reordering has been seen
    for n in 0..5 {
        s.at(2000 + n);
        s.write(1); // 7 to 11
    }
    s.at(2044).pass_all([10, 11]);
    assert_eq!(s.at(2049).pass(7), NOTHING); // after 49 ms
    // 9 was sent at 2002 ms. It is overdue after 49 ms and a reordering window of 10 ms, and 8 with it.
    s.at(2060);
    assert_eq!(s.sent(), NOTHING);
    s.at(2061);
    assert_eq!(s.sent(), [8]);
});

vector!(time_based_recovery_does_not_retransmit_holes_that_are_not_overdue, |isn| {
    let mut s = idle(isn, "rack", Config { nagle: false, ..config(20) });
    s.write(3);
    s.at(200).pass_all([2, 1, 3]); // reordering has been seen
    s.at(1000);
    s.write(1); // 4, which gets lost
    s.at(1100);
    s.write(10);
    assert_eq!(s.at(1280).pass_all([5, 6, 7]), [4]);
    // 8, 10 and 12 are overtaken by a few milliseconds. There is nothing else to send.
    assert_eq!(s.at(1300).pass_all([9, 11, 13, 14, 8, 10, 12]), NOTHING);
    assert_eq!(stats(&s).sent.retransmissions(), 1);
});

vector!(after_an_undo_segments_that_are_open_again_are_timed, |isn| {
    let composition = declared("rack", Spurious::FastRetransmit);
    let mut s = TestSender::idle(isn, composition.build(), Config { nagle: false, ..config(30) }, 100);
    s.write(1);
    s.at(200).pass(1); // the minimum: 100 ms
    for n in 0..10 {
        s.at(1000 + n);
        s.write(1); // 2 to 11
    }
    // No reordering so far, so three SACKed segments are enough: 2 to 8 are marked lost.
    assert_eq!(s.at(1110).pass_all([9, 10, 11]), [2]);
    s.at(1112).pass(5);
    assert_eq!((s.info().phase, stats(&s).undos), (Phase::Disorder, 1));
    // 5 was only late, so there is a reordering window for the others: 8 was sent at 1006 ms; plus 109 ms, the RTT of
    // 5; plus 25 ms, a quarter of the minimum RTT.
    s.at(1139);
    assert_eq!(s.sent(), NOTHING);
    s.at(1140);
    assert_eq!(s.sent(), [3]);
});

vector!(a_speculative_copy_counts_once_when_the_original_is_marked_lost, |isn| {
    // RFC 6675 section 4, SetPipe.
    let mut s = idle(isn, "sack", config(12));
    assert_eq!(s.write(12).len(), 12);
    s.at(200).pass_all([2, 3, 4, 5, 6, 7, 8, 9]); // 1 and 10 are lost
    assert_eq!(s.pass(11), [10]); // by NextSeg rule 3
    s.pass(12);
    assert_eq!(s.pipe(), 3.0); // the copy of 1; both copies of 10
    assert_eq!(s.write(4), [13, 14, 15]);
    assert_eq!(s.pass(13), [16]); // the third SACKed segment above 10
    assert_eq!(s.pipe(), 5.0); // the copies of 1 and 10; 14, 15, 16
});

vector!(without_sack_every_variant_recovers_as_newreno, |isn| {
    for name in ["sack", "dsack-r", "rack", "newreno"] {
        let mut s = idle(isn, name, Config { sack: false, ..config(12) });
        assert_eq!(s.write(12).len(), 12);
        s.at(200);
        let retransmitted = s.pass_all([2, 3, 4, 6, 7, 8, 9, 10, 11, 12]); // 1 and 5 are lost
        assert_eq!(retransmitted, [1], "{name}");
        assert_eq!(s.at(300).pass(1), [5], "{name}");
        s.at(400).pass(5);
        assert_eq!((s.info().acknowledged, stats(&s).timeouts), (12 * reknit_testkit::SMSS, 0), "{name}");
    }
});

vector!(answers_to_window_probes_are_no_duplicates, |isn| {
    for name in ["reno", "newreno", "sack"] {
        let mut s = TestSender::new(isn, &variant(name), config(20), 100);
        assert_eq!(s.sent().len(), 20);
        let closed = Ack { cum: 20, closed: true, ..Ack::default() };
        s.at(200).deliver(&closed);
        for ms in [1300, 3400, 7500, 15_600] {
            assert_eq!(s.at(ms).sent(), [21]);
            s.deliver(&closed); // refused
        }
        assert_eq!((stats(&s).cuts.total(), s.info().phase), (0, Phase::Open), "{name}");
    }
});

vector!(a_write_does_not_evade_the_burst_limit, |isn| {
    let mut s = TestSender::new(isn, &variant("dsack-r"), Config { max_burst: Some(Segments(4)), ..config(16) }, 100);
    assert_eq!(s.sent().len(), 16);
    s.pass_all([2, 3, 4, 1]);
    s.pass_all(5..=16);
    let undo = s.arrive(1);
    s.deliver(&undo);
    assert_eq!(stats(&s).undos, 1);
    assert_eq!(s.write(1).len(), 4);
});

vector!(a_probe_of_new_data_respects_the_limit_of_the_window, |isn| {
    let mut s = TestSender::new(isn, &variant("rack"), Config { max_window: Some(Segments(6)), ..config(6) }, 100);
    assert_eq!(s.sent().len(), 6);
    assert_eq!(s.at(600).sent(), [6]);
});

vector!(a_flight_that_fills_the_window_lets_it_grow, |isn| {
    let mut s = idle(isn, "sack", config(10));
    let sent = s.write(10);
    s.at(200).pass_all(sent);
    assert_eq!(s.cwnd(), 20.0);
    // Now the window is larger than the data that the application has to send.
    let sent = s.write(10);
    s.at(300).pass_all(sent);
    assert_eq!(s.cwnd(), 20.0);
});

vector!(with_timestamps_any_valid_sample_ends_the_back_off, |isn| {
    for rtt_samples in [RttSamples::PerRound, RttSamples::PerAck] {
        let mut s = idle(isn, "sack", Config { timestamps: true, mss: 1472, rtt_samples, ..config(10) });
        assert_eq!(s.write(10).len(), 10);
        s.at(200).pass(1);
        s.at(1500);
        assert_eq!(s.sent(), [2]);
        s.at(1600).pass(2);
        assert_eq!(s.connection.deadline().since(reknit_units::Instant::ZERO), Duration::from_millis(12_600));
    }
});

vector!(a_copy_counts_as_spurious_once_however_often_it_arrives, |isn| {
    let mut s = TestSender::new(isn, &variant("sack"), config(8), 100);
    s.sent();
    s.pass_all([2, 3, 4, 1, 1, 1, 1]); // the network duplicates the copy twice
    assert_eq!((stats(&s).spurious_retransmissions, stats(&s).network_duplicates), (1, 2));
});

vector!(oldest_only_does_not_restore_after_two_retransmissions, |isn| {
    let composition = Composition { spurious_response: SpuriousResponse::OldestOnly {}, ..variant("dsack-r") };
    let mut s = TestSender::new(isn, &composition, config(12), 100);
    s.sent();
    s.pass_all([2, 3, 4, 6, 7, 8, 9, 10]); // 1 and 5 are late; both are retransmitted
    s.pass_all([1, 5, 1, 5]);
    assert_eq!((stats(&s).spurious_cuts, stats(&s).undos, s.cwnd()), (1, 0, 6.0));
});

fn cubic_over_sack() -> Composition {
    Composition { congestion_control: cubic::CubicConfig::default().into(), ..Composition::default() }
}

vector!(cubic_restarts_its_growth_after_a_timeout, |isn| {
    // RFC 9438 section 4.8: it does not return to the earlier window.
    let mut s = TestSender::new(isn, &cubic_over_sack(), config(100), 100);
    s.sent();
    s.at(1500);
    let mut flight = s.sent(); // everything was lost
    let mut ms = 1500;
    while s.cwnd() < 70.0 {
        flight = next_round(&mut s, flight, &mut ms);
    }
    for _ in 0..20 {
        flight = next_round(&mut s, flight, &mut ms);
    }
    // 20 round trips at the rate of AIMD, 3 (1 - 0.7) / (1 + 0.7) segments each.
    assert!((80.0..82.0).contains(&s.cwnd()), "{}", s.cwnd());
});

vector!(cubic_does_not_grow_by_time_spent_idle, |isn| {
    // RFC 9438 section 5.8.
    let composition = cubic_over_sack();
    let mut s = TestSender::idle(isn, composition.build(), Config { idle_restart: false, ..config(50) }, 100);
    let mut flight = s.write(60);
    flight.retain(|n| *n != 1); // one loss leads to congestion avoidance
    let mut ms = 200;
    let mut windows = Vec::new();
    for idle_ms in [0, 0, 0, 60_000, 0] {
        while !flight.is_empty() {
            flight = next_round(&mut s, flight, &mut ms);
        }
        windows.push(s.cwnd());
        ms += idle_ms;
        s.at(ms);
        flight = s.write(80);
    }
    let growth: Vec<f64> = windows.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(growth[3] < growth[2] * 1.5, "{windows:?}");
});

/// The data in flight arrives 100 ms later; returns the segments sent in response.
fn next_round(s: &mut TestSender, flight: Vec<u32>, ms: &mut u64) -> Vec<u32> {
    *ms += 100;
    let mut released = s.at(*ms).sent();
    released.extend(s.pass_all(flight));
    released
}
