//! Properties that every variant must have, whatever it changes: those of a TCP, not of an algorithm.
//!
//! Each property is one test over all of `VARIANTS`; exempt variants are listed with the reason. Cases are drawn from a
//! fixed seed, and every failing variant is named with its smallest failing case. `CONFORMANCE_CASES` multiplies the
//! number of cases.

use proptest::prelude::*;
use proptest::test_runner::{Config as Runner, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use reknit_tcp::facts::Phase;
use reknit_tcp::segment::{Flags, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Config, Connection, Segment, SeqNum, State};
use reknit_testkit::network::{Case, Event, Model, Network, Origin, Polling, Watch, case};
use reknit_units::{Bytes, Capacity, Duration, Instant, Segments};
use reknit_variants::{ChangedEnd, Composition, VARIANTS, Variant};

/// A variant without a property, and the reason.
type Exempt = (&'static str, &'static str);

/// No limit.
const UNBOUNDED: Segments = Segments(u32::MAX);

/// The smallest and largest duplicate threshold, if not 3 and 64.
const THRESHOLDS: &[(&str, Segments, Segments, &str)] = &[
    ("reno-nt4", Segments(2), Segments(2), "the threshold that Laor and Gendel infer for Windows NT 4"),
    ("paxson-snd", Segments(2), Segments(2), "Paxson pairs a threshold of 2 with a wait of 20 ms"),
    ("paxson-rcv", Segments(2), Segments(2), "Paxson pairs a threshold of 2 with a wait of 20 ms"),
    ("ncr-careful", Segments(3), UNBOUNDED, "RFC 4653: two thirds of FlightSize, however large that is"),
    ("ncr-aggressive", Segments(3), UNBOUNDED, "RFC 4653: half of FlightSize, however large that is"),
    ("ancr-careful", Segments(3), UNBOUNDED, "at most that of `ncr-careful`"),
    ("ancr-aggressive", Segments(3), UNBOUNDED, "at most that of `ncr-aggressive`"),
    ("linux", Segments(3), Segments(300), "the kernel's tcp_max_reordering"),
    ("linux-3.18", Segments(3), Segments(127), "the kernel's TCP_MAX_REORDERING"),
    ("bbr1", Segments(3), Segments(300), "detects losses as Linux does"),
    ("bbr", Segments(3), Segments(300), "detects losses as Linux does"),
    ("ba-inc", Segments(3), UNBOUNDED, "Blanton and Allman only limit it to 0.9 cwnd"),
    ("ba-avg", Segments(3), UNBOUNDED, "Blanton and Allman only limit it to 0.9 cwnd"),
    ("ba-ewma", Segments(3), UNBOUNDED, "Blanton and Allman only limit it to 0.9 cwnd"),
];

/// Variants that do not observe the connection's burst limit.
const OTHER_BURSTS: &[Exempt] = &[
    ("bbr1", "its bursts are the quanta of its pacing"),
    ("bbr", "a quantum of its pacing is its burst"),
    ("reknit-bbr", "has the pacing of `bbr1`"),
];

/// Variants whose undo may raise the window above that before the last reduction.
const OTHER_UNDOS: &[Exempt] = &[
    ("reknit", "an undo also concerns reductions before the last"),
    ("reknit-reno", "an undo also concerns reductions before the last"),
];

/// Variants whose window also grows on the ACK that undoes a reduction.
const GROWING_UNDOS: &[Exempt] = &[
    ("linux", "in slow start by as much as is acknowledged, otherwise by less than a segment"),
    ("linux-3.18", "as `linux`"),
];

/// Variants whose undo does not set the window.
const NO_UNDOS: &[Exempt] = &[
    ("bbr1", "a model of the path sets the window"),
    ("bbr", "a model of the path sets the window"),
    ("reknit-bbr", "a model of the path sets the window"),
];

/// Variants whose timers expire at multiples of a tick, so that it matters when the clock begins.
const TICKS: &[Exempt] = &[
    ("linux", "has the ticks of the kernel's timers"),
    ("linux-3.18", "has the ticks of the kernel's timers"),
    ("bbr1", "has the timers and the ACKs of `linux`"),
    ("bbr", "has the timers and the ACKs of `linux`"),
];

/// Variants whose traffic without reordering and loss differs from that of `sack`.
const OTHER_TRAFFIC: &[Exempt] = &[
    ("rack", "probes the tail (RFC 8985 section 7) and grows by CUBIC with HyStart"),
    ("gvisor", "probes the tail, and has no limit on a burst"),
    ("gvisor+undo", "as `gvisor`"),
    ("bbr1", "paces, and sets its window by a model of the path"),
    ("bbr", "paces, and sets its window by a model of the path"),
    ("linux", "has quick ACKs, tail loss probes, CUBIC with HyStart, and no limit on a burst"),
    ("linux-3.18", "as `linux`"),
    ("pr", "has its own window that grows by segments, and no retransmission timeout"),
    ("reknit", "grows by CUBIC with HyStart, and sends segments in pairs"),
    ("reknit-reno", "sends segments in pairs"),
    ("reknit-bbr", "paces, and sets its window by a model of the path"),
];

/// Runs `property` for each of the variants on cases of `strategy`, and reports all that fail. The oracles are exempt:
/// in the network of these cases no sender is told what was lost.
fn for_variants<S: Strategy>(
    cases: u32,
    strategy: &S,
    variants: impl Fn(&Variant) -> bool,
    property: impl Fn(&S::Value, &Variant) -> Result<(), String>,
) {
    let factor = std::env::var("CONFORMANCE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut failures, mut last) = (Vec::new(), String::new());
    for variant in VARIANTS.iter().filter(|variant| !variant.is_simulated_only() && variants(variant)) {
        let config =
            Runner { cases: cases * factor, failure_persistence: None, max_shrink_iters: 2000, ..Runner::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let result = runner.run(strategy, |case| property(&case, variant).map_err(TestCaseError::fail));
        match result {
            Ok(()) => {}
            Err(TestError::Fail(what, case)) => {
                // Often several variants fail because of the same bug.
                let case = Some(format!("{case:?}")).filter(|case| *case != last);
                failures.push(format!("{}: {what}\n    {}", variant.name, case.as_deref().unwrap_or("the same case")));
                last = case.unwrap_or(last);
            }
            Err(TestError::Abort(why)) => failures.push(format!("{}: {why}", variant.name)),
        }
    }
    assert!(failures.is_empty(), "{} variants fail\n{}", failures.len(), failures.join("\n"));
}

fn is_exempt(list: &[Exempt], variant: &Variant) -> bool {
    list.iter().any(|(name, _)| *name == variant.name)
}

#[test]
fn every_exemption_names_a_variant() {
    let thresholds = THRESHOLDS.iter().map(|(name, _, _, reason)| (*name, *reason));
    for (name, reason) in thresholds.chain(OTHER_BURSTS.iter().chain(OTHER_TRAFFIC).copied()) {
        assert!(!reason.is_empty(), "{name}: why?");
        assert!(VARIANTS.iter().any(|variant| variant.name == name), "there is no variant {name}");
    }
}

/// What each end must satisfy after each event.
struct Bounds {
    thresholds: (Segments, Segments),
    bursts: [Option<Segments>; 2],
    time_waits: [Duration; 2],
    /// The number of bytes that each end must receive.
    receives: [usize; 2],
    keeps_alive: [bool; 2],
    undo_sets_window: bool,
    /// An undo restores at most the window before the last reduction; if false, at most the largest window so far.
    last_bounds_undo: bool,
    undo_grows: bool,
    largest_window: [Bytes; 2],
    before: Before,
    violation: Option<String>,
}

/// An end's variables before an event.
#[derive(Clone, Copy, Default)]
struct Before {
    established: bool,
    sent: u64,
    undos: u64,
    cuts: u64,
    phase: Phase,
    sack: bool,
    smss: Bytes,
    cwnd: Bytes,
    cwnd_before_cut: Option<Bytes>,
    flight_size: Bytes,
}

impl Before {
    fn of(now: Instant, connection: &Connection) -> Before {
        let (stats, info) = (connection.send_stats(), connection.info(now));
        Before {
            established: connection.state() >= State::Established,
            sent: stats.sent.new + stats.sent.limited_transmit,
            undos: stats.undos,
            cuts: stats.cuts.total(),
            phase: info.phase,
            sack: info.sack,
            smss: info.smss,
            cwnd: info.cwnd,
            cwnd_before_cut: info.cwnd_before_cut,
            flight_size: info.flight_size,
        }
    }
}

impl Bounds {
    fn new(case: &Case, variant: &Variant) -> Bounds {
        let own = THRESHOLDS.iter().find(|(name, ..)| *name == variant.name);
        let composition = (variant.compose)();
        Bounds {
            thresholds: own.map_or((Segments(3), Segments(64)), |(_, least, most, _)| (*least, *most)),
            bursts: [0, 1].map(|end: usize| {
                let limit = composition.configure(case.configs[end].clone()).max_burst;
                limit.filter(|_| !is_exempt(OTHER_BURSTS, variant))
            }),
            time_waits: [0, 1].map(|end: usize| case.configs[end].time_wait),
            receives: [1, 0].map(|peer: usize| case.applications[peer].sends),
            keeps_alive: [0, 1].map(|end: usize| case.configs[end].keep_alive.is_some()),
            undo_sets_window: !is_exempt(NO_UNDOS, variant),
            last_bounds_undo: !is_exempt(OTHER_UNDOS, variant),
            undo_grows: is_exempt(GROWING_UNDOS, variant),
            largest_window: [Bytes::ZERO; 2],
            before: Before::default(),
            violation: None,
        }
    }

    fn violated(&self, now: Instant, end: usize, event: Event, connection: &Connection) -> Option<String> {
        let (before, after) = (self.before, Before::of(now, connection));
        let dup_thresh = connection.info(now).dup_thresh;
        let (least, most) = self.thresholds;
        if dup_thresh < least || dup_thresh > most {
            return Some(format!("dupthresh is {dup_thresh}"));
        }
        // A write may cause a burst, and the initial window is not one.
        let is_input = event != Event::Poll && before.established;
        let burst = self.bursts[end].filter(|_| is_input).map_or(u64::MAX, |burst| u64::from(burst.0));
        if after.sent - before.sent > burst {
            return Some(format!("{} new segments for one {event:?}", after.sent - before.sent));
        }
        // If recovery continues, NewReno's inflation by the current duplicate is added.
        let inflates = !after.sack && after.phase == Phase::Recovery;
        let inflation = if inflates { after.smss } else { Bytes::ZERO };
        let reduced = if self.last_bounds_undo { before.cwnd_before_cut } else { Some(self.largest_window[end]) };
        let growth = if self.undo_grows { before.flight_size + before.smss } else { Bytes::ZERO };
        let restored = reduced.unwrap_or_default().max(before.cwnd) + inflation + growth;
        let is_undo = self.undo_sets_window && after.undos > before.undos && after.cuts == before.cuts;
        if is_undo && after.cwnd > restored {
            return Some(format!("an undo raised cwnd from {} to {}, above {restored}", before.cwnd, after.cwnd));
        }
        self.idle_timer(now, end, connection)
    }

    /// Once its FIN is acknowledged and the peer has no data, the only timer of an end is that of TIME-WAIT.
    fn idle_timer(&self, now: Instant, end: usize, connection: &Connection) -> Option<String> {
        let deadline = connection.deadline();
        let wrong = match connection.state() {
            State::FinWait2 => self.receives[end] == 0 && !self.keeps_alive[end] && deadline.is_set(),
            State::TimeWait => deadline > now + self.time_waits[end],
            State::Closed => deadline.is_set(),
            _ => false,
        };
        wrong.then(|| format!("in {:?} a timer is set for {deadline:?}", connection.state()))
    }
}

impl Watch for Bounds {
    fn before(&mut self, now: Instant, end: usize, _event: Event, connection: &Connection) {
        self.before = Before::of(now, connection);
        self.largest_window[end] = self.largest_window[end].max(self.before.cwnd);
    }

    fn after(&mut self, now: Instant, end: usize, event: Event, connection: &Connection) {
        if self.violation.is_none() {
            self.violation = self.violated(now, end, event, connection).map(|what| format!("at {now:?}: {what}"));
        }
    }
}

/// Stream integrity, packet accounting, cwnd of at least one segment, ssthresh of at least two, and a timer whenever
/// data is outstanding (the engine's own check); `dup_thresh` within its bounds, at most one burst per event, undos that
/// restore no more than the earlier window, and silence at the end.
#[test]
fn bounds_hold_on_any_path() {
    for_variants(
        100,
        &case(),
        |_| true,
        |case, variant| {
            let composition = (variant.compose)();
            let mut model = Model::new(case, [&composition; 2], Polling::Merged, Bounds::new(case, variant));
            let played = model.play();
            if let Some(violation) = model.watch.violation.take() {
                return Err(violation);
            }
            played?;
            model.verify()?;
            Ok(())
        },
    );
}

/// Segments that were sent, with relative numbers: the time and the end.
#[derive(Default)]
struct SegmentRecord {
    origin: Option<Origin>,
    sent: Vec<(Duration, usize, Segment)>,
}

impl SegmentRecord {
    fn since(origin: Origin) -> SegmentRecord {
        SegmentRecord { origin: Some(origin), sent: Vec::new() }
    }
}

impl Watch for SegmentRecord {
    fn sent(&mut self, now: Instant, end: usize, segment: &Segment) {
        if let Some(origin) = self.origin {
            let start = Instant::ZERO + Duration::from_millis(origin.start_ms);
            self.sent.push((now.since(start), end, relative(segment, end, origin)));
        }
    }
}

/// The segment with all numbers relative to zero.
fn relative(segment: &Segment, end: usize, origin: Origin) -> Segment {
    let back = |SeqNum(seq): SeqNum, of: usize| SeqNum(seq.wrapping_sub(origin.isns[of]));
    let clock =
        |val: u32, of: usize| val.wrapping_sub(origin.timestamp_offsets[of]).wrapping_sub(origin.start_ms as u32);
    let acks = segment.flags.has(Flags::ACK);
    let mut relative = *segment;
    if segment.flags.has(Flags::RST) {
        // It has the numbers of the segment that it answers.
        (relative.seq, relative.ack) = (SeqNum(0), SeqNum(0));
    } else {
        relative.seq = back(segment.seq, end);
        relative.ack = if acks { back(segment.ack, 1 - end) } else { segment.ack };
    }
    let mut blocks = SackBlocks::EMPTY;
    for SackBlock { left, right } in segment.options.sack.as_slice() {
        blocks.push(SackBlock { left: back(*left, 1 - end), right: back(*right, 1 - end) });
    }
    relative.options.sack = blocks;
    relative.options.timestamps = segment.options.timestamps.map(|Timestamps { val, ecr }| Timestamps {
        val: clock(val, end),
        ecr: if acks { clock(ecr, 1 - end) } else { ecr },
    });
    // An empty notice has a highest number below its lowest, wherever numbers begin.
    let dropped = relative.options.experiment.dropped.as_mut();
    if let Some(dropped) = dropped.filter(|dropped| !dropped.highest.before(dropped.lowest)) {
        (dropped.lowest, dropped.highest) = (back(dropped.lowest, end), back(dropped.highest, end));
    }
    relative
}

fn record(case: &Case, compositions: [&Composition; 2], polling: Polling) -> Result<SegmentRecord, String> {
    let mut model = Model::new(case, compositions, polling, SegmentRecord::since(case.origin));
    model.play()?;
    model.verify()?;
    Ok(std::mem::take(&mut model.watch))
}

/// Reports where two records differ.
fn compare(expected: &SegmentRecord, got: &SegmentRecord) -> Result<(), String> {
    let parts = expected.sent.iter().zip(&got.sent).position(|(expected, got)| expected != got);
    if let Some(i) = parts {
        return Err(format!("segment {i} of {}: {:?}\ninstead of {:?}", got.sent.len(), got.sent[i], expected.sent[i]));
    }
    if expected.sent.len() != got.sent.len() {
        return Err(format!("{} segments instead of {}", got.sent.len(), expected.sent.len()));
    }
    Ok(())
}

/// A network that only delays. Round trips are well below the minimum RTO, so that no timer runs that variants may set
/// differently.
fn in_order() -> impl Strategy<Value = Case> {
    let more = [1..8usize, 1..8usize];
    (case(), more, 1..50u64, 1..200u64).prop_map(|(case, more, delay_ms, ack_delay)| {
        let mut case = case;
        case.simultaneous = false; // if SYNs cross, one is a duplicate
        case.network = Network { loss: 0.0, duplication: 0.0, damage: 0.0, delay_ms, jitter_ms: 0, marking: 0.0 };
        for (application, more) in case.applications.iter_mut().zip(more) {
            application.sends *= more;
        }
        for config in &mut case.configs {
            config.min_rto = Config::default().min_rto;
            config.ack_delay = Duration::from_millis(ack_delay);
        }
        case
    })
}

/// How to compare the traffic of a composition with that of `sack`.
struct Baseline {
    /// `sack` with the same options on the wire.
    composition: Composition,
    /// Bytes of options that the variant reserves in each data segment, if both ends support them.
    stamps: u16,
}

impl Baseline {
    fn of(composition: &Composition, both_ends: bool) -> Baseline {
        let Composition { sack, timestamps, .. } = *composition;
        let base = Composition { sack, timestamps, ..Composition::default() };
        let plugins = composition.build();
        let stamped = plugins.receiver.header_support.iter().filter(|_| both_ends);
        let stamps: usize = stamped.map(|support| support.traits().features.data_len()).sum();
        Baseline { composition: base, stamps: stamps as u16 }
    }

    /// The case in which `sack` has as much space for data as the variant with its options has in `case`.
    fn adapt(&self, case: &Case) -> Case {
        let mut case = case.clone();
        for config in &mut case.configs {
            config.mss -= self.stamps;
        }
        case
    }

    /// The record without the effects of the options: the options themselves, the segment size in the SYN, and window
    /// updates, which depend on it.
    fn strip(&self, mut record: SegmentRecord) -> SegmentRecord {
        for (_, _, segment) in &mut record.sent {
            if self.stamps > 0 {
                segment.options.mss = None;
                segment.window = 0;
            }
            segment.options.experiment = reknit_tcp::experiment::ExperimentalOption::default();
        }
        record
    }
}

/// Traffic without reordering and loss is that of `sack`, segment by segment and at the same times, if the variant is
/// used at the ends in `changed`.
fn in_order_traffic_is_that_of_sack(case: &Case, variant: &Variant, changed: [bool; 2]) -> Result<(), String> {
    let composition = (variant.compose)();
    let baseline = Baseline::of(&composition, changed == [true; 2]);
    let mut case = case.clone();
    if baseline.stamps > 0 {
        // With a small window, the window updates decide what is sent, and they depend on the announced segment size.
        for config in &mut case.configs {
            config.receive_buffer = Capacity::Bytes(Bytes(1 << 20));
            config.mss = config.mss.max(200);
        }
    }
    let expected = record(&baseline.adapt(&case), [&baseline.composition; 2], Polling::Merged)?;
    let ends = changed.map(|changed| if changed { &composition } else { &baseline.composition });
    let got = record(&case, ends, Polling::Merged)?;
    compare(&baseline.strip(expected), &baseline.strip(got))
}

/// Without SACK every composition recovers like NewReno; the variants from before SACK are compared with `sack` without
/// it.
#[test]
fn senders_treat_traffic_in_order_like_sack() {
    for_variants(
        60,
        &in_order(),
        |variant| variant.side != ChangedEnd::Receiver && !is_exempt(OTHER_TRAFFIC, variant),
        |case, variant| in_order_traffic_is_that_of_sack(case, variant, [true, true]),
    );
}

/// Yang's design goal, required of all: the receiver's algorithm has no effect without reordering.
#[test]
fn receivers_acknowledge_traffic_in_order_like_the_standard_receiver() {
    for_variants(
        60,
        &in_order(),
        |variant| variant.side != ChangedEnd::Sender && !is_exempt(OTHER_TRAFFIC, variant),
        |case, variant| {
            for ends in [[true, false], [false, true], [true, true]] {
                in_order_traffic_is_that_of_sack(case, variant, ends)?;
            }
            Ok(())
        },
    );
}

/// The values at which sequence numbers, the clock and timestamps start must not matter.
#[test]
fn output_does_not_depend_on_where_numbers_begin() {
    let shift = (any::<[bool; 4]>(), [0..50_000u32, 0..50_000u32], [0..3000u32, 0..3000u32], 1..1u64 << 42);
    for_variants(
        40,
        &(case(), shift),
        |_| true,
        |(case, (which, isns, offsets, start_ms)), variant| {
            let composition = (variant.compose)();
            let mut shifted = case.clone();
            for end in 0..2 {
                // So that they wrap within the first segments, or within seconds.
                if which[0] {
                    shifted.origin.isns[end] = u32::MAX - isns[end];
                }
                if which[1] {
                    shifted.origin.timestamp_offsets[end] = u32::MAX - offsets[end];
                }
            }
            if (which[2] || which[3]) && !is_exempt(TICKS, variant) {
                shifted.origin.start_ms = *start_ms;
            }
            let expected = record(case, [&composition; 2], Polling::Merged)?;
            let got = record(&shifted, [&composition; 2], Polling::Merged)?;
            compare(&expected, &got).map_err(|parts| format!("{parts}\nshifted to {:?}", shifted.origin))
        },
    );
}

/// When and how often an end is polled changes neither what it sends nor when.
#[test]
fn output_does_not_depend_on_how_often_it_is_polled() {
    let strategy = case().prop_map(|mut case| {
        // Packets arrive later than they are sent, because a simultaneous answer could find more or less of an event
        // processed.
        case.network.delay_ms += 1;
        case
    });
    for_variants(
        40,
        &strategy,
        |_| true,
        |case, variant| {
            let composition = (variant.compose)();
            let expected = record(case, [&composition; 2], Polling::Merged)?;
            let got = record(case, [&composition; 2], Polling::Split)?;
            compare(&per_end(expected), &per_end(got))
        },
    );
}

/// The two ends are independent: only the order within each matters.
fn per_end(mut record: SegmentRecord) -> SegmentRecord {
    record.sent.sort_by_key(|(_, end, _)| *end);
    record
}
