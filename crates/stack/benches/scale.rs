//! What a socket costs when there are many: memory of idle connections, time per segment with 10 and with 100,000
//! connections, and a flood of SYNs. Prints the tables of `docs/stack.md`.
//!
//! Each measurement of memory is a separate process.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::Arc;

use nix::time::{ClockId, clock_gettime};
use reknit_stack::{ListenOptions, ListenerId, Options, SocketId, SocketOptions, Stack};
use reknit_tcp::SeqNum;
use reknit_tcp::segment::{Flags, Segment};
use reknit_units::{Duration, Instant};
use reknit_wire::{Endpoints, encode};

const MANY: usize = 100_000;
const FEW: usize = 10;
/// Messages in each round of the measurement of time.
const MESSAGES: usize = 200_000;
const ROUNDS: usize = 5;
const VARIANTS: [&str; 2] = ["reknit", "sack"];
/// SYNs of the flood.
const SYNS: u32 = 1_000_000;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// A server, its clients, and what connects them: nothing is lost or delayed.
struct Pair {
    now: Instant,
    client: Stack,
    server: Stack,
    listener: ListenerId,
    connections: Vec<(SocketId, SocketId)>,
    packet: Vec<u8>,
}

impl Pair {
    fn new(connections: usize, variant: &str) -> Pair {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let clients: Vec<IpAddr> = (1..=16).map(|n| Ipv4Addr::new(10, 1, 0, n).into()).collect();
        let stack = |addresses| Stack::new(now, Options { addresses, ..Options::default() }, [7; 32]);
        let (client, mut server) = (stack(clients.clone()), stack(vec![SERVER]));
        let variant = reknit_variants::find(variant).expect("a variant");
        let options = SocketOptions::of(Arc::new((variant.compose)()));
        let listening = ListenOptions { socket: options.clone(), ..ListenOptions::default() };
        let listener = server.listen((SERVER, 80).into(), &listening).expect("a free port");
        let mut pair = Pair { now, client, server, listener, connections: Vec::new(), packet: Vec::new() };
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
            while self.client.poll_packet(self.now, &mut self.packet) {
                self.server.on_packet(self.now, &self.packet);
                packets += 1;
            }
            while self.server.poll_packet(self.now, &mut self.packet) {
                self.client.on_packet(self.now, &self.packet);
                packets += 1;
            }
            while self.client.next_event().is_some() {}
            while self.server.next_event().is_some() {}
            if packets == before {
                return packets;
            }
        }
    }

    /// Every client in turn, in no order, sends 100 bytes and gets 100 back. Nanoseconds per segment, sent and received.
    fn time_per_segment(&mut self) -> f64 {
        let mut state = 1u64;
        let (mut packets, mut buffer) = (0, [0; 200]);
        let began = processor_time();
        for _ in 0..MESSAGES {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (client, server) = self.connections[(state >> 33) as usize % self.connections.len()];
            self.now = self.now + Duration::from_micros(20);
            let _ = self.client.write(client, &[1; 100]);
            packets += self.exchange();
            let _ = self.server.read(self.now, server, &mut buffer);
            let _ = self.server.write(server, &[2; 100]);
            packets += self.exchange();
            let _ = self.client.read(self.now, client, &mut buffer);
            self.client.on_timer(self.now);
            self.server.on_timer(self.now);
            packets += self.exchange();
        }
        (processor_time() - began) * 1e9 / packets as f64
    }
}

/// The processor time of this process so far, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("POSIX has this clock");
    std::time::Duration::from(time).as_secs_f64()
}

/// The memory of this process, in bytes.
fn memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<f64>().ok());
    kib.expect("a number") * 1024.0
}

/// Bytes per socket: of a connection that has transferred nothing, and of one that has and is idle again.
fn memory_per_socket(variant: &str) -> (f64, f64) {
    let before = memory();
    let mut pair = Pair::new(MANY, variant);
    let sockets = (2 * MANY) as f64;
    let fresh = (memory() - before) / sockets;
    let (mut buffer, data) = (vec![0; 100_000], vec![1; 20_000]);
    for n in 0..MANY {
        let (client, server) = pair.connections[n];
        let _ = pair.client.write(client, &data);
        for _ in 0..10 {
            pair.exchange();
            pair.now = pair.now + Duration::from_micros(100);
            let _ = pair.server.read(pair.now, server, &mut buffer);
            pair.client.on_timer(pair.now);
            pair.server.on_timer(pair.now);
        }
    }
    for step in 0..100 {
        // The rest comes when a delayed ACK lets Nagle's algorithm send it.
        for (_, server) in pair.connections.iter().filter(|_| step == 10) {
            let _ = pair.server.read(pair.now, *server, &mut buffer);
        }
        pair.now = pair.now + Duration::from_millis(100);
        pair.client.on_timer(pair.now);
        pair.server.on_timer(pair.now);
        pair.exchange();
    }
    (fresh, (memory() - before) / sockets)
}

/// A million SYNs from as many addresses, a microsecond apart, and a hundred honest clients among them: bytes of memory
/// per SYN after the first tenth, nanoseconds per SYN, and the number of honest clients that got a connection.
fn flood() -> (f64, f64, usize) {
    let mut pair = Pair::new(0, VARIANTS[0]);
    let listener = pair.listener;
    let (mut packet, mut answer, mut honest) = (Vec::new(), Vec::new(), 0);
    let (mut before, mut began) = (0.0, 0.0);
    for n in 0..SYNS {
        if n == SYNS / 10 {
            (before, began) = (memory(), processor_time());
        }
        let source = (Ipv4Addr::from(0x0b00_0000 + n), 1024 + (n % 60_000) as u16).into();
        let syn = Segment { seq: SeqNum(n), flags: Flags::SYN, window: 1000, ..Segment::default() };
        encode(Endpoints { source, destination: (SERVER, 80).into() }, &syn, &[], &mut packet);
        pair.now = pair.now + Duration::from_micros(1);
        pair.server.on_packet(pair.now, &packet);
        while pair.server.poll_packet(pair.now, &mut answer) {}
        if n % (SYNS / 100) == 0 {
            let options = SocketOptions::default();
            let opened = pair.client.connect(pair.now, None, (SERVER, 80).into(), &options);
            pair.exchange();
            honest += usize::from(opened.is_ok() && pair.server.accept(listener).is_some());
        }
    }
    let counted = f64::from(SYNS - SYNS / 10);
    ((memory() - before) / counted, (processor_time() - began) * 1e9 / counted, honest)
}

/// Nanoseconds per segment with few connections and with many: the best of the rounds.
fn times(variant: &str) -> [f64; 2] {
    let mut pairs = [FEW, MANY].map(|connections| Pair::new(connections, variant));
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, pair) in best.iter_mut().zip(&mut pairs) {
            *best = best.min(pair.time_per_segment());
        }
    }
    best
}

/// Runs this program with `arguments`; the numbers that it prints.
fn separately(arguments: [&str; 2]) -> Vec<f64> {
    let program = std::env::current_exe().expect("the program has a path");
    let output = Command::new(program).args(arguments).output().expect("the program can run");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["memory", variant] => {
            let (fresh, used) = memory_per_socket(variant);
            println!("{fresh} {used}");
        }
        ["time", variant] => {
            let [few, many] = times(variant);
            println!("{few} {many}");
        }
        ["flood", _] => {
            let (bytes, time, honest) = flood();
            println!("{bytes} {time} {honest}");
        }
        _ => tables(),
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn tables() {
    println!(
        "| | {} |\n|---|{}",
        VARIANTS.map(|variant| format!("`{variant}`")).join(" | "),
        "---|".repeat(VARIANTS.len())
    );
    let times = VARIANTS.map(|variant| separately(["time", variant]));
    let sizes = VARIANTS.map(|variant| separately(["memory", variant]));
    let row = |name: &str, cells: Vec<String>| println!("| {name} | {} |", cells.join(" | "));
    row(&format!("time per segment, {FEW} connections"), times.iter().map(|t| format!("{:.0} ns", t[0])).collect());
    let many = times.iter().map(|t| format!("{:.0} ns ({:.1} times)", t[1], t[1] / t[0]));
    row(&format!("time per segment, {MANY} connections"), many.collect());
    row("memory of an end that has transferred nothing", sizes.iter().map(|s| format!("{:.0} B", s[0])).collect());
    row("memory of an end, idle again after 20,000 bytes", sizes.iter().map(|s| format!("{:.0} B", s[1])).collect());
    let syns = separately(["flood", ""]);
    println!("\n| {SYNS} SYNs from as many addresses | |\n|---|---|");
    println!("| memory per SYN, after the first tenth | {:.2} B |", syns[0]);
    println!("| time per SYN, with the answer | {:.0} ns |", syns[1]);
    println!("| connections of 100 honest clients meanwhile | {:.0} |", syns[2]);
}
