//! The time that the detector takes for an ACK of one packet: in order, and with every other packet late; and for an ACK with many
//! ranges, while as many retransmissions as it remembers are undecided.
//!
//! Prints nanoseconds per ACK, the smallest of several rounds.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::time::Instant;

use reknit_recovery::{Nanos, Recovery, Rtt};

/// Few, so that other programs do not interrupt every round.
const ACKS: u64 = 4_000;
const ROUNDS: usize = 300;

/// A number of a packet, and the lowest outstanding one when its ACK has been processed.
type Ack = (u64, u64);

/// The acknowledgments of packets of which every other one is overtaken by `late` others.
fn acks(late: u64) -> Vec<Ack> {
    let mut by_arrival = BTreeMap::new();
    for number in 0..ACKS {
        let arrival = if number % 2 == 1 { number + late } else { number };
        by_arrival.insert((arrival, number), number);
    }
    let mut missing: BTreeSet<u64> = (0..ACKS).collect();
    let acked = by_arrival.into_values().map(|number| {
        missing.remove(&number);
        (number, missing.first().copied().unwrap_or(ACKS))
    });
    acked.collect()
}

/// Nanoseconds per ACK, with all calls that a transport makes.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn round(acks: &[Ack]) -> f64 {
    let mut recovery = Recovery::new();
    let rtt = Rtt { smoothed: Nanos::from_millis(20), latest: Nanos::from_millis(20) };
    recovery.on_sent(ACKS + 1000);
    let start = Instant::now();
    for (i, &(number, lowest)) in acks.iter().enumerate() {
        let now = Nanos::from_micros(i as u64 * 100);
        recovery.on_acked_range(now, number, number);
        recovery.on_acked(now, number);
        recovery.on_rtt(rtt);
        if recovery.loss_time(lowest, now) <= now {
            recovery.on_lost(now, lowest);
        }
        black_box(recovery.decide(now));
    }
    start.elapsed().as_secs_f64() * 1e9 / acks.len() as f64
}

/// Nanoseconds per ACK of `ranges` ranges, none of which has anything new but the highest, with a full list of retransmissions.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn many_ranges(ranges: u64) -> f64 {
    let mut recovery = Recovery::new();
    let rtt = Rtt { smoothed: Nanos::from_millis(20), latest: Nanos::from_millis(20) };
    let below = 4 * ranges;
    recovery.on_sent(below + ACKS);
    recovery.on_acked(Nanos::ZERO, 0);
    for i in 0..12 {
        let now = Nanos::from_millis(20 + i);
        recovery.on_acked(now, below - 12 + i);
        recovery.on_rtt(rtt);
        recovery.on_lost(now, 40 * i + 2);
    }
    let start = Instant::now();
    for number in below..below + ACKS / 40 {
        let now = Nanos::from_micros(32_000 + number);
        for range in 0..ranges {
            recovery.on_acked_range(now, 4 * range, 4 * range + 1);
        }
        recovery.on_acked(now, number);
        recovery.on_rtt(rtt);
        black_box(recovery.loss_time(number, now));
        black_box(recovery.decide(now));
    }
    start.elapsed().as_secs_f64() * 1e9 / (ACKS / 40) as f64
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
fn main() {
    println!("{} bytes", size_of::<Recovery>());
    for (name, late) in [("in order", 0), ("every other packet 40 late", 40), ("every other packet 400 late", 400)] {
        let acks = acks(late);
        let best = (0..ROUNDS).map(|_| round(&acks)).fold(f64::INFINITY, f64::min);
        println!("{name}: {best:.0} ns per ACK");
    }
    for ranges in [1, 64, 256] {
        let best = (0..ROUNDS).map(|_| many_ranges(ranges)).fold(f64::INFINITY, f64::min);
        println!("{ranges} ranges, 12 undecided retransmissions: {best:.0} ns per ACK");
    }
}
