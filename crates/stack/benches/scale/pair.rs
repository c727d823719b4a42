//! A server, its clients, and what connects them.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use reknit_stack::{ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Segment};
use reknit_units::{Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};

/// The most packets that are read together, as by the driver of `reknit-net`.
pub(crate) const BATCH: usize = 32;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// Nothing is lost or delayed between them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    client: Stack,
    server: Stack,
    listener: ListenerId,
    connections: Vec<(SocketId, SocketId)>,
    packet: Vec<u8>,
    batch: Batch,
}

/// Packets that are read together.
struct Batch {
    packets: Vec<Vec<u8>>,
}

impl Batch {
    fn new() -> Batch {
        Batch { packets: vec![Vec::new(); BATCH] }
    }

    /// Carries what `from` sends to `to`; returns how many packets there were.
    fn carry(&mut self, now: Instant, from: &mut Stack, to: &mut Stack) -> usize {
        let mut total = 0;
        loop {
            let mut count = 0;
            while count < BATCH && from.poll_packet(now, &mut self.packets[count]) {
                count += 1;
            }
            let arrived: Vec<Decoded<'_>> =
                self.packets[..count].iter().map(|packet| Decoded::read(packet).expect("a segment")).collect();
            to.prefetch(&arrived);
            for segment in &arrived {
                to.on_segment(now, segment);
            }
            total += count;
            if count < BATCH {
                return total;
            }
        }
    }
}

impl Pair {
    /// Opens `connections`, one every 10 microseconds.
    pub(crate) fn new(connections: usize, variant: &str) -> Pair {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let clients: Vec<IpAddr> = (1..=16).map(|n| Ipv4Addr::new(10, 1, 0, n).into()).collect();
        let stack = |addresses| Stack::new(now, Options { addresses, ..Options::default() }, [7; 32]);
        let (client, mut server) = (stack(clients.clone()), stack(vec![SERVER]));
        let variant = reknit_variants::find(variant).expect("a variant");
        let options = SocketOptions::of(Arc::new((variant.compose)()));
        let listening = ListenOptions { socket: options.clone(), ..ListenOptions::default() };
        let listener = server.listen((SERVER, 80).into(), &listening).expect("a free port");
        let mut pair =
            Pair { now, client, server, listener, connections: Vec::new(), packet: Vec::new(), batch: Batch::new() };
        for n in 0..connections {
            let local = Some((clients[n % clients.len()], 0).into());
            let id = pair.client.connect(pair.now, local, (SERVER, 80).into(), &options).expect("a free port");
            pair.exchange();
            let accepted = pair.server.accept(listener).expect("it is established");
            pair.connections.push((id, accepted));
            pair.now = pair.now + Duration::from_micros(10);
        }
        pair
    }

    /// Carries packets until there are none; returns how many there were.
    fn exchange(&mut self) -> usize {
        let mut packets = 0;
        loop {
            let before = packets;
            packets += self.batch.carry(self.now, &mut self.client, &mut self.server);
            packets += self.batch.carry(self.now, &mut self.server, &mut self.client);
            while self.client.next_event().is_some() {}
            while self.server.next_event().is_some() {}
            if packets == before {
                return packets;
            }
        }
    }

    /// Fires the timers that are due; returns how many packets they cause.
    pub(crate) fn run_timers(&mut self) -> usize {
        self.client.on_timer(self.now);
        self.server.on_timer(self.now);
        self.exchange()
    }

    /// The clients of some connections send 100 bytes each and get 100 back; returns how many packets that takes.
    pub(crate) fn exchange_messages(&mut self, connections: &[usize]) -> usize {
        let mut buffer = [0; 200];
        for n in connections {
            let _ = self.client.write(self.connections[*n].0, &[1; 100]);
        }
        let mut packets = self.exchange();
        for n in connections {
            let server = self.connections[*n].1;
            let _ = self.server.read(self.now, server, &mut buffer);
            let _ = self.server.write(server, &[2; 100]);
        }
        packets += self.exchange();
        for n in connections {
            let _ = self.client.read(self.now, self.connections[*n].0, &mut buffer);
        }
        packets + self.exchange()
    }

    /// Lets each client send `len` bytes, at most a send buffer, one after the other; returns how many packets that takes.
    pub(crate) fn transfer(&mut self, len: usize) -> usize {
        let (mut buffer, data, mut packets) = (vec![0; 100_000], vec![1; len], 0);
        for n in 0..self.connections.len() {
            let (client, server) = self.connections[n];
            let _ = self.client.write(client, &data);
            let mut read = 0;
            while read < len {
                packets += self.exchange();
                read += self.server.read(self.now, server, &mut buffer).unwrap_or(0);
                // The rest comes when a delayed ACK lets Nagle's algorithm send it.
                self.now = self.now + Duration::from_millis(20);
                packets += self.run_timers();
            }
        }
        packets
    }

    pub(crate) fn idle(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = self.now + Duration::from_millis(100);
            self.run_timers();
        }
    }

    /// SYN number `n` of a flood arrives, from an address that does not answer.
    pub(crate) fn take_syn(&mut self, n: u32) {
        let source = (Ipv4Addr::from(0x0b00_0000 + n), 1024 + (n % 60_000) as u16).into();
        let syn = Segment { seq: SeqNum(n), flags: Flags::SYN, window: 1000, ..Segment::default() };
        encode(Endpoints { source, destination: (SERVER, 80).into() }, &syn, &[], &mut self.packet);
        self.now = self.now + Duration::from_micros(1);
        self.server.on_packet(self.now, &self.packet);
        while self.server.poll_packet(self.now, &mut self.packet) {}
    }

    /// A further client opens a connection, exchanges a message, and closes it. True if it gets its answer.
    pub(crate) fn visit(&mut self) -> bool {
        let options = SocketOptions::default();
        let Ok(client) = self.client.connect(self.now, None, (SERVER, 80).into(), &options) else { return false };
        self.exchange();
        let Some(server) = self.server.accept(self.listener) else { return false };
        self.connections.push((client, server));
        self.exchange_messages(&[self.connections.len() - 1]);
        self.connections.pop();
        let is_answered = self.client.info(self.now, client).is_some_and(|info| info.received.segments > 0);
        self.server.close(self.now, server);
        self.exchange();
        self.client.close(self.now, client);
        self.exchange();
        is_answered
    }
}
