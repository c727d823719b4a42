//! Packets that were captured more than once, and packets that passed the capture point but did not arrive.

use reknit_tcp::segment::{Flags, Options as SegmentOptions};
use reknit_tcp::{Segment, SeqNum};
use reknit_trace::{Analysis, Analyzer, CapturePoint, Frame, Options, UnknownReason};
use reknit_wire::{Endpoints, encode};

const LINKTYPE_RAW: u16 = 101;
const TTL: usize = 8;

/// A packet without timestamps, as it is captured.
#[derive(Clone)]
struct Captured {
    us: u64,
    interface: u32,
    bytes: Vec<u8>,
}

/// Packets of a client, end 0, and a server, end 1. Each has its own IP identification.
#[derive(Default)]
struct Wire {
    packets: Vec<Captured>,
}

impl Wire {
    fn pass(&mut self, us: u64, end: usize, flags: Flags, seq: u32, ack: u32, len: u16) {
        let ends = ["10.0.0.1:40000", "10.0.0.2:443"].map(|end| end.parse().unwrap());
        let options = SegmentOptions { sack_permitted: flags.has(Flags::SYN), ..SegmentOptions::default() };
        let segment = Segment { seq: SeqNum(seq), ack: SeqNum(ack), flags, len, options, ..Segment::default() };
        let mut bytes = Vec::new();
        encode(Endpoints { source: ends[end], destination: ends[1 - end] }, &segment, &vec![0; len.into()], &mut bytes);
        let id = 1 + self.packets.len() as u16;
        bytes[4..6].copy_from_slice(&id.to_be_bytes());
        self.packets.push(Captured { us, interface: 0, bytes });
    }

    /// A handshake over a round trip of 40 ms, captured at the client.
    fn open() -> Wire {
        let mut wire = Wire::default();
        wire.pass(0, 0, Flags::SYN, 0, 0, 0);
        wire.pass(40_000, 1, Flags::SYN | Flags::ACK, 500, 1, 0);
        wire.pass(40_100, 0, Flags::ACK, 1, 501, 0);
        wire
    }

    /// The client sends segment `number`.
    fn data(&mut self, us: u64, number: u32) {
        self.pass(us, 0, Flags::ACK, 1 + number * 1000, 501, 1000);
    }

    /// The server has all segments before `number`.
    fn ack(&mut self, us: u64, number: u32) {
        self.pass(us, 1, Flags::ACK, 501, 1 + number * 1000, 0);
    }

    /// Twenty segments, each acknowledged after a round trip; nothing happens to them.
    fn transfer() -> Wire {
        let mut wire = Wire::open();
        for number in 0..20 {
            let us = 50_000 + u64::from(number) * 50_000;
            wire.data(us, number);
            wire.ack(us + 40_000, number + 1);
        }
        wire
    }

    /// The packets that `is_copied` selects pass again, `later` and as `change` makes them.
    fn copied(self, later: u64, is_copied: impl Fn(usize) -> bool, change: impl Fn(&mut Captured)) -> Wire {
        let mut packets = self.packets.clone();
        for (_, original) in self.packets.iter().enumerate().filter(|(i, _)| is_copied(*i)) {
            let mut copy = original.clone();
            copy.us += later;
            change(&mut copy);
            packets.push(copy);
        }
        packets.sort_by_key(|packet| packet.us);
        Wire { packets }
    }

    fn analyze(&self, at: Option<CapturePoint>) -> Analysis {
        let mut analyzer = Analyzer::new(Options { at, ..Options::default() });
        for (number, Captured { us, interface, bytes }) in (1..).zip(&self.packets) {
            let (at, interface) = (Some(us * 1000), *interface);
            analyzer.on_frame(
                &Frame { number, at, interface, link: LINKTYPE_RAW, bytes, original_len: bytes.len() },
                &mut |_| {},
            );
        }
        analyzer.finish(&mut |_| {})
    }
}

/// The copies say nothing: the result is that of the capture without them, and a warning has their number.
#[track_caller]
fn says_nothing(wire: &Wire, left_out: &str) {
    let (once, twice) = (Wire::transfer().analyze(None), wire.analyze(None));
    assert_eq!(
        twice.warnings,
        [format!(
            "{left_out} packets are left out: copies, captured on another interface, by a mirror port or on the other side of a router"
        )]
    );
    let [direction] = &twice.directions[..] else { panic!("{twice:?}") };
    assert_eq!(direction.verdicts.all(), 0, "{direction:?}");
    assert_eq!(
        (direction.captured_at, direction.round_trip.clone()),
        (once.directions[0].captured_at, once.directions[0].round_trip.clone())
    );
}

#[test]
fn a_mirror_port_that_copies_both_ways_changes_nothing() {
    // The first two packets of each direction that come again may still be the network's.
    says_nothing(&Wire::transfer().copied(3, |_| true, |_| {}), "39");
}

#[test]
fn packets_before_and_behind_a_router_are_one() {
    says_nothing(&Wire::transfer().copied(200, |_| true, |copy| copy.bytes[TTL] -= 1), "39");
}

#[test]
fn a_burst_behind_a_router_may_come_before_its_copies() {
    // The copies of the last segments come when most packets have none yet.
    let mut wire = Wire::open();
    (0..10).for_each(|number| wire.data(50_000 + u64::from(number), number));
    wire.ack(90_000, 10);
    let wire = wire.copied(200, |_| true, |copy| copy.bytes[TTL] -= 1);
    let analysis = wire.analyze(Some(CapturePoint::Middle));
    assert_eq!(analysis.directions[0].verdicts.all(), 0, "{:?}", analysis.directions[0].verdicts);
    // A server with few packets: those of the client show that the capture has copies.
    let mut wire = Wire::open();
    wire.data(50_000, 0);
    wire.pass(90_000, 1, Flags::ACK, 501, 1001, 285);
    wire.pass(90_100, 0, Flags::ACK, 1001, 786, 0);
    let wire = wire.copied(50, |_| true, |copy| copy.bytes[TTL] -= 1);
    let analysis = wire.analyze(Some(CapturePoint::Middle));
    assert!(analysis.directions.iter().all(|direction| direction.verdicts.all() == 0), "{:?}", analysis.directions);
}

#[test]
fn one_direction_may_be_captured_twice() {
    let is_data = |i: usize| i != 1 && i % 2 == 1 || i == 0 || i == 2;
    says_nothing(&Wire::transfer().copied(7, is_data, |_| {}), "20");
}

#[test]
fn of_captures_at_both_ends_the_first_counts() {
    let wire = Wire::transfer();
    let elsewhere = |copy: &mut Captured| copy.interface = 1;
    says_nothing(&wire.copied(20_000, |_| true, elsewhere), "43");
}

#[test]
fn copies_of_some_packets_are_the_networks_and_no_retransmissions() {
    let wire = Wire::transfer().copied(3, |i| i % 5 == 3, |_| {});
    for (place, duplicated) in [(CapturePoint::Receiver, 4), (CapturePoint::Sender, 0)] {
        let analysis = wire.analyze(Some(place));
        let verdicts = &analysis.directions[0].verdicts;
        assert_eq!(
            (analysis.warnings.len(), verdicts.duplicated, verdicts.all()),
            (0, duplicated, duplicated),
            "{place:?}"
        );
    }
}

#[test]
fn data_that_passed_but_was_not_acknowledged_was_lost_behind_the_capture() {
    let mut wire = Wire::default();
    // At the receiver, which answers within 0.2 ms. It does not get segments 1 and 2, but 3 to 5.
    wire.pass(0, 0, Flags::SYN, 0, 0, 0);
    wire.pass(200, 1, Flags::SYN | Flags::ACK, 500, 1, 0);
    wire.pass(40_000, 0, Flags::ACK, 1, 501, 0);
    (0..6).for_each(|number| wire.data(50_000 + u64::from(number), number));
    (0..4).for_each(|number| wire.ack(58_000 + number, 1));
    wire.data(300_000, 1);
    wire.data(300_001, 2);
    wire.ack(300_200, 6);
    let analysis = wire.analyze(None);
    let direction = &analysis.directions[0];
    assert_eq!(direction.captured_at, CapturePoint::Receiver);
    let verdicts = &direction.verdicts;
    assert_eq!((verdicts.lost, verdicts.spurious, verdicts.cannot_tell), (1, 0, 1), "{verdicts:?}");
    assert_eq!(verdicts.reasons.get(&UnknownReason::NotAcknowledged), Some(&1));
    let advice: Vec<String> = direction.advice.iter().map(ToString::to_string).collect();
    assert!(advice[0].starts_with("packets that were captured near the receiver did not reach its TCP"), "{advice:?}");
}
