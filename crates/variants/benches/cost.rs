//! The cost of every variant: nanoseconds per ACK at the sender and per data segment at the receiver, with 50 and with
//! 10,000 segments in flight, 10 % of which are late by up to half a round trip.
//!
//! The variant runs at both ends. The window is fixed, so that a variant that often reduces it is measured with as many
//! segments in flight as one that never does; the congestion control is called nevertheless. Prints a page in
//! Markdown.

mod common;

use std::collections::BTreeMap;

use reknit_tcp::facts::{AckFacts, Context, LostSegment, RecoveryEvent, Window};
use reknit_tcp::seams::{CongestionControl, CongestionControlTraits, Pacing, Plugin, Reduction};
use reknit_tcp::{Config, Connection, Segment};
use reknit_units::{Bytes, Duration, Instant, Segments};
use reknit_variants::algorithm::SeamAlgorithm;
use reknit_variants::algorithms;
use reknit_variants::{Composition, VARIANTS, Variant};

const FLIGHTS: [u32; 2] = [50, 10_000];
/// The round-trip time.
const ROUND_TRIP: Duration = Duration::from_millis(50);
/// One segment in this many is late.
const LATE_ONE_IN: u64 = 10;
/// ACKs measured in each round, after as many that are not measured.
const TIMED: u64 = 20_000;
/// ACKs measured together.
const PIECE: u64 = 500;
const ROUNDS: usize = 7;

/// A congestion control whose windows are not used.
#[derive(Clone, Debug)]
struct Held {
    flight: Segments,
    inner: Box<dyn CongestionControl>,
}

impl CongestionControl for Held {
    fn traits(&self) -> CongestionControlTraits {
        self.inner.traits()
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        self.inner.on_ack(cx, ack);
        let window = self.flight.of(cx.snd.smss);
        Window { cwnd: window, ssthresh: window }
    }

    fn on_unused_window(&mut self, now: Instant) {
        self.inner.on_unused_window(now);
    }

    fn ssthresh(&mut self, cx: &Context<'_>, reduction: &Reduction) -> Bytes {
        self.inner.ssthresh(cx, reduction);
        self.flight.of(cx.snd.smss)
    }

    fn save(&mut self) {
        self.inner.save();
    }

    fn restore(&mut self, cx: &Context<'_>) {
        self.inner.restore(cx);
    }

    fn pacing(&self, cx: &Context<'_>) -> Option<Pacing> {
        std::hint::black_box(self.inner.pacing(cx));
        None
    }

    fn on_lost(&mut self, cx: &Context<'_>, lost: &LostSegment) {
        self.inner.on_lost(cx, lost);
    }

    fn on_restart(&mut self, cx: &Context<'_>) -> Option<Bytes> {
        self.inner.on_restart(cx);
        Some(self.flight.of(cx.snd.smss))
    }

    fn limits_itself(&self, cx: &Context<'_>) -> bool {
        self.inner.limits_itself(cx)
    }
}

impl Plugin for Held {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.inner.on_recovery_event(cx, event);
    }
}

/// A number of nanoseconds, and of events that took them.
#[derive(Clone, Copy, Default)]
struct Timed {
    nanos: u128,
    events: u64,
}

impl Timed {
    fn time<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let watch = common::watch();
        let result = act();
        self.nanos += watch.elapsed().as_nanos();
        self.events += 1;
        result
    }

    fn each(self) -> f64 {
        self.nanos as f64 / self.events as f64
    }
}

/// Segments in flight to the receiver, by time of arrival and order.
#[derive(Default)]
struct Way {
    flying: BTreeMap<(Instant, u64), Segment>,
    sent: u64,
}

impl Way {
    fn send(&mut self, now: Instant, segment: Segment) {
        self.sent += 1;
        // Multiplicative hashing: the same for every variant, without a pattern.
        let draw = self.sent.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let late = if draw.is_multiple_of(LATE_ONE_IN) {
            Duration::from_nanos((draw / LATE_ONE_IN).wrapping_mul(0x9e37_79b9) % (ROUND_TRIP.as_nanos() / 2))
        } else {
            Duration::ZERO
        };
        self.flying.insert((now + ROUND_TRIP + late, self.sent), segment);
    }
}

/// A sender and a receiver. ACKs arrive at once.
struct Flow {
    sender: Connection,
    receiver: Connection,
    way: Way,
    now: Instant,
    at_sender: Timed,
    at_receiver: Timed,
}

impl Flow {
    fn new(variant: &Variant, flight: u32) -> Flow {
        let composition = (variant.compose)();
        let inner = composition.congestion_control.clone();
        let held =
            move || -> Box<dyn CongestionControl> { Box::new(Held { flight: Segments(flight), inner: inner.build() }) };
        let congestion_control = algorithms::CongestionControl::unlisted("held", held);
        let composition = Composition { congestion_control, ..composition };
        let config = Config { timestamps: true, ..common::config(flight) };
        let mut flow = Flow {
            sender: common::sender(&composition, config.clone()),
            receiver: common::receiver(&composition, config),
            way: Way::default(),
            now: Instant::ZERO + ROUND_TRIP,
            at_sender: Timed::default(),
            at_receiver: Timed::default(),
        };
        // The first flight is spread evenly over the round trip.
        let first = common::open(&mut flow.sender, &mut flow.receiver, flow.now);
        for segment in first {
            flow.now = flow.now + ROUND_TRIP / u64::from(flight);
            flow.way.send(flow.now, segment);
        }
        flow
    }

    /// Handles the next event: a timer of either end, or an arrival.
    fn step(&mut self) {
        let arrival = self.way.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        let timer = self.sender.deadline().min(self.receiver.deadline());
        self.now = self.now.max(arrival.min(timer));
        let now = self.now;
        if self.sender.deadline() <= now {
            let before = self.at_sender.events;
            self.at_sender.time(|| self.sender.on_timer(now));
            self.at_sender.events = before; // it counts as a part of the ACKs that set it
        }
        if self.receiver.deadline() <= now {
            let before = self.at_receiver.events;
            self.at_receiver.time(|| self.receiver.on_timer(now));
            self.at_receiver.events = before;
        }
        if arrival <= now
            && let Some((_, segment)) = self.way.flying.pop_first()
        {
            self.at_receiver.time(|| self.receiver.on_segment(now, &segment));
        }
        for ack in common::drain(&mut self.receiver, now) {
            self.at_sender.time(|| self.sender.on_segment(now, &ack));
        }
        for segment in common::drain(&mut self.sender, now) {
            self.way.send(now, segment);
        }
    }

    fn run(&mut self, acks: u64) {
        (self.at_sender, self.at_receiver) = (Timed::default(), Timed::default());
        while self.at_sender.events < acks {
            self.step();
        }
    }
}

/// Nanoseconds per ACK and per data segment in each piece of a round, the smallest so far.
type Pieces = [Vec<f64>; 2];

/// Runs a round, which is the same each time: a piece that took longer than before was disturbed.
fn play(variant: &Variant, flight: u32, pieces: &mut Pieces) {
    let mut flow = Flow::new(variant, flight);
    flow.run(TIMED.max(2 * u64::from(flight)));
    for i in 0..(TIMED / PIECE) as usize {
        flow.run(PIECE);
        for (pieces, cost) in pieces.iter_mut().zip([flow.at_sender.each(), flow.at_receiver.each()]) {
            pieces[i] = pieces[i].min(cost);
        }
    }
}

/// The mean over the pieces, for each variant, flight and end. A round covers all variants, so that a change of the
/// machine's speed affects all of them.
fn costs() -> Vec<[[f64; 2]; 2]> {
    let none = vec![f64::INFINITY; (TIMED / PIECE) as usize];
    let ends: Pieces = [none.clone(), none];
    let mut all = vec![[ends.clone(), ends]; VARIANTS.len()];
    for _ in 0..ROUNDS {
        for (variant, flights) in VARIANTS.iter().zip(&mut all) {
            for (flight, pieces) in FLIGHTS.iter().zip(flights) {
                play(variant, *flight, pieces);
            }
        }
    }
    let mean = |pieces: Vec<f64>| pieces.iter().sum::<f64>() / pieces.len() as f64;
    all.into_iter().map(|flights| flights.map(|ends| ends.map(mean))).collect()
}

/// The processor, as named by the system.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    line.map_or_else(|| "an unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// A cost of more than this many times that of `sack` needs an explanation.
const BOUND: f64 = 3.0;

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let overhead = common::overhead();
    let all = costs();
    let base = VARIANTS.iter().position(|variant| variant.name == "sack").expect("the base is a variant");
    println!(
        "# Cost

Nanoseconds per ACK at the sender, and per data segment at the receiver; in brackets, relative to `sack`.
10 % of the segments are late by up to half a round trip, so with 10,000 segments in flight there are about 250 holes at any time.
The window is fixed at the number of segments in flight. The send buffer of
`linux`, `bbr1` and `bbr`, 4 MiB of memory, holds about 2,200 segments, so they never have 10,000 in flight.

Measured on {}: {TIMED} ACKs in batches of {PIECE}; the time of each batch is the fastest of {ROUNDS} rounds.
The variant runs at both ends. The times include its timers, but not the {overhead:.0} ns for reading the clock.
[The architecture](../../docs/design/architecture.md#design-decisions) states what pacing and rate samples cost, in instructions, when they are off.

| variant | sender, 50 in flight | sender, 10,000 | receiver, 50 | receiver, 10,000 |
|---|---|---|---|---|",
        processor()
    );
    let mut above = Vec::new();
    for (variant, costs) in VARIANTS.iter().zip(&all) {
        let mut cell = |end: usize, flight: usize| {
            let (cost, base) = (costs[flight][end] - overhead, all[base][flight][end] - overhead);
            if cost > base * BOUND {
                above.push(format!("`{}`", variant.name));
            }
            format!("{cost:.0} ({:.2})", cost / base)
        };
        println!("| `{}` | {} | {} | {} | {} |", variant.name, cell(0, 0), cell(0, 1), cell(1, 0), cell(1, 1));
    }
    above.dedup();
    let above = if above.is_empty() { "none".to_owned() } else { above.join(", ") };
    println!("\nAbove {BOUND:.0} times `sack`: {above}.");
}
