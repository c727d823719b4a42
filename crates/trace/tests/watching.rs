//! Running traffic: the verdicts of an analysis, and memory that stays bounded.

use reknit_tcp::segment::{Flags, Options as SegmentOptions, Timestamps};
use reknit_tcp::{Segment, SeqNum};
use reknit_trace::{CapturePoint, Frame, MAX_FLOWS, Totals, Watcher};
use reknit_units::Instant;
use reknit_wire::{Endpoints, encode};

const LINKTYPE_RAW: u16 = 101;

/// Feeds segments to a watcher.
struct Wire {
    watcher: Watcher,
    number: u64,
    packet: Vec<u8>,
}

impl Wire {
    fn new() -> Wire {
        Wire { watcher: Watcher::new(Some(CapturePoint::Receiver)), number: 0, packet: Vec::new() }
    }

    /// A segment from `end` of the connection of a client's port. `stamp` orders the packets of the sender.
    fn pass(&mut self, port: u16, ms: u64, end: usize, segment: &Segment, stamp: u32) {
        let ends = [format!("10.0.0.1:{port}"), "10.0.0.2:443".to_owned()].map(|end| end.parse().unwrap());
        let timestamps = Some(Timestamps { val: stamp, ecr: 0 });
        let segment = Segment { options: SegmentOptions { timestamps, ..SegmentOptions::default() }, ..*segment };
        let endpoints = Endpoints { source: ends[end], destination: ends[1 - end] };
        encode(endpoints, &segment, &vec![0; segment.len.into()], &mut self.packet);
        self.number += 1;
        self.watcher.on_frame(&Frame {
            number: self.number,
            at: Some(ms * 1_000_000),
            interface: 0,
            link: LINKTYPE_RAW,
            bytes: &self.packet,
            original_len: self.packet.len(),
        });
    }

    fn data(&mut self, port: u16, ms: u64, number: u32, stamp: u32) {
        let seq = SeqNum(1 + number * 1000);
        let segment = Segment { seq, ack: SeqNum(501), flags: Flags::ACK, len: 1000, ..Segment::default() };
        self.pass(port, ms, 0, &segment, stamp);
    }

    fn ack(&mut self, port: u16, ms: u64, number: u32) {
        let ack = SeqNum(1 + number * 1000);
        let segment = Segment { seq: SeqNum(501), ack, flags: Flags::ACK, ..Segment::default() };
        self.pass(port, ms, 1, &segment, 5000 + ms as u32);
    }
}

fn verdicts(totals: &Totals) -> [u64; 5] {
    [totals.lost, totals.reordered, totals.duplicated, totals.spurious, totals.cannot_tell]
}

#[test]
fn late_packets_are_told_at_once_and_losses_when_they_are_certain() {
    let mut wire = Wire::new();
    // Packet 1 is late by two, and packet 4 was lost: its replacement was sent after packet 6.
    for (ms, number, stamp) in [(0, 0, 100), (1, 2, 102), (2, 3, 103), (3, 1, 101), (4, 5, 105), (5, 6, 106)] {
        wire.data(7, ms, number, stamp);
        wire.ack(7, ms, [1, 1, 1, 4, 4, 4][ms as usize]);
    }
    assert_eq!(verdicts(&wire.watcher.totals()), [0, 1, 0, 0, 0]);
    wire.data(7, 60, 4, 160);
    wire.ack(7, 60, 7);
    assert_eq!(verdicts(&wire.watcher.totals()), [0, 1, 0, 0, 0], "the original may still come");
    // No further packet comes, only time passes.
    wire.watcher.on_tick(Instant::from_nanos(10_000_000_000));
    assert_eq!(verdicts(&wire.watcher.totals()), [1, 1, 0, 0, 0]);
    let worst = wire.watcher.worst(10);
    assert_eq!((worst.len(), worst[0].verdicts.lost, worst[0].reordering.extent_max), (1, 1, Some(2)));
    assert_eq!(worst[0].from, "10.0.0.1:7");
    // An idle connection is over in the end, and its counts remain.
    wire.watcher.on_tick(Instant::from_nanos(1_000_000_000_000));
    assert!(wire.watcher.is_empty() && wire.watcher.worst(10).is_empty());
    assert_eq!(verdicts(&wire.watcher.totals()), [1, 1, 0, 0, 0]);
    assert_eq!(wire.watcher.totals().forgotten, 0);
}

#[test]
fn the_connections_that_have_been_idle_longest_are_forgotten() {
    let mut wire = Wire::new();
    wire.data(1, 0, 0, 100);
    for i in 0..2 * MAX_FLOWS as u64 {
        wire.data(1000 + i as u16, i, 0, 100);
        wire.data(1, i, 1 + i as u32, 101 + i as u32); // is never idle
        assert!(wire.watcher.len() <= MAX_FLOWS);
    }
    let totals = wire.watcher.totals();
    assert_eq!(totals.flows, 1 + 2 * MAX_FLOWS as u64, "the busy connection was forgotten");
    assert_eq!(totals.forgotten, totals.flows - wire.watcher.len() as u64);
}

#[test]
fn the_end_decides_what_no_later_packet_will_decide() {
    let mut wire = Wire::new();
    // Packet 1 was lost and repaired just before the end.
    for (ms, number, stamp) in [(0, 0, 100), (1, 2, 102), (2, 3, 103), (60, 1, 160)] {
        wire.data(7, ms, number, stamp);
        wire.ack(7, ms, if ms == 60 { 4 } else { 1 });
    }
    assert_eq!(verdicts(&wire.watcher.totals()), [0; 5], "the original may still come");
    wire.watcher.finish();
    assert_eq!(verdicts(&wire.watcher.totals()), [1, 0, 0, 0, 0]);
    let worst = wire.watcher.worst(10);
    assert_eq!((&*worst[0].from, worst[0].verdicts.lost, worst[0].loss_runs.runs), ("10.0.0.1:7", 1, 1));
    assert_eq!((wire.watcher.len(), wire.watcher.is_empty()), (1, false));
}

#[test]
fn a_wait_counts_while_it_lasts() {
    let mut wire = Wire::new();
    // Every other packet is late, and the next one is missing before it comes.
    for (ms, number) in [(0, 0), (10, 2), (20, 1), (20, 4), (30, 3), (30, 6)].into_iter().chain([(100, 8)]) {
        wire.data(7, ms, number, 100 + number);
        wire.ack(7, ms, number.saturating_sub(1));
    }
    let worst = wire.watcher.worst(10);
    assert!((worst[0].waited_s - 0.08).abs() < 1e-9, "from 10 to 20 ms, and from 30 to 100 ms");
}
