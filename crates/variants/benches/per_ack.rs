//! The cost of one ACK at the sender, by the number of segments in flight and of holes among them.
//!
//! It is measured in a steady state: every P-th segment is late, so that a fixed number of holes is open at any time.
//! The ACKs come from a real receiver; then the sender alone is measured with them. Each ACK reports one more segment,
//! whatever is in flight, so its cost should be the same everywhere.
//!
//! Prints a table of nanoseconds per ACK, the smallest of several rounds.

mod common;

use reknit_tcp::{Connection, Segment};
use reknit_units::{Duration, Instant, Segments};
use reknit_variants::algorithms::LimitedTransmit;
use reknit_variants::base::fixed_threshold;
use reknit_variants::{Composition, time::rack};
use std::collections::VecDeque;

/// One segment in this many is late.
const PERIOD: u64 = 50;
/// The time between two arrivals.
const SPACING: Duration = Duration::from_micros(10);
/// ACKs measured in each round.
const TIMED: usize = 20_000;
const ROUNDS: usize = 5;

/// A sender that never marks a segment lost in this experiment, with room for `flight` segments.
fn sender(name: &str, flight: u32) -> Connection {
    let mut variant = (reknit_variants::find(name).expect("a known variant").compose)();
    if name == "rack" {
        // A reordering window of a whole round trip.
        variant.loss_detector = rack::RackConfig { reo_wnd_divisor: 1, ..rack::RackConfig::default() }.into();
    }
    let composition = Composition {
        dup_thresh: fixed_threshold::FixedConfig { dup_thresh: Segments(u32::MAX / 2) }.into(),
        limited_transmit: LimitedTransmit::Off {},
        ..variant
    };
    common::sender(&composition, common::config(flight))
}

/// Nanoseconds per ACK with `flight` segments outstanding and about `holes` of them missing at the receiver.
fn measure(name: &str, flight: u32, holes: u64) -> f64 {
    let mut sender = sender(name, flight);
    let mut receiver = common::receiver(&Composition::default(), common::config(flight));
    let mut now = Instant::ZERO + Duration::from_millis(10);
    let first = common::open(&mut sender, &mut receiver, now);
    // All of the first flight was sent at once. It arrives a round trip of the later ones after that.
    now = now + SPACING * u64::from(flight);
    // Segments travel in a queue; one in each period waits until `holes` periods have passed.
    let mut queue: VecDeque<Segment> = first.into();
    let mut late: VecDeque<(u64, Segment)> = VecDeque::new();
    let mut arrivals = 0;
    let mut nanos = 0;
    let mut timed = 0;
    let in_order = u64::from(flight) * 2;
    let warm_up = in_order + holes * PERIOD * 2;
    while timed < TIMED {
        now = now + SPACING;
        let Some(segment) = queue.pop_front() else { break };
        arrivals += 1;
        let due = late.front().is_some_and(|(at, _)| *at <= arrivals);
        let arrived = if holes > 0 && arrivals > in_order && arrivals % PERIOD == 0 {
            late.push_back((arrivals + holes * PERIOD, segment));
            None
        } else {
            Some(segment)
        };
        let released = if due { late.pop_front().map(|(_, segment)| segment) } else { None };
        for segment in arrived.into_iter().chain(released) {
            receiver.on_segment(now, &segment);
            for ack in common::drain(&mut receiver, now) {
                let watch = common::watch();
                sender.on_segment(now, &ack);
                if arrivals > warm_up {
                    nanos += watch.elapsed().as_nanos();
                    timed += 1;
                }
                queue.extend(common::drain(&mut sender, now));
            }
        }
    }
    assert!(timed >= TIMED, "the flow dried up after {arrivals} arrivals");
    nanos as f64 / timed as f64
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let overhead = common::overhead();
    println!("Nanoseconds per ACK, one newly delivered segment each (the clock's {overhead:.0} ns taken off)\n");
    println!("| variant | in flight | no holes | 10 holes | 1,000 holes |\n|---|---|---|---|---|");
    for name in ["sack", "dsack-r", "rack"] {
        for flight in [10, 1_000, 100_000] {
            let cell = |holes: u64| {
                // The flight must hold every segment from the oldest hole to the newest.
                if holes * PERIOD * 2 > u64::from(flight) {
                    return "-".to_owned();
                }
                let rounds = (0..ROUNDS).map(|_| measure(name, flight, holes));
                format!("{:.0}", rounds.fold(f64::INFINITY, f64::min) - overhead)
            };
            println!("| {name} | {flight} | {} | {} | {} |", cell(0), cell(10), cell(1_000));
        }
    }
}
