//! Segments that arrive together: looking ahead at them must not change what happens, even if one of them opens, ends or
//! replaces the connection of the next.

use std::net::SocketAddr;

use proptest::prelude::*;
use reknit_stack::{Event, ListenOptions, ListenerId, Options, Stack};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Segment};
use reknit_units::{Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};

/// Half-open connections beside those of the test: with few, nothing is read ahead.
const OTHERS: u16 = 1100;
const FLOWS: u16 = 4;
/// The initial sequence number of all clients.
const ISS: u32 = 1000;

fn server_address() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

fn client_address(flow: u16) -> SocketAddr {
    SocketAddr::new("10.0.0.1".parse().unwrap(), 2000 + flow)
}

fn packet(flow: u16, segment: &Segment, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let endpoints = Endpoints { source: client_address(flow), destination: server_address() };
    encode(endpoints, &Segment { len: payload.len() as u16, window: 20_000, ..*segment }, payload, &mut packet);
    packet
}

fn syn(flow: u16) -> Vec<u8> {
    packet(flow, &Segment { seq: SeqNum(ISS), flags: Flags::SYN, ..Segment::default() }, &[])
}

/// A server with many connections, and what it has sent and told.
struct Server {
    stack: Stack,
    listener: ListenerId,
    now: Instant,
    reads_ahead: bool,
    sent: Vec<Vec<u8>>,
    read: Vec<u8>,
    events: Vec<Event>,
}

impl Server {
    fn new(reads_ahead: bool) -> Server {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let options = Options { addresses: vec![server_address().ip()], ..Options::default() };
        let mut stack = Stack::new(now, options, [9; 32]);
        let listening = ListenOptions { syn_backlog: 10_000, ..ListenOptions::default() };
        let listener = stack.listen(server_address(), &listening).unwrap();
        let mut server = Server { stack, listener, now, reads_ahead, sent: vec![], read: vec![], events: vec![] };
        let others: Vec<Vec<u8>> = (FLOWS..FLOWS + OTHERS).map(syn).collect();
        server.pass(&others);
        assert_eq!(server.sent.len(), usize::from(OTHERS), "each SYN is answered");
        server
    }

    /// Packets arrive at the same time; then the application accepts, reads and closes what it can.
    fn pass(&mut self, packets: &[Vec<u8>]) {
        let segments: Vec<Decoded<'_>> = packets.iter().map(|packet| Decoded::read(packet).unwrap()).collect();
        if self.reads_ahead {
            self.stack.prefetch(&segments);
        }
        for segment in &segments {
            self.stack.on_segment(self.now, segment);
        }
        self.act();
    }

    fn act(&mut self) {
        let (mut packet, mut buffer) = (Vec::new(), [0; 5000]);
        while self.stack.poll_packet(self.now, &mut packet) {
            self.sent.push(packet.clone());
        }
        while let Some(event) = self.stack.next_event() {
            self.events.push(event);
            match event {
                Event::Acceptable(_) => while self.stack.accept(self.listener).is_some() {},
                Event::Readable(id) => {
                    let n = self.stack.read(self.now, id, &mut buffer).unwrap_or(0);
                    self.read.extend(&buffer[..n]);
                }
                Event::Closed(id) => self.stack.close(self.now, id),
                Event::Delivered(_) | Event::Requested | Event::UdpReadable(_) | Event::UdpWritable(_) => {
                    unreachable!("it did not ask")
                }
                Event::Connected(_) | Event::Writable(_) => {}
            }
            while self.stack.poll_packet(self.now, &mut packet) {
                self.sent.push(packet.clone());
            }
        }
    }

    /// Lets all timers fire.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.stack.deadline().max(self.now + Duration::from_millis(1)).min(until);
            self.stack.on_timer(self.now);
            self.act();
        }
    }

    /// What another server must do likewise.
    fn outcome(&self) -> (&[Vec<u8>], &[u8], &[Event], &reknit_stack::Counters) {
        (&self.sent, &self.read, &self.events, self.stack.counters())
    }
}

/// The first sequence number that a server sends on each flow; with the same time and secret it is always the same.
fn first_numbers() -> Vec<SeqNum> {
    let mut server = Server::new(false);
    server.sent.clear();
    server.pass(&(0..FLOWS).map(syn).collect::<Vec<_>>());
    let answers = server.sent.iter().map(|packet| Decoded::read(packet).unwrap());
    let mut numbers: Vec<_> = answers.map(|answer| (answer.endpoints.destination.port(), answer.segment.seq)).collect();
    numbers.sort_unstable_by_key(|(port, _)| *port);
    numbers.into_iter().map(|(_, number)| number).collect()
}

/// What a client sends, at this position of its stream.
#[derive(Clone, Copy, Debug)]
enum Sends {
    Syn,
    Data { at: u32, len: usize },
    Fin { at: u32 },
    Rst { at: u32 },
}

fn sends() -> impl Strategy<Value = (u16, Sends)> {
    let at = || prop_oneof![Just(0u32), Just(10), Just(20)];
    let sends = prop_oneof![
        Just(Sends::Syn),
        (at(), prop_oneof![Just(0usize), Just(10), Just(30)]).prop_map(|(at, len)| Sends::Data { at, len }),
        at().prop_map(|at| Sends::Fin { at }),
        at().prop_map(|at| Sends::Rst { at }),
    ];
    (0..FLOWS, sends)
}

fn build(numbers: &[SeqNum], flow: u16, sends: Sends) -> Vec<u8> {
    let ack = numbers[usize::from(flow)].plus(1);
    let segment = |at: u32, flags| Segment { seq: SeqNum(ISS + 1 + at), ack, flags, ..Segment::default() };
    match sends {
        Sends::Syn => syn(flow),
        Sends::Data { at, len } => packet(flow, &segment(at, Flags::ACK), &vec![at as u8; len]),
        Sends::Fin { at } => packet(flow, &segment(at, Flags::ACK | Flags::FIN), &[]),
        Sends::Rst { at } => packet(flow, &segment(at, Flags::ACK | Flags::RST), &[]),
    }
}

#[test]
fn a_batch_may_open_and_end_a_connection() {
    let numbers = first_numbers();
    let mut server = Server::new(true);
    server.sent.clear();
    let first = [Sends::Syn, Sends::Data { at: 0, len: 0 }, Sends::Data { at: 0, len: 30 }, Sends::Rst { at: 30 }];
    let second =
        [Sends::Syn, Sends::Data { at: 0, len: 0 }, Sends::Data { at: 0, len: 10 }, Sends::Data { at: 10, len: 10 }];
    for batch in [first, second] {
        server.pass(&batch.map(|sends| build(&numbers, 0, sends)));
    }
    let expected = [[0; 10], [10; 10]].concat();
    assert!(server.read.ends_with(&expected), "the second connection has got its data: {:?}", server.read);
    assert_eq!(server.stack.counters().resets_sent, 0);
    assert_eq!(server.stack.sockets(), usize::from(OTHERS) + 1, "the first connection is gone");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn batches_and_single_segments_have_the_same_results(
        batches in prop::collection::vec(prop::collection::vec(sends(), 1..40), 1..8),
    ) {
        let numbers = first_numbers();
        let mut servers = [Server::new(true), Server::new(false)];
        for batch in &batches {
            let packets: Vec<_> = batch.iter().map(|(flow, sends)| build(&numbers, *flow, *sends)).collect();
            for server in &mut servers {
                server.pass(&packets);
            }
        }
        for server in &mut servers {
            server.wait(Duration::from_secs(100));
        }
        let [ahead, single] = &servers;
        prop_assert_eq!(ahead.outcome(), single.outcome());
    }
}
