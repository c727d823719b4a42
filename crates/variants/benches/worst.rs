//! The longest that single events take which a hostile peer can cause, with 64 MiB in flight in segments of 536 bytes
//! (`docs/reference/limits.md`).
//!
//! Prints a table of microseconds, the smallest of several rounds. An event that leaves work for others at the same time
//! counts as the longest of them. `records visited` in the tests measures the same
//! independently of the machine.

mod common;

use reknit_tcp::segment::{Flags, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Config, Connection, Segment, SeqNum};
use reknit_units::{Duration, Instant};
use reknit_variants::Composition;

const MSS: u16 = 536;
/// Segments in 64 MiB.
const FLIGHT: u32 = (64 << 20) / MSS as u32;
const ROUNDS: usize = 3;
const RTT: Duration = Duration::from_millis(10);

/// A name, and what measures one event in microseconds.
type Event = (&'static str, fn() -> f64);

/// The number of the first byte of segment `n`, from 0.
fn seq(n: u32) -> SeqNum {
    SeqNum(1 + n * u32::from(MSS))
}

/// An ACK of all segments before `cum`, with ranges of segments, ends excluded.
fn ack(cum: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut ack = Segment { seq: SeqNum(10), ack: seq(cum), window: u16::MAX, flags: Flags::ACK, ..Segment::default() };
    let mut sack = SackBlocks::EMPTY;
    for &(first, end) in blocks {
        sack.push(SackBlock { left: seq(first), right: seq(end) });
    }
    ack.options.sack = sack;
    ack
}

fn variant(name: &str) -> Composition {
    (reknit_variants::find(name).expect("a known variant").compose)()
}

struct Sender {
    connection: Connection,
    now: Instant,
    /// The timestamp of the first data, if there are timestamps.
    stamp: Option<u32>,
}

impl Sender {
    /// With the whole flight outstanding.
    fn new() -> Sender {
        Sender::of(&Composition::default(), false)
    }

    fn of(composition: &Composition, timestamps: bool) -> Sender {
        let config = Config { mss: MSS, timestamps, ..common::config(FLIGHT) };
        let mut connection = common::sender(composition, config.clone());
        let mut receiver = common::receiver(composition, config);
        let now = Instant::ZERO + RTT;
        let sent = common::open(&mut connection, &mut receiver, now);
        assert_eq!(sent.len(), FLIGHT as usize, "the whole flight is sent");
        let stamp = sent[0].options.timestamps.map(|timestamps| timestamps.val);
        Sender { connection, now: now + RTT, stamp }
    }

    /// Microseconds that `event` takes, or the longest of the events at the same time that finish its work.
    fn longest(&mut self, event: impl FnOnce(&mut Sender)) -> f64 {
        let timed = |sender: &mut Sender, event: &mut dyn FnMut(&mut Sender)| {
            let watch = common::watch();
            event(sender);
            let took = watch.elapsed();
            common::drain(&mut sender.connection, sender.now);
            took.as_nanos() as f64 / 1e3
        };
        let mut event = Some(event);
        let mut longest = timed(self, &mut |sender| event.take().into_iter().for_each(|event| event(sender)));
        while self.connection.deadline() <= self.now {
            longest = longest.max(timed(self, &mut |sender| sender.connection.on_timer(sender.now)));
        }
        longest
    }

    /// Every other segment is SACKed, and the others are retransmitted; then everything is SACKed, and nothing
    /// acknowledged.
    fn renege(&mut self) {
        for first in (1..FLIGHT / 16).map(|i| 16 * i) {
            let block = |i| (first - i, first - i + 1);
            self.on(&self.echo(RTT, ack(0, &[block(2), block(4), block(6), block(8)])));
            self.on(&self.echo(RTT, ack(0, &[block(10), block(12), block(14), block(16)])));
        }
        self.on(&self.echo(RTT, ack(0, &[(0, FLIGHT)])));
    }

    /// `ack` with the timestamp of what was sent `after` the first data.
    fn echo(&self, after: Duration, mut ack: Segment) -> Segment {
        ack.options.timestamps =
            self.stamp.map(|stamp| Timestamps { val: 1000, ecr: stamp + after.as_millis() as u32 });
        ack
    }

    /// Microseconds that `segment` takes.
    fn on(&mut self, segment: &Segment) -> f64 {
        self.longest(|sender| sender.connection.on_segment(sender.now, segment).map_or((), drop))
    }

    /// Microseconds that the next timer takes.
    fn timer(&mut self) -> f64 {
        self.now = self.now.max(self.connection.deadline());
        self.longest(|sender| sender.connection.on_timer(sender.now))
    }
}

fn ack_of_everything() -> f64 {
    Sender::new().on(&ack(FLIGHT, &[]))
}

fn sack_of_the_last() -> f64 {
    Sender::new().on(&ack(0, &[(FLIGHT - 1, FLIGHT)]))
}

fn sack_of_all_but_the_first() -> f64 {
    Sender::new().on(&ack(0, &[(1, FLIGHT)]))
}

fn claim_of_duplicates() -> f64 {
    let mut sender = Sender::new();
    let claim = ack(0, &[(1, FLIGHT), (1, FLIGHT)]);
    sender.on(&claim);
    sender.on(&claim)
}

/// Everything below the last three segments is lost.
fn sack_of_the_last_three() -> f64 {
    Sender::new().on(&ack(0, &[(FLIGHT - 3, FLIGHT)]))
}

fn timeout() -> f64 {
    Sender::new().timer()
}

fn timeout_after_reneging() -> f64 {
    let mut sender = Sender::new();
    sender.renege();
    sender.timer()
}

/// A timeout has marked everything lost; then an echoed timestamp shows that it was spurious.
fn undo_of_a_timeout(reneges: bool) -> f64 {
    let mut sender = Sender::of(&variant("eifel"), true);
    if reneges {
        sender.renege();
    }
    sender.timer();
    sender.now = sender.now + RTT;
    let took = sender.on(&sender.echo(Duration::ZERO, ack(1, &[])));
    assert_eq!(sender.connection.send_stats().undos, 1, "the timeout is undone");
    took
}

/// Everything below the last three segments is marked lost, and almost nothing retransmitted, when the timer expires.
fn timeout_during_recovery() -> f64 {
    let mut sender = Sender::of(&variant("frto"), false);
    sender.on(&ack(0, &[(FLIGHT - 3, FLIGHT)]));
    sender.timer()
}

/// One byte at every other position, in descending order: the mean of the last hundred of 200,000.
fn pieces() -> f64 {
    let mut receiver = common::receiver(&Composition::default(), common::config(1000));
    let syn = Segment { flags: Flags::SYN, window: u16::MAX, ..Segment::default() };
    let mut syn = Segment { seq: SeqNum(0), ..syn };
    syn.options.window_scale = Some(14);
    let now = Instant::ZERO + RTT;
    receiver.on_segment(now, &syn);
    common::drain(&mut receiver, now);
    let data = |n: u32| Segment {
        seq: SeqNum(1 + 2 * n),
        ack: SeqNum(10),
        len: u16::from(n > 0),
        flags: Flags::ACK,
        window: u16::MAX,
        ..Segment::default()
    };
    receiver.on_segment(now, &data(0));
    common::drain(&mut receiver, now);
    let mut nanos = 0;
    for n in (1..200_000).rev() {
        let watch = common::watch();
        receiver.on_segment(now, &data(n));
        if n <= 100 {
            nanos += watch.elapsed().as_nanos();
        }
        common::drain(&mut receiver, now);
    }
    nanos as f64 / 1e5 - common::overhead() / 1e3
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let events: [Event; 11] = [
        ("an ACK of everything", ack_of_everything),
        ("a first SACK of the last segment", sack_of_the_last),
        ("a first SACK of all but the first segment", sack_of_all_but_the_first),
        ("a SACK that shows everything below it to be lost", sack_of_the_last_three),
        ("a repeated claim that everything is a duplicate", claim_of_duplicates),
        ("a retransmission timeout", timeout),
        ("a retransmission timeout after reneging", timeout_after_reneging),
        ("an undo of a retransmission timeout", || undo_of_a_timeout(false)),
        ("the same after reneging", || undo_of_a_timeout(true)),
        ("a retransmission timeout of F-RTO, with everything marked lost", timeout_during_recovery),
        ("a piece of one byte, after 200,000 of them", pieces),
    ];
    println!("Microseconds, with {FLIGHT} segments in flight\n\n| event | µs |\n|---|---|");
    for (name, event) in events {
        let best = (0..ROUNDS).map(|_| event()).fold(f64::INFINITY, f64::min);
        println!("| {name} | {best:.1} |");
    }
}
