//! Worked examples of Eifel and of the retransmission bit.

use reknit_tcp::Config;
use reknit_tcp::experiment::ExperimentalOption;
use reknit_tcp::facts::Phase;
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration};
use reknit_variants::algorithms::SpuriousResponse;
use reknit_variants::{Composition, undo::eifel};

fn stamped(window: u32) -> Config {
    Config { timestamps: true, mss: 2000, ..config(window) }
}

/// Milliseconds of the example in the sender's clock.
fn clock(ms: u32) -> u32 {
    10_000 + ms
}

fn cum(n: u32, ms: u32) -> Ack {
    Ack { cum: n, ecr: Some(clock(ms)), ..Ack::default() }
}

fn with_bit(n: u32, retransmitted: bool) -> Ack {
    Ack {
        experiment: ExperimentalOption { retransmitted: Some(retransmitted), ..ExperimentalOption::default() },
        ..cum(n, 120)
    }
}

fn spurious_cuts(s: &TestSender) -> u64 {
    s.connection.send_stats().spurious_cuts
}

/// Ten segments were sent at 50 ms; 2, 3 and 4 have overtaken 1, which is retransmitted at 100 ms.
fn fast_retransmit(isn: u32, composition: &Composition) -> TestSender {
    let mut s = TestSender::new(isn, composition, stamped(10), 50);
    assert_eq!(s.sent().len(), 10);
    s.at(100);
    assert_eq!(s.pass_all([2, 3, 4]), [11, 12, 1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (5.0, 5.0));
    s.at(140);
    s
}

/// Only `window` segments were sent, at 50 ms; the timer retransmits the first at 1050 ms.
fn timeout(isn: u32, name: &str, window: u32) -> TestSender {
    let composition = variant(name);
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(stamped(window)), 50);
    s.connection.write(Bytes(u64::from(window) * SMSS));
    assert_eq!(s.sent().len(), window as usize);
    s
}

vector!(an_older_timestamp_undoes_a_fast_retransmit, |isn| {
    let mut s = fast_retransmit(isn, &variant("eifel"));
    s.deliver(&cum(4, 90));
    assert_eq!((spurious_cuts(&s), s.info().phase), (1, Phase::Open));
    // 12 are or were in flight, of which limited transmit sent two.
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, 10.0));
});

vector!(the_timestamp_of_the_retransmission_undoes_nothing, |isn| {
    let mut s = fast_retransmit(isn, &variant("eifel"));
    s.deliver(&cum(4, 100));
    assert_eq!((spurious_cuts(&s), s.info().phase, s.ssthresh()), (0, Phase::Recovery, 5.0));
    // The first ACK has decided.
    s.deliver(&cum(5, 90));
    assert_eq!(spurious_cuts(&s), 0);
});

vector!(all_acknowledged_by_a_receiver_that_never_reported_a_duplicate, |isn| {
    let mut s = timeout(isn, "eifel", 10);
    s.at(1100);
    assert_eq!(s.sent(), [1]);
    s.deliver(&cum(10, 90));
    assert_eq!(spurious_cuts(&s), 0);
});

vector!(all_acknowledged_by_a_receiver_that_reports_duplicates, |isn| {
    let mut s = timeout(isn, "eifel", 10);
    s.at(100);
    s.deliver(&Ack { dsack: Some(1), ..cum(1, 50) });
    s.at(1150);
    assert_eq!(s.sent(), [2]);
    s.deliver(&cum(10, 90));
    assert_eq!(spurious_cuts(&s), 1);
});

vector!(a_dsack_in_the_deciding_ack_indicates_lost_acks, |isn| {
    let mut s = fast_retransmit(isn, &variant("eifel"));
    s.deliver(&Ack { dsack: Some(1), ..cum(4, 90) });
    assert_eq!(spurious_cuts(&s), 0);
});

vector!(the_first_of_two_timeouts_counts, |isn| {
    for (echo, verdicts) in [(1049, 1), (1050, 0), (2000, 0)] {
        let mut s = timeout(isn, "eifel", 10);
        s.at(1050);
        assert_eq!(s.sent(), [1]);
        s.at(3050);
        assert_eq!(s.sent(), [1]);
        s.at(3100).deliver(&cum(1, echo));
        assert_eq!(spurious_cuts(&s), verdicts, "{echo}");
    }
});

vector!(after_a_spurious_timeout_new_data_follows_in_the_old_window, |isn| {
    let mut s = TestSender::new(isn, &variant("eifel"), stamped(20), 50);
    s.sent();
    s.at(1050);
    assert_eq!(s.sent(), [1]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 10.0));
    s.at(1100).deliver(&cum(2, 90));
    assert_eq!(s.sent(), [21, 22]);
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (20.0, 20.0, Phase::Open));
    // RFC 4015 §3 step 11: SRTT = max(SRTT_prev, 600 ms), RTTVAR = max(RTTVAR_prev, 300 ms).
    s.at(1700).deliver(&cum(21, 1100));
    assert_eq!(s.info().rto, Some(Duration::from_millis(1800)));
});

vector!(the_timestamp_clock_may_wrap, |isn| {
    // From the second starting point the retransmission carries 2^32 - 5 and the echoes are 2^32 - 9 and 3.
    for (echo, verdicts) in [(141, 1), (153, 0)] {
        let mut s = TestSender::new(isn, &variant("eifel"), stamped(10), 100);
        s.sent();
        s.at(145).pass_all([2, 3, 4]);
        s.at(180).deliver(&cum(4, echo));
        assert_eq!(spurious_cuts(&s), verdicts);
    }
});

vector!(in_safe_mode_only_the_timestamp_of_the_original_counts, |isn| {
    let detector = eifel::EifelConfig { safe: true, ..eifel::EifelConfig::default() };
    let composition = Composition { spurious_detectors: vec![detector.into()], ..variant("eifel") };
    for (echo, verdicts) in [(50, 1), (49, 0), (51, 0)] {
        let mut s = fast_retransmit(isn, &composition);
        s.deliver(&cum(4, echo));
        assert_eq!(spurious_cuts(&s), verdicts, "{echo}");
    }
});

vector!(the_survey_restores_if_only_the_oldest_was_retransmitted, |isn| {
    let composition = Composition { spurious_response: SpuriousResponse::OldestOnly {}, ..variant("eifel") };
    let mut s = fast_retransmit(isn, &composition);
    s.deliver(&cum(4, 90));
    assert_eq!((s.cwnd(), s.ssthresh()), (10.0, f64::INFINITY));
    let mut s = fast_retransmit(isn, &composition);
    let more = s.pass_all([6, 7, 8, 9, 10, 11]);
    assert!(more.contains(&5), "{more:?}");
    s.deliver(&Ack { blocks: vec![(6, 11)], ..cum(4, 90) });
    assert_eq!((s.cwnd(), s.ssthresh(), spurious_cuts(&s)), (5.0, 5.0, 1));
});

vector!(without_timestamps_nothing_is_undone, |isn| {
    let without = Composition { timestamps: Some(false), ..variant("eifel") };
    let mut s = TestSender::new(isn, &without, config(10), 50);
    s.sent();
    s.at(100).pass_all([2, 3, 4]);
    s.pass(1);
    assert_eq!(spurious_cuts(&s), 0);
});

vector!(the_bit_distinguishes_original_and_retransmission, |isn| {
    for (retransmitted, verdicts) in [(false, 1), (true, 0)] {
        let mut s = fast_retransmit(isn, &variant("eifel-rtx"));
        s.deliver(&with_bit(4, retransmitted)); // its timestamp says the opposite, or nothing
        assert_eq!(spurious_cuts(&s), verdicts);
    }
});

vector!(without_the_bit_timestamps_decide, |isn| {
    let composition = Composition { header_support: Vec::new(), ..variant("eifel-rtx") };
    for (echo, verdicts) in [(90, 1), (100, 0)] {
        let mut s = fast_retransmit(isn, &composition);
        s.deliver(&Ack { ecr: Some(clock(echo)), ..with_bit(4, echo == 90) });
        assert_eq!(spurious_cuts(&s), verdicts);
    }
});

vector!(retransmissions_carry_the_bit, |isn| {
    let mut s = TestSender::new(isn, &variant("eifel-rtx"), Config { mss: 2000, ..config(4) }, 50);
    assert!(s.take().iter().all(|segment| segment.options.experiment.retransmitted == Some(false)));
    s.pass_all([2, 3]);
    let ack = s.arrive(4);
    s.deliver(&ack);
    let retransmitted: Vec<_> = s.take().iter().map(|segment| segment.options.experiment.retransmitted).collect();
    assert_eq!(retransmitted, [Some(true)]);
});

vector!(acks_echo_the_bit_of_the_segment_for_which_they_are_sent, |isn| {
    let composition = variant("eifel-rtx");
    let config = Config { mss: 2000, ..config(4) };
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config), 50);
    let mut echo = |n, retransmitted| {
        let answer =
            s.peer_sends(n, ExperimentalOption { retransmitted: Some(retransmitted), ..ExperimentalOption::default() });
        answer.iter().map(|ack| ack.options.experiment.retransmitted).collect::<Vec<_>>()
    };
    assert_eq!(echo(1, false), []); // delayed
    assert_eq!(echo(2, true), [Some(false)]); // the first of the two
    assert_eq!(echo(4, false), [Some(false)]);
    assert_eq!(echo(3, true), [Some(true)]);
    assert_eq!(echo(3, false), [Some(false)]);
    let window_update = s.at(5000).sent();
    assert_eq!(window_update, NOTHING);
});
