//! Ends, answers and copies of connections.

use super::*;

#[test]
fn each_kind_of_incident_is_told() {
    for what in Incident::ALL {
        let (analysis, events) = capture_of(what).analyze();
        let [direction] = &analysis.directions[..] else { panic!("{what:?}: {analysis:?}") };
        assert_eq!(incident(direction, what).times, 1, "{what:?}: {events:?}");
    }
}

/// Another connection, long after the first.
fn later(wire: &mut Wire, ms: f64) {
    wire.headers.port = 50_000;
    wire.open(ms);
    wire.data(ms + 60.0, 0, 1, 200);
    wire.ack(ms + 110.0, 1, 201);
}

#[test]
fn times_of_a_connection_end_with_its_last_packet() {
    // A request without an answer, a hole that has just appeared, and a single SYN.
    let mut wire = Wire::opened(Headers::default());
    wire.data(60.0, 0, 1, 12);
    later(&mut wire, 100_000_000.0);
    assert!(wire.direction(0).is_quiet(), "{:?}", wire.direction(0).incidents);

    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    wire.data(60.0, 0, 1, 1000);
    wire.ack(60.1, 1, 1001);
    wire.data(61.0, 0, 2001, 1000);
    wire.pass(61.1, 1, Passing { flags: ACK, seq: 1, ack: 1001, sack: &[(2001, 3001)], ..Passing::default() });
    later(&mut wire, 100_000.0);
    assert!(wire.direction(0).incidents.is_empty(), "{:?}", wire.direction(0).incidents);

    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    later(&mut wire, 100_000.0);
    let silence = incident(&wire.direction(0), Incident::NoAnswerToSyn);
    assert_eq!((silence.packets, silence.lasted_s), (1, 1.0));
}

#[test]
fn data_that_goes_on_without_captured_acknowledgments_is_no_dead_host() {
    for retransmission in [false, true] {
        let mut wire = Wire::new(Headers::default());
        for i in 0..400 {
            wire.data(f64::from(i) * 10.0, 0, 1 + i * 500, 500);
            if retransmission && i == 100 {
                wire.data(1005.0, 0, 1 + 90 * 500, 500);
            }
        }
        let direction = wire.direction(0);
        assert!(direction.incidents.is_empty(), "{:?}", direction.incidents);
        assert!(!says(&direction, "nothing came back"), "{:?}", direction.advice);
    }
}

#[test]
fn a_keep_alive_at_the_beginning_of_a_capture_is_no_duplicate() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    for i in 0..3 {
        wire.data(f64::from(i) * 45_000.0, 0, 1, 1);
        wire.pass(
            f64::from(i) * 45_000.0 + 50.0,
            1,
            Passing { flags: ACK, seq: 1, ack: 2, sack: &[(1, 2)], ..Passing::default() },
        );
    }
    let (analysis, events) = wire.analyze();
    assert!(analysis.directions.iter().all(|direction| direction.is_quiet()), "{events:?}");
}

#[test]
fn a_reset_is_an_answer() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    for i in 0..50 {
        wire.data(f64::from(i) * 200.0, 0, 1, 26);
        wire.pass(f64::from(i) * 200.0 + 0.1, 1, Passing { flags: RST, seq: 1, ..Passing::default() });
    }
    let direction = wire.direction(0);
    assert_eq!(direction.incidents.len(), 1, "{:?}", direction.incidents);
    assert_eq!(incident(&direction, Incident::ResetByReceiver).times, 1);
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
}

#[test]
fn nobody_waits_for_what_a_reset_cuts_off() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(60.0, 1, 1, 500);
    wire.pass(60.1, 0, Passing { flags: FIN | ACK, seq: 1, ack: 501, ..Passing::default() });
    wire.pass(17_000.0, 1, Passing { flags: RST, seq: 525, ..Passing::default() });
    assert_eq!(wire.direction(1).incidents.len(), 0, "{:?}", wire.direction(1).incidents);
}

#[test]
fn a_fin_without_an_answer_is_an_incident() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(60.0, 0, 1, 500);
    wire.ack(110.0, 1, 501);
    for i in 0..7 {
        wire.pass(
            120.0 + 250.0 * f64::from((1 << i) - 1),
            0,
            Passing { flags: FIN | ACK, seq: 501, ack: 1, ..Passing::default() },
        );
    }
    let unanswered = incident(&wire.direction(0), Incident::NoAnswer);
    assert_eq!(unanswered.packets, 6);
    assert!((15.0..16.0).contains(&unanswered.lasted_s), "{unanswered:?}");
}

#[test]
fn a_syn_ack_without_an_answer_is_an_incident() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    for i in 0..6 {
        wire.pass(
            0.2 + 1000.0 * f64::from((1 << i) - 1),
            1,
            Passing { flags: SYN | ACK, ack: 1, ..Passing::default() },
        );
    }
    let unanswered = incident(&wire.direction(1), Incident::NoAnswer);
    assert_eq!(unanswered.packets, 5);
    assert!((30.0..32.0).contains(&unanswered.lasted_s), "{unanswered:?}");
}

#[test]
fn a_retransmission_whose_timestamp_is_echoed_was_needed() {
    // The handshake took 477 ms, later round trips take 285.
    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.pass(477.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(477.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    (0..4).for_each(|i| wire.data(480.0 + f64::from(i), 0, 1 + i * 1000, 1000));
    for i in 0..3_u32 {
        let sack = &[(1001, 2001 + i * 1000)];
        wire.pass(
            770.0 + f64::from(i),
            1,
            Passing { flags: ACK, seq: 1, ack: 1, sack, echo_ms: Some(477), ..Passing::default() },
        );
    }
    wire.data(780.0, 0, 1, 1000);
    wire.pass(1119.0, 1, Passing { flags: ACK, seq: 1, ack: 4001, echo_ms: Some(780), ..Passing::default() });
    let direction = wire.direction(0);
    assert_eq!((direction.verdicts.lost, direction.verdicts.spurious), (1, 0), "{:?}", direction.verdicts);
}

#[test]
fn a_pause_is_no_round_trip() {
    let mut wire = Wire::new(Headers { near: 1, ..Headers::default() });
    for i in 0..5_u32 {
        let ms = f64::from(i) * 300_000.0;
        let echo_ms = Some(i.saturating_sub(1) * 300_000);
        wire.pass(ms, 0, Passing { flags: ACK, seq: 1 + i * 4, ack: 1, len: 4, echo_ms, ..Passing::default() });
        wire.pass(ms + 0.03, 1, Passing { flags: ACK, seq: 1, ack: 5 + i * 4, ..Passing::default() });
    }
    let direction = wire.direction(0);
    assert!(direction.round_trip.is_none(), "{:?}", direction.round_trip);
}

#[test]
fn a_receiver_that_answers_late_has_lost_nothing() {
    // It stands still for 4.6 s, then acknowledges and reports every retransmission as a duplicate.
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    for i in 0..10_u32 {
        wire.data(50.0 + f64::from(i), 0, 1 + i * 10, 10);
        wire.ack(50.1 + f64::from(i), 1, 11 + i * 10);
    }
    wire.data(61.0, 0, 101, 200);
    for ms in [161.0, 400.0, 900.0, 1900.0, 3900.0] {
        wire.data(ms, 0, 101, 200);
    }
    for i in 0..5 {
        let sack = &[(101, 301)];
        wire.pass(
            4661.0 + f64::from(i) * 0.02,
            1,
            Passing { flags: ACK, seq: 1, ack: 301, sack, ..Passing::default() },
        );
    }
    let verdicts = wire.direction(0).verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious), (0, 5), "{verdicts:?}");
}

#[test]
fn another_identification_or_length_is_no_copy_of_the_network() {
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    for i in 0..10 {
        wire.data(60.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        wire.ack(60.1 + f64::from(i), 1, 1001 + i * 1000);
    }
    // At once, another identification; then the last byte of an earlier packet.
    wire.data(69.2, 0, 9001, 1000);
    wire.pass(69.3, 1, Passing { flags: ACK, seq: 1, ack: 10_001, sack: &[(9001, 10_001)], ..Passing::default() });
    wire.data(69.4, 0, 9000, 1);
    wire.pass(69.5, 1, Passing { flags: ACK, seq: 1, ack: 10_001, sack: &[(9000, 9001)], ..Passing::default() });
    let verdicts = wire.direction(0).verdicts;
    assert_eq!((verdicts.duplicated, verdicts.spurious), (0, 2), "{verdicts:?}");
}

#[test]
fn an_acknowledgment_inside_a_segment_shows_that_it_was_lost() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(60.0, 0, 1, 1000);
    wire.data(60.1, 0, 1001, 1448);
    wire.data(60.2, 0, 2449, 500);
    wire.ack(110.0, 1, 1001);
    wire.pass(110.2, 1, Passing { flags: ACK, seq: 1, ack: 1001, sack: &[(2449, 2949)], ..Passing::default() });
    // Retransmitted in smaller segments; the answers come sooner than the handshake's round trip.
    wire.data(120.0, 0, 1001, 1440);
    wire.data(120.1, 0, 2441, 8);
    wire.pass(150.0, 1, Passing { flags: ACK, seq: 1, ack: 2441, sack: &[(2449, 2949)], ..Passing::default() });
    wire.pass(150.1, 1, Passing { flags: ACK, seq: 1, ack: 2949, ..Passing::default() });
    let verdicts = wire.direction(0).verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious), (1, 0), "{verdicts:?}");
}

#[test]
fn a_packet_before_and_after_segmentation_offload_is_one_packet() {
    let mut wire = Wire::opened(Headers::default());
    let mut ms = 60.0;
    for burst in 0..5_u32 {
        let start = 1 + burst * 7240;
        wire.data(ms, 0, start, 7240);
        wire.renumber(); // the first segment has the identification of the whole
        for i in 0..5 {
            wire.data(ms + 0.01, 0, start + i * 1448, 1448);
        }
        ms += 50.2;
        wire.ack(ms, 1, start + 7240);
        ms += 0.1;
    }
    let (analysis, _) = wire.analyze();
    let direction = wire.direction(0);
    assert_eq!((direction.verdicts.all(), direction.packets), (0, 5), "{:?}", direction.verdicts);
    assert!(analysis.warnings.iter().any(|warning| warning.starts_with("25 packets")), "{:?}", analysis.warnings);
}

#[test]
fn a_second_syn_ack_that_the_client_does_not_accept_moves_nothing() {
    let mut wire = Wire::new(NO_TIMESTAMPS);
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.pass(1000.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.pass(1050.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(1050.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    wire.pass(1051.0, 1, Passing { flags: SYN | ACK, seq: 1_607_310_000, ack: 1, ..Passing::default() });
    wire.pass(1051.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    wire.data(1060.0, 1, 1, 1000);
    wire.pass(1060.2, 0, Passing { flags: ACK, seq: 1, ack: 1001, ..Passing::default() });
    let (analysis, _) = wire.analyze();
    assert!(analysis.warnings.is_empty(), "{:?}", analysis.warnings);
    assert_eq!(wire.direction(1).acknowledged_bytes, 1000);
}

#[test]
fn a_pause_without_pure_acknowledgments_is_no_silence() {
    // Saved through a filter that keeps packets with data.
    let mut wire = Wire::new(NO_TIMESTAMPS);
    for i in 0..5 {
        let ms = f64::from(i) * 20_000.0;
        wire.pass(ms, 0, Passing { flags: ACK, seq: 1 + i * 12, ack: 1 + i * 30, len: 12, ..Passing::default() });
        wire.pass(
            ms + 50.0,
            1,
            Passing { flags: ACK, seq: 1 + i * 30, ack: 13 + i * 12, len: 30, ..Passing::default() },
        );
    }
    for end in 0..2 {
        assert!(wire.direction(end).incidents.is_empty(), "{:?}", wire.direction(end).incidents);
    }
}

#[test]
fn a_direction_of_which_only_the_acknowledgments_were_captured_is_named() {
    let mut wire = Wire::new(Headers::default());
    for i in 1..=100_u32 {
        wire.pass(f64::from(i) * 10.0, 1, Passing { flags: ACK, seq: 1, ack: i * 14_480, ..Passing::default() });
    }
    let (analysis, _) = wire.analyze();
    let stream =
        "the data direction of stream 0 was not captured (1,433,520 bytes were acknowledged); capture both directions";
    assert_eq!(analysis.warnings, [stream]);
    let direction = wire.direction(1); // the receiver sent the first packet
    assert!(says(&direction, "capture both directions"), "{:?}", direction.advice);
    assert_eq!((direction.packets, direction.acknowledged_bytes), (0, 1_433_520));
    assert!((direction.duration_s - 0.99).abs() < 1e-6, "{}", direction.duration_s);
}

#[test]
fn the_time_of_a_hole_counts_as_its_bytes_do() {
    // Packets from 1 s to 2 s were not captured: at the beginning, or at the end, of which the acknowledgments were.
    for is_end in [false, true] {
        let mut wire = Wire::opened(Headers::default());
        for i in 0..200_u32 {
            let ms = 100.0 + f64::from(i) * 10.0;
            let is_missing = if is_end { i >= 100 } else { i < 100 };
            if !is_missing {
                wire.data(ms, 0, 1 + i * 1448, 1448);
            }
            if is_end || !is_missing {
                wire.ack(ms + 1.0, 1, 1 + (i + 1) * 1448);
            }
        }
        let direction = wire.direction(0);
        assert_eq!(direction.acknowledged_bytes, 200 * 1448, "{is_end}");
        assert!((1.9..2.2).contains(&direction.duration_s), "{is_end}: {}", direction.duration_s);
    }
}
