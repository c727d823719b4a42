//! What a receiver does, or shows, that looks like a loss: windows that close, duplicates that it reports late, closed sockets.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_tcp::segment::Flags;
use reknit_trace::{CapturePoint, DirectionReport, Incident};
use wire::{ACK, Headers, Passing, SYN, Wire, incident};

const RST: Flags = Flags::RST;
const FIN: Flags = Flags::FIN;
/// A capture at the receiver.
const HERE: Headers = Headers { timestamps: false, sack: true, near: 1, port: 40_000, isn: [1000, 5000] };

/// The kinds of incidents of a direction.
fn kinds(direction: &DirectionReport) -> Vec<Incident> {
    direction.incidents.iter().map(|incident| incident.what).collect()
}

/// The advice that comes first.
fn first_advice(direction: &DirectionReport) -> String {
    direction.advice.first().map(ToString::to_string).unwrap_or_default()
}

/// Ten segments are acknowledged; the window closes inside the eleventh, and `refused` more are under way. It opens 60 ms later.
fn window_that_cuts_a_segment(refused: u32) -> Wire {
    let mut wire = Wire::opened(HERE);
    for i in 0..10 {
        wire.data(110.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        wire.window(110.1 + f64::from(i), 1, 1 + (i + 1) * 1000, 10_500 - 1000 * (i + 1) as u16);
    }
    for i in 10..=10 + refused {
        wire.data(110.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        wire.window(110.1 + f64::from(i), 1, 10_501, 0);
    }
    wire.window(200.0, 1, 10_501, 65_535);
    wire
}

#[test]
fn a_window_that_closes_inside_a_segment_cuts_it_off() {
    let mut wire = window_that_cuts_a_segment(3);
    for i in 0..4 {
        wire.data(250.0 + f64::from(i), 0, 10_501 + i * 1000, 1000);
        wire.ack(250.1 + f64::from(i), 1, 11_501 + i * 1000);
    }
    let direction = wire.direction(0);
    assert_eq!(kinds(&direction), [Incident::WindowClosed]);
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
}

#[test]
fn what_a_closed_window_refused_is_not_new_when_it_is_sent_again() {
    let mut wire = window_that_cuts_a_segment(20);
    // The first comes twice, and so ten others that are sent again are not the first retransmission.
    for (i, number) in [0, 0].into_iter().chain(1..20).enumerate() {
        wire.data(250.0 + i as f64, 0, 10_501 + number * 1000, 1000);
    }
    for ms in [600.0, 1300.0, 2700.0, 5500.0, 11_100.0] {
        wire.data(ms, 0, 10_501, 1000);
    }
    let silence = incident(&wire.direction(0), Incident::NoAnswer);
    assert!(silence.packets >= 6 && silence.lasted_s > 10.0, "{silence:?}");
}

#[test]
fn a_receiver_that_sleeps_reports_what_came_twice() {
    // Its acknowledgments of all transmissions come at once.
    for has_handshake in [true, false] {
        let mut wire = Wire::new(HERE);
        if has_handshake {
            wire.open(0.0);
        }
        let ack = |wire: &mut Wire, ms: f64, ack: u32, sack: &[(u32, u32)]| {
            wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack, sack, ..Passing::default() });
        };
        for i in 0..5 {
            wire.data(110.0 + f64::from(i) * 40.0, 0, 1 + i * 100, 100);
            ack(&mut wire, 110.2 + f64::from(i) * 40.0, 101 + i * 100, &[]);
        }
        wire.data(1000.0, 0, 501, 100);
        wire.data(1001.0, 0, 601, 100);
        wire.data(1340.0, 0, 601, 100);
        wire.data(2000.0, 0, 601, 100);
        ack(&mut wire, 2300.0, 601, &[]);
        ack(&mut wire, 2300.1, 701, &[]);
        ack(&mut wire, 2300.2, 701, &[(601, 701)]);
        ack(&mut wire, 2300.3, 701, &[(601, 701)]);
        wire.data(2400.0, 0, 701, 100);
        ack(&mut wire, 2400.1, 801, &[]);
        let (analysis, _) = wire.analyze_at(Some(CapturePoint::Receiver));
        let verdicts = &analysis.directions[0].verdicts;
        assert_eq!((verdicts.lost, verdicts.spurious, verdicts.cannot_tell), (0, 2, 0), "{has_handshake} {verdicts:?}");
    }
}

#[test]
fn a_reset_that_answers_the_only_data_is_one_of_the_receiver() {
    let mut wire = Wire::opened(Headers::default());
    wire.pass(60.0, 1, Passing { flags: FIN | ACK, seq: 1, ack: 1, ..Passing::default() });
    wire.pass(60.1, 0, Passing { flags: ACK, seq: 1, ack: 2, len: 6, ..Passing::default() });
    wire.pass(110.0, 1, Passing { flags: RST, seq: 2, ..Passing::default() });
    assert_eq!(kinds(&wire.direction(0)), [Incident::ResetByReceiver]);
    // The data that came before was taken: a normal close.
    let mut wire = Wire::opened(Headers::default());
    wire.data(60.0, 0, 1, 100);
    wire.pass(110.0, 1, Passing { flags: FIN | ACK, seq: 1, ack: 101, ..Passing::default() });
    wire.pass(110.1, 0, Passing { flags: ACK, seq: 101, ack: 2, len: 24, ..Passing::default() });
    wire.pass(160.0, 1, Passing { flags: RST, seq: 2, ..Passing::default() });
    assert!(wire.direction(0).is_quiet());
}

#[test]
fn a_fin_that_is_sent_again_with_the_next_number_has_no_data_before_it() {
    let mut wire = Wire::opened(HERE);
    wire.data(110.0, 0, 1, 100);
    wire.ack(110.1, 1, 101);
    for (ms, seq, flags) in [(120.0, 101, FIN | ACK), (121.0, 102, ACK), (122.0, 102, FIN | ACK)] {
        wire.pass(ms, 0, Passing { flags, seq, ack: 1, ..Passing::default() });
        wire.ack(ms + 0.1, 1, 102);
    }
    let (analysis, _) = wire.analyze();
    assert!(analysis.warnings.is_empty() && analysis.directions[0].is_quiet(), "{:?}", analysis.warnings);
}

#[test]
fn nobody_waits_for_what_a_capture_of_one_direction_lacks() {
    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.data(100.0, 0, 1, 1000);
    wire.data(101.0, 0, 2001, 1000); // a segment is missing
    (1..20).for_each(|i| wire.data(f64::from(i) * 1000.0, 0, 2001 + i * 1000, 1000));
    let direction = wire.direction(0);
    assert_eq!((kinds(&direction), direction.verdicts.cannot_tell), (vec![], 1), "{direction:?}");
    assert!(direction.advice.is_empty(), "{:?}", direction.advice);
}

#[test]
fn a_syn_that_is_sent_again_is_no_syn_ack() {
    let mut wire = Wire::new(Headers::default());
    for ms in [0.0, 1000.0] {
        wire.pass(ms, 0, Passing { flags: SYN, ..Passing::default() });
        wire.pass(ms + 50.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    }
    for ms in [3050.0, 7050.0] {
        wire.pass(ms, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    }
    assert_eq!(incident(&wire.direction(1), Incident::NoAnswer).packets, 3);
}

#[test]
fn a_counter_of_15_bits_wraps() {
    // The host counts up to 32,767 and begins again before it repairs the hole.
    let mut wire = Wire::opened(HERE);
    wire.count_on(0, 32_740 - 102);
    for i in 0..12_u32 {
        wire.data(60.0 + f64::from(i) * 100.0, 0, 1 + i * 1000, 1000);
        wire.ack(60.2 + f64::from(i) * 100.0, 1, 1 + (i + 1) * 1000);
    }
    wire.data(1300.0, 0, 13_001, 1000);
    wire.pass(1300.1, 1, Passing { flags: ACK, seq: 1, ack: 12_001, sack: &[(13_001, 14_001)], ..Passing::default() });
    wire.count_on(0, 1 << 15); // back by 15 bits
    wire.count_on(0, 20);
    wire.data(1600.0, 0, 12_001, 1000);
    wire.ack(1600.1, 1, 14_001);
    let verdicts = &wire.direction(0).verdicts;
    assert_eq!((verdicts.lost, verdicts.reordered, verdicts.cannot_tell), (1, 0, 0), "{verdicts:?}");
}

#[test]
fn one_loss_in_the_host_among_many_is_not_the_first_advice() {
    let mut wire = Wire::opened(HERE);
    let ack = |wire: &mut Wire, ms: f64, ack: u32, right: u32| {
        let sack = [(ack + 2000, right)];
        let sack = if right > ack { &sack[..] } else { &[] };
        wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack, sack, ..Passing::default() });
    };
    // Of each six segments, two are missing and repaired; the first repair of the last is not taken.
    for round in 0..5_u32 {
        let (ms, from) = (60.0 + f64::from(round) * 500.0, 1 + round * 6000);
        for i in 2..6 {
            wire.data(ms + f64::from(i), 0, from + i * 1000, 1000);
            ack(&mut wire, ms + 0.1 + f64::from(i), from, from + (i + 1) * 1000);
        }
        if round == 4 {
            wire.data(ms + 60.0, 0, from, 1000);
        }
        for i in 0..2 {
            wire.data(ms + 260.0 + f64::from(i), 0, from + i * 1000, 1000);
        }
        ack(&mut wire, ms + 261.1, from + 6000, 0);
    }
    let direction = wire.direction(0);
    assert_eq!((direction.verdicts.lost_in_host, direction.loss_runs.runs), (1, 6), "{:?}", direction.loss_runs);
    assert!(first_advice(&direction).contains("lost, one by one and in short runs"), "{:?}", direction.advice);
    assert!(direction.advice.iter().any(|advice| advice.to_string().contains("did not reach its TCP")));
}
