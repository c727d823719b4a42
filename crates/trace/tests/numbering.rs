//! Numbers that change on the way or in the middle: IP identifications that a sender chooses otherwise from some packet on, those of
//! acknowledgments that never came, SACK blocks behind a firewall, and captures through a filter.

#[expect(dead_code, reason = "other tests need more")]
mod wire;

use reknit_trace::{Event, PathPart, UnknownReason, Verdict};
use wire::{ACK, Headers, Passing, Wire};

const NO_TIMESTAMPS: Headers = Headers { timestamps: false, sack: true, near: 0, port: 40_000, isn: [1000, 5000] };

/// How a sender goes on to number its packets.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Then {
    Zero,
    Random,
    /// Another counter, which begins this much higher.
    Higher(u16),
}

/// What the receiver's capture says about 2,000 packets, of which every 50th is late by three packets and every 50th is lost and
/// sent again. The sender counts until `change`.
fn captured_at_receiver(change: u32, then: Then) -> Vec<Event> {
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    let mut state = 1_u32;
    let mut send = |wire: &mut Wire, ms: f64, i: u32, now: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match then {
            Then::Random if now >= change => wire.count_on(0, (state >> 16) as u16),
            Then::Higher(by) if now == change => wire.count_on(0, by),
            _ => {}
        }
        wire.data(ms, 0, 1 + i * 1000, 1000);
        if then == Then::Zero && now >= change {
            wire.unmark();
        }
    };
    for i in 0..2000_u32 {
        let ms = 60.0 + f64::from(i);
        match i % 50 {
            10 => send(&mut wire, ms + 3.5, i, i),
            40 => {} // lost
            _ => send(&mut wire, ms, i, i),
        }
        // A lost packet is sent again after 109 ms: two round trips.
        if i % 50 == 49 && i > 100 {
            send(&mut wire, ms + 0.1, i - 109, i);
        }
        let is_missing = |n: &u32| n % 50 == 40 && i < n + 109 || n % 50 == 10 && i <= n + 3;
        let next = (0..=i).rev().take(110).filter(is_missing).last().unwrap_or(i + 1);
        wire.ack(ms + 0.2, 1, 1 + next * 1000);
    }
    wire.analyze().1
}

#[test]
fn a_sender_that_changes_how_it_numbers_is_not_taken_for_one_that_counts() {
    for then in [Then::Zero, Then::Random, Then::Higher(30_000), Then::Higher(50_000), Then::Higher(1)] {
        for change in [100, 600, 1400] {
            let events = captured_at_receiver(change, then);
            let upstream = events.iter().filter(|event| event.side == PathPart::Upstream);
            let (mut late, mut lost) = (0, 0);
            for event in upstream {
                let i = event.offset / 1000;
                match event.verdict {
                    Verdict::Reordered { .. } => late += 1,
                    Verdict::Lost => lost += 1,
                    _ => continue,
                }
                let expected = if matches!(event.verdict, Verdict::Lost) { 40 } else { 10 };
                assert_eq!(i % 50, expected, "{then:?} from {change}: {event:?}");
            }
            // Late packets come within a round trip.
            assert_eq!(late, 40, "{then:?} from {change}");
            // Of the 38 that were repaired, those that were sent before the change and repaired after it are not known.
            let least = if matches!(then, Then::Higher(_)) { 35 } else { change.saturating_sub(100) / 50 };
            assert!((least..=38).contains(&lost), "{then:?} from {change}: {lost}");
        }
    }
}

/// Requests that are answered; then one is sent five times. `missing`: packets of the server that were never captured before its answer.
fn retried(missing: u16) -> (u64, Option<u64>) {
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    for i in 0..6_u32 {
        let ms = 1000.0 * f64::from(i + 1);
        wire.data(ms, 0, 1 + i * 20, 20);
        wire.ack(ms + 51.0, 1, 1 + (i + 1) * 20);
    }
    for ms in [10_000.0, 10_207.0, 10_815.0, 12_016.0, 13_217.0] {
        wire.data(ms, 0, 121, 26);
    }
    wire.count_on(1, missing + 1);
    wire.ack(14_100.0, 1, 147);
    let direction = wire.direction(0);
    (direction.verdicts.lost, direction.verdicts.reasons.get(&UnknownReason::AcksMissing).copied())
}

#[test]
fn lost_acknowledgments_may_have_answered_an_earlier_transmission() {
    assert_eq!(retried(0), (4, None));
    assert_eq!(retried(4), (0, Some(1)));
}

#[test]
fn sack_blocks_with_the_numbers_of_the_other_side_of_a_firewall() {
    let shift = 3_338_000_000_u32;
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    let mut at = 1;
    for (n, tail) in [(0_u32, 31_u16), (1, 700)] {
        let ms = 100.0 + 5000.0 * f64::from(n);
        wire.data(ms, 0, at, 1420);
        wire.data(ms + 0.1, 0, at + 1420, 1420);
        wire.data(ms + 0.2, 0, at + 2840, tail);
        let end = at + 2840 + u32::from(tail);
        wire.data(ms + 80.0, 0, end - 1420, 1420);
        wire.ack(ms + 90.0, 1, end);
        let sack = &[(end - 1420, end)].map(|(left, right)| (left.wrapping_add(shift), right.wrapping_add(shift)));
        wire.pass(ms + 130.0, 1, Passing { flags: ACK, seq: 1, ack: end, sack, ..Passing::default() });
        at = end;
    }
    let verdicts = &wire.direction(0).verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious, verdicts.cannot_tell), (0, 2, 0), "{verdicts:?}");
    // Blocks of unknown numbers say nothing.
    let mut wire = Wire::opened(NO_TIMESTAMPS);
    wire.data(100.0, 0, 1, 1000);
    wire.data(350.0, 0, 1, 1000);
    let sack = &[(shift, shift + 900)];
    wire.pass(400.0, 1, Passing { flags: ACK, seq: 1, ack: 1001, sack, ..Passing::default() });
    let (_, events) = wire.analyze();
    let unknown = Verdict::Unknown(UnknownReason::Truncated);
    assert!(events.iter().any(|event| event.verdict == unknown), "{events:?}");
}

#[test]
fn data_that_a_filter_left_out_makes_nothing_wait() {
    // Requests and answers of 100 bytes, of which every third is in the file.
    let mut wire = Wire::opened(Headers { near: 1, ..NO_TIMESTAMPS });
    for i in (0..30_u32).step_by(3) {
        let (ms, at) = (100.0 + 1000.0 * f64::from(i), 1 + i * 100);
        wire.pass(ms, 0, Passing { flags: ACK, seq: at, ack: at, len: 100, ..Passing::default() });
        wire.pass(ms + 3.0, 1, Passing { flags: ACK, seq: at, ack: at + 100, len: 100, ..Passing::default() });
    }
    let (analysis, _) = wire.analyze();
    assert_eq!(analysis.warnings.len(), 1, "{:?}", analysis.warnings);
    for direction in &analysis.directions {
        // Only until the answer to the next request.
        assert!(direction.waited_s < 0.03, "{}: {}", direction.from, direction.waited_s);
        assert_eq!((direction.verdicts.lost, direction.verdicts.reordered), (0, 0));
        assert!(direction.advice[0].to_string().contains("display filter"), "{:?}", direction.advice);
    }
}
