//! What is in captures that people publish: cut per connection, of one direction, with resets, keep-alives and short stalls.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_tcp::segment::Flags;
use reknit_trace::{CapturePoint, DirectionReport, Incident, UnknownReason};
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

fn says(direction: &DirectionReport, text: &str) -> bool {
    direction.advice.iter().any(|advice| advice.to_string().contains(text))
}

const NO_TIMESTAMPS: Headers = Headers { timestamps: false, sack: true, near: 0, port: 40_000, isn: [1000, 5000] };
const OLD: Headers = Headers { sack: false, ..NO_TIMESTAMPS };

#[test]
fn packets_that_are_too_big_are_not_lost_in_a_queue() {
    let of = |mtu: u16| {
        let mut wire = Wire::opened(Headers::default());
        let before = wire.len();
        for i in 0..5 {
            wire.data(60.0 + f64::from(i) * 0.02, 0, 1 + i * 1448, 1448);
        }
        (0..5).for_each(|i| wire.too_big(63.0 + i as f64 * 0.1, before + i, mtu));
        for i in 0..5 {
            wire.data(64.0 + f64::from(i) * 0.02, 0, 1 + i * 1440, 1440);
            wire.pass(
                114.0 + f64::from(i),
                1,
                Passing { flags: ACK, seq: 1, ack: 1 + (i + 1) * 1440, ..Passing::default() },
            );
        }
        wire.data(120.0, 0, 7201, 40);
        wire.ack(170.0, 1, 7241);
        first(&wire)
    };
    let direction = of(1492);
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
    assert_eq!(incident(&direction, Incident::TooBig).packets, 5);
    assert_eq!(direction.options.path_mtu, Some(1492));
    assert!(says(&direction, "up to 1492 bytes") && says(&direction, "MSS to 1452"), "{:?}", direction.advice);
    // Old routers do not say which size fits.
    let direction = of(0);
    assert_eq!((direction.options.path_mtu, incident(&direction, Incident::TooBig).packets), (None, 5));
    assert!(says(&direction, "not how big they may be"), "{:?}", direction.advice);
}

#[test]
fn segments_that_are_not_full_or_came_to_the_receiver_do_not_vanish_for_their_size() {
    let silent = |near: usize, len: u16| {
        let mut wire = Wire::opened(Headers { near, ..Headers::default() });
        wire.data(60.0, 0, 1, 300);
        wire.ack(110.0, 1, 301);
        wire.data(130.0, 0, 301, len);
        for i in 0..4 {
            wire.data(380.0 * f64::from(1 << i), 0, 301, len);
        }
        let direction = first(&wire);
        direction.incidents.iter().map(|incident| incident.what).collect::<Vec<_>>()
    };
    assert_eq!(silent(0, 1448), [Incident::NoAnswerToFullSegments]);
    assert_eq!(silent(0, 1300), [Incident::NoAnswer], "the segment size is 1,460 bytes");
    assert_eq!(silent(1, 1448), [Incident::NoAnswer], "at the receiver");
}

#[test]
fn one_ack_for_each_transmission_shows_that_all_arrived() {
    let of = |acks: u32| {
        let mut wire = Wire::opened(NO_TIMESTAMPS);
        wire.data(60.0, 0, 1, 1000);
        wire.ack(110.0, 1, 1001);
        for ms in [200.0, 235.0, 282.0] {
            wire.data(ms, 0, 1001, 40);
        }
        (0..acks).for_each(|i| wire.ack(337.0 + f64::from(i) * 0.02, 1, 1041));
        wire.data(400.0, 0, 1041, 1000);
        wire.ack(450.0, 1, 2041);
        let verdicts = first(&wire).verdicts.clone();
        (verdicts.lost, verdicts.spurious, verdicts.cannot_tell)
    };
    assert_eq!(of(3), (0, 2, 0));
    assert_eq!(of(1), (2, 0, 0));
}

#[test]
fn acks_without_sack_count_what_arrived_behind_a_hole() {
    // Ten small segments; the first is lost, and a retransmission has the first five together.
    for (acks, lost, unknown) in [(9, 1, 0), (8, 1, 1)] {
        let mut wire = Wire::opened(OLD);
        wire.data(60.0, 0, 1, 100);
        wire.ack(110.0, 1, 101);
        (0..10).for_each(|i| wire.data(120.0 + f64::from(i) * 0.1, 0, 101 + i * 100, 100));
        (0..acks).for_each(|i| wire.ack(170.0 + f64::from(i) * 0.1, 1, 101));
        wire.data(172.0, 0, 101, 500);
        wire.ack(222.0, 1, 1101);
        let verdicts = &first(&wire).verdicts;
        assert_eq!(
            (verdicts.lost, verdicts.cannot_tell, verdicts.spurious),
            (lost, unknown, 0),
            "{acks}: {verdicts:?}"
        );
    }
}

#[test]
fn bytes_that_only_one_packet_had_show_that_it_arrived() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    (0..2).for_each(|i| wire.data(60.0, 0, 1 + i * 1420, 1420));
    wire.data(60.0, 0, 2841, 31);
    wire.data(140.0, 0, 1452, 1420);
    wire.ack(141.0, 1, 2841);
    wire.pass(190.0, 1, Passing { flags: ACK, seq: 1, ack: 2872, sack: &[(1452, 2872)], ..Passing::default() });
    let verdicts = &first(&wire).verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious), (0, 1), "{verdicts:?}");
}

#[test]
fn a_receiver_answers_what_fills_a_hole_at_once() {
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    wire.data(60.0, 0, 1, 1000);
    wire.ack(60.1, 1, 1001);
    for i in 2..6_u32 {
        wire.data(70.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        let sack = &[(2001, 1001 + i * 1000)];
        wire.pass(70.1 + f64::from(i), 1, Passing { flags: ACK, seq: 1, ack: 1001, sack, ..Passing::default() });
    }
    wire.data(125.0, 0, 1001, 1000); // no answer
    wire.data(325.0, 0, 1001, 1000);
    wire.ack(325.1, 1, 6001);
    wire.data(330.0, 0, 6001, 1000);
    wire.ack(330.1, 1, 7001);
    let verdicts = &first(&wire).verdicts;
    assert_eq!((verdicts.lost, verdicts.lost_in_host, verdicts.spurious), (2, 1, 0), "{verdicts:?}");
}

#[test]
fn identifications_of_a_host_show_what_was_sent_first() {
    // The host has one counter for all its packets, and most go to other hosts.
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    for i in 0..12_u32 {
        wire.count_on(0, 1200);
        wire.data(60.0 + f64::from(i) * 100.0, 0, 1 + i * 1000, 1000);
        wire.ack(60.2 + f64::from(i) * 100.0, 1, 1 + (i + 1) * 1000);
    }
    wire.count_on(0, 1200);
    wire.data(1300.0, 0, 13_001, 1000);
    wire.pass(1300.1, 1, Passing { flags: ACK, seq: 1, ack: 12_001, sack: &[(13_001, 14_001)], ..Passing::default() });
    wire.count_on(0, 3000);
    wire.data(1600.0, 0, 12_001, 1000);
    wire.ack(1600.1, 1, 14_001);
    let verdicts = &first(&wire).verdicts;
    assert_eq!((verdicts.lost, verdicts.cannot_tell), (1, 0), "{verdicts:?}");
}

#[test]
fn data_on_a_syn_that_the_server_does_not_take_is_not_lost() {
    let mut wire = Wire::new(Headers { timestamps: false, ..Headers::default() });
    wire.pass(0.0, 0, Passing { flags: SYN, len: 517, ..Passing::default() });
    wire.pass(50.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(50.1, 0, Passing { flags: ACK, seq: 1, ack: 1, len: 517, ..Passing::default() });
    wire.ack(100.1, 1, 518);
    let direction = first(&wire);
    assert!(direction.is_quiet(), "{:?} {:?}", direction.verdicts, direction.incidents);
}

#[test]
fn a_duplicate_of_what_was_sent_before_the_capture_is_no_copy() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    wire.data(0.0, 0, 500, 172);
    wire.pass(50.0, 1, Passing { flags: ACK, seq: 1, ack: 672, sack: &[(500, 672)], ..Passing::default() });
    let verdicts = &first(&wire).verdicts;
    let before = verdicts.reasons.get(&UnknownReason::BeforeCapture).copied();
    assert_eq!((verdicts.duplicated, before), (0, Some(1)), "{verdicts:?}");
}

#[test]
fn segments_that_are_cut_anew_behind_the_capture_are_lost_once() {
    // Captured with 1,446 bytes, sent on with 1,430; the ninth, thirteenth and fourteenth of these are lost.
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    (0..16).for_each(|i| wire.data(60.0 + f64::from(i) * 0.01, 0, 1 + i * 1446, 1446));
    let at = |cut: u32| 1 + cut * 1430;
    let ack = |wire: &mut Wire, ms: f64, ack: u32, sack: &[(u32, u32)]| {
        wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack, sack, ..Passing::default() });
    };
    (1..=8).for_each(|i| ack(&mut wire, 110.0 + f64::from(i), at(i), &[]));
    (10..=12).for_each(|i| ack(&mut wire, 110.0 + f64::from(i), at(8), &[(at(9), at(i))]));
    (15..=16).for_each(|i| ack(&mut wire, 110.0 + f64::from(i), at(8), &[(at(14), at(i)), (at(9), at(12))]));
    for i in [8, 12, 13] {
        wire.data(130.0 + f64::from(i) * 0.1, 0, at(i), 1430);
    }
    ack(&mut wire, 181.0, at(12), &[(at(14), at(16))]);
    ack(&mut wire, 181.3, at(13), &[(at(14), at(16))]);
    ack(&mut wire, 181.4, at(16), &[]);
    wire.data(182.0, 0, 1 + 16 * 1446, 100);
    ack(&mut wire, 232.0, 101 + 16 * 1446, &[]);
    let verdicts = &first(&wire).verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious), (3, 0), "{verdicts:?}");
}

#[test]
fn one_or_two_losses_have_no_pattern() {
    let mut wire = Wire::opened(OLD);
    wire.data(60.0, 0, 1, 1000);
    wire.data(360.0, 0, 1, 1000);
    wire.ack(410.0, 1, 1001);
    let direction = first(&wire);
    assert_eq!(direction.verdicts.lost, 1);
    for cause in ["noisy", "overflows", "SACK"] {
        assert!(!says(&direction, cause), "{cause}: {:?}", direction.advice);
    }
}

#[test]
fn a_sender_that_goes_on_has_acknowledgments_that_the_capture_lacks() {
    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    for i in 0..100_u32 {
        wire.data(60.0 + f64::from(i) * 40.0, 0, 1 + i * 30, 30);
        if !(20..80).contains(&i) {
            wire.ack(60.1 + f64::from(i) * 40.0, 1, 1 + (i + 1) * 30);
        }
    }
    let direction = first(&wire);
    assert!(direction.is_quiet(), "{:?}", direction.incidents);
}
