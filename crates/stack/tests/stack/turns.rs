//! The work that a connection does in its turn, and what waits for the next.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use reknit_stack::{ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_tcp::segment::{self, Flags, Segment};
use reknit_tcp::{SeqNum, State};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};

/// The most segments that one event sends (docs/reference/limits.md).
const MOST_PER_EVENT: u64 = 128;
const MSS: u16 = 1460;
/// What the peers' window fields are multiplied by, as an exponent.
const SCALE: u8 = 10;
const OPEN: u16 = 16_000;
/// More than one turn is for, in bytes.
const WRITTEN: usize = 4 << 20;

fn server_address() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

fn client_address(n: u16) -> SocketAddr {
    SocketAddr::new("10.0.0.1".parse().unwrap(), 2000 + n)
}

/// A server, and clients that acknowledge what it has sent.
struct Server {
    stack: Stack,
    listener: ListenerId,
    now: Instant,
    /// What each client acknowledges.
    acks: BTreeMap<SocketAddr, SeqNum>,
}

impl Server {
    fn new() -> Server {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let options = Options { addresses: vec![server_address().ip()], ..Options::default() };
        let mut stack = Stack::new(now, options, [9; 32]);
        let linux = reknit_variants::find("linux").unwrap();
        let room = Bytes(4 * WRITTEN as u64);
        let socket = SocketOptions {
            send_buffer: room,
            largest_send_buffer: room,
            ..SocketOptions::of(Arc::new((linux.compose)()))
        };
        let listener = stack.listen(server_address(), &ListenOptions { socket, ..ListenOptions::default() }).unwrap();
        Server { stack, listener, now, acks: BTreeMap::new() }
    }

    fn deliver(&mut self, n: u16, segment: Segment) {
        let mut packet = Vec::new();
        encode(Endpoints { source: client_address(n), destination: server_address() }, &segment, &[], &mut packet);
        self.stack.on_packet(self.now, &packet);
    }

    /// Client `n` acknowledges all that it got, and announces a window.
    fn acknowledge(&mut self, n: u16, window: u16) {
        let ack = self.acks[&client_address(n)];
        self.deliver(n, Segment { seq: SeqNum(101), ack, window, flags: Flags::ACK, ..Segment::default() });
    }

    /// To whom the server sends now, packet by packet.
    fn sends(&mut self) -> Vec<SocketAddr> {
        let (mut packet, mut sent) = (Vec::new(), Vec::new());
        while self.stack.poll_packet(self.now, &mut packet) {
            let Decoded { endpoints, segment, .. } = Decoded::read(&packet).unwrap();
            let syn = u32::from(segment.flags.has(Flags::SYN));
            self.acks.insert(endpoints.destination, segment.seq.plus(u32::from(segment.len) + syn));
            sent.push(endpoints.destination);
        }
        sent
    }

    fn open(&mut self, n: u16) -> SocketId {
        let options = segment::Options { mss: Some(MSS), window_scale: Some(SCALE), ..segment::Options::default() };
        self.deliver(n, Segment { seq: SeqNum(100), window: OPEN, flags: Flags::SYN, options, ..Segment::default() });
        self.sends();
        self.acknowledge(n, OPEN);
        self.sends();
        self.stack.accept(self.listener).unwrap()
    }

    fn sent(&self, id: SocketId) -> u64 {
        self.stack.info(self.now, id).unwrap().tcp.snd_nxt
    }

    /// Lets the window of client `n` grow until it has room for everything that was written, and then closes it.
    fn grow_and_stop(&mut self, n: u16, id: SocketId) {
        while self.stack.info(self.now, id).unwrap().tcp.cwnd < Bytes(WRITTEN as u64) {
            self.stack.write(id, &vec![1; WRITTEN]).unwrap();
            assert!(!self.sends().is_empty());
            self.now = self.now + Duration::from_millis(10);
            self.acknowledge(n, OPEN);
        }
        while !self.sends().is_empty() {
            self.now = self.now + Duration::from_millis(10);
            self.acknowledge(n, OPEN);
        }
        self.acknowledge(n, 0);
        self.stack.write(id, &vec![1; WRITTEN]).unwrap();
        assert_eq!(self.sends(), []);
    }
}

#[test]
fn a_connection_that_is_reset_has_no_work_left() {
    let mut server = Server::new();
    let bulk = server.open(0);
    server.grow_and_stop(0, bulk);
    server.acknowledge(0, OPEN);
    server.deliver(0, Segment { seq: SeqNum(101), flags: Flags::RST, ..Segment::default() });
    assert_eq!(server.stack.info(server.now, bulk).unwrap().tcp.state, State::Closed);
    let sent = server.sends().len() as u64;
    assert!(sent <= 2 * MOST_PER_EVENT, "an ACK, and what was due when the RST came: {sent} segments");
    server.now = server.now + Duration::from_secs(1000);
    server.stack.on_timer(server.now);
    assert_eq!((server.sends().len(), server.stack.info(server.now, bulk).unwrap().tcp.state), (0, State::Closed));
}

#[test]
fn an_ack_that_releases_thousands_of_segments_takes_many_turns() {
    let mut server = Server::new();
    let (bulk, other) = (server.open(0), server.open(1));
    server.grow_and_stop(0, bulk);
    let before = server.sent(bulk);
    server.acknowledge(0, OPEN);
    let by_one_event = server.sent(bulk) - before;
    assert!((1..=MOST_PER_EVENT * u64::from(MSS)).contains(&by_one_event), "{by_one_event} bytes");
    server.stack.write(other, &[1; 100]).unwrap();
    let sent = server.sends();
    let at = sent.iter().position(|to| *to == client_address(1)).unwrap();
    assert!(at as u64 <= MOST_PER_EVENT, "the other connection has waited for {at} segments");
    let at_once = (server.sent(bulk) - before) / u64::from(MSS);
    assert!(at_once > 2048, "no timer is needed for the rest: {at_once}");
}
