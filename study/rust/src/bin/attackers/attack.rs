//! An attacker who sends packets of one kind, as many as [`RATE`] says, and replies of the server to which it must answer.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Options, SackBlock, SackBlocks, Segment};
use reknit_wire::Decoded;

use crate::honest::Open;
use crate::packets::{Wire, client, data, segment, too_big};
use crate::server::request;

/// Packets per second.
const RATE: f64 = 20_000.0;
const TICK: Duration = Duration::from_millis(1);
/// The attacker's initial sequence number.
const ISN: SeqNum = SeqNum(5000);
/// Connections of attacks that keep some open.
const CONNECTIONS: u32 = 100;
/// What they ask for.
const ENDLESS: u32 = u32::MAX;
const MUCH: u32 = 1_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    SynFlood,
    Blind,
    TinyWindows,
    SackStorm,
    TooBig,
    ZeroWindows,
    Orphans,
    FinWait2,
    Dsack,
}

impl Kind {
    pub(crate) const ALL: [Kind; 9] = [
        Kind::SynFlood,
        Kind::Blind,
        Kind::TinyWindows,
        Kind::SackStorm,
        Kind::TooBig,
        Kind::ZeroWindows,
        Kind::Orphans,
        Kind::FinWait2,
        Kind::Dsack,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::SynFlood => "SYN flood",
            Kind::Blind => "blind resets and data",
            Kind::TinyWindows => "tiny windows",
            Kind::SackStorm => "SACK storm",
            Kind::TooBig => "forged *too big*",
            Kind::ZeroWindows => "closed windows",
            Kind::Orphans => "orphans",
            Kind::FinWait2 => "FIN-WAIT-2",
            Kind::Dsack => "DSACK lies",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Kind::SynFlood => "SYNs from random addresses",
            Kind::Blind => "RSTs and data on the connections of the honest clients, with random sequence numbers",
            Kind::TinyWindows => "100 connections acknowledge what they get, one byte at a time",
            Kind::SackStorm => "100 connections acknowledge nothing, and SACK random ranges",
            Kind::TooBig => {
                "ICMP messages about the honest clients' connections, with random sequence numbers and sizes"
            }
            Kind::ZeroWindows => "new connections ask for 1 MB and never open their window",
            Kind::Orphans => "the same, and the server closes its end as soon as it has written everything that fits",
            Kind::FinWait2 => "new connections get 100 bytes, acknowledge the end, and never close",
            Kind::Dsack => "100 connections download, and report everything as a duplicate",
        }
    }

    /// What a connection asks for.
    fn request(self) -> [u8; 5] {
        match self {
            Kind::ZeroWindows => request(b'd', MUCH),
            Kind::Orphans => request(b'o', 60_000),
            Kind::FinWait2 => request(b'o', 100),
            _ => request(b'd', ENDLESS),
        }
    }

    /// The window field of its segments.
    fn window(self) -> u16 {
        match self {
            Kind::TinyWindows => 1,
            Kind::ZeroWindows | Kind::Orphans => 0,
            _ => 60_000,
        }
    }

    /// True if it opens connections all the time.
    fn opens_many(self) -> bool {
        matches!(self, Kind::ZeroWindows | Kind::Orphans | Kind::FinWait2)
    }
}

/// A connection of the attacker: the next number from the server, and the highest that it has seen.
#[derive(Clone, Copy)]
struct Connection {
    expected: SeqNum,
    highest: SeqNum,
}

struct Attacker<'a> {
    kind: Kind,
    open: &'a Open,
    connections: BTreeMap<SocketAddr, Connection>,
    /// Packets that answer the server.
    replies: VecDeque<Vec<u8>>,
    count: u32,
    random: u64,
}

/// Attacks until it is over. Returns packets per second.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn run(kind: Kind, wire: &Wire, open: &Open, is_over: &AtomicBool) -> f64 {
    let (connections, replies) = (BTreeMap::new(), VecDeque::new());
    let mut attacker = Attacker { kind, open, connections, replies, count: 0, random: 1 };
    let (began, mut sent, mut buffer) = (Instant::now(), 0.0, vec![0; 1 << 16]);
    while !is_over.load(Ordering::Relaxed) {
        let due = began.elapsed().as_secs_f64() * RATE;
        while sent < due {
            while let Some(arrived) = wire.receive(&mut buffer) {
                attacker.on_arrival(&arrived);
            }
            if let Some(packet) = attacker.next() {
                wire.send(&packet);
            }
            sent += 1.0;
        }
        std::thread::sleep(TICK);
    }
    sent / began.elapsed().as_secs_f64()
}

impl Attacker<'_> {
    fn random(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 32) as u32
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        if let Some(reply) = self.replies.pop_front() {
            return Some(reply);
        }
        self.count = self.count.wrapping_add(1);
        match self.kind {
            Kind::SynFlood => {
                let from = client(self.random() % 10_000_000);
                Some(self.syn(from))
            }
            Kind::Blind | Kind::TooBig => self.forged(),
            _ if self.kind.opens_many() || self.count <= CONNECTIONS => Some(self.syn(client(self.count))),
            _ => {
                let (from, connection) = self.connections.iter().nth((self.count % CONNECTIONS) as usize)?;
                let (from, connection) = (*from, *connection);
                Some(self.acknowledgment(from, connection))
            }
        }
    }

    fn syn(&self, from: SocketAddr) -> Vec<u8> {
        let options = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
        let window = self.kind.window();
        segment(from, &Segment { seq: ISN, window, flags: Flags::SYN, options, ..Segment::default() })
    }

    /// A packet on a connection of somebody else.
    fn forged(&mut self) -> Option<Vec<u8>> {
        let open: Vec<SocketAddr> = self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let victim = *open.get(self.count as usize % open.len().max(1))?;
        let (seq, ack) = (SeqNum(self.random()), SeqNum(self.random()));
        let any = Segment { seq, ack, window: 60_000, len: 100, flags: Flags::ACK, ..Segment::default() };
        Some(match self.kind {
            Kind::TooBig => too_big(victim, &Segment { len: 1400, ..any }, 68 + (self.random() % 1400) as u16),
            _ if self.count.is_multiple_of(2) => segment(victim, &any),
            _ => segment(victim, &Segment { len: 0, flags: Flags::RST, ..any }),
        })
    }

    /// The server has answered a connection of the attacker.
    fn on_arrival(&mut self, arrived: &Decoded<'_>) {
        let from = arrived.endpoints.destination;
        let Segment { seq, len, flags, .. } = arrived.segment;
        if matches!(self.kind, Kind::SynFlood) {
            return;
        }
        if flags.has(Flags::RST) {
            self.connections.remove(&from);
        } else if flags.has(Flags::SYN) {
            let connection = Connection { expected: seq.plus(1), highest: seq.plus(1) };
            if self.connections.insert(from, connection).is_none() {
                let ack = self.segment(connection);
                self.replies.push_back(data(from, &Segment { seq: ISN.plus(1), ..ack }, &self.kind.request()));
            }
        } else if let Some(connection) = self.connections.get_mut(&from) {
            let end = seq.plus(u32::from(len) + u32::from(flags.has(Flags::FIN)));
            if connection.highest.before(end) {
                connection.highest = end;
            }
            let takes = seq == connection.expected && self.kind != Kind::SackStorm && self.kind.window() > 0;
            if takes {
                connection.expected = end;
            }
            let connection = *connection;
            // A probe beyond a closed window is answered, and an end is acknowledged.
            if self.kind.opens_many() && (len > 0 || flags.has(Flags::FIN)) {
                self.replies.push_back(segment(from, &self.segment(connection)));
            }
        }
    }

    fn segment(&self, connection: Connection) -> Segment {
        Segment {
            seq: ISN.plus(6),
            ack: connection.expected,
            window: self.kind.window(),
            flags: Flags::ACK,
            ..Segment::default()
        }
    }

    /// An ACK, with the blocks that the attack is about.
    fn acknowledgment(&mut self, from: SocketAddr, connection: Connection) -> Vec<u8> {
        let mut ack = self.segment(connection);
        let mut blocks = SackBlocks::EMPTY;
        if self.kind == Kind::SackStorm {
            let span = connection.highest.0.wrapping_sub(connection.expected.0).max(2);
            for _ in 0..3 {
                let left = connection.expected.plus(1 + self.random() % (span - 1));
                blocks.push(SackBlock { left, right: left.plus(1 + self.random() % 1400) });
            }
        } else if self.kind == Kind::Dsack {
            let right = connection.expected;
            blocks.push(SackBlock { left: SeqNum(right.0.wrapping_sub(1460)), right });
        }
        ack.options.sack = blocks;
        segment(from, &ack)
    }
}
