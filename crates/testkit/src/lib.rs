//! A sender under test and a receiver that the test controls.
//!
//! Segments are numbered 1, 2, 3, … as in the algorithms' worked examples; each has [`SMSS`] bytes. `arrive(n)` lets
//! segment `n` reach the receiver and returns the ACK that it would send; `deliver(ack)` passes that to the sender. In
//! between, a test may lose, delay or change the ACK.
pub mod bottleneck;
pub mod flight;
pub mod fragments;
pub mod gateway;
pub mod instructions;
pub mod machine;
pub mod mixed_composition;
pub mod network;
pub mod peer;

use std::collections::BTreeSet;
use std::sync::Arc;

use reknit_tcp::experiment::{ExperimentalOption, Features};
use reknit_tcp::seams::Plugins;
use reknit_tcp::segment::{Flags, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Config, Connection, Identity, Info, Output, Segment, SeqNum};
use reknit_units::{Bytes, Duration, Instant, Segments};
use reknit_variants::Composition;

/// What a sender with nothing to send sends.
pub const NOTHING: [u32; 0] = [];

/// Bytes of every segment.
pub const SMSS: u64 = 1460;
/// The peer's initial sequence number.
const PEER_ISN: u32 = 700;

/// Two initial sequence numbers: an ordinary one, and one from which the sequence numbers wrap within the first
/// segments.
pub const ISNS: [u32; 2] = [1000, (1u64 << 32).wrapping_sub(3 * SMSS) as u32];

/// Runs a worked example as a test, with both initial sequence numbers.
#[macro_export]
macro_rules! vector {
    ($(#[$doc:meta])* $name:ident, $body:expr) => {
        $(#[$doc])*
        mod $name {
            use super::*;

            #[test]
            fn plain() {
                let body: fn(u32) = $body;
                body($crate::ISNS[0]);
            }

            #[test]
            fn across_the_wrap() {
                let body: fn(u32) = $body;
                body($crate::ISNS[1]);
            }
        }
    };
}

/// An acknowledgment in segment numbers.
#[derive(Clone, Debug, Default)]
pub struct Ack {
    /// Everything up to this segment has arrived.
    pub cum: u32,
    /// Ranges of segments above it, both ends included, in the order of the option.
    pub blocks: Vec<(u32, u32)>,
    /// A duplicate, reported first.
    pub dsack: Option<u32>,
    /// The echoed timestamp, in milliseconds of the sender's clock.
    pub ecr: Option<u32>,
    /// How long ago the receiver sent it, in milliseconds.
    pub age_ms: u32,
    /// ECN echo.
    pub ece: bool,
    /// The experimental option.
    pub experiment: ExperimentalOption,
    /// True if the receive window is closed.
    pub closed: bool,
}

/// The sender under test, and what its receiver has received.
pub struct TestSender {
    /// The sender.
    pub connection: Connection,
    now: Instant,
    isn: u32,
    /// What the receiver has received in order.
    cum: u32,
    held: BTreeSet<u32>,
    recent: Vec<u32>,
    sack: bool,
    timestamps: bool,
    timestamp_offset: u32,
}

/// The options of the worked examples: no timestamps and no burst limit.
pub fn config(window: u32) -> Config {
    Config {
        initial_window: Segments(window),
        timestamps: false,
        max_burst: None,
        min_rto: Duration::from_secs(1),
        ..Config::default()
    }
}

/// The composition of the variant `name`.
///
/// # Panics
/// If there is no such variant.
pub fn variant(name: &str) -> Composition {
    (reknit_variants::find(name).unwrap().compose)()
}

impl TestSender {
    /// An established connection at time zero that has sent its first window; the handshake had an RTT of `rtt_ms`.
    pub fn new(isn: u32, composition: &Composition, config: Config, rtt_ms: u64) -> TestSender {
        let mut script = TestSender::idle(isn, composition.build(), composition.configure(config), rtt_ms);
        script.connection.write(Bytes(1 << 40));
        script
    }

    /// The same without data to send.
    ///
    /// # Panics
    /// If the handshake fails.
    pub fn idle(isn: u32, plugins: Plugins, config: Config, rtt_ms: u64) -> TestSender {
        let (sack, timestamps, ecn) = (config.sack, config.timestamps, config.ecn);
        // If the sequence numbers wrap, the timestamp clock wraps too: 150 ms after time zero.
        let timestamp_offset = if isn == ISNS[1] { 0u32.wrapping_sub(10_150) } else { 0 };
        let identity = Identity { isn: SeqNum(isn), timestamp_offset };
        let start = Instant::ZERO + Duration::from_secs(10);
        let connection = Connection::connect(start, Arc::new(config), plugins, identity);
        let mut script = TestSender {
            connection,
            now: start,
            isn,
            cum: 0,
            held: BTreeSet::new(),
            recent: Vec::new(),
            sack,
            timestamps,
            timestamp_offset,
        };
        let Output::Send(syn) = script.connection.poll(start) else { panic!("no SYN") };
        assert!(syn.flags.has(Flags::SYN));
        script.now = start + Duration::from_millis(rtt_ms);
        let mut answer = Segment {
            seq: SeqNum(PEER_ISN),
            ack: SeqNum(isn).plus(1),
            flags: Flags::SYN | Flags::ACK | if ecn { Flags::ECE } else { Flags::NONE },
            window: u16::MAX,
            ..Segment::default()
        };
        let features = syn.options.experiment.features.unwrap_or(Features::NONE);
        let options = if timestamps { 12 } else { 0 } + features.data_len();
        answer.options.mss = Some(SMSS as u16 + options as u16);
        answer.options.sack_permitted = sack;
        answer.options.experiment.features = syn.options.experiment.features;
        answer.options.window_scale = Some(14);
        answer.options.timestamps = syn.options.timestamps.map(|t| Timestamps { val: 1, ecr: t.val });
        script.connection.on_segment(script.now, &answer);
        script.connection.read(script.now, Bytes::ZERO);
        while let Output::Send(segment) = script.connection.poll(script.now) {
            assert_eq!(segment.len, 0);
        }
        // A first ACK conveys the scaled window; it has no other effect.
        script.deliver(&Ack::default());
        assert_eq!(script.sent(), NOTHING);
        script
    }

    /// Advances to this time, in milliseconds since time zero of the examples, which is the end of the handshake of a
    /// script without RTT.
    pub fn at(&mut self, ms: u64) -> &mut TestSender {
        self.at_us(ms * 1000)
    }

    /// The same in microseconds. Timers that expire in between fire.
    ///
    /// # Panics
    /// If the time is in the past.
    pub fn at_us(&mut self, us: u64) -> &mut TestSender {
        let target = Instant::ZERO + Duration::from_secs(10) + Duration::from_micros(us);
        assert!(target >= self.now, "time goes forward");
        while self.connection.deadline() <= target {
            self.now = self.now.max(self.connection.deadline());
            self.connection.on_timer(self.now);
        }
        self.now = target;
        self
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Advances to the sender's timer at `at`, which fires.
    pub fn on_timer(&mut self, at: Instant) {
        self.now = at;
        self.connection.on_timer(at);
    }

    /// Time zero of the examples.
    pub fn zero(&self) -> Instant {
        Instant::ZERO + Duration::from_secs(10)
    }

    /// The segments that the sender has sent since the last call.
    pub fn take(&mut self) -> Vec<Segment> {
        let mut taken = Vec::new();
        while let Output::Send(segment) = self.connection.poll(self.now) {
            taken.push(segment);
        }
        taken
    }

    /// The numbers of the segments that the sender has sent since the last call.
    ///
    /// # Panics
    /// If a segment does not begin at a multiple of [`SMSS`].
    pub fn sent(&mut self) -> Vec<u32> {
        self.sent_with_flags().into_iter().map(|(n, _)| n).collect()
    }

    /// The same with each segment's flags.
    ///
    /// # Panics
    /// If a segment does not begin at a multiple of [`SMSS`].
    pub fn sent_with_flags(&mut self) -> Vec<(u32, Flags)> {
        let mut sent = Vec::new();
        for segment in self.take().into_iter().filter(|segment| segment.len > 0) {
            let position = segment.seq.distance_from(SeqNum(self.isn).plus(1));
            assert_eq!(u64::from(position) % SMSS, 0, "{segment:?}");
            sent.push(((u64::from(position) / SMSS) as u32 + 1, segment.flags));
        }
        sent
    }

    /// The application writes `n` segments; returns what is sent at once.
    pub fn write(&mut self, n: u32) -> Vec<u32> {
        self.connection.write(Bytes(u64::from(n) * SMSS));
        self.sent()
    }

    /// Segment `n` reaches the receiver. Returns its ACK.
    pub fn arrive(&mut self, n: u32) -> Ack {
        let duplicate = n <= self.cum || !self.held.insert(n);
        while self.held.remove(&(self.cum + 1)) {
            self.cum += 1;
        }
        let block = |held: &BTreeSet<u32>, inside: u32| {
            let mut range = (inside, inside);
            while held.contains(&(range.0 - 1)) {
                range.0 -= 1;
            }
            while held.contains(&(range.1 + 1)) {
                range.1 += 1;
            }
            range
        };
        self.recent.retain(|r| self.held.contains(r) && *r != n);
        if self.held.contains(&n) {
            self.recent.insert(0, n);
        }
        let mut blocks = Vec::new();
        for inside in &self.recent {
            let range = block(&self.held, *inside);
            if !blocks.contains(&range) {
                blocks.push(range);
            }
        }
        Ack { cum: self.cum, blocks, dsack: duplicate.then_some(n), ..Ack::default() }
    }

    /// The sender receives `ack`.
    ///
    /// # Panics
    /// If the packet accounting is wrong afterwards.
    pub fn deliver(&mut self, ack: &Ack) {
        let wire = |n: u32| SeqNum(self.isn).plus(1).plus((u64::from(n) * SMSS) as u32);
        let mut segment = Segment {
            seq: SeqNum(PEER_ISN).plus(1),
            ack: wire(ack.cum),
            flags: if ack.ece { Flags::ACK | Flags::ECE } else { Flags::ACK },
            window: if ack.closed { 0 } else { u16::MAX >> 2 },
            ..Segment::default()
        };
        if self.sack {
            let mut option = SackBlocks::EMPTY;
            for (first, last) in ack.dsack.map(|n| (n, n)).into_iter().chain(ack.blocks.iter().copied()) {
                option.push(SackBlock { left: wire(first - 1), right: wire(last) });
            }
            segment.options.sack = option;
        }
        segment.options.experiment = ack.experiment;
        if self.timestamps {
            let ecr = ack.ecr.unwrap_or((self.now.as_nanos() / 1_000_000) as u32);
            let ecr = ecr.wrapping_add(self.timestamp_offset);
            segment.options.timestamps =
                Some(Timestamps { val: (self.now.as_nanos() / 1_000_000) as u32 - ack.age_ms, ecr });
        }
        self.connection.on_segment(self.now, &segment);
        self.connection.check().unwrap();
    }

    /// The peer sends its segment `n` of data. Returns what is sent in response.
    ///
    /// # Panics
    /// If the packet accounting is wrong afterwards.
    pub fn peer_sends(&mut self, n: u32, experiment: ExperimentalOption) -> Vec<Segment> {
        let mut segment = Segment {
            seq: SeqNum(PEER_ISN).plus(1).plus((n - 1) * SMSS as u32),
            ack: SeqNum(self.isn).plus(1).plus((u64::from(self.cum) * SMSS) as u32),
            flags: Flags::ACK,
            window: u16::MAX >> 2,
            len: SMSS as u16,
            ..Segment::default()
        };
        segment.options.experiment = experiment;
        if self.timestamps {
            let ecr = ((self.now.as_nanos() / 1_000_000) as u32).wrapping_add(self.timestamp_offset);
            segment.options.timestamps = Some(Timestamps { val: (self.now.as_nanos() / 1_000_000) as u32, ecr });
        }
        self.connection.on_segment(self.now, &segment);
        self.connection.check().unwrap();
        self.take()
    }

    /// `arrive` followed by `deliver`.
    pub fn pass(&mut self, n: u32) -> Vec<u32> {
        let ack = self.arrive(n);
        self.deliver(&ack);
        self.sent()
    }

    /// Passes several segments in this order.
    pub fn pass_all(&mut self, numbers: impl IntoIterator<Item = u32>) -> Vec<u32> {
        numbers.into_iter().flat_map(|n| self.pass(n)).collect()
    }

    /// The next segment arrives after the `behind` segments that follow it. If it was retransmitted in the meantime,
    /// its copy arrives next.
    pub fn pass_late(&mut self, behind: u32) -> Vec<u32> {
        let late = self.cum + 1;
        let mut sent = self.pass_all((late + 1..=late + behind).chain([late]));
        if sent.contains(&late) {
            sent.extend(self.pass(late));
        }
        sent
    }

    /// The next `n` segments arrive in order.
    pub fn pass_in_order(&mut self, n: u32) -> Vec<u32> {
        self.pass_all(self.cum + 1..=self.cum + n)
    }

    /// Everything in flight arrives and is acknowledged by a single ACK.
    pub fn pass_the_rest(&mut self) -> Vec<u32> {
        let last = self.cum + (self.info().flight_size.0 / SMSS) as u32;
        for n in self.cum + 1..last {
            self.arrive(n);
        }
        self.pass(last)
    }

    /// The sender's variables.
    pub fn info(&self) -> Info {
        self.connection.info(self.now)
    }

    /// cwnd in segments.
    pub fn cwnd(&self) -> f64 {
        self.info().cwnd.0 as f64 / SMSS as f64
    }

    /// ssthresh in segments; infinite before the first reduction.
    pub fn ssthresh(&self) -> f64 {
        self.info().ssthresh.map_or(f64::INFINITY, |bytes| bytes.0 as f64 / SMSS as f64)
    }

    /// Segments estimated to be in flight.
    pub fn pipe(&self) -> f64 {
        self.info().pipe.0 as f64 / SMSS as f64
    }

    /// The measured reordering lengths; each appears as often as it was measured.
    pub fn lengths(&self) -> Vec<usize> {
        let counts = &self.connection.send_stats().reordering;
        counts.iter().enumerate().flat_map(|(length, n)| std::iter::repeat_n(length, *n as usize)).collect()
    }
}
