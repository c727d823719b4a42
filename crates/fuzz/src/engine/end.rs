//! One end: its TCP, its application, and what is checked after every event.

use std::sync::{Arc, LazyLock};

use reknit_tcp::{Config, Identity, Output, Segment, SeqNum, State, Stream};
use reknit_units::{Bytes, Instant};
use reknit_variants::Composition;

/// The most bytes that an application writes.
const MAX_WRITTEN: usize = 64 << 10;
/// The most bytes that a stream keeps for its application to write ahead.
const SEND_BUFFER: Bytes = Bytes(30_000);
/// The most segments that one event may release.
const MAX_RELEASED: usize = 5000;
/// The most memory of the plug-ins of one end.
const MAX_STATE: Bytes = Bytes(256 << 10);
/// An event visits each outstanding segment at most this often, and some more.
const MAX_VISITS: u64 = 64;

/// The content of streams repeats after this many bytes, so that a piece that is displaced by a segment is noticed.
const PERIOD: u16 = 65_521;

/// The `len` bytes that end `number` sends from position `from` on.
pub(super) fn content(number: usize, from: i64, len: usize) -> &'static [u8] {
    static CONTENT: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        let period = usize::from(PERIOD);
        [0, 101].map(|first| (0..2 * period).map(|i| i % period).map(|i| (i * 7 + i / 251 + first) as u8).collect())
    });
    let at = from.rem_euclid(i64::from(PERIOD)).unsigned_abs() as usize;
    &CONTENT[number][at..at + len]
}

pub(super) struct TestedEnd {
    number: usize,
    pub(super) stream: Stream,
    pub(super) written: usize,
    pub(super) read: u64,
    /// What is read can be anything, because the attacker has taken the place of the other end.
    pub(super) is_taken_over: bool,
    /// The last segment that it sent.
    pub(super) last: Option<Segment>,
    pub(super) isn: u32,
    buffer: Vec<u8>,
}

impl TestedEnd {
    pub(super) fn new(
        now: Instant,
        number: usize,
        composition: &Composition,
        config: Config,
        active: bool,
    ) -> TestedEnd {
        let config = Arc::new(composition.configure(config));
        let isn = [u32::MAX - 3000, 77_000][number];
        let identity = Identity { isn: SeqNum(isn), timestamp_offset: [u32::MAX - 500, 0][number] };
        let open = if active { Stream::connect } else { Stream::listen };
        let mut stream = open(now, &config, composition.build(), identity, SEND_BUFFER);
        stream.set_secret(0x1234_5678_9abc_def0 * (number as u64 + 1));
        TestedEnd {
            number,
            stream,
            written: 0,
            read: 0,
            is_taken_over: false,
            last: None,
            isn,
            buffer: vec![0; 16 << 10],
        }
    }

    pub(super) fn state(&self) -> State {
        self.stream.connection().state()
    }

    /// The application writes up to `n` bytes.
    pub(super) fn write(&mut self, n: usize) {
        let until = (self.written + n).min(MAX_WRITTEN);
        self.written +=
            self.stream.write(content(self.number, (self.written as u64).cast_signed(), until - self.written));
    }

    /// The application reads up to `n` bytes, and checks them.
    pub(super) fn read(&mut self, now: Instant, n: usize) {
        let n = n.min(self.buffer.len());
        let got = self.stream.read(now, &mut self.buffer[..n]);
        let right = content(1 - self.number, self.read.cast_signed(), got);
        assert!(self.is_taken_over || self.buffer[..got] == *right, "the stream is corrupted");
        self.read += got as u64;
    }

    pub(super) fn close(&mut self) {
        if self.state() != State::Listen {
            self.stream.close();
        }
    }

    /// Something happens to the connection; its work is checked.
    pub(super) fn apply(&mut self, event: impl FnOnce(&mut Stream)) {
        let connection = self.stream.connection();
        let (visited, outstanding) = (connection.records_visited(), connection.info(Instant::ZERO).flight_size.0);
        event(&mut self.stream);
        let connection = self.stream.connection();
        let outstanding = outstanding.max(connection.info(Instant::ZERO).flight_size.0);
        let visits = connection.records_visited() - visited;
        let most = MAX_VISITS * (outstanding / u64::from(connection.segment_size().max(1)) + 300);
        assert!(visits <= most, "{visits} records visited with {outstanding} bytes outstanding");
    }

    /// The next segment with its payload.
    pub(super) fn poll(&mut self, now: Instant) -> Option<(Segment, Vec<u8>)> {
        let mut payload = Vec::new();
        let Output::Send(segment) = self.stream.poll(now, &mut payload) else { return None };
        assert_eq!(payload.len(), usize::from(segment.len), "{segment:?}");
        self.last = Some(segment);
        Some((segment, payload))
    }

    /// What must hold at any time when everything was sent that may be sent. `released` segments were.
    pub(super) fn check(&self, released: usize) {
        assert!(released <= MAX_RELEASED, "{released} segments at once");
        let connection = self.stream.connection();
        connection.check().unwrap();
        let waits = connection.unacknowledged() > Bytes::ZERO && !matches!(self.state(), State::Closed | State::Listen);
        assert!(!waits || connection.deadline().is_set(), "data waits and no timer runs: {:?}", self.state());
        assert!(connection.plugin_state_size() <= MAX_STATE, "plug-ins use {}", connection.plugin_state_size());
        assert!(connection.readable() <= connection.config().receive_buffer_size());
    }
}
