//! What is in captures that people publish: cut per connection, of one direction, with resets, keep-alives and short stalls.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_tcp::segment::Flags;
use reknit_trace::{CapturePoint, DirectionReport, Incident};
use wire::{ACK, Headers, Passing, SYN, Wire, incident};

const RST: Flags = Flags::RST;
const FIN: Flags = Flags::FIN;

/// Another connection, with a packet each ten seconds.
fn another(wire: &mut Wire, until_s: u32) {
    wire.headers = Headers { port: wire.headers.port + 1, ..wire.headers };
    wire.open(200.0);
    for i in 0..until_s / 10 {
        let ms = 300.0 + f64::from(i) * 10_000.0;
        wire.data(ms, 0, 1 + i * 100, 100);
        wire.ack(ms + 50.0, 1, 1 + (i + 1) * 100);
    }
}

/// The direction from the client of the first connection.
fn first(wire: &Wire) -> Box<DirectionReport> {
    let (analysis, _) = wire.analyze();
    analysis.directions.into_iter().find(|direction| (direction.stream, direction.end) == (0, 0)).expect("data")
}

#[test]
fn what_comes_after_a_connection_says_nothing_about_it() {
    // The last acknowledgment is not in the file.
    let mut wire = Wire::opened(Headers::default());
    for i in 0..5 {
        wire.data(60.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        if i < 4 {
            wire.ack(110.0 + f64::from(i), 1, 1 + (i + 1) * 1000);
        }
    }
    another(&mut wire, 500);
    let direction = first(&wire);
    assert!(direction.is_quiet(), "{:?} {:?}", direction.incidents, direction.verdicts);
    // There is a hole for ten milliseconds.
    let mut wire = Wire::opened(Headers::default());
    (0..5).for_each(|i| wire.data(60.0 + f64::from(i), 0, 1 + i * 1000, 1000));
    for (ms, right) in [(112.0, 4001), (122.0, 5001)] {
        wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack: 2001, sack: &[(3001, right)], ..Passing::default() });
    }
    another(&mut wire, 500);
    let direction = first(&wire);
    assert_eq!((direction.incidents.len(), direction.verdicts.cannot_tell), (0, 1), "{direction:?}");
    assert!(direction.waited_s < 0.1, "{}", direction.waited_s);
}

#[test]
fn without_the_other_direction_nobody_is_down() {
    // The second: most acknowledgments are missing. A retransmission, and new data after it, show that there were some.
    for acks in [0, 5] {
        for is_retransmitted in [false, true] {
            let mut wire = Wire::new(Headers::default());
            for i in 0..200_u32 {
                let ms = f64::from(i) * 20.0;
                wire.data(ms, 0, 1 + i * 100, 100);
                if i < acks {
                    wire.ack(ms + 10.0, 1, 1 + (i + 1) * 100);
                }
                if i == 50 && is_retransmitted {
                    wire.data(ms + 15.0, 0, 1 + 45 * 100, 100);
                }
            }
            let direction = first(&wire);
            assert_eq!(direction.incident(Incident::NoAnswer), None, "{acks} {is_retransmitted}");
        }
    }
    // A host that is down is not spoken to.
    let mut wire = Wire::opened(Headers::default());
    for ms in [60.0, 300.0, 800.0, 1800.0, 3800.0] {
        wire.data(ms, 0, 1, 100);
    }
    assert_eq!(incident(&first(&wire), Incident::NoAnswer).packets, 4);
}

#[test]
fn resets_are_answers() {
    let mut wire = Wire::new(Headers::default());
    for i in 0..50 {
        let ms = f64::from(i) * 20.0;
        wire.data(ms, 0, 1, 26);
        wire.pass(ms + 0.1, 1, Passing { flags: RST, seq: 1, ..Passing::default() });
    }
    let direction = first(&wire);
    let kinds: Vec<Incident> = direction.incidents.iter().map(|incident| incident.what).collect();
    assert_eq!(kinds, [Incident::ResetByReceiver], "{direction:?}");
}

#[test]
fn a_window_that_is_closed_for_a_moment_is_nothing() {
    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    for i in 0..5_u32 {
        let ms = 110.0 + f64::from(i) * 20.0;
        wire.data(ms, 0, 1 + i * 1000, 1000);
        wire.window(ms + 0.1, 1, 1 + (i + 1) * 1000, 0);
        wire.window(ms + 2.0, 1, 1 + (i + 1) * 1000, 65_535);
    }
    let fin = Passing { flags: FIN | ACK, seq: 1, ack: 5001, window: Some(0), ..Passing::default() };
    wire.pass(300.0, 1, fin);
    wire.pass(400.0, 0, Passing { flags: ACK, seq: 5001, ack: 2, ..Passing::default() });
    let direction = first(&wire);
    assert!(direction.is_quiet(), "{:?}", direction.incidents);
}

#[test]
fn data_that_is_under_way_as_the_window_closes_is_no_probe() {
    let mut wire = Wire::opened(Headers { near: 1, timestamps: false, ..Headers::default() });
    for i in 0..10_u32 {
        let ms = 110.0 + f64::from(i) * 2.0;
        wire.data(ms, 0, 1 + i * 1000, 1000);
        wire.window(ms + 0.1, 1, 1 + i.min(3) * 1000, if i < 3 { 65_535 } else { 0 });
    }
    wire.window(160.0, 1, 3001, 65_535);
    let closed = incident(&first(&wire), Incident::WindowClosed);
    assert_eq!((closed.times, closed.packets), (1, 0));
}

#[test]
fn a_keep_alive_at_the_beginning_of_a_capture() {
    for sack in [&[][..], &[(500, 501)]] {
        for probes in [1, 4] {
            let mut wire = Wire::new(Headers::default());
            for i in 0..probes {
                let ms = f64::from(i) * 45_000.0;
                wire.data(ms, 0, 500, 1);
                wire.pass(ms + 50.0, 1, Passing { flags: ACK, seq: 1, ack: 501, sack, ..Passing::default() });
            }
            let (analysis, events) = wire.analyze();
            assert!(events.is_empty() && analysis.warnings.is_empty(), "{events:?} {:?}", analysis.warnings);
            // Data follows.
            wire.data(200_000.0, 0, 501, 1000);
            wire.ack(200_050.0, 1, 1501);
            let direction = first(&wire);
            assert!(direction.is_quiet() && direction.acknowledged_bytes == 1000, "{direction:?}");
        }
    }
}

#[test]
fn packets_with_another_identification_or_length_are_no_copies() {
    let open = || {
        let mut wire = Wire::opened(Headers { near: 1, timestamps: false, ..Headers::default() });
        wire.data(110.0, 0, 1, 1000);
        wire.ack(110.05, 1, 1001);
        wire.data(120.0, 0, 1001, 85);
        wire.ack(120.05, 1, 1086);
        wire
    };
    let again = |seq, len| {
        let mut wire = open();
        wire.data(120.1, 0, seq, len);
        wire.pass(120.15, 1, Passing { flags: ACK, seq: 1, ack: 1086, sack: &[(seq, 1086)], ..Passing::default() });
        let (analysis, _) = wire.analyze_at(Some(CapturePoint::Receiver));
        let verdicts = &analysis.directions[0].verdicts;
        (verdicts.duplicated, verdicts.spurious, verdicts.cannot_tell)
    };
    assert_eq!(again(1001, 85), (0, 1, 0), "another identification");
    assert_eq!(again(1085, 1), (0, 1, 0), "the last byte");
    // The same identification.
    let mut wire = open();
    let original = wire.len() - 2;
    wire.pass(120.1, 0, Passing { flags: ACK, len: 85, copy_of: Some(original), ..Passing::default() });
    let (analysis, _) = wire.analyze_at(Some(CapturePoint::Receiver));
    assert_eq!(analysis.directions[0].verdicts.duplicated, 1);
}

#[test]
fn a_handshake_may_be_slower_than_what_follows() {
    for timestamps in [true, false] {
        let mut wire = Wire::new(Headers { timestamps, ..Headers::default() });
        wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
        wire.pass(477.0, 1, Passing { flags: SYN | ACK, ack: 1, echo_ms: Some(0), ..Passing::default() });
        wire.pass(477.1, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
        (0..5).for_each(|i| wire.data(480.0, 0, 1 + i * 1000, 1000));
        // The first segment is lost, and its retransmission answered after 339 ms.
        for i in 2..6 {
            let sack = &[(1001, i * 1000 + 1)];
            let ms = 765.0 + f64::from(i);
            wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack: 1, sack, echo_ms: Some(477), ..Passing::default() });
        }
        wire.data(768.5, 0, 1, 1000);
        wire.pass(1107.5, 1, Passing { flags: ACK, seq: 1, ack: 5001, echo_ms: Some(768), ..Passing::default() });
        wire.data(1110.0, 0, 5001, 1000);
        wire.pass(1395.0, 1, Passing { flags: ACK, seq: 1, ack: 6001, echo_ms: Some(1110), ..Passing::default() });
        let verdicts = &first(&wire).verdicts;
        assert_eq!((verdicts.lost, verdicts.spurious, verdicts.reordered), (1, 0, 0), "{timestamps}: {verdicts:?}");
    }
}

#[test]
fn a_syn_with_data_shows_the_round_trip() {
    let mut wire = Wire::new(Headers { timestamps: false, sack: false, ..Headers::default() });
    wire.pass(0.0, 0, Passing { flags: SYN, len: 500, ..Passing::default() });
    wire.pass(50.0, 1, Passing { flags: SYN | ACK, ack: 501, ..Passing::default() });
    wire.pass(50.1, 0, Passing { flags: ACK, seq: 501, ack: 1, ..Passing::default() });
    // The original arrives, and so does the retransmission, which cannot have been answered 20 ms after it was sent.
    for (i, ms) in [(0, 60.0), (1, 60.1), (0, 150.0), (2, 180.1)] {
        wire.data(ms, 0, 501 + i * 1000, 1000);
    }
    wire.ack(170.0, 1, 2501);
    wire.ack(200.0, 1, 2501);
    wire.ack(230.0, 1, 3501);
    let verdicts = &first(&wire).verdicts;
    assert_eq!((verdicts.spurious, verdicts.lost), (1, 0), "{verdicts:?}");
}

#[test]
fn a_window_that_is_closed_before_the_first_data() {
    let mut wire = Wire::opened(Headers::default());
    wire.window(60.0, 1, 1, 0);
    wire.window(2060.0, 1, 1, 65_535);
    wire.data(2061.0, 0, 1, 1000);
    wire.ack(2111.0, 1, 1001);
    let direction = first(&wire);
    let closed = incident(&direction, Incident::WindowClosed);
    assert_eq!((closed.times, closed.packets), (1, 0), "{closed:?}");
    assert!((1.99..2.01).contains(&closed.lasted_s), "{closed:?}");
    assert!((1.99..2.01).contains(&direction.limited_by_receiver_s), "{direction:?}");
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
}
