//! Compares every stage under both clocks: the packets of a simulation are sent again through the testbed's loop with a
//! recorded clock, and must arrive as they did in the simulation.

use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use reknit_path::stages::KIND_NAMES;
use reknit_path::{Direction, Phases, Pipe, Profile};
use reknit_sim::{Datagram, FlowSpec, Scenario, TraceEvent, Tracer, run_traced};
use reknit_tcp::Config;
use reknit_units::{Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};

use super::emulator::{Emulator, Endpoint, Side, Stopped};
use super::observer::Observer;
use crate::clock::TimeSource;
use crate::punctuality::Lateness;

const SEED: u64 = 11;
const END: Instant = Instant::from_nanos(4_000_000_000);

/// An example of each kind of stage that has an effect within seconds.
const EXAMPLES: &[(&str, &str)] = &[
    ("link", "rate = '3 Mbit/s'\ndelay = '7 ms'\nqueue = '20 packets'\nred = { min = 3, max = 15 }"),
    (
        "varying-link",
        "rate = '4 Mbit/s'\nslow_rate = '1 Mbit/s'\nfast_for = 'exponential(300 ms)'\nslow_for = 'exponential(100 ms)'",
    ),
    ("rate-trace", "at_ms = [1, 3, 3, 8, 12]\nqueue = '20 packets'"),
    ("loss", "probability = 0.02\npackets = [5, 9]"),
    ("gilbert", "to_bad = 0.01\nto_good = 0.4"),
    ("outage", "up = 'exponential(700 ms)'\ndown = 'exponential(80 ms)'"),
    ("mtu", "size = '1000 B'"),
    ("delay", "probability = 0.2\nextra = 'normal(20 ms, 8 ms)'"),
    ("stall", "probability = 0.02\nlength = 'exponential(30 ms)'"),
    ("corruption", "probability = 0.03"),
    ("duplicate", "probability = 0.05\nextra = 'uniform(0 ms, 9 ms)'"),
    (
        "multipath",
        "choice = 'per-flow'\npaths = [{ delay = '9 ms', rate = '2 Mbit/s' }, { delay = '2 ms', loss = 0.01 }]",
    ),
    ("stripe", "links = 4\nrate = '2 Mbit/s'\nload = 0.3\nskew = 'uniform(0 ms, 1 ms)'"),
    ("engines", "service = 'lognormal(3 ms, 1)'\nslow = 0.02\nslow_service = 'constant(20 ms)'"),
    ("slow-path", "lookup = '5 ms'\nservice = '1 ms'\neviction = 'exponential(100 ms)'"),
    ("lull", "interval = 'exponential(300 ms)'\npause = 'uniform(10 ms, 60 ms)'"),
    ("arq", "probability = 0.05\nretry = '15 ms'\nretries = 1"),
    ("wlan", "hops = 2"),
    ("manet", "hop = 'uniform(2 ms, 8 ms)'\nlife = 'exponential(500 ms)'\noutage = 'uniform(10 ms, 60 ms)'"),
    ("diffserv", "rate = '5 Mbit/s'\nprofile = '1 Mbit/s'\nload = 0.5"),
    ("displace", "positions = 3\nprobability = 0.05\nrelease = '8 ms'"),
    ("flutter", "interval = 'exponential(80 ms)'\ndelay = 'uniform(5 ms, 30 ms)'"),
    ("shield", "limit = '50 ms'"),
    (
        "netem",
        "rule = 'delay 9ms 3ms 20% distribution normal loss 1% corrupt 2% duplicate 2% reorder 20% 50% rate 6mbit'",
    ),
    ("recorded", "packets = ['3 ms', '1 ms', 'lost', '12 ms', '2 ms', '2 ms', '7 ms', '0 ms', '4 ms', '1 ms', '1 ms']"),
    (
        "script",
        "rules = [{ packet = [20, 29], action = 'drop' }, { packet = 50, action = 'delay', by = '30 ms' }, \
         { packet = 60, action = 'duplicate', by = '5 ms' }, { from = '900 ms', to = '1 s', action = 'hold' }]",
    ),
];

/// A link and delays that reorder, so that packets pause before the next stage; then `stages`, and another link. Both
/// directions are the same.
fn profile(stages: &[(&str, &str)]) -> Profile {
    let mut text = "description = 'test'\n".to_owned();
    let first =
        [("link", "rate = '8 Mbit/s'\ndelay = '4 ms'"), ("delay", "probability = 0.05\nextra = 'uniform(0 ms, 9 ms)'")];
    let last = ("link", "rate = '6 Mbit/s'\ndelay = '1 ms'");
    for direction in ["forward", "reverse"] {
        for (kind, keys) in first.iter().chain(stages).chain([&last]) {
            let _ = write!(text, "[[{direction}]]\nkind = '{kind}'\n{keys}\n");
        }
    }
    Profile::parse("test", &text).unwrap()
}

/// A packet that passed some point, and the time.
type Passed = (Instant, Vec<u8>);

fn bytes(datagram: &Datagram) -> Vec<u8> {
    let [source, destination] = datagram.addresses();
    let mut bytes = Vec::new();
    let payload = vec![0; usize::from(datagram.segment.len)];
    encode(Endpoints { source, destination }, &datagram.segment, &payload, &mut bytes);
    bytes
}

/// What each end of a simulation sent and received.
#[derive(Default)]
struct Record {
    sent: [Vec<Passed>; 2],
    got: [Vec<Passed>; 2],
}

impl Tracer for Record {
    fn on_packet(&mut self, now: Instant, event: TraceEvent, datagram: &Datagram) {
        let from = datagram.from as usize;
        match event {
            TraceEvent::Sent => self.sent[from].push((now, bytes(datagram))),
            TraceEvent::Delivered => self.got[1 - from].push((now, bytes(datagram))),
            TraceEvent::Lost => {}
        }
    }
}

/// Six transfers that begin one after the other.
fn simulate(profile: &Profile) -> Record {
    let variant = (reknit_variants::find("sack").unwrap().compose)();
    let duration = END.since(Instant::ZERO);
    let mut scenario = Scenario::bulk(Arc::new(profile.clone()), Config::default(), variant, duration, SEED);
    let flow = scenario.flows[0].clone();
    let start = |i| Instant::ZERO + Duration::from_millis(137) * i;
    scenario.flows = (0..6).map(|i| FlowSpec { start: start(i), ..flow.clone() }).collect();
    run_traced(&scenario, Record::default()).1
}

/// A recorded clock: it shows every time at which something was sent, and some others.
struct Recorded {
    sends: Vec<Instant>,
    now: Cell<Instant>,
    /// How late it wakes, for successive times.
    lateness: &'static [Duration],
    readings: RefCell<Vec<Instant>>,
}

impl TimeSource for Rc<Recorded> {
    fn now(&self) -> Instant {
        self.now.get()
    }

    fn wait(&self, until: Instant, _readable: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut readings = self.readings.borrow_mut();
        let send = self.sends[self.sends.partition_point(|at| *at <= self.now.get())..].first();
        let late = until + self.lateness[readings.len() % self.lateness.len()];
        let next = send.map_or(late, |send| late.min(*send));
        assert!(next > self.now.get(), "the loop spins at {next:?}");
        readings.push(next);
        self.now.set(next);
        Ok(())
    }
}

/// An end that sends recorded packets.
struct Replayed {
    sends: std::vec::IntoIter<Passed>,
    got: Vec<Passed>,
}

impl Endpoint for Replayed {
    fn take(&mut self, now: Instant, packet: &mut Vec<u8>) -> io::Result<bool> {
        if self.deadline() > now {
            return Ok(false);
        }
        let Some((at, bytes)) = self.sends.next() else { return Ok(false) };
        assert_eq!(at, now);
        *packet = bytes;
        Ok(true)
    }

    fn put(&mut self, now: Instant, bytes: &[u8], decoded: Option<&Decoded<'_>>) -> io::Result<()> {
        if decoded.is_some() {
            self.got.push((now, bytes.to_vec()));
        }
        Ok(())
    }

    fn put_icmp(&mut self, _now: Instant, _message: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn deadline(&self) -> Instant {
        self.sends.as_slice().first().map_or(Instant::NEVER, |(at, _)| *at)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_finished(&self) -> bool {
        false
    }

    fn has_failed(&self) -> bool {
        false
    }
}

/// Sends the recorded packets again, in what the testbed believes to be real time. Returns what each end received, and the
/// clock's readings.
fn replay(profile: &Profile, record: &Record, lateness: &'static [Duration]) -> ([Vec<Passed>; 2], Vec<Instant>) {
    let mut sends: Vec<Instant> = record.sent.iter().flatten().map(|(at, _)| *at).collect();
    sends.sort_unstable();
    let (now, readings) = (Cell::new(Instant::ZERO), RefCell::new(vec![Instant::ZERO]));
    let clock = Rc::new(Recorded { sends, now, lateness, readings });
    let side = |direction, sent: &Vec<Passed>| Side {
        end: Replayed { sends: sent.clone().into_iter(), got: Vec::new() },
        pipe: Pipe::new(profile, direction, SEED, Phases::Fixed),
        capture: None,
        observer: Observer::default(),
    };
    let sides = [side(Direction::Forward, &record.sent[0]), side(Direction::Reverse, &record.sent[1])];
    let mut emulator =
        Emulator { clock: clock.clone(), sides, cancel: &AtomicBool::new(false), lateness: Lateness::default() };
    assert_eq!(emulator.run(END).unwrap(), Stopped::TimeIsUp);
    let got = emulator.sides.map(|side| side.end.got);
    let readings = clock.readings.borrow().clone();
    (got, readings)
}

/// The recorded arrivals, at the times that a clock with these readings would show, until the end of the simulation.
fn shown(arrivals: &[Passed], readings: &[Instant]) -> Vec<Passed> {
    let shown = |(at, bytes): &Passed| Some((*readings.get(readings.partition_point(|r| r < at))?, bytes.clone()));
    arrivals.iter().filter_map(shown).filter(|(at, _)| *at <= END).collect()
}

const PUNCTUAL: &[Duration] = &[Duration::ZERO];
const LATE: &[Duration] =
    &[Duration::from_micros(60), Duration::from_millis(3), Duration::ZERO, Duration::from_millis(11)];

#[test]
fn every_kind_of_stage_has_an_example() {
    let examples: Vec<&str> = EXAMPLES.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(examples, KIND_NAMES, "add an example of the new kind of stage to EXAMPLES, in the order of the list");
}

#[test]
fn each_stage_does_the_same_under_both_clocks() {
    let plain = simulate(&profile(&[]));
    for example in EXAMPLES {
        let kind = example.0;
        let profile = profile(&[*example]);
        let record = simulate(&profile);
        assert!(record.got[1].len() > 200 && record.got[0].len() > 100, "{kind}: hardly anything arrived");
        // A shield leaves a flow alone until it has suffered for longer than this.
        assert!(record.got != plain.got || kind == "shield", "{kind}: the stage did nothing");
        for lateness in [PUNCTUAL, LATE] {
            let (got, readings) = replay(&profile, &record, lateness);
            for end in [0, 1] {
                let expected = shown(&record.got[end], &readings);
                let got: Vec<Passed> = got[end].iter().filter(|(at, _)| *at <= END).cloned().collect();
                let first = expected.iter().zip(&got).position(|(expected, got)| expected != got);
                assert_eq!(first, None, "{kind}, end {end}, lateness {lateness:?}: the first arrival that differs");
                assert_eq!(expected.len(), got.len(), "{kind}, end {end}, lateness {lateness:?}: arrivals");
                if lateness == PUNCTUAL {
                    assert_eq!(expected, record.got[end], "{kind}: a punctual clock missed a departure");
                }
            }
        }
    }
}
