//! A small capture for each kind of incident.

use reknit_tcp::segment::Flags;
use reknit_trace::Incident;

use super::{ACK, Headers, Passing, SYN, Wire};

const RST: Flags = Flags::RST;

/// A capture in which this happens, and little else.
pub(crate) fn capture_of(what: Incident) -> Wire {
    match what {
        Incident::NeverRepaired => never_repaired(),
        Incident::NotCaptured => transfer(Headers { near: 1, ..Headers::default() }, 12).without(8),
        Incident::WindowClosed => window_closed(),
        Incident::KeepAlives => keep_alives(),
        Incident::NoAnswer => no_answer(0),
        Incident::NoAnswerToFullSegments => no_answer(300),
        Incident::TooBig => too_big(),
        Incident::Timeouts => timeouts(),
        Incident::Silence => silence(),
        Incident::NoAnswerToSyn => syns(&[0.0, 1000.0, 3000.0, 7000.0]),
        Incident::SlowOpening => slow_opening(),
        Incident::Refused => {
            let mut wire = syns(&[0.0]);
            wire.pass(50.0, 1, Passing { flags: RST | ACK, ack: 1, ..Passing::default() });
            wire
        }
        Incident::Reset => reset_by(0),
        Incident::ResetByReceiver => reset_by(1),
    }
}

/// So many segments of 1,000 bytes, each with an acknowledgment.
fn transfer(headers: Headers, segments: u32) -> Wire {
    let mut wire = Wire::opened(headers);
    for i in 0..segments {
        let ms = 110.0 + f64::from(i) * 60.0;
        wire.data(ms, 0, 1 + i * 1000, 1000);
        wire.ack(ms + if headers.near == 0 { 50.0 } else { 0.1 }, 1, 1 + (i + 1) * 1000);
    }
    wire
}

fn syns(times: &[f64]) -> Wire {
    let mut wire = Wire::new(Headers::default());
    for ms in times {
        wire.pass(*ms, 0, Passing { flags: SYN, ..Passing::default() });
    }
    wire
}

fn slow_opening() -> Wire {
    let mut wire = syns(&[0.0, 1000.0]);
    wire.pass(1050.0, 1, Passing { flags: SYN | ACK, ack: 1, ..Passing::default() });
    wire.pass(1050.2, 0, Passing { flags: ACK, seq: 1, ack: 1, ..Passing::default() });
    wire.data(1060.0, 0, 1, 1000);
    wire.ack(1110.0, 1, 1001);
    wire
}

fn never_repaired() -> Wire {
    let mut wire = Wire::opened(Headers::default());
    for i in 0..8_u32 {
        let ms = 110.0 + f64::from(i);
        wire.data(ms, 0, 1 + i * 1000, 1000);
        match i {
            0..3 => wire.ack(ms + 50.0, 1, 1 + (i + 1) * 1000),
            3 => {}
            _ => {
                let sack = &[(4001, 1 + (i + 1) * 1000)];
                wire.pass(ms + 50.0, 1, Passing { flags: ACK, seq: 1, ack: 3001, sack, ..Passing::default() });
            }
        }
    }
    let sack = &[(4001, 8001)];
    wire.pass(20_000.0, 1, Passing { flags: ACK | Flags::FIN, seq: 1, ack: 3001, sack, ..Passing::default() });
    wire
}

fn window_closed() -> Wire {
    let mut wire = transfer(Headers::default(), 4);
    wire.window(410.0, 1, 4001, 0);
    for ms in [700.0, 1300.0, 2500.0] {
        wire.data(ms, 0, 4000, 0);
        wire.window(ms + 50.0, 1, 4001, 0);
    }
    wire.window(3000.0, 1, 4001, 65_535);
    wire.data(3000.2, 0, 4001, 1000);
    wire.ack(3050.2, 1, 5001);
    wire
}

fn keep_alives() -> Wire {
    let mut wire = transfer(Headers::default(), 5);
    (1..=9).for_each(|i| wire.data(f64::from(i) * 30_000.0, 0, 5000, 0));
    wire
}

/// Full-sized segments are never answered; a smaller one before them is, if it has a length.
fn no_answer(smaller: u16) -> Wire {
    let mut wire = Wire::opened(Headers::default());
    let next = 1 + u32::from(smaller);
    if smaller > 0 {
        wire.data(60.0, 0, 1, smaller);
        wire.ack(110.0, 1, next);
    }
    (0..4).for_each(|i| wire.data(130.0 + f64::from(i) * 0.02, 0, next + i * 1448, 1448));
    let mut ms = 380.0;
    for i in 0..5 {
        wire.data(ms, 0, next, 1448);
        ms += 500.0 * f64::from(1 << i);
    }
    wire
}

/// One segment is too big, and sent again in two.
fn too_big() -> Wire {
    let mut wire = transfer(Headers::default(), 5);
    wire.data(500.0, 0, 5001, 1448);
    wire.too_big(503.0, wire.len() - 1, 1492);
    wire.data(503.2, 0, 5001, 1440);
    wire.data(503.3, 0, 6441, 8);
    wire.pass(553.3, 1, Passing { flags: ACK, seq: 1, ack: 6449, echo_ms: Some(503), ..Passing::default() });
    wire
}

/// A segment arrives only when it is sent for the third time.
fn timeouts() -> Wire {
    let mut wire = transfer(Headers::default(), 5);
    for ms in [500.0, 900.0, 1700.0] {
        wire.data(ms, 0, 5001, 1000);
    }
    wire.pass(1750.0, 1, Passing { flags: ACK, seq: 1, ack: 6001, echo_ms: Some(1700), ..Passing::default() });
    wire
}

/// The receiver answers after three seconds.
fn silence() -> Wire {
    let mut wire = transfer(Headers::default(), 5);
    wire.data(500.0, 0, 5001, 1000);
    wire.pass(3500.0, 1, Passing { flags: ACK, seq: 1, ack: 6001, echo_ms: Some(500), ..Passing::default() });
    wire
}

fn reset_by(end: usize) -> Wire {
    let mut wire = transfer(Headers::default(), 5);
    wire.data(500.0, 0, 5001, 1000);
    let seq = [6001, 1][end];
    wire.pass(560.0, end, Passing { flags: RST | ACK, seq, ack: [1, 5001][end], ..Passing::default() });
    wire
}
