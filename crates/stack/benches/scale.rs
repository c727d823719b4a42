//! What a socket costs when there are many: memory of idle connections, and time per segment with 10 and with 100,000
//! connections. Prints the tables of `docs/stack.md`.
//!
//! Each measurement of memory is a separate process.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use nix::time::{ClockId, clock_gettime};
use reknit_stack::{ListenOptions, Options, SocketId, SocketOptions, Stack};
use reknit_units::{Duration, Instant};

const MANY: usize = 100_000;
const FEW: usize = 10;
/// Messages in each round of the measurement of time.
const MESSAGES: usize = 200_000;
const ROUNDS: usize = 5;

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

/// A server, its clients, and what connects them: nothing is lost or delayed.
struct Pair {
    now: Instant,
    client: Stack,
    server: Stack,
    connections: Vec<(SocketId, SocketId)>,
    packet: Vec<u8>,
}

impl Pair {
    fn new(connections: usize) -> Pair {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let clients: Vec<IpAddr> = (1..=16).map(|n| Ipv4Addr::new(10, 1, 0, n).into()).collect();
        let stack = |addresses| Stack::new(now, Options { addresses, ..Options::default() }, [7; 32]);
        let (client, server) = (stack(clients.clone()), stack(vec![SERVER]));
        let mut pair = Pair { now, client, server, connections: Vec::new(), packet: Vec::new() };
        let listener = pair.server.listen((SERVER, 80).into(), &ListenOptions::default()).expect("a free port");
        let options = SocketOptions::default();
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
fn memory_per_socket() -> (f64, f64) {
    let before = memory();
    let mut pair = Pair::new(MANY);
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
    for _ in 0..100 {
        pair.now = pair.now + Duration::from_millis(100);
        pair.client.on_timer(pair.now);
        pair.server.on_timer(pair.now);
        pair.exchange();
    }
    (fresh, (memory() - before) / sockets)
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    if std::env::args().any(|argument| argument == "memory") {
        let (fresh, used) = memory_per_socket();
        println!("{fresh} {used}");
        return;
    }
    let program = std::env::current_exe().expect("the program has a path");
    let output = Command::new(program).arg("memory").output().expect("the program can run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let (mut few, mut many) = (Pair::new(FEW), Pair::new(MANY));
    let mut best = [f64::MAX; 2];
    for _ in 0..ROUNDS {
        for (best, pair) in best.iter_mut().zip([&mut few, &mut many]) {
            *best = best.min(pair.time_per_segment());
        }
    }
    println!("| connections | time per segment, sent and received | ratio |\n|---|---|---|");
    println!("| {FEW} | {:.0} ns | 1 |\n| {MANY} | {:.0} ns | {:.2} |\n", best[0], best[1], best[1] / best[0]);
    println!("| idle connection | memory of each end |\n|---|---|");
    if let [fresh, used] = numbers[..] {
        println!(
            "| that has transferred nothing | {fresh:.0} B |\n| that has transferred 20,000 bytes | {used:.0} B |"
        );
    } else {
        println!("{}", String::from_utf8_lossy(&output.stderr));
    }
}
