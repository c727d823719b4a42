//! A bulk transfer beside a flood of segments for another connection, through a device with a queue, in a model of time: each
//! packet that is read or written takes as long as with a TUN device.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use reknit_net::{Network, OwnedReadHalf, OwnedWriteHalf, PacketIo, SocketOptions, TcpListener};
use reknit_stack::{SocketId, Stack};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Options, Segment};
use reknit_units::{Duration, Instant};
use reknit_wire::{Decoded, Endpoints, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long it takes to read a packet, and to write one with so many bytes, ns.
const READ: u64 = 1000;
fn write(bytes: usize) -> u64 {
    6000 + bytes as u64 * 3 / 10
}
/// The longest that the model waits at once, ns.
const IDLE: u64 = 20_000;
/// When the flood begins, and when a run ends, ns.
const BEGIN: u64 = 5_000_000;
const END: u64 = 200_000_000;
/// The packets that a TUN device queues.
const QUEUE: usize = 500;
const VIRTIO: usize = 10;
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const ATTACKERS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

fn server() -> SocketAddr {
    "10.0.0.2:80".parse().unwrap()
}

/// What an attacker acknowledges next. Each acknowledgment allows one more byte.
type Attackers = BTreeMap<SocketAddr, SeqNum>;

/// Which way an honest client transfers as much as it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Down,
    Up,
}

/// The device, the clients and the time.
struct Model {
    way: Way,
    honest: Stack,
    socket: SocketId,
    /// Bytes that the honest client has received, or had acknowledged.
    goodput: Arc<AtomicU64>,
    attackers: Attackers,
    queue: VecDeque<Vec<u8>>,
    /// Nanoseconds.
    now: u64,
    /// Between two segments of the flood, and when the next one comes.
    gap: u64,
    next: u64,
    sent: usize,
    offload: bool,
}

impl Model {
    /// Time passes, also for the network.
    fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        let time = std::time::Duration::from_nanos(nanos);
        // The clock is set before the first pause of this future.
        let _ = pin!(tokio::time::advance(time)).poll(&mut Context::from_waker(Waker::noop()));
    }

    fn arrive(&mut self, packet: &[u8]) {
        if self.queue.len() < QUEUE {
            let header = if self.offload { VIRTIO } else { 0 };
            self.queue.push_back([&vec![0; header][..], packet].concat());
        }
    }

    fn attack(&mut self, from: SocketAddr, segment: Segment) {
        let endpoints = Endpoints { source: from, destination: server() };
        let mut packet = Vec::new();
        encode(endpoints, &Segment { window: 1, ..segment }, &[], &mut packet);
        self.arrive(&packet);
    }

    /// What the attackers have sent by now: acknowledgments of all that they got.
    fn flood(&mut self) {
        while self.next <= self.now {
            self.next += self.gap;
            self.sent += 1;
            let (from, ack) = self.attackers.iter().nth(self.sent % self.attackers.len()).expect("one");
            let segment = Segment { seq: SeqNum(5001), ack: *ack, flags: Flags::ACK, ..Segment::default() };
            self.attack(*from, segment);
        }
    }

    fn time(&self) -> Instant {
        Instant::ZERO + Duration::from_secs(1000) + Duration::from_nanos(self.now)
    }

    /// The honest client reads or writes as much as it can, and its packets arrive.
    fn transfer(&mut self) {
        let now = self.time();
        if self.honest.deadline() <= now {
            self.honest.on_timer(now);
        }
        let mut bytes = vec![0; 1 << 16];
        if self.way == Way::Up {
            while self.honest.write(self.socket, &bytes).is_ok() {}
            let acknowledged = self.honest.info(now, self.socket).map_or(0, |info| info.tcp.acknowledged);
            self.goodput.store(acknowledged, Ordering::Relaxed);
        }
        while let Ok(n @ 1..) = self.honest.read(now, self.socket, &mut bytes) {
            self.goodput.fetch_add(n as u64, Ordering::Relaxed);
        }
        let mut packet = Vec::new();
        while self.honest.poll_packet(now, &mut packet) {
            self.arrive(&packet);
        }
        while self.honest.next_event().is_some() {}
    }
}

impl PacketIo for Model {
    fn mtu(&self) -> u16 {
        1500
    }

    fn has_offload(&self) -> bool {
        self.offload
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.now > END {
            return Err(io::Error::other("the time is over"));
        }
        self.flood();
        if self.queue.is_empty() {
            self.transfer();
        }
        Ok(self.queue.pop_front().map(|packet| {
            self.pass(READ);
            into[..packet.len()].copy_from_slice(&packet);
            packet.len()
        }))
    }

    fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.pass(write(packet.len()));
        let arrived = Decoded::read_verified(&packet[if self.offload { VIRTIO } else { 0 }..]).unwrap();
        if let Some(next) = self.attackers.get_mut(&arrived.endpoints.destination) {
            let syn = u32::from(arrived.segment.flags.has(Flags::SYN));
            *next = arrived.segment.seq.plus(u32::from(arrived.segment.len) + syn);
        } else {
            self.honest.on_segment(self.time(), &arrived);
            self.transfer();
        }
        Ok(())
    }

    async fn readable(&mut self) -> io::Result<()> {
        if self.queue.is_empty() {
            self.pass(self.next.saturating_sub(self.now).clamp(1, IDLE));
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

/// Bytes that an honest client transfers in the time, beside so many attackers that send so many segments per second together.
fn goodput(way: Way, attackers: u16, rate: u64, offload: bool) -> u64 {
    let options = reknit_stack::Options { addresses: vec![CLIENT], ..reknit_stack::Options::default() };
    let begin = Instant::ZERO + Duration::from_secs(1000);
    let mut honest = Stack::new(begin, options, [2; 32]);
    let socket = honest.connect(begin, None, server(), &SocketOptions::default()).unwrap();
    let attackers: Attackers = (0..attackers).map(|n| (SocketAddr::new(ATTACKERS, 2000 + n), SeqNum(0))).collect();
    let (gap, next) = if attackers.is_empty() { (0, u64::MAX) } else { (1_000_000_000 / rate, BEGIN) };
    let (goodput, queue, from) = (Arc::default(), VecDeque::new(), attackers.clone());
    let mut model = Model { way, honest, socket, goodput, attackers, queue, now: 0, gap, next, sent: 0, offload };
    let options = Options { mss: Some(1460), ..Options::default() };
    for from in from.keys() {
        model.attack(*from, Segment { seq: SeqNum(5000), flags: Flags::SYN, options, ..Segment::default() });
    }
    let goodput = model.goodput.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(serve(model));
    goodput.load(Ordering::Relaxed)
}

/// Reads what every client sends, and sends as much as it takes, but not to one that uploads.
async fn serve(model: Model) {
    let uploading = if model.way == Way::Up { CLIENT } else { server().ip() };
    let builder = Network::builder(server().ip()).drain_limit(std::time::Duration::ZERO).secret([1; 32]);
    let (network, driver) = builder.build(model).unwrap();
    let listener = TcpListener::bind(&network, server()).unwrap();
    let accepting = tokio::spawn(async move {
        while let Ok((stream, client)) = listener.accept().await {
            let (read, write) = stream.into_split();
            tokio::spawn(receive(read));
            if client.ip() != uploading {
                tokio::spawn(send(write));
            }
        }
    });
    driver.run().await;
    accepting.abort();
}

async fn send(mut stream: OwnedWriteHalf) {
    let chunk = vec![7; 1 << 18];
    while stream.write_all(&chunk).await.is_ok() {}
}

async fn receive(mut stream: OwnedReadHalf) {
    let mut bytes = vec![0; 1 << 18];
    while stream.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
}

#[test]
fn a_flood_of_tiny_windows_leaves_a_transfer_its_share() {
    let (slow, fast) = ((1, 58_000), (4, 150_000));
    for (way, offload, (attackers, rate)) in [(Way::Up, false, fast), (Way::Up, true, slow), (Way::Down, true, fast)] {
        let share = goodput(way, attackers, rate, offload) as f64 / goodput(way, 0, 1, offload) as f64;
        let case = format!("{way:?}, offload {offload}, {attackers} attackers with {rate} segments per second");
        assert!(share > 0.4, "{case}: {share:.2}");
    }
}
