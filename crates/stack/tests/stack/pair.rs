//! Two stacks back to back over a random network, in virtual time.

use std::collections::BTreeMap;

use reknit_stack::{Error, Event, ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_testkit::flight::Flight;
use reknit_testkit::network::Network;
use reknit_units::{Duration, Instant};
use reknit_wire::Decoded;

pub(crate) const CALM: Network =
    Network { loss: 0.0, duplication: 0.0, damage: 0.0, delay_ms: 10, jitter_ms: 0, marking: 0.0 };
pub(crate) const WILD: Network =
    Network { loss: 0.02, duplication: 0.02, damage: 0.01, delay_ms: 20, jitter_ms: 30, marking: 0.0 };

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// What happens to a packet before it enters the network.
pub(crate) type Filter = Box<dyn FnMut(usize, &[u8]) -> Verdict>;

pub(crate) enum Verdict {
    Pass,
    Drop,
}

pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) stacks: [Stack; 2],
    pub(crate) filter: Filter,
    pub(crate) events: [Vec<Event>; 2],
    /// Each segment is passed to [`Stack::prefetch`] first.
    pub(crate) reads_ahead: bool,
    flight: Flight,
    packet: Vec<u8>,
}

pub(crate) fn addresses(end: usize, is_v6: bool) -> std::net::IpAddr {
    let text = match (end, is_v6) {
        (0, false) => "10.0.0.1",
        (_, false) => "10.0.0.2",
        (0, true) => "fd00::1",
        (_, true) => "fd00::2",
    };
    text.parse().unwrap()
}

/// A stack that has both addresses of `end`.
pub(crate) fn stack(end: usize) -> Stack {
    let addresses = vec![addresses(end, false), addresses(end, true)];
    let options = Options { addresses, ..Options::default() };
    Stack::new(start(), options, [end as u8 + 1; 32])
}

fn start() -> Instant {
    Instant::ZERO + Duration::from_secs(1000)
}

impl Pair {
    pub(crate) fn new(network: Network, seed: u64) -> Pair {
        Pair {
            now: start(),
            stacks: [stack(CLIENT), stack(SERVER)],
            filter: Box::new(|_, _| Verdict::Pass),
            events: [Vec::new(), Vec::new()],
            reads_ahead: false,
            flight: Flight::new(network, seed),
            packet: Vec::new(),
        }
    }

    pub(crate) fn client(&mut self) -> &mut Stack {
        &mut self.stacks[CLIENT]
    }

    pub(crate) fn server(&mut self) -> &mut Stack {
        &mut self.stacks[SERVER]
    }

    pub(crate) fn listen(&mut self, options: &ListenOptions) -> ListenerId {
        self.server().listen("0.0.0.0:80".parse().unwrap(), options).unwrap()
    }

    pub(crate) fn connect(&mut self) -> SocketId {
        self.connect_with(&SocketOptions::default())
    }

    pub(crate) fn connect_with(&mut self, options: &SocketOptions) -> SocketId {
        let now = self.now;
        self.client().connect(now, None, "10.0.0.2:80".parse().unwrap(), options).unwrap()
    }

    /// A connection whose two ends are established, by listener.
    pub(crate) fn connected(&mut self, options: &SocketOptions) -> (SocketId, SocketId) {
        let listener = self.listen(&ListenOptions { socket: options.clone(), ..ListenOptions::default() });
        let client = self.connect_with(options);
        let until = self.now + Duration::from_secs(60);
        let server = loop {
            assert!(self.step(until), "it is established in time");
            self.flush();
            if let Some(server) = self.server().accept(listener) {
                break server;
            }
        };
        self.server().unlisten(start(), listener);
        self.flush();
        (client, server)
    }

    /// Takes everything that the stacks want to send or tell.
    pub(crate) fn flush(&mut self) {
        for end in 0..2 {
            while self.stacks[end].poll_packet(self.now, &mut self.packet) {
                match (self.filter)(end, &self.packet) {
                    Verdict::Pass => self.flight.send(self.now, end, &self.packet),
                    Verdict::Drop => {}
                }
            }
            while let Some(event) = self.stacks[end].next_event() {
                self.events[end].push(event);
            }
        }
    }

    /// Goes to the next thing that happens, but not beyond `until`. False if nothing happens before.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let timers = self.stacks.iter().map(Stack::deadline);
        let next = timers.fold(self.flight.next(), Instant::min).max(self.now);
        if next > until || !next.is_set() {
            self.now = self.now.max(until);
            return false;
        }
        self.now = next;
        for stack in &mut self.stacks {
            stack.on_timer(self.now);
        }
        while let Some((to, packet)) = self.flight.take(self.now) {
            if self.reads_ahead {
                self.stacks[to].prefetch(Decoded::read(&packet).iter());
            }
            self.stacks[to].on_packet(self.now, &packet);
        }
        true
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// True if this event has come.
    pub(crate) fn has(&self, end: usize, event: Event) -> bool {
        self.events[end].contains(&event)
    }

    /// Reads everything that can be read now.
    pub(crate) fn read_all(&mut self, end: usize, id: SocketId) -> (Vec<u8>, Result<(), Error>) {
        let mut all = Vec::new();
        let mut buffer = [0; 8192];
        loop {
            match self.stacks[end].read(self.now, id, &mut buffer) {
                Ok(0) => return (all, Ok(())),
                Ok(n) => all.extend_from_slice(&buffer[..n]),
                Err(error) => return (all, Err(error)),
            }
        }
    }
}

/// Bytes that differ by connection and position.
pub(crate) fn bytes(connection: usize, range: std::ops::Range<usize>) -> Vec<u8> {
    range.map(|i| (i * 7 + i / 251 + connection * 101) as u8).collect()
}

/// Lets each connection of a client send `len` bytes to a server that sends them back, and closes them.
pub(crate) struct Echo {
    pub(crate) len: usize,
    clients: BTreeMap<SocketId, Client>,
    /// What each connection of the server could not write yet.
    servers: BTreeMap<SocketId, Vec<u8>>,
    pub(crate) failures: Vec<Error>,
}

struct Client {
    number: usize,
    written: usize,
    read: Vec<u8>,
    done: bool,
}

impl Echo {
    pub(crate) fn new(len: usize) -> Echo {
        Echo { len, clients: BTreeMap::new(), servers: BTreeMap::new(), failures: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: SocketId) {
        let number = self.clients.len();
        self.clients.insert(id, Client { number, written: 0, read: Vec::new(), done: false });
    }

    /// The number of connections that have got everything back.
    pub(crate) fn done(&self) -> usize {
        self.clients.values().filter(|client| client.done).count()
    }

    /// Reacts to all events so far.
    pub(crate) fn react(&mut self, pair: &mut Pair) {
        pair.flush();
        for event in std::mem::take(&mut pair.events[CLIENT]) {
            match event {
                Event::Connected(id) | Event::Writable(id) => self.write(pair, id),
                Event::Readable(id) => self.read(pair, id),
                Event::Closed(id) => {
                    self.failures.extend(pair.client().failure(id));
                    let now = pair.now;
                    pair.client().close(now, id);
                }
                Event::Acceptable(_) => unreachable!("the client does not listen"),
                Event::Delivered(_) | Event::Requested | Event::UdpReadable(_) | Event::UdpWritable(_) => {
                    unreachable!("it did not ask")
                }
            }
        }
        for event in std::mem::take(&mut pair.events[SERVER]) {
            match event {
                Event::Acceptable(listener) => {
                    while let Some(id) = pair.server().accept(listener) {
                        self.servers.insert(id, Vec::new());
                    }
                }
                Event::Readable(id) | Event::Writable(id) => self.serve(pair, id),
                Event::Connected(_)
                | Event::Delivered(_)
                | Event::Requested
                | Event::UdpReadable(_)
                | Event::UdpWritable(_) => {
                    unreachable!("it neither connects nor asks")
                }
                Event::Closed(id) => {
                    let now = pair.now;
                    pair.server().close(now, id);
                }
            }
        }
    }

    fn write(&mut self, pair: &mut Pair, id: SocketId) {
        let client = self.clients.get_mut(&id).unwrap();
        while client.written < self.len {
            let chunk = bytes(client.number, client.written..(client.written + 3000).min(self.len));
            match pair.client().write(id, &chunk) {
                Ok(n) => client.written += n,
                Err(Error::WouldBlock) => return,
                Err(error) => return self.failures.push(error),
            }
        }
        let now = pair.now;
        pair.client().shutdown(now, id, reknit_stack::Shutdown::Write).unwrap();
    }

    fn read(&mut self, pair: &mut Pair, id: SocketId) {
        let (new, result) = pair.read_all(CLIENT, id);
        let client = self.clients.get_mut(&id).unwrap();
        client.read.extend(new);
        if result.is_ok() && !client.done {
            assert_eq!(client.read.len(), self.len);
            assert!(client.read == bytes(client.number, 0..self.len), "the stream is corrupted");
            client.done = true;
            client.read = Vec::new();
            let now = pair.now;
            pair.client().close(now, id);
        }
    }

    fn serve(&mut self, pair: &mut Pair, id: SocketId) {
        let waiting = self.servers.get_mut(&id).unwrap();
        loop {
            while !waiting.is_empty() {
                match pair.server().write(id, waiting) {
                    Ok(n) => drop(waiting.drain(..n)),
                    Err(_) => return,
                }
            }
            let mut buffer = [0; 8192];
            let now = pair.now;
            match pair.server().read(now, id, &mut buffer) {
                Ok(0) => return pair.server().close(now, id),
                Ok(n) => waiting.extend_from_slice(&buffer[..n]),
                Err(_) => return,
            }
        }
    }
}
