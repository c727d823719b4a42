//! Worked examples of TCP-DOOR.
#![expect(clippy::float_cmp, reason = "windows are whole numbers of segments here")]

use reknit_tcp::Config;
use reknit_tcp::experiment::{AckOrdinal, ExperimentalOption};
use reknit_tcp::facts::Phase;
use reknit_testkit::{Ack, NOTHING, SMSS, TestSender, config, variant, vector};
use reknit_units::{Bytes, Duration};
use reknit_variants::{Composition, undo::door};

fn ordinal(repetition: u8, overtaken: bool) -> ExperimentalOption {
    ExperimentalOption { ack_ordinal: Some(AckOrdinal { repetition, overtaken }), ..ExperimentalOption::default() }
}

/// An ACK of everything up to `n`.
fn cum(n: u32, repetition: u8) -> Ack {
    Ack { cum: n, experiment: ordinal(repetition, false), ..Ack::default() }
}

/// An ACK that reports that data was overtaken.
fn overtaken(mut ack: Ack) -> Ack {
    ack.experiment = ordinal(9, true);
    ack
}

/// Fifteen segments were sent at 850 ms; the first was acknowledged at 950 ms. The window is 16, the SRTT is 100 ms,
/// and the timer expires at 1950 ms.
fn sixteen_in_flight_by(isn: u32, composition: &Composition) -> TestSender {
    let config = Config { mss: 2000, ..config(15) };
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config), 100);
    s.at(850).connection.write(Bytes(1000 * SMSS));
    assert_eq!(s.sent().len(), 15);
    assert_eq!(s.at(950).pass(1), [16, 17]);
    assert_eq!(s.cwnd(), 16.0);
    s
}

fn sixteen_in_flight(isn: u32) -> TestSender {
    sixteen_in_flight_by(isn, &variant("door"))
}

/// True if window and timeout are frozen: three duplicate ACKs cause a retransmission, but no reduction.
fn is_frozen(mut s: TestSender, missing: u32) -> bool {
    let cwnd = s.cwnd();
    assert!(s.pass_all(missing + 1..missing + 4).contains(&missing));
    assert_eq!(s.info().phase, Phase::Recovery);
    s.cwnd() == cwnd
}

vector!(an_ack_was_overtaken, |isn| {
    for (third, event) in [(6, true), (8, false)] {
        let mut s = sixteen_in_flight(isn);
        s.at(960).pass_all(2..=5);
        s.arrive(6);
        s.arrive(7);
        s.deliver(&cum(7, 0));
        if third == 8 {
            s.arrive(8);
        }
        s.deliver(&cum(third, 0));
        assert_eq!(is_frozen(s, third.max(7) + 1), event);
    }
});

vector!(an_ack_with_the_same_number_was_overtaken, |isn| {
    for (ordinals, event) in [([1, 3, 2], true), ([1, 2, 3], false), ([254, 255, 0], false), ([1, 1, 3], false)] {
        let mut s = sixteen_in_flight(isn);
        for repetition in ordinals {
            s.deliver(&cum(1, repetition));
        }
        assert_eq!(is_frozen(s, 2), event, "{ordinals:?}");
    }
});

/// Which of the ACKs for data with these TPSNs report that something was overtaken.
fn flags(isn: u32, arrivals: &[(u32, u16)]) -> Vec<bool> {
    let composition = variant("door");
    let config = Config { mss: 2000, ack_every: reknit_units::Segments(1), ..config(4) };
    let mut s = TestSender::idle(isn, composition.build(), composition.configure(config), 100);
    let mut flags = Vec::new();
    for &(n, tpsn) in arrivals {
        for ack in s.peer_sends(n, ExperimentalOption { transmission: Some(tpsn), ..ExperimentalOption::default() }) {
            flags.push(ack.options.experiment.ack_ordinal.unwrap().overtaken);
        }
    }
    flags
}

vector!(the_receiver_reports_overtaken_segments, |isn| {
    assert_eq!(flags(isn, &[(1, 1), (2, 2), (4, 4), (3, 3)]), [false, false, false, true]);
    assert_eq!(flags(isn, &[(1, 65_534), (2, 65_535), (3, 0)]), [false; 3]);
    // A retransmission is a transmission of its own.
    assert_eq!(flags(isn, &[(1, 1), (3, 3), (2, 4)]), [false; 3]);
});

vector!(data_is_numbered_and_retransmissions_count, |isn| {
    let mut s = TestSender::new(isn, &variant("door"), Config { mss: 2000, ..config(4) }, 100);
    let numbers =
        |s: &mut TestSender| s.take().iter().filter_map(|t| t.options.experiment.transmission).collect::<Vec<_>>();
    assert_eq!(numbers(&mut s), [0, 1, 2, 3]);
    for n in [2, 3, 4] {
        let ack = s.arrive(n);
        s.deliver(&ack);
    }
    assert_eq!(numbers(&mut s), [4, 5, 6]); // two by limited transmit, then the first again
});

vector!(a_recent_reduction_is_undone_and_the_repair_continues, |isn| {
    let mut s = sixteen_in_flight(isn);
    assert!(s.at(1000).pass_all([3, 4, 5]).contains(&2));
    assert_eq!(s.cwnd(), 8.0);
    let ack = s.at(1150).arrive(6);
    s.deliver(&overtaken(ack));
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (16.0, f64::INFINITY, Phase::Recovery));
    assert!(!s.sent().contains(&2), "it is already in flight");
    let last = s.info().flight_size.0 / SMSS;
    s.pass_all(7..=1 + last as u32);
    s.pass(2);
    assert_eq!(s.info().phase, Phase::Open);
    assert!(s.cwnd() >= 16.0, "{}", s.cwnd());
});

vector!(other_losses_are_repaired_in_the_same_recovery, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1000).pass_all([3, 4, 5]);
    let ack = s.at(1150).arrive(6);
    s.deliver(&overtaken(ack));
    s.sent();
    let sent = s.pass_all([8, 9, 10, 11]);
    assert!(sent.contains(&7), "{sent:?}");
    assert_eq!((s.cwnd(), s.ssthresh()), (16.0, f64::INFINITY));
});

vector!(an_old_reduction_is_not_undone, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1000).pass_all([3, 4, 5]);
    s.at(1500).pass(2);
    s.at(2400).pass(6);
    let ack = s.at(2500).arrive(7);
    s.deliver(&overtaken(ack));
    assert_eq!((s.ssthresh(), s.connection.send_stats().spurious_cuts), (8.0, 0));
});

vector!(while_frozen_losses_are_repaired_and_nothing_reduced, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1150).deliver(&overtaken(cum(1, 1)));
    s.at(1200);
    assert!(is_frozen(s, 2));
    let mut s = sixteen_in_flight(isn);
    s.at(1150).deliver(&overtaken(cum(1, 1)));
    s.at(1300);
    assert!(!is_frozen(s, 2));
});

vector!(nothing_grows_while_frozen, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1150).deliver(&overtaken(cum(1, 1)));
    s.at(1200).pass_all([2, 3]);
    assert_eq!(s.cwnd(), 16.0);
    s.at(1260).pass_all([4, 5]);
    assert_eq!(s.cwnd(), 18.0);
});

vector!(a_timeout_while_frozen_only_repairs, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1900).deliver(&overtaken(cum(1, 1)));
    s.at(1950);
    assert_eq!(s.sent().first(), Some(&2));
    assert_eq!((s.cwnd(), s.ssthresh()), (16.0, f64::INFINITY));
    s.at(2949);
    assert_eq!(s.sent(), NOTHING);
    // The timeout was not doubled, and the first one after the freeze reduces the window.
    s.at(2950);
    assert_eq!(s.sent(), [2]);
    assert_eq!((s.cwnd(), s.ssthresh()), (1.0, 8.0));
});

vector!(a_timeout_is_undone_with_its_back_off, |isn| {
    let mut s = sixteen_in_flight(isn);
    s.at(1950);
    assert_eq!(s.sent(), [2]);
    s.at(2000).deliver(&overtaken(cum(1, 1)));
    assert_eq!((s.cwnd(), s.ssthresh(), s.info().phase), (16.0, f64::INFINITY, Phase::Open));
    assert!(!s.sent().contains(&3), "nothing else was lost");
    s.at(2999);
    assert_eq!(s.sent(), NOTHING);
    s.at(3000);
    assert_eq!(s.sent().first(), Some(&2));
});

vector!(each_response_can_be_used_alone, |isn| {
    let with = |respond| {
        let detector = door::DoorConfig { respond, ..door::DoorConfig::default() };
        Composition { spurious_detectors: vec![detector.into()], ..variant("door") }
    };
    for (respond, restored) in [(door::Respond::Freeze, false), (door::Respond::Instant, true)] {
        let mut s = sixteen_in_flight_by(isn, &with(respond));
        s.at(1000).pass_all([3, 4, 5]);
        s.at(1150).deliver(&overtaken(cum(1, 9)));
        assert_eq!(s.cwnd() == 16.0, restored);
        let mut s = sixteen_in_flight_by(isn, &with(respond));
        s.at(1150).deliver(&overtaken(cum(1, 9)));
        assert_eq!(is_frozen(s, 2), !restored);
    }
});

vector!(without_the_option_the_echoed_timestamp_shows_reordering, |isn| {
    let composition = Composition { header_support: Vec::new(), ..variant("door") };
    for (echo, event) in [(10_850, true), (10_900, false)] {
        let config = Config { mss: 2000, timestamps: true, ..config(15) };
        let mut s = TestSender::idle(isn, composition.build(), composition.configure(config), 100);
        s.at(850).write(1);
        s.at(860).write(1);
        s.at(870).write(100);
        s.at(950).pass(2);
        let ack = s.arrive(1);
        s.deliver(&Ack { ecr: Some(echo), ..ack });
        assert_eq!(s.connection.send_stats().cuts.total(), 0);
        assert_eq!(is_frozen(s, 3), event);
    }
});

vector!(t1_and_t2_are_durations, |isn| {
    let detector = door::DoorConfig { t1: Some(Duration::from_millis(10)), ..door::DoorConfig::default() };
    let composition = Composition { spurious_detectors: vec![detector.into()], ..variant("door") };
    for (ms, event) in [(1159, true), (1160, false)] {
        let mut s = sixteen_in_flight_by(isn, &composition);
        s.at(1150).deliver(&overtaken(cum(1, 1)));
        s.at(ms);
        assert_eq!(is_frozen(s, 2), event);
    }
});
