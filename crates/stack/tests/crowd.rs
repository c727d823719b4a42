//! Crowds of clients that keep a server's memory busy, and honest ones beside them.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reknit_stack::{Event, ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack, Transmit};
use reknit_tcp::segment::Flags;
use reknit_tcp::{Segment, SeqNum};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, Endpoints};

const MOST: u64 = 64 << 20;
const PLENTY: u64 = 1 << 30;
/// What a connection may have when no memory is left: see docs/design/stack.md.
const LEAST: u64 = 12 << 10;
const CROWD: usize = 50_000;

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A server, and clients that answer every segment with the same acknowledgment.
struct Crowd {
    /// The tests share their process's memory.
    _alone: MutexGuard<'static, ()>,
    now: Instant,
    server: Stack,
    listener: ListenerId,
    /// The server's first sequence number on each connection.
    isns: Vec<Option<SeqNum>>,
    accepted: Vec<SocketId>,
    resets: usize,
    max_memory: u64,
    honest: u8,
}

fn server() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

fn client(n: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 1, (n / 25_000) as u8, (n / 100 % 250) as u8 + 1]), 1000 + (n % 100) as u16)
}

fn number(client: SocketAddr) -> Option<usize> {
    let IpAddr::V4(ip) = client.ip() else { return None };
    let [_, kind, high, low] = ip.octets();
    (kind == 1).then(|| usize::from(high) * 25_000 + (usize::from(low) - 1) * 100 + usize::from(client.port() - 1000))
}

impl Crowd {
    fn new(max_memory: u64) -> Crowd {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let addresses = vec![server().ip()];
        let options = Options { addresses, max_memory: Bytes(max_memory), ..Options::default() };
        let mut stack = Stack::new(now, options, [7; 32]);
        let listener = stack.listen(server(), &ListenOptions::default()).unwrap();
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Crowd {
            _alone: alone,
            now,
            server: stack,
            listener,
            isns: Vec::new(),
            accepted: Vec::new(),
            resets: 0,
            max_memory,
            honest: 0,
        }
    }

    fn deliver(&mut self, n: usize, segment: Segment, payload: &[u8]) {
        let endpoints = Endpoints { source: client(n), destination: server() };
        let segment = Segment { len: payload.len() as u16, ..segment };
        self.server.on_segment(self.now, &Decoded { endpoints, hop_limit: 64, segment, payload });
    }

    /// The segment of client `n` that acknowledges nothing but the handshake.
    fn ack(&self, n: usize, window: u16) -> Segment {
        let ack = self.isns[n].map_or(SeqNum(0), |isn| isn.plus(1));
        Segment { seq: SeqNum(5001), ack, window, flags: Flags::ACK, ..Segment::default() }
    }

    /// Clients answer what the server sends, which is checked to stay within its memory. What is for others is returned.
    fn settle(&mut self) -> Vec<(Transmit, Vec<u8>)> {
        let mut others = Vec::new();
        let mut payload = Vec::new();
        while let Some(transmit) = self.server.poll(self.now, &mut payload) {
            let bytes = std::mem::take(&mut payload);
            let Some(n) = number(transmit.endpoints.destination) else {
                others.push((transmit, bytes));
                continue;
            };
            let segment = transmit.segment;
            if segment.flags.has(Flags::RST) {
                self.resets += 1;
                continue;
            }
            if segment.flags.has(Flags::SYN) {
                self.isns[n] = Some(segment.seq);
            }
            let answer = self.ack(n, 0);
            self.deliver(n, answer, &[]);
        }
        let bound = self.max_memory + self.server.sockets() as u64 * LEAST;
        assert!(self.server.memory().0 <= bound, "{} bytes, {} sockets", self.server.memory(), self.server.sockets());
        others
    }

    /// One more client of the crowd.
    fn open(&mut self) -> SocketId {
        let n = self.isns.len();
        self.isns.push(None);
        let mut syn = Segment { seq: SeqNum(5000), window: 60_000, flags: Flags::SYN, ..Segment::default() };
        syn.options.mss = Some(1460);
        self.deliver(n, syn, &[]);
        self.settle();
        let id = self.server.accept(self.listener).expect("it is established");
        self.accepted.push(id);
        id
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.settle();
            let next = self.server.deadline();
            if next > until {
                self.now = until;
                return;
            }
            self.now = self.now.max(next);
            self.server.on_timer(self.now);
        }
    }

    /// An honest client gets `len` bytes; true if all arrive in time.
    fn serve_honest(&mut self, len: usize, limit: Duration) -> bool {
        self.honest += 1;
        let options = Options { addresses: vec![[10, 9, 0, self.honest].into()], ..Options::default() };
        let mut honest = Stack::new(self.now, options, [5; 32]);
        let id = honest.connect(self.now, None, server(), &SocketOptions::default()).unwrap();
        let (mut sender, mut written, mut read, mut packet) = (None, 0, 0, Vec::new());
        let until = self.now + limit;
        while read < len && self.now < until {
            self.now = self.now + Duration::from_millis(1);
            self.server.on_timer(self.now);
            honest.on_timer(self.now);
            while honest.poll_packet(self.now, &mut packet) {
                self.server.on_packet(self.now, &packet);
            }
            sender = sender.or_else(|| self.server.accept(self.listener));
            if let Some(sender) = sender
                && written < len
            {
                written += self.server.write(sender, &vec![3; (len - written).min(100_000)]).unwrap_or(0);
            }
            for (transmit, payload) in self.settle() {
                let Transmit { endpoints, hop_limit, segment } = transmit;
                honest.on_segment(self.now, &Decoded { endpoints, hop_limit, segment, payload: &payload });
            }
            read += honest.read(self.now, id, &mut vec![0; 1 << 20]).unwrap_or(0);
            while self.server.next_event().is_some() || honest.next_event().is_some() {}
        }
        if let Some(sender) = sender {
            self.server.abort(self.now, sender);
            self.server.close(self.now, sender);
        }
        read == len
    }
}

/// More than a server may have for each client.
fn data() -> Vec<u8> {
    vec![1; 200_000]
}

/// Bytes that the kernel says the process has.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn clients_with_a_closed_window_stay_within_the_memory_and_keep_nobody_out() {
    let mut crowd = Crowd::new(MOST);
    let before = memory();
    for _ in 0..CROWD {
        let id = crowd.open();
        let _ = crowd.server.write(id, &data());
        crowd.settle();
    }
    let grown = memory() - before;
    let most = MOST + CROWD as u64 * (LEAST + 4096);
    assert!(grown < most, "{grown} bytes of {most}");
    for _ in 0..3 {
        assert!(crowd.serve_honest(300_000, Duration::from_secs(60)));
    }
    // Those that were first hold most, and make no progress.
    crowd.wait(Duration::from_secs(120));
    assert!(crowd.server.counters().memory_resets > 100, "{:?}", crowd.server.counters());
    assert!(crowd.serve_honest(300_000, Duration::from_secs(60)));
}

#[test]
fn closed_sockets_that_hold_much_end_when_no_memory_is_left() {
    let mut crowd = Crowd::new(MOST);
    for _ in 0..CROWD {
        let id = crowd.open();
        let _ = crowd.server.write(id, &data());
        crowd.server.close(crowd.now, id);
        crowd.settle();
    }
    assert!(crowd.server.memory() > Bytes(MOST));
    assert!(crowd.serve_honest(300_000, Duration::from_secs(60)));
    // Those that were first hold most.
    crowd.wait(Duration::from_secs(1));
    let counters = crowd.server.counters();
    assert!(crowd.server.memory() < Bytes(MOST) && counters.memory_resets > 100, "{counters:?}");
}

#[test]
fn closed_sockets_end_by_number_and_by_time() {
    let mut crowd = Crowd::new(Options::default().max_memory.0);
    for _ in 0..CROWD {
        let id = crowd.open();
        crowd.server.write(id, &[1; 3000]).unwrap();
        crowd.server.close(crowd.now, id);
        crowd.settle();
    }
    let Options { max_orphans, orphan_timeout, .. } = Options::default();
    assert_eq!((crowd.server.sockets(), crowd.resets), (max_orphans, CROWD - max_orphans));
    assert!(crowd.serve_honest(300_000, Duration::from_secs(60)));
    crowd.wait(orphan_timeout + Duration::from_secs(70));
    assert_eq!((crowd.server.sockets(), crowd.server.memory()), (0, Bytes::ZERO));
    let counters = crowd.server.counters();
    assert_eq!(counters.orphan_timeouts, max_orphans as u64);
    assert!(counters.undelivered.connections >= CROWD as u64, "{counters:?}");
}

#[test]
fn a_closed_socket_that_makes_progress_goes_on() {
    let mut crowd = Crowd::new(PLENTY);
    let id = crowd.open();
    let written = crowd.server.write(id, &data()[..60_000]).unwrap();
    crowd.server.close(crowd.now, id);
    let opening = crowd.ack(0, 1000);
    crowd.deliver(0, opening, &[]);
    for n in 1..=30 {
        crowd.wait(Duration::from_secs(60)); // longer than the timeout in all
        let ack = crowd.ack(0, 1000);
        crowd.deliver(0, Segment { ack: ack.ack.plus(n * 500), ..ack }, &[]);
        assert_eq!(crowd.server.sockets(), 1, "after {n} minutes");
    }
    assert!(written > 15_000);
    crowd.wait(Duration::from_secs(270));
    assert_eq!((crowd.server.sockets(), crowd.server.counters().orphan_timeouts), (0, 1));
}

#[test]
fn data_behind_a_gap_stays_within_the_memory_and_is_not_lost() {
    let mut crowd = Crowd::new(MOST);
    let clients = 2000;
    let data: Vec<u8> = (0..60_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
    let send = |crowd: &mut Crowd, n: usize, at: usize| {
        let end = (at + 1460).min(data.len());
        let ack = crowd.ack(n, 60_000);
        crowd.deliver(n, Segment { seq: SeqNum(5001 + at as u32), ..ack }, &data[at..end]);
    };
    for n in 0..clients {
        crowd.open();
        for at in (1460..data.len()).step_by(1460) {
            send(&mut crowd, n, at);
        }
        crowd.settle();
    }
    assert!(crowd.server.counters().memory_drops > 0, "{:?}", crowd.server.counters());
    // Everything is sent again, in order, and read.
    let mut into = vec![0; data.len()];
    for n in 0..clients {
        let mut read = 0;
        for at in (0..data.len()).step_by(1460) {
            send(&mut crowd, n, at);
            while let Ok(len) = crowd.server.read(crowd.now, crowd.accepted[n], &mut into[read..]) {
                read += len;
                if len == 0 {
                    break;
                }
            }
        }
        assert!(into == data, "client {n}: {read} bytes");
        crowd.settle();
    }
    while let Some(event) = crowd.server.next_event() {
        assert!(!matches!(event, Event::Closed(_)));
    }
}
