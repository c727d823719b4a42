//! Any network, any options, any variant: the receiver reads exactly the octets that were written, or the connection ends
//! with an error.
//!
//! Two engines exchange real packets over a network that loses, delays, reorders, duplicates and damages them at random.
//! After every event the packet algebra must hold, no window may vanish, and a timer must run while data is outstanding.
//! `PROPTEST_CASES` sets the number of cases for each variant; 1,500 by default, so more than 10,000 in all.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config as Runner, FileFailurePersistence, TestRunner};
use reknit_path::{Stream as Random, StreamId};
use reknit_tcp::config::{DecreaseOf, KeepAlive, MaxWindowCaps, Resend, RttSamples};
use reknit_tcp::{CloseReason, Config, Identity, Output, SeqNum, State, Stream};
use reknit_units::{Bytes, Capacity, Duration, Instant, Segments};
use reknit_variants::Variant;
use reknit_wire::{Decoded, Endpoints, encode};

/// Seeds of cases that have failed once; they are tried first.
const KNOWN_CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model.regressions");

/// What the network does to each packet.
#[derive(Clone, Copy, Debug)]
struct Network {
    loss: f64,
    duplication: f64,
    damage: f64,
    delay_ms: u64,
    jitter_ms: u64,
}

/// What one end's application does.
#[derive(Clone, Copy, Debug)]
struct Application {
    /// Octets that it sends.
    sends: usize,
    /// Octets per write.
    chunk: usize,
    /// It reads only every so many milliseconds; 0 at once.
    reads_every_ms: u64,
}

#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    isns: [u32; 2],
    network: Network,
    applications: [Application; 2],
    configs: [Config; 2],
    simultaneous: bool,
}

fn network() -> impl Strategy<Value = Network> {
    let share = prop_oneof![3 => Just(0.0), 3 => 0.0..0.05f64, 1 => 0.0..0.3f64];
    (share.clone(), share.clone(), share, 0..100u64, prop_oneof![Just(0), 0..20u64, 0..400u64]).prop_map(
        |(loss, duplication, damage, delay_ms, jitter_ms)| Network {
            loss,
            duplication: duplication.min(0.1),
            damage: damage.min(0.1),
            delay_ms,
            jitter_ms,
        },
    )
}

fn application() -> impl Strategy<Value = Application> {
    let size = prop_oneof![1 => Just(0usize), 2 => 1..2000usize, 3 => 1..60_000usize];
    (size, 1..20_000usize, prop_oneof![3 => Just(0), 1 => 1..500u64])
        .prop_map(|(sends, chunk, reads_every_ms)| Application { sends, chunk, reads_every_ms })
}

fn config() -> impl Strategy<Value = Config> {
    let sizes = (100..1460u16, 1..11u32, prop_oneof![1500..6000u64, 6000..200_000u64]);
    let flags = (any::<[bool; 6]>(), 1..3u32, 1..500u64);
    let limits = (prop::option::of(1..40u32), prop::option::of(1..8u32), any::<[bool; 4]>());
    let times = (prop_oneof![Just(1000u64), 50..1000u64], prop_oneof![Just(0u64), Just(10), Just(100)]);
    (sizes, flags, limits, times).prop_map(|(sizes, flags, limits, times)| {
        let ((mss, iw, buffer), ([nagle, sack, dsack, timestamps, ecn, bytes], every, delay)) = (sizes, flags);
        let ((max_window, max_burst, [per_ack, any_hole, cwnd, keep]), (min_rto, tick)) = (limits, times);
        Config {
            mss,
            initial_window: Segments(iw),
            max_window: max_window.map(Segments),
            max_window_caps: if cwnd { MaxWindowCaps::Cwnd } else { MaxWindowCaps::Flight },
            max_burst: max_burst.map(Segments),
            nagle,
            sack,
            dsack,
            timestamps,
            ecn,
            receive_buffer: Capacity::Bytes(Bytes(buffer)),
            ack_every: Segments(every),
            ack_delay: Duration::from_millis(delay),
            min_rto: Duration::from_millis(min_rto),
            rto_tick: Duration::from_millis(tick),
            rtt_samples: if per_ack { RttSamples::PerAck } else { RttSamples::PerRound },
            byte_counting: bytes,
            decrease_of: if cwnd { DecreaseOf::Cwnd } else { DecreaseOf::FlightSize },
            resend: if any_hole { Resend::AnyHole } else { Resend::Lost },
            keep_alive: keep.then_some(KeepAlive {
                idle: Duration::from_secs(5),
                interval: Duration::from_secs(5),
                probes: 20,
            }),
            ..Config::default()
        }
    })
}

fn case() -> impl Strategy<Value = Case> {
    let isn = prop_oneof![any::<u32>(), (0..100_000u32).prop_map(|back| u32::MAX - back)];
    (
        any::<u64>(),
        [isn.clone(), isn],
        network(),
        [application(), application()],
        [config(), config()],
        prop::bool::weighted(0.1),
    )
        .prop_map(|(seed, isns, network, applications, configs, simultaneous)| Case {
            seed,
            isns,
            network,
            applications,
            configs,
            simultaneous,
        })
}

/// One end at work.
struct End {
    stream: Stream,
    application: Application,
    written: usize,
    read: Vec<u8>,
    next_read: Instant,
}

/// Octet number `i` that end `end` sends.
fn octet(end: usize, i: usize) -> u8 {
    ((i * 7 + i / 251 + end * 101) % 256) as u8
}

impl End {
    /// Lets the application write, read and close.
    fn run_application(&mut self, end: usize, now: Instant) {
        let application = self.application;
        while self.written < application.sends {
            let until = (self.written + application.chunk).min(application.sends);
            let chunk: Vec<u8> = (self.written..until).map(|i| octet(end, i)).collect();
            let taken = self.stream.write(&chunk);
            self.written += taken;
            if taken < chunk.len() {
                break;
            }
        }
        let listens = self.stream.connection().state() == State::Listen; // closing now would end it
        if self.written == application.sends && !listens {
            self.stream.close();
        }
        if now >= self.next_read {
            let mut buffer = [0; 4096];
            loop {
                let n = self.stream.read(now, &mut buffer);
                if n == 0 {
                    break;
                }
                self.read.extend_from_slice(&buffer[..n]);
            }
            if application.reads_every_ms > 0 {
                self.next_read = now + Duration::from_millis(application.reads_every_ms);
            }
        }
    }

    fn is_reading_later(&self) -> bool {
        self.application.reads_every_ms > 0 && self.stream.connection().readable() > Bytes::ZERO
    }
}

struct Model {
    now: Instant,
    ends: [End; 2],
    endpoints: [Endpoints; 2],
    network: Network,
    random: Random,
    /// Packets on their way, by time and order: to which end, which octets.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    serial: u64,
}

impl Model {
    fn new(case: &Case, variant: &Variant) -> Model {
        let now = Instant::ZERO;
        let composition = (variant.compose)();
        let end = |i: usize| {
            let config = Arc::new(composition.configure(case.configs[i].clone()));
            let identity = Identity { isn: SeqNum(case.isns[i]), timestamp_offset: case.isns[1 - i] };
            let opens = i == 0 || case.simultaneous;
            let open = if opens { Stream::connect } else { Stream::listen };
            End {
                stream: open(now, &config, composition.build(), identity, Bytes(30_000)),
                application: case.applications[i],
                written: 0,
                read: Vec::new(),
                next_read: now,
            }
        };
        let endpoints = Endpoints { source: "10.0.0.1:1".parse().unwrap(), destination: "10.0.0.2:2".parse().unwrap() };
        Model {
            now,
            ends: [end(0), end(1)],
            endpoints: [endpoints, endpoints.reversed()],
            network: case.network,
            random: StreamId { seed: case.seed, stage: 0 }.stream(0),
            flying: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Everything that the end wants to send meets its fate.
    fn collect(&mut self, end: usize) {
        let mut payload = Vec::new();
        let mut packet = Vec::new();
        self.ends[end].run_application(end, self.now);
        while let Output::Send(segment) = self.ends[end].stream.poll(self.now, &mut payload) {
            assert_eq!(payload.len(), usize::from(segment.len), "payload of {segment:?}");
            encode(self.endpoints[end], &segment, &payload, &mut packet);
            payload.clear();
            self.send(1 - end, &packet);
        }
        self.ends[end].stream.connection().check().unwrap();
    }

    fn send(&mut self, to: usize, packet: &[u8]) {
        let network = self.network;
        let copies = 1 + usize::from(self.random.chance(network.duplication));
        for _ in 0..copies {
            let lost = self.random.chance(network.loss);
            let damaged = self.random.chance(network.damage);
            let jitter = Duration::from_millis(network.jitter_ms).mul_f64(self.random.uniform());
            let at = self.now + Duration::from_millis(network.delay_ms) + jitter;
            let mut packet = packet.to_vec();
            let which = (0..packet.len()).position(|_| self.random.chance(0.02)).unwrap_or(0);
            if damaged {
                packet[which] ^= 0x5a;
            }
            if !lost {
                self.serial += 1;
                self.flying.insert((at, self.serial), (to, packet));
            }
        }
    }

    /// The next moment at which something happens.
    fn next(&self) -> Option<Instant> {
        let arrival = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
        let timers = self.ends.iter().map(|end| end.stream.connection().deadline());
        let reads = self.ends.iter().filter(|end| end.is_reading_later()).map(|end| end.next_read);
        let next = timers.chain(reads).fold(arrival, Instant::min);
        next.is_set().then_some(next)
    }

    fn step(&mut self, next: Instant) {
        self.now = self.now.max(next);
        for end in &mut self.ends {
            end.stream.on_timer(self.now);
        }
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, packet) = entry.remove();
            if let Ok(decoded) = Decoded::read(&packet) {
                assert_eq!(decoded.endpoints, self.endpoints[1 - to], "damage went unnoticed");
                self.ends[to].stream.on_segment(self.now, &decoded.segment, decoded.payload);
                self.ends[to].stream.connection().check().unwrap();
            }
        }
        self.collect(0);
        self.collect(1);
    }

    fn is_over(&self) -> bool {
        self.ends.iter().all(|end| {
            let connection = end.stream.connection();
            matches!(connection.state(), State::Closed | State::TimeWait) && connection.readable() == Bytes::ZERO
        })
    }
}

/// Longest that a case may take in its own time.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// Plays a case; true if the streams arrived whole.
fn play(case: &Case, variant: &Variant) -> bool {
    let mut model = Model::new(case, variant);
    model.collect(0);
    model.collect(1);
    let mut steps = 0;
    while !model.is_over() {
        let Some(next) = model.next() else { break };
        assert!(next < Instant::ZERO + LIMIT, "not over after {LIMIT}: {:?}", model.states());
        model.step(next);
        steps += 1;
        assert!(steps < 2_000_000, "too many steps: {:?}", model.states());
    }
    let mut whole = true;
    for end in 0..2 {
        let got = &model.ends[end].read;
        let sender = &model.ends[1 - end];
        let expected = sender.application.sends;
        assert!(got.iter().enumerate().all(|(i, o)| *o == octet(1 - end, i)), "the stream is damaged");
        let failed = model
            .ends
            .iter()
            .any(|end| end.stream.connection().close_reason().is_some_and(|reason| reason != CloseReason::Finished));
        assert!(
            got.len() == expected || failed,
            "{} of {expected} octets, and no error: {:?}",
            got.len(),
            model.states()
        );
        whole &= got.len() == expected;
    }
    whole
}

impl Model {
    fn states(&self) -> Vec<String> {
        let describe = |end: &End| {
            let connection = end.stream.connection();
            format!("{:?} {:?} {:?}", connection.state(), connection.close_reason(), connection.info(self.now))
        };
        self.ends.iter().map(describe).collect()
    }
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(1500)
}

#[test]
fn the_stream_arrives_or_the_connection_ends_with_an_error() {
    let variants = reknit_variants::VARIANTS;
    assert!(cases() as usize * variants.len() >= 10_000 || std::env::var_os("PROPTEST_CASES").is_some());
    // Two threads share the variants: the cases of one variant are a run of their own.
    std::thread::scope(|scope| {
        for half in [0, 1] {
            scope.spawn(move || {
                for variant in variants.iter().skip(half).step_by(2) {
                    let mut runner = TestRunner::new(Runner {
                        cases: cases(),
                        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(KNOWN_CASES))),
                        ..Runner::default()
                    });
                    let whole = Cell::new(0);
                    let result = runner.run(&case(), |case| {
                        whole.set(whole.get() + u32::from(play(&case, variant)));
                        Ok(())
                    });
                    if let Err(error) = result {
                        panic!("{}: {error}", variant.name);
                    }
                    // An error is right only where the network lets next to nothing through.
                    assert!(whole.get() >= cases() / 100 * 97, "{}: {} whole", variant.name, whole.get());
                }
            });
        }
    });
}
