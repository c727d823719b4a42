//! Small captures of what people have, each of a kind: cut, lossy, with closed windows, keep-alives and dead peers.

#[path = "cases/ends.rs"]
mod ends;
#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_tcp::segment::Flags;
use reknit_trace::{CapturePoint, Event, Incident, PathPart, Verdict};
use wire::incidents::capture_of;
use wire::{ACK, Headers, Passing, SYN, Wire, incident, millis};

const NO_TIMESTAMPS: Headers = Headers { timestamps: false, sack: true, near: 0, port: 40_000, isn: [1000, 5000] };
const RST: Flags = Flags::RST;
const FIN: Flags = Flags::FIN;

fn says(direction: &reknit_trace::DirectionReport, text: &str) -> bool {
    direction.advice.iter().any(|advice| advice.to_string().contains(text))
}

/// A response of ten segments, captured at the client; the fourth is the packet with number 10.
fn response(near: usize) -> Wire {
    let mut wire = Wire::opened(Headers { near, ..Headers::default() });
    wire.pass(60.0, 0, Passing { flags: ACK, seq: 1, ack: 1, len: 100, ..Passing::default() });
    let answer = |wire: &mut Wire, ms: f64, ack: u32| {
        wire.pass(ms, 0, Passing { flags: ACK, seq: 101, ack, ..Passing::default() });
    };
    wire.pass(110.0, 1, Passing { flags: ACK, seq: 1, ack: 101, ..Passing::default() });
    let delay = if near == 0 { 0.1 } else { 50.0 };
    for i in 0..10_u32 {
        let ms = 111.0 + f64::from(i);
        wire.pass(ms, 1, Passing { flags: ACK, seq: 1 + i * 1448, ack: 101, len: 1448, ..Passing::default() });
        if i % 2 == 1 {
            answer(&mut wire, ms + delay, 1 + (i + 1) * 1448);
        }
    }
    wire
}

#[test]
fn what_the_capture_lacks_is_said_although_it_was_acknowledged() {
    for near in [0, 1] {
        let whole = response(near);
        assert!(whole.analyze().0.warnings.is_empty(), "{:?}", whole.analyze().0.warnings);
        for number in [6, 7, 9, 10, 12, 16, 18, 19] {
            let wire = response(near).without(number);
            let (analysis, events) = wire.analyze();
            let is_data = ![8, 11, 14, 17, 20].contains(&number);
            let warned =
                analysis.warnings.iter().any(|warning| warning.contains("1,448 bytes were acknowledged, but never"));
            assert_eq!(warned, is_data, "near {near}, without {number}: {:?}", analysis.warnings);
            let direction = wire.direction(1);
            assert_eq!(
                direction.verdicts.all(),
                0,
                "near {near}, without {number}: {:?} {events:?}",
                direction.verdicts
            );
            assert_eq!(direction.incident(Incident::NotCaptured).map(|i| i.bytes), is_data.then_some(1448));
        }
    }
}

#[test]
fn a_response_that_was_not_captured_is_missed() {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(57.0, 0, 1, 538);
    wire.ack(105.0, 1, 539);
    wire.pass(10_040.0, 1, Passing { flags: FIN | ACK, seq: 2903, ack: 539, ..Passing::default() });
    wire.pass(10_040.2, 0, Passing { flags: ACK, seq: 539, ack: 2904, ..Passing::default() });
    let (analysis, events) = wire.analyze();
    assert_eq!(analysis.warnings.len(), 1, "{:?} {events:?}", analysis.warnings);
    assert!(
        analysis.warnings[0].starts_with("2,902 bytes were acknowledged, but never captured"),
        "{:?}",
        analysis.warnings
    );
}

#[test]
fn a_challenge_ack_belongs_to_an_earlier_connection() {
    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.pass(20.0, 1, Passing { flags: ACK, seq: 1, ack: 700_000_000, ..Passing::default() });
    wire.pass(20.2, 0, Passing { flags: RST, seq: 700_000_000, ..Passing::default() });
    wire.open(1000.0);
    wire.data(1060.0, 0, 1, 200);
    wire.ack(1110.0, 1, 201);
    let (analysis, _) = wire.analyze();
    assert_eq!((analysis.streams, analysis.warnings.len()), (1, 0), "{:?}", analysis.warnings);
    let direction = wire.direction(0);
    assert_eq!((direction.verdicts.all(), direction.acknowledged_bytes), (0, 200));
    assert_eq!(incident(&direction, Incident::SlowOpening).packets, 2);
    // In an open connection, a single one far ahead is not believed either.
    let mut wire = response(0);
    wire.pass(300.0, 1, Passing { flags: ACK, seq: 20_000, ack: 50_000_000, ..Passing::default() });
    assert!(wire.analyze().0.warnings.is_empty());
}

#[test]
fn full_sized_segments_that_vanish_are_told_at_the_sender() {
    let mut wire = Wire::opened(Headers::default());
    wire.data(60.0, 0, 1, 300);
    wire.ack(110.0, 1, 301);
    (0..4).for_each(|i| wire.data(130.0 + f64::from(i) * 0.02, 0, 301 + i * 1448, 1448));
    let mut ms = 380.0;
    for i in 0..7 {
        wire.data(ms, 0, 301, 1448);
        ms += 500.0 * f64::from(1 << i);
    }
    wire.pass(36_880.0, 0, Passing { flags: RST | ACK, seq: 6093, ack: 1, ..Passing::default() });
    let direction = wire.direction(0);
    let unanswered = incident(&direction, Incident::NoAnswerToFullSegments);
    assert_eq!((unanswered.packets, unanswered.times), (7, 1));
    assert!((36.7..36.8).contains(&unanswered.lasted_s), "{unanswered:?}");
    assert_eq!(incident(&direction, Incident::Reset).times, 1);
    assert!(says(&direction, "smaller MTU"), "{:?}", direction.advice);
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
}

#[test]
fn full_sized_segments_that_vanish_are_told_at_the_receiver() {
    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    wire.data(110.0, 0, 1, 300);
    wire.ack(110.1, 1, 301);
    wire.pass(37_000.0, 0, Passing { flags: RST | ACK, seq: 6093, ack: 1, ..Passing::default() });
    let direction = wire.direction(0);
    let hole = incident(&direction, Incident::NeverRepaired);
    assert_eq!(hole.bytes, 5792);
    assert!((36.8..36.95).contains(&hole.lasted_s), "{hole:?}");
    assert!(says(&direction, "smaller MTU"), "{:?}", direction.advice);
}

/// A sender fills a queue of 200 ms, then loses five segments, which it sends again when the queue is empty.
fn falling(headers: Headers) -> Wire {
    let mut wire = Wire::new(headers);
    for i in 0..40 {
        wire.data(f64::from(i) * 10.0, 0, 1 + i * 1448, 1448);
        if i < 35 {
            let passing =
                Passing { flags: ACK, seq: 1, ack: 1 + (i + 1) * 1448, echo_ms: Some(i * 10), ..Passing::default() };
            wire.pass(f64::from(i) * 10.0 + 200.0, 1, passing);
        }
    }
    let mut ms = 840.0;
    for i in 35..45 {
        wire.data(ms, 0, 1 + i * 1448, 1448);
        let passing =
            Passing { flags: ACK, seq: 1, ack: 1 + (i + 1) * 1448, echo_ms: Some(millis(ms)), ..Passing::default() };
        wire.pass(ms + 50.0, 1, passing);
        ms += 50.1;
    }
    wire
}

#[test]
fn a_round_trip_that_falls_makes_no_loss_a_late_packet() {
    for headers in [NO_TIMESTAMPS, Headers::default()] {
        let direction = falling(headers).direction(0);
        let verdicts = &direction.verdicts;
        assert_eq!((verdicts.lost, verdicts.spurious, verdicts.reordered), (5, 0, 0), "{verdicts:?}");
        assert_eq!(incident(&direction, Incident::Timeouts).packets, 1);
    }
}

#[test]
fn a_receiver_that_keeps_nothing_out_of_order_needs_all_retransmissions() {
    let mut wire = Wire::opened(Headers { sack: false, timestamps: false, near: 1, ..NO_TIMESTAMPS });
    let mut ms = 60.0;
    for i in 0..10 {
        wire.data(ms, 0, 1 + i * 1460, 1460);
        wire.ack(ms + 0.1, 1, 1 + (i + 1) * 1460);
        ms += 50.0;
    }
    for round in 0..3_u32 {
        let lost = 10 + 5 * round;
        for i in 1..4 {
            wire.data(ms + f64::from(i), 0, 1 + (lost + i) * 1460, 1460);
            wire.ack(ms + f64::from(i) + 0.1, 1, 1 + lost * 1460);
        }
        ms += 350.0;
        for i in 0..5 {
            wire.data(ms, 0, 1 + (lost + i) * 1460, 1460);
            wire.ack(ms + 0.1, 1, 1 + (lost + i + 1) * 1460);
            ms += 50.0;
        }
    }
    let direction = wire.direction(0);
    let verdicts = &direction.verdicts;
    assert_eq!(
        (verdicts.lost, verdicts.discarded, verdicts.spurious, verdicts.cannot_tell),
        (3, 9, 0, 0),
        "{verdicts:?}"
    );
    assert!(says(&direction, "keeps nothing that arrives out of order"), "{:?}", direction.advice);
}

#[test]
fn the_network_loses_nothing_beyond_a_closed_window() {
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    for i in 0..4_u32 {
        let ms = 110.0 + f64::from(i) * 0.5;
        wire.data(ms, 0, 1 + i * 1460, 1460);
        wire.window(ms + 0.1, 1, 1 + (i + 1) * 1460, 4380 - i as u16 * 1460);
    }
    for i in 4..14 {
        let ms = 110.0 + f64::from(i) * 0.5;
        wire.data(ms, 0, 1 + i * 1460, 1460);
        wire.window(ms + 0.1, 1, 5841, 0);
    }
    wire.window(500.0, 1, 5841, 65_535);
    for i in 4..20 {
        let ms = 550.0 + f64::from(i) * 0.5;
        wire.data(ms, 0, 1 + i * 1460, 1460);
        wire.window(ms + 0.1, 1, 1 + (i + 1) * 1460, 65_535);
    }
    let direction = wire.direction(0);
    assert_eq!(direction.verdicts.all(), 0, "{:?}", direction.verdicts);
    let closed = incident(&direction, Incident::WindowClosed);
    // What was under way is no probe.
    assert_eq!((closed.times, closed.packets), (1, 0));
    assert!((0.38..0.40).contains(&closed.lasted_s), "{closed:?}");
}

#[test]
fn probes_of_a_closed_window_are_no_round_trips() {
    let mut wire = Wire::opened(Headers::default());
    (0..4).for_each(|i| wire.data(60.0 + f64::from(i) * 0.1, 0, 1 + i * 1448, 1448));
    (0..4_u16).for_each(|i| {
        wire.window(110.0 + f64::from(i) * 0.1, 1, 1 + (u32::from(i) + 1) * 1448, 4344 - i * 1448);
    });
    for ms in [410.0, 1010.0, 2210.0, 4610.0, 9410.0, 19_010.0, 38_210.0] {
        wire.data(ms, 0, 5792, 0);
        wire.window(ms + 50.0, 1, 5793, 0);
    }
    wire.window(39_210.0, 1, 5793, 65_535);
    (4..8).for_each(|i| wire.data(39_210.2 + f64::from(i) * 0.1, 0, 1 + i * 1448, 1448));
    (4..8).for_each(|i| wire.ack(39_260.2 + f64::from(i) * 0.1, 1, 1 + (i + 1) * 1448));
    let direction = wire.direction(0);
    let closed = incident(&direction, Incident::WindowClosed);
    assert_eq!((closed.packets, direction.verdicts.all()), (7, 0), "{:?}", direction.verdicts);
    assert!((39.0..39.2).contains(&closed.lasted_s) && direction.limited_by_receiver_s > 39.0, "{closed:?}");
    assert!(
        direction.round_trip.as_ref().is_some_and(|rt| (49.0..51.0).contains(&rt.least_ms)),
        "{:?}",
        direction.round_trip
    );
    assert!(says(&direction, "the receiver held the transfer back"));
    // Captured at the receiver, in mid-connection, and the window stays closed.
    let mut wire = Wire::new(Headers { near: 1, ..Headers::default() });
    wire.pass(0.0, 0, Passing { flags: ACK, seq: 1, ack: 1, len: 1344, echo_ms: Some(0), ..Passing::default() });
    wire.window(0.03, 1, 1345, 0);
    for (ms, echo) in [(3410.0, 0), (10_190.0, 3410), (23_730.0, 10_190)] {
        wire.pass(ms, 0, Passing { flags: ACK, seq: 1344, ack: 1, echo_ms: Some(echo), ..Passing::default() });
        wire.window(ms + 0.03, 1, 1345, 0);
    }
    let direction = wire.direction(0);
    assert_eq!(incident(&direction, Incident::WindowClosed).packets, 3);
    assert_eq!((direction.verdicts.all(), &direction.round_trip), (0, &None));
}

/// Five segments; then probes each half a minute.
fn idle(near: usize, probes: u32, probe: u16, answer: impl Fn(&mut Wire, f64)) -> Wire {
    let mut wire = Wire::opened(Headers { near, ..Headers::default() });
    for i in 0..5 {
        wire.data(110.0 + f64::from(i), 0, 1 + i * 1000, 1000);
        wire.ack(110.0 + f64::from(i) + if near == 0 { 50.0 } else { 0.1 }, 1, 1 + (i + 1) * 1000);
    }
    for i in 1..=probes {
        let ms = f64::from(i) * 30_000.0;
        wire.data(ms, 0, 5000, probe);
        answer(&mut wire, ms + if near == 0 { 50.0 } else { 0.1 });
    }
    wire
}

#[test]
fn keep_alives_are_nothing() {
    for near in [0, 1] {
        for probe in [0, 1] {
            for has_dsack in [false, true] {
                let blocks: &[(u32, u32)] = if has_dsack { &[(5000, 5001)] } else { &[] };
                let mut wire = idle(near, 6, probe, |wire, ms| {
                    wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack: 5001, sack: blocks, ..Passing::default() });
                });
                wire.data(300_000.0, 0, 5001, 1000);
                wire.ack(300_050.0, 1, 6001);
                let direction = wire.direction(0);
                assert!(direction.is_quiet(), "{near} {probe} {has_dsack}: {direction:?}");
                assert!(direction.limited_by_sender_s > 299.0, "{}", direction.limited_by_sender_s);
            }
        }
    }
}

#[test]
fn keep_alives_without_an_answer_and_the_reset_are_told() {
    for probe in [0, 1] {
        let mut wire = idle(0, 9, probe, |_, _| {});
        wire.pass(300_000.0, 0, Passing { flags: RST | ACK, seq: 5001, ack: 1, ..Passing::default() });
        let direction = wire.direction(0);
        let unanswered = incident(&direction, Incident::KeepAlives);
        assert_eq!((unanswered.packets, unanswered.lasted_s), (9, 270.0));
        assert_eq!((incident(&direction, Incident::Reset).times, direction.verdicts.all()), (1, 0));
    }
}

#[test]
fn copies_that_the_capture_made_and_copies_that_the_network_made() {
    let mut wire = Wire::opened(Headers { near: 1, ..Headers::default() });
    let mut copies = Vec::new();
    for i in 0..90_u32 {
        let ms = 110.0 + f64::from(i) * 10.0;
        wire.data(ms, 0, 1 + i * 1000, 1000);
        let original = wire.len() - 1;
        let copy = |wire: &mut Wire, ms| {
            wire.pass(ms, 0, Passing { flags: ACK, len: 1000, copy_of: Some(original), ..Passing::default() });
        };
        if i < 6 {
            copy(&mut wire, ms + 0.02);
        } else if (20..50).contains(&i) {
            copies.push(original + 1);
            copy(&mut wire, ms + 235.0);
        }
        wire.ack(ms + 0.1, 1, 1 + (i + 1) * 1000);
    }
    let (analysis, events) = wire.analyze();
    let duplicated = events.iter().filter(|event| event.verdict == Verdict::Duplicated).count();
    assert_eq!((analysis.directions[0].verdicts.duplicated, duplicated), (30, 30));
}

#[test]
fn a_retransmission_of_eight_segments_counts_once() {
    let mut wire = Wire::opened(Headers::default());
    (0..9).for_each(|i| wire.data(60.0 + f64::from(i) * 0.1, 0, 1 + i * 32, 32));
    let ack = |wire: &mut Wire, ms: f64, ack: u32, sack: &[(u32, u32)]| {
        wire.pass(ms, 1, Passing { flags: ACK, seq: 1, ack, sack, echo_ms: Some(60), ..Passing::default() });
    };
    ack(&mut wire, 110.0, 1, &[(257, 289)]);
    wire.data(110.1, 0, 1, 256);
    (1..8).for_each(|i| ack(&mut wire, 110.2 + f64::from(i) * 0.1, 1 + i * 32, &[(257, 289)]));
    ack(&mut wire, 111.0, 289, &[]);
    ack(&mut wire, 160.1, 289, &[(1, 257)]);
    let (analysis, events) = wire.analyze();
    let verdicts = &analysis.directions[0].verdicts;
    assert_eq!((verdicts.spurious, verdicts.lost, verdicts.reordered), (1, 0, 8), "{events:?}");
}

#[test]
fn a_packet_that_the_host_drops_is_lost_behind_the_capture() {
    let mut wire = Wire::opened(Headers { near: 1, sack: false, ..NO_TIMESTAMPS });
    for i in 0..10_u32 {
        let ms = 110.0 + f64::from(i) * 20.0;
        wire.data(ms, 0, 1 + i * 1460, 1460);
        if i != 4 {
            wire.ack(ms + 0.1, 1, if i < 4 { 1 + (i + 1) * 1460 } else { 5841 });
        }
    }
    wire.data(300.1, 0, 5841, 1460);
    wire.ack(300.2, 1, 14_601);
    let (analysis, events) = wire.analyze();
    let direction = &analysis.directions[0];
    assert_eq!(
        (direction.verdicts.lost, direction.verdicts.lost_in_host, direction.verdicts.all()),
        (1, 1, 1),
        "{events:?}"
    );
    let [Event { frame: 12, replaced_by: Some(23), side: PathPart::AtCapturePoint, verdict: Verdict::Lost, .. }] =
        events[..]
    else {
        panic!("{events:?}")
    };
    assert!(
        direction.advice[0]
            .to_string()
            .starts_with("packets that were captured near the receiver did not reach its TCP")
    );
}

#[test]
fn connections_are_numbered_as_wireshark_numbers_them() {
    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.headers.isn[1] = 777;
    wire.pass(50.1, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.headers.isn[1] = 5000;
    wire.open(1000.0);
    (0..5).for_each(|i| wire.data(1060.0 + f64::from(i), 0, 1 + i * 1000, 1000));
    (0..5).for_each(|i| wire.ack(1110.0 + f64::from(i), 1, 1 + (i + 1) * 1000));
    wire.headers.port += 1;
    wire.open(2000.0);
    (0..5).for_each(|i| wire.data(2060.0 + f64::from(i), 0, 1 + i * 1000, 1000));
    (0..5).for_each(|i| wire.ack(2110.0 + f64::from(i), 1, 1 + (i + 1) * 1000));
    let (analysis, _) = wire.analyze();
    assert_eq!((analysis.streams, analysis.warnings.len()), (2, 0), "{:?}", analysis.warnings);
    let mut numbers: Vec<u32> = analysis.directions.iter().map(|direction| direction.stream).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
    assert!(
        analysis
            .directions
            .iter()
            .all(|direction| direction.verdicts.all() == 0 && direction.acknowledged_bytes == 5000)
    );
}

#[test]
fn connections_that_do_not_open_are_told() {
    let mut wire = Wire::new(Headers::default());
    for ms in [0.0, 1000.0, 3000.0, 7000.0] {
        wire.pass(ms, 0, Passing { flags: SYN, ..Passing::default() });
    }
    let direction = wire.direction(0);
    let silence = incident(&direction, Incident::NoAnswerToSyn);
    assert_eq!((silence.packets, silence.lasted_s), (4, 7.0));
    let mut wire = Wire::new(Headers::default());
    wire.pass(0.0, 0, Passing { flags: SYN, ..Passing::default() });
    wire.pass(50.0, 1, Passing { flags: RST | ACK, ack: 1, ..Passing::default() });
    assert_eq!(incident(&wire.direction(0), Incident::Refused).times, 1);
}

#[test]
fn a_hole_that_is_never_filled_is_told_on_both_sides() {
    for (near, place) in [(0, CapturePoint::Sender), (1, CapturePoint::Receiver)] {
        let mut wire = Wire::opened(Headers { near, ..Headers::default() });
        for i in 0..8_u32 {
            let ms = 110.0 + f64::from(i);
            if near == 0 || i != 3 {
                wire.data(ms, 0, 1 + i * 1000, 1000);
            }
            let delay = if near == 0 { 50.0 } else { 0.1 };
            match i {
                0..3 => wire.ack(ms + delay, 1, 1 + (i + 1) * 1000),
                3 => {}
                _ => {
                    let sack = [(4001, 1 + (i + 1) * 1000)];
                    wire.pass(
                        ms + delay,
                        1,
                        Passing { flags: ACK, seq: 1, ack: 3001, sack: &sack, ..Passing::default() },
                    );
                }
            }
        }
        wire.pass(
            20_000.0,
            1,
            Passing { flags: FIN | ACK, seq: 1, ack: 3001, sack: &[(4001, 8001)], ..Passing::default() },
        );
        let direction = wire.direction(0);
        assert_eq!(direction.captured_at, place);
        let hole = incident(&direction, Incident::NeverRepaired);
        assert_eq!(hole.bytes, 1000, "{direction:?}");
        assert!((19.0..20.0).contains(&hole.lasted_s) && direction.waited_s > 19.0, "{hole:?}");
    }
}

#[test]
fn holes_at_the_end_of_a_capture_are_not_older_than_the_capture() {
    // Three packets are lost and never sent again, while other data passes for ten seconds.
    let mut wire = Wire::opened(Headers::default());
    let mut sacked: Vec<(u32, u32)> = Vec::new();
    for i in 0..200_u32 {
        let (ms, seq) = (60.0 + f64::from(i) * 50.0, 1 + i * 1448);
        wire.data(ms, 0, seq, 1448);
        // What is sent last is in flight when the capture ends, with one packet overtaken or lost.
        let is_lost = [1, 3, 5, 197].contains(&i);
        if is_lost || i == 0 {
            continue;
        }
        match sacked.last_mut() {
            Some(last) if last.1 == seq => last.1 = seq + 1448,
            _ => sacked.push((seq, seq + 1448)),
        }
        let blocks: Vec<(u32, u32)> = sacked.iter().rev().take(3).copied().collect();
        wire.pass(ms + 50.0, 1, Passing { flags: ACK, seq: 1, ack: 1449, sack: &blocks, ..Passing::default() });
    }
    let (analysis, events) = wire.analyze();
    let direction = wire.direction(0);
    let hole = incident(&direction, Incident::NeverRepaired);
    assert!(hole.longest_s <= analysis.duration_s && hole.longest_s > 9.0, "{hole:?} of {} s", analysis.duration_s);
    assert_eq!(hole.packets, 3, "{hole:?} {events:?}");
    assert!(hole.text().ends_with(&format!("waited {:.2} s for them", hole.longest_s)), "{}", hole.text());
}
