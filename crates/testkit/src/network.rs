//! Two engines, their applications, and a network that loses, delays, reorders, duplicates and corrupts their packets
//! at random, for tests of all variants.

use std::sync::Arc;

use proptest::prelude::*;
use reknit_tcp::config::{DecreaseOf, KeepAlive, MaxWindowCaps, Retransmit, RttSamples};
use reknit_tcp::{CloseReason, Config, Connection, Identity, Output, Segment, SeqNum, State, Stream};
use reknit_units::{Bytes, Capacity, Duration, Instant, Segments};
use reknit_variants::Composition;
use reknit_wire::{Decoded, Endpoints, encode};

use crate::flight::Flight;

/// What the network does to each packet.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Share of packets lost.
    pub loss: f64,
    /// Share of packets that are duplicated.
    pub duplication: f64,
    /// Share of packets that arrive with a corrupted byte.
    pub damage: f64,
    /// One-way delay of every packet.
    pub delay_ms: u64,
    /// The largest additional delay.
    pub jitter_ms: u64,
    /// Share of ECN-capable packets that are marked.
    pub marking: f64,
}

/// The application of one end.
#[derive(Clone, Copy, Debug)]
pub struct Application {
    /// Bytes that it sends.
    pub sends: usize,
    /// Bytes per write.
    pub chunk: usize,
    /// The interval of its reads, in milliseconds; with 0 it reads at once.
    pub reads_every_ms: u64,
}

/// Starting values whose choice must not matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The clock at the beginning of the connection, in milliseconds.
    pub start_ms: u64,
    /// Initial sequence numbers.
    pub isns: [u32; 2],
    /// Added to each end's timestamp clock.
    pub timestamp_offsets: [u32; 2],
}

/// One connection over one network.
#[derive(Clone, Debug)]
pub struct Case {
    /// Seed of the network's random decisions.
    pub seed: u64,
    /// The starting values.
    pub origin: Origin,
    /// The network.
    pub network: Network,
    /// The application at each end.
    pub applications: [Application; 2],
    /// The options of each end.
    pub configs: [Config; 2],
    /// Both ends open actively.
    pub simultaneous: bool,
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
            marking: 0.0,
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
            min_mss: 64,
            fin_wait_2_timeout: Duration::MAX, // so that no timer hides that another one was forgotten
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
            retransmit: if any_hole { Retransmit::AnyHole } else { Retransmit::Lost },
            keep_alive: keep.then_some(KeepAlive {
                idle: Duration::from_secs(5),
                interval: Duration::from_secs(5),
                probes: 20,
            }),
            ..Config::default()
        }
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    let near_the_wrap = prop_oneof![any::<u32>(), (0..100_000u32).prop_map(|back| u32::MAX - back)];
    let pair = [near_the_wrap.clone(), near_the_wrap];
    (pair.clone(), pair).prop_map(|(isns, timestamp_offsets)| Origin { start_ms: 0, isns, timestamp_offsets })
}

/// A random connection over a random network.
pub fn case() -> impl Strategy<Value = Case> {
    let ends = ([application(), application()], [config(), config()]);
    (any::<u64>(), origin(), network(), ends, prop::bool::weighted(0.1)).prop_map(
        |(seed, origin, network, (applications, configs), simultaneous)| Case {
            seed,
            origin,
            network,
            applications,
            configs,
            simultaneous,
        },
    )
}

/// When the ends are polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Polling {
    /// After all simultaneous events.
    Merged,
    /// For one segment after every event, and for the rest after all simultaneous events; and also between events.
    Split,
}

/// An event at an end, for a watch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A timer fired.
    Timer,
    /// A segment arrived.
    Segment,
    /// The application has run, and everything to send was taken.
    Poll,
}

/// Observes a case.
pub trait Watch {
    /// `event` is about to happen to `end`.
    fn before(&mut self, _now: Instant, _end: usize, _event: Event, _connection: &Connection) {}
    /// It has happened.
    fn after(&mut self, _now: Instant, _end: usize, _event: Event, _connection: &Connection) {}
    /// `end` sends `segment`.
    fn sent(&mut self, _now: Instant, _end: usize, _segment: &Segment) {}
}

impl Watch for () {}

/// One end.
struct End {
    stream: Stream,
    application: Application,
    written: usize,
    read: Vec<u8>,
    next_read: Instant,
}

/// Byte number `i` that end `end` sends.
fn byte(end: usize, i: usize) -> u8 {
    ((i * 7 + i / 251 + end * 101) % 256) as u8
}

impl End {
    /// Lets the application write, read and close.
    fn run_application(&mut self, end: usize, now: Instant) {
        let application = self.application;
        while self.written < application.sends {
            let until = (self.written + application.chunk).min(application.sends);
            let chunk: Vec<u8> = (self.written..until).map(|i| byte(end, i)).collect();
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

/// The longest time that a case may take, in its own time.
const LIMIT: Duration = Duration::from_secs(4 * 3600);

/// A case that is being played.
pub struct Model<W = ()> {
    /// The observer.
    pub watch: W,
    now: Instant,
    start: Instant,
    ends: [End; 2],
    endpoints: [Endpoints; 2],
    polling: Polling,
    flight: Flight,
    payload: Vec<u8>,
    packet: Vec<u8>,
}

impl<W: Watch> Model<W> {
    /// Both ends before they open, each with its plug-ins.
    ///
    /// # Panics
    /// Never: the addresses are valid.
    pub fn new(case: &Case, compositions: [&Composition; 2], polling: Polling, watch: W) -> Model<W> {
        let origin = case.origin;
        let now = Instant::ZERO + Duration::from_millis(origin.start_ms);
        let end = |i: usize| {
            let composition = compositions[i];
            let config = Arc::new(
                composition.configure(Config { simultaneous_open: case.simultaneous, ..case.configs[i].clone() }),
            );
            let identity = Identity { isn: SeqNum(origin.isns[i]), timestamp_offset: origin.timestamp_offsets[i] };
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
            watch,
            now,
            start: now,
            ends: [end(0), end(1)],
            endpoints: [endpoints, endpoints.reversed()],
            polling,
            flight: Flight::new(case.network, case.seed),
            payload: Vec::new(),
            packet: Vec::new(),
        }
    }

    /// Plays the case to its end.
    ///
    /// # Errors
    /// Describes the problem: the case does not end, or an engine's own check failed.
    pub fn play(&mut self) -> Result<(), String> {
        self.collect(0)?;
        self.collect(1)?;
        let mut steps = 0;
        while !self.is_over() {
            let Some(next) = self.next() else { break };
            if next.since(self.start) >= LIMIT {
                return Err(format!("not over after {LIMIT}: {:?}", self.states()));
            }
            self.step(next)?;
            steps += 1;
            if steps == 2_000_000 {
                return Err(format!("too many steps: {:?}", self.states()));
            }
        }
        Ok(())
    }

    /// True if both streams arrived complete.
    ///
    /// # Errors
    /// If bytes are wrong, or bytes are missing although no end has failed.
    pub fn verify(&self) -> Result<bool, String> {
        let has_failed = |end: &End| end.stream.connection().close_reason().is_some_and(|r| r != CloseReason::Finished);
        let failed = self.ends.iter().any(has_failed);
        let mut whole = true;
        for end in 0..2 {
            let got = &self.ends[end].read;
            let expected = self.ends[1 - end].application.sends;
            if got.iter().enumerate().any(|(i, o)| *o != byte(1 - end, i)) {
                return Err("the stream is corrupted".to_owned());
            }
            if got.len() != expected && !failed {
                return Err(format!("{} of {expected} bytes, and no error: {:?}", got.len(), self.states()));
            }
            whole &= got.len() == expected;
        }
        Ok(whole)
    }

    /// The connection of `end`.
    pub fn connection(&self, end: usize) -> &Connection {
        self.ends[end].stream.connection()
    }

    /// Runs the application, then delivers or drops everything that the end wants to send.
    fn collect(&mut self, end: usize) -> Result<(), String> {
        self.watch.before(self.now, end, Event::Poll, self.ends[end].stream.connection());
        self.ends[end].run_application(end, self.now);
        while self.take_one(end)? {}
        self.watch.after(self.now, end, Event::Poll, self.ends[end].stream.connection());
        self.connection(end).check()
    }

    /// Takes one segment, if the end wants to send one.
    fn take_one(&mut self, end: usize) -> Result<bool, String> {
        let mut payload = std::mem::take(&mut self.payload);
        let mut packet = std::mem::take(&mut self.packet);
        payload.clear();
        let output = self.ends[end].stream.poll(self.now, &mut payload);
        let sends = if let Output::Send(mut segment) = output {
            if payload.len() != usize::from(segment.len) {
                return Err(format!("{} bytes of payload in {segment:?}", payload.len()));
            }
            self.watch.sent(self.now, end, &segment);
            self.flight.mark(end, &mut segment);
            encode(self.endpoints[end], &segment, &payload, &mut packet);
            self.flight.send(self.now, end, &packet);
            true
        } else {
            false
        };
        (self.payload, self.packet) = (payload, packet);
        Ok(sends)
    }

    /// The time of the next event.
    fn next(&self) -> Option<Instant> {
        let arrival = self.flight.next();
        let timers = self.ends.iter().map(|end| end.stream.connection().deadline());
        let reads = self.ends.iter().filter(|end| end.is_reading_later()).map(|end| end.next_read);
        let next = timers.chain(reads).fold(arrival, Instant::min);
        next.is_set().then_some(next)
    }

    fn step(&mut self, next: Instant) -> Result<(), String> {
        let next = next.max(self.now);
        if self.polling == Polling::Split {
            // Half-way to the next event nothing is due, and polling must not change anything.
            self.now = self.now + next.since(self.now) / 2;
            for end in 0..2 {
                self.ends[end].stream.on_timer(self.now);
                self.take_one(end)?;
            }
        }
        self.now = next;
        for end in 0..2 {
            self.happen(end, Event::Timer, Stream::on_timer)?;
        }
        while let Some((to, packet)) = self.flight.take(self.now) {
            if let Ok(decoded) = Decoded::read(&packet) {
                if decoded.endpoints != self.endpoints[1 - to] {
                    return Err("corruption was not detected".to_owned());
                }
                // A timer that is due fires first, as a separate event, so that the watch sees it.
                if self.connection(to).deadline() <= self.now {
                    self.happen(to, Event::Timer, Stream::on_timer)?;
                }
                self.happen(to, Event::Segment, |stream, now| {
                    stream.on_segment(now, &decoded.segment, decoded.payload);
                })?;
            }
        }
        self.collect(0)?;
        self.collect(1)
    }

    fn happen(&mut self, end: usize, event: Event, act: impl FnOnce(&mut Stream, Instant)) -> Result<(), String> {
        self.watch.before(self.now, end, event, self.ends[end].stream.connection());
        act(&mut self.ends[end].stream, self.now);
        self.watch.after(self.now, end, event, self.ends[end].stream.connection());
        self.connection(end).check()?;
        if self.polling == Polling::Split {
            self.take_one(end)?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.ends.iter().all(|end| {
            let connection = end.stream.connection();
            matches!(connection.state(), State::Closed | State::TimeWait) && connection.readable() == Bytes::ZERO
        })
    }

    fn states(&self) -> Vec<String> {
        let describe = |end: &End| {
            let connection = end.stream.connection();
            format!("{:?} {:?} {:?}", connection.state(), connection.close_reason(), connection.info(self.now))
        };
        self.ends.iter().map(describe).collect()
    }
}
