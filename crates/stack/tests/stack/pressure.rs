//! Honest clients beside clients that cost the server memory: every transfer is complete, and in time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use reknit_stack::{Error, Event, ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_tcp::segment::Flags;
use reknit_tcp::{Segment, SeqNum};
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, Endpoints};

const MS: Duration = Duration::from_millis(1);
const MAX_MEMORY: u64 = 8 << 20;
/// What a connection may have beyond that: see docs/design/stack.md.
const LEAST: u64 = 12 << 10;
const MAX_ORPHANS: usize = 500;
/// What an honest transfer has, and the longest that it may take.
const LEN: usize = 200_000;
const LIMIT: Duration = Duration::from_secs(1);
const ATTACK: Duration = Duration::from_secs(3);
/// The attacker's initial sequence number.
const ISN: SeqNum = SeqNum(5000);

/// What the server does for each connection of the attacker, and the window that this has.
#[derive(Clone, Copy)]
struct Attack {
    len: usize,
    closes: bool,
    window: u16,
}

/// What the server's program still has to do for a connection.
#[derive(Clone, Copy, Debug)]
struct Task {
    to_read: usize,
    to_write: usize,
    closes: bool,
}

struct World {
    now: Instant,
    server: Stack,
    listener: ListenerId,
    client: Stack,
    tasks: BTreeMap<SocketId, Task>,
    attack: Attack,
    attackers: u32,
    /// What the next honest client wants.
    honest: Task,
}

fn server() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

fn attacker(n: u32) -> SocketAddr {
    SocketAddr::new([10, 1, 0, 1].into(), 1024 + n as u16)
}

fn is_attacker(address: SocketAddr) -> bool {
    address.ip() == attacker(0).ip()
}

impl World {
    fn new(attack: Attack) -> World {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let options = Options {
            addresses: vec![server().ip()],
            max_memory: Bytes(MAX_MEMORY),
            max_orphans: MAX_ORPHANS,
            ..Options::default()
        };
        let mut stack = Stack::new(now, options, [7; 32]);
        let listener = stack.listen(server(), &ListenOptions::default()).unwrap();
        let addresses = vec![IpAddr::from([10, 9, 0, 1])];
        let client = Stack::new(now, Options { addresses, ..Options::default() }, [5; 32]);
        let honest = Task { to_read: 0, to_write: 0, closes: true };
        World { now, server: stack, listener, client, tasks: BTreeMap::new(), attack, attackers: 0, honest }
    }

    fn attack(&mut self, n: u32, segment: Segment) {
        let endpoints = Endpoints { source: attacker(n), destination: server() };
        let segment = Segment { window: self.attack.window, ..segment };
        self.server.on_segment(self.now, &Decoded { endpoints, hop_limit: 64, segment, payload: &[] });
    }

    /// One more client of the attacker.
    fn open(&mut self) {
        self.attackers += 1;
        let mut syn = Segment { seq: ISN, flags: Flags::SYN, ..Segment::default() };
        syn.options.mss = Some(1460);
        self.attack(self.attackers, syn);
    }

    /// It acknowledges what its window takes.
    fn answer(&mut self, to: SocketAddr, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        let is_taken = segment.flags.has(Flags::SYN) || self.attack.window > 0;
        let ack = if is_taken { segment.seq.plus(segment.seq_len()) } else { segment.seq };
        if segment.seq_len() > 0 {
            let n = u32::from(to.port() - 1024);
            self.attack(n, Segment { seq: ISN.plus(1), ack, flags: Flags::ACK, ..Segment::default() });
        }
    }

    /// The server's program does what it can for a connection.
    fn work(&mut self, id: SocketId) {
        let Some(mut task) = self.tasks.remove(&id) else { return };
        let mut buffer = [0; 8192];
        while let Ok(n @ 1..) = self.server.read(self.now, id, &mut buffer) {
            task.to_read -= n;
        }
        while task.to_read == 0 && task.to_write > 0 {
            match self.server.write(id, &vec![3; task.to_write.min(1 << 16)]) {
                Ok(n) => task.to_write -= n,
                Err(Error::WouldBlock) => break,
                Err(_) => return self.server.close(self.now, id),
            }
        }
        if task.closes && task.to_read == 0 && task.to_write == 0 {
            self.server.close(self.now, id);
        } else {
            self.tasks.insert(id, task);
        }
    }

    fn settle(&mut self) {
        let mut payload = Vec::new();
        while let Some(transmit) = self.server.poll(self.now, &mut payload) {
            let to = transmit.endpoints.destination;
            if is_attacker(to) {
                self.answer(to, &transmit.segment);
            } else {
                let (endpoints, segment) = (transmit.endpoints, transmit.segment);
                self.client.on_segment(self.now, &Decoded { endpoints, hop_limit: 64, segment, payload: &payload });
            }
            payload.clear();
        }
        while let Some(event) = self.server.next_event() {
            match event {
                Event::Acceptable(_) => {
                    while let Some(id) = self.server.accept(self.listener) {
                        let (_, peer) = self.server.addresses(id).unwrap();
                        let Attack { len, closes, .. } = self.attack;
                        let theirs = Task { to_read: 0, to_write: len, closes };
                        self.tasks.insert(id, if is_attacker(peer) { theirs } else { self.honest });
                        self.work(id);
                    }
                }
                Event::Readable(id) | Event::Writable(id) | Event::Closed(id) => self.work(id),
                _ => {}
            }
        }
        let most = MAX_MEMORY + self.server.sockets() as u64 * LEAST;
        assert!(self.server.memory().0 <= most, "{} of {most}", self.server.memory());
    }

    /// A millisecond passes, in which the attacker opens a connection.
    fn step(&mut self) {
        self.now = self.now + MS;
        self.open();
        self.server.on_timer(self.now);
        self.client.on_timer(self.now);
        let mut packet = Vec::new();
        for _ in 0..3 {
            while self.client.poll_packet(self.now, &mut packet) {
                self.server.on_packet(self.now, &packet);
            }
            self.settle();
        }
    }

    /// An honest client sends `up` bytes, gets `down`, and sees the end of the stream.
    fn transfer(&mut self, up: usize, down: usize) -> Result<(), String> {
        self.honest = Task { to_read: up, to_write: down, closes: true };
        let began = self.now;
        let id = self.client.connect(self.now, None, server(), &SocketOptions::default()).unwrap();
        let (mut sent, mut got) = (0, 0);
        while self.now < began + LIMIT {
            self.step();
            if sent < up {
                sent += self.client.write(id, &vec![3; up - sent]).unwrap_or(0);
            }
            match self.client.read(self.now, id, &mut vec![0; 1 << 16]) {
                Ok(0) if got == down => {
                    self.client.close(self.now, id);
                    return Ok(());
                }
                Ok(n @ 1..) => got += n,
                Err(Error::WouldBlock) => {}
                other => return Err(format!("{other:?} after {sent} and {got} bytes")),
            }
        }
        Err(format!("{sent} of {up} bytes up, {got} of {down} down"))
    }
}

fn check(attack: Attack) {
    let mut world = World::new(attack);
    let until = world.now + ATTACK;
    while world.now < until {
        for (up, down) in [(0, LEN), (LEN, 4)] {
            let result = world.transfer(up, down);
            assert_eq!(
                result,
                Ok(()),
                "{:?}, {} sockets, {:?}",
                until,
                world.server.sockets(),
                world.server.counters()
            );
        }
    }
}

#[test]
fn clients_that_never_open_their_window_keep_nobody_out() {
    check(Attack { len: 1_000_000, closes: false, window: 0 });
}

#[test]
fn closed_sockets_with_data_for_closed_windows_keep_nobody_out() {
    check(Attack { len: 60_000, closes: true, window: 0 });
    check(Attack { len: 100, closes: true, window: 0 });
}

#[test]
fn peers_that_never_close_keep_nobody_out() {
    check(Attack { len: 100, closes: true, window: 60_000 });
}
