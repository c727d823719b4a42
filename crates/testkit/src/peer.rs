//! A connection under test and a peer that the test controls segment by segment.
//!
//! All numbers are relative, and what the connection sends is shown as in scripts (docs/reference/scripts.md):
//! `P. 1:1001(1000) ack 1`.
use std::collections::VecDeque;
use std::sync::Arc;

use reknit_script::{CLOCK_START_MS, brief, shifted};
use reknit_tcp::segment::{Flags, Options, SackBlock, SackBlocks, Timestamps};
use reknit_tcp::{Config, Connection, Identity, Output, Segment, SeqNum, State};
use reknit_units::{Bytes, Duration, Instant};
use reknit_variants::Composition;

use crate::variant;

/// The initial sequence numbers of both ends: the numbers wrap in every test.
const ISNS: (SeqNum, SeqNum) = (SeqNum(u32::MAX - 700), SeqNum(u32::MAX - 70));
/// Time zero of the tests in milliseconds, and therefore the connection's first timestamp.
pub const START_MS: u32 = CLOCK_START_MS;
/// When [`Peer::established`] is established: after the round trip of the handshake.
pub const HANDSHAKE_MS: u64 = 10;
/// The peer's timestamp on its SYN.
pub const PEER_TSVAL: u32 = 1000;
/// The peer's window, unless the test sets another.
pub const WINDOW: u16 = reknit_script::WINDOW;
/// Maximum segment size of both ends, unless the test sets another.
pub const MSS: u16 = 1460;

/// The output of a connection that has nothing to send.
pub const SILENCE: [&str; 0] = [];

/// The connection under test, what it has sent, and the time.
pub struct Peer {
    /// The connection.
    pub connection: Connection,
    now: Instant,
    heard: VecDeque<(Instant, Segment)>,
}

/// The default options without timestamps, which most tests do not need.
pub fn plain() -> Config {
    Config { timestamps: false, ..Config::default() }
}

/// A segment from the peer, in relative numbers.
pub fn segment(flags: Flags, seq: u32, ack: u32, len: u16) -> Segment {
    Segment { seq: SeqNum(seq), ack: SeqNum(ack), len, flags, window: WINDOW, ..Segment::default() }
}

/// The peer's SYN, with the usual options but without timestamps and window scale.
pub fn syn() -> Segment {
    let options = Options { mss: Some(MSS), sack_permitted: true, ..Options::default() };
    Segment { options, ..segment(Flags::SYN, 0, 0, 0) }
}

/// The same as the answer to a SYN.
pub fn syn_ack() -> Segment {
    Segment { ack: SeqNum(1), flags: Flags::SYN | Flags::ACK, ..syn() }
}

/// A pure ACK.
pub fn ack(seq: u32, ack: u32) -> Segment {
    segment(Flags::ACK, seq, ack, 0)
}

/// `len` bytes of data.
pub fn data(seq: u32, ack: u32, len: u16) -> Segment {
    segment(Flags::ACK, seq, ack, len)
}

/// A FIN without data.
pub fn fin(seq: u32, ack: u32) -> Segment {
    segment(Flags::FIN | Flags::ACK, seq, ack, 0)
}

/// A RST without an acknowledgment.
pub fn rst(seq: u32) -> Segment {
    segment(Flags::RST, seq, 0, 0)
}

/// `segment` with the timestamps option.
pub fn stamped(segment: Segment, val: u32, ecr: u32) -> Segment {
    Segment { options: Options { timestamps: Some(Timestamps { val, ecr }), ..segment.options }, ..segment }
}

/// `segment` with the SACK option.
pub fn sacking(segment: Segment, blocks: &[(u32, u32)]) -> Segment {
    let mut sack = SackBlocks::EMPTY;
    for (left, right) in blocks {
        sack.push(SackBlock { left: SeqNum(*left), right: SeqNum(*right) });
    }
    Segment { options: Options { sack, ..segment.options }, ..segment }
}

impl Peer {
    fn new(
        composition: &Composition,
        config: Config,
        open: fn(Instant, Arc<Config>, reknit_tcp::seams::Plugins, Identity) -> Connection,
    ) -> Peer {
        let now = Instant::ZERO + Duration::from_millis(u64::from(START_MS));
        let identity = Identity { isn: ISNS.0, timestamp_offset: 0 };
        let connection = open(now, Arc::new(config), composition.build(), identity);
        let mut peer = Peer { connection, now, heard: VecDeque::new() };
        peer.pump();
        peer
    }

    /// A connection that opens actively; its SYN has not been read yet.
    pub fn of_active_open(config: Config) -> Peer {
        Peer::new(&variant("sack"), config, Connection::connect)
    }

    /// The same with other plug-ins.
    pub fn of_active_open_as(composition: &Composition, config: Config) -> Peer {
        Peer::new(composition, composition.configure(config), Connection::connect)
    }

    /// A connection that listens.
    pub fn of_passive_open(config: Config) -> Peer {
        Peer::new(&variant("sack"), config, Connection::listen)
    }

    /// A connection that has opened actively. The peer supports every option that `config` offers, and does not scale
    /// windows.
    ///
    /// # Panics
    /// If the handshake fails.
    pub fn established(config: Config) -> Peer {
        Peer::established_as(&variant("sack"), config)
    }

    /// The same with other plug-ins. The peer also supports every experimental feature that they offer.
    ///
    /// # Panics
    /// If the handshake fails.
    pub fn established_as(composition: &Composition, config: Config) -> Peer {
        let config = composition.configure(config);
        let mut answer = Segment { options: Options { sack_permitted: config.sack, ..syn_ack().options }, ..syn_ack() };
        if config.ecn {
            answer.flags |= Flags::ECE;
        }
        if config.timestamps {
            answer = stamped(answer, PEER_TSVAL, START_MS);
        }
        let mut peer = Peer::new(composition, config, Connection::connect);
        answer.options.experiment = peer.take_one().options.experiment;
        assert_eq!(peer.at(HANDSHAKE_MS).exchange(answer), [". 1:1(0) ack 1"]);
        peer
    }

    /// A connection in `state`, reached without any data.
    ///
    /// # Panics
    /// If the connection does not get there.
    pub fn in_state(state: State) -> Peer {
        let mut peer = match state {
            State::Listen | State::SynReceived => Peer::of_passive_open(plain()),
            State::SynSent => Peer::of_active_open(plain()),
            _ => Peer::established(plain()),
        };
        if matches!(state, State::CloseWait | State::LastAck) {
            peer.send(fin(1, 1));
        }
        if !matches!(state, State::Listen | State::SynSent | State::SynReceived | State::Established | State::CloseWait)
        {
            peer.connection.close();
            peer.pump();
        }
        match state {
            State::SynReceived => _ = peer.send(syn()),
            State::FinWait2 => _ = peer.send(ack(1, 2)),
            State::Closing => _ = peer.send(fin(1, 1)),
            State::TimeWait => _ = peer.send(fin(1, 2)),
            _ => {}
        }
        if state == State::Closed {
            peer.send(fin(1, 2));
            peer.at(100_000);
        }
        assert_eq!(peer.state(), state);
        peer.take_sent();
        peer
    }

    /// Advances to `ms` milliseconds after the opening. Timers that expire in between fire.
    ///
    /// # Panics
    /// If the time is in the past.
    pub fn at(&mut self, ms: u64) -> &mut Peer {
        let target = Instant::ZERO + Duration::from_millis(u64::from(START_MS) + ms);
        assert!(target >= self.now, "time goes forward");
        self.pump();
        while self.connection.deadline() <= target {
            self.now = self.now.max(self.connection.deadline());
            self.connection.on_timer(self.now);
            self.pump();
        }
        self.now = target;
        self
    }

    /// The peer sends `segment`. Returns how many new bytes the connection accepts.
    ///
    /// # Panics
    /// If an invariant of the connection is violated afterwards.
    pub fn send(&mut self, segment: Segment) -> usize {
        let delivery = self.connection.on_segment(self.now, &shifted(&segment, ISNS.1.0, ISNS.0.0));
        self.connection.check().unwrap();
        self.pump();
        delivery.map_or(0, |delivery| delivery.len)
    }

    /// The application writes `n` bytes.
    pub fn write(&mut self, n: u64) {
        self.connection.write(Bytes(n));
        self.pump();
    }

    /// The application reads `n` bytes.
    pub fn read(&mut self, n: u64) {
        self.connection.read(self.now, Bytes(n));
        self.pump();
    }

    /// The application aborts the connection.
    pub fn abort(&mut self) {
        self.connection.abort(self.now);
        self.pump();
    }

    /// What the connection has sent since the last call.
    pub fn take_sent(&mut self) -> Vec<String> {
        self.take().iter().map(brief).collect()
    }

    /// The peer sends `segment`. Returns the answer.
    pub fn exchange(&mut self, segment: Segment) -> Vec<String> {
        self.take_sent();
        self.send(segment);
        self.take_sent()
    }

    /// The segments that the connection has sent since the last call.
    pub fn take(&mut self) -> Vec<Segment> {
        self.pump();
        self.heard.drain(..).map(|(_, segment)| segment).collect()
    }

    /// The only segment that the connection has sent since the last call.
    ///
    /// # Panics
    /// If there is none, or more than one.
    pub fn take_one(&mut self) -> Segment {
        let segments = self.take();
        assert_eq!(segments.len(), 1, "{segments:?}");
        segments[0]
    }

    /// The sending times of the segments since the last call, in milliseconds.
    pub fn times(&mut self) -> Vec<u64> {
        let start = Instant::ZERO + Duration::from_millis(u64::from(START_MS));
        self.heard.drain(..).map(|(at, _)| at.since(start).as_millis()).collect()
    }

    /// What the connection has sent since the last call, each with its time in milliseconds.
    pub fn take_sent_timed(&mut self) -> Vec<(u64, String)> {
        let start = Instant::ZERO + Duration::from_millis(u64::from(START_MS));
        self.heard.drain(..).map(|(at, segment)| (at.since(start).as_millis(), brief(&segment))).collect()
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.connection.state()
    }

    /// The connection's variables.
    pub fn info(&self) -> reknit_tcp::Info {
        self.connection.info(self.now)
    }

    fn pump(&mut self) {
        while let Output::Send(segment) = self.connection.poll(self.now) {
            self.heard.push_back((self.now, shifted(&segment, ISNS.0.0.wrapping_neg(), ISNS.1.0.wrapping_neg())));
        }
    }
}
