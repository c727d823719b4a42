//! What the kernel's senders reach, and what ours reach: both are measured in the same way, from the headers of packets between
//! this machine and clients whose ports are in one of two equal classes. Connections of the first class are left to the kernel.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::libc;

use crate::steering::PortClasses;

/// Connections that have transferred less say little about the path.
const MIN_BYTES: u64 = 100_000;
/// The most connections that are followed at a time.
const MAX_FLOWS: usize = 4096;
/// A connection without packets for this long is forgotten, in nanoseconds.
const IDLE: u64 = 120_000_000_000;

/// Who sends to the client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum By {
    Kernel,
    Proxy,
}

/// Transfers of one kind.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Total {
    pub(crate) connections: u64,
    /// Acknowledged by clients.
    pub(crate) bytes: u64,
    /// While something was not acknowledged.
    pub(crate) seconds: f64,
}

/// The headers of a TCP packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header {
    from: SocketAddr,
    to: SocketAddr,
    seq: u32,
    ack: u32,
    payload: u32,
    flags: u8,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A transfer to a client.
#[derive(Debug)]
struct Flow {
    by: By,
    /// The end of what was sent, and of what was acknowledged; none before the first packet of that direction.
    sent: Option<u32>,
    acked: Option<u32>,
    bytes: u64,
    busy: u64,
    /// Since when something is not acknowledged.
    since: Option<u64>,
    last: u64,
}

/// The connections that are compared.
#[derive(Debug)]
pub(crate) struct Comparison {
    classes: PortClasses,
    flows: BTreeMap<(SocketAddr, SocketAddr), Flow>,
    /// By the server's address and kind.
    ended: BTreeMap<(SocketAddr, By), Total>,
}

impl Comparison {
    pub(crate) fn new(classes: PortClasses) -> Comparison {
        Comparison { classes, flows: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// A packet has passed, seen at `now` in nanoseconds; `len` is its length, of which `bytes` are the first. The same packet may
    /// pass several interfaces.
    pub(crate) fn on_packet(&mut self, now: u64, bytes: &[u8], len: usize, takes: impl Fn(SocketAddr) -> bool) {
        let Some(header) = Header::parse(bytes, len) else { return };
        if takes(header.to) {
            if let Some(by) = self.classes.of(header.from.port()) {
                self.on_packet_of_client(now, by, &header);
            }
        } else if takes(header.from)
            && let Some(flow) = self.flows.get_mut(&(header.to, header.from))
        {
            flow.on_sent(now, header.seq.wrapping_add(header.payload));
        }
    }

    fn on_packet_of_client(&mut self, now: u64, by: By, header: &Header) {
        let key = (header.from, header.to);
        if header.flags & SYN != 0 {
            self.finish(&key);
            if self.flows.len() >= MAX_FLOWS {
                self.forget_idle(now);
            }
            if self.flows.len() < MAX_FLOWS {
                let flow = Flow { by, sent: None, acked: None, bytes: 0, busy: 0, since: None, last: now };
                self.flows.insert(key, flow);
            }
            return;
        }
        let Some(flow) = self.flows.get_mut(&key) else { return };
        if header.flags & ACK != 0 {
            flow.on_ack(now, header.ack);
        }
        let is_over = header.flags & RST != 0 || header.flags & FIN != 0 && flow.since.is_none();
        if is_over {
            self.finish(&key);
        }
    }

    fn finish(&mut self, key: &(SocketAddr, SocketAddr)) {
        if let Some(flow) = self.flows.remove(key) {
            flow.add_to(self.ended.entry((key.1, flow.by)).or_default());
        }
    }

    fn forget_idle(&mut self, now: u64) {
        let idle = self.flows.iter().filter(|(_, flow)| flow.last + IDLE < now).map(|(key, _)| *key);
        for key in idle.collect::<Vec<_>>() {
            self.finish(&key);
        }
    }

    /// The transfers from servers for which `takes` holds, open ones included.
    pub(crate) fn total(&self, by: By, takes: impl Fn(SocketAddr) -> bool) -> Total {
        let mut total = Total::default();
        for (_, ended) in self.ended.iter().filter(|((server, kind), _)| *kind == by && takes(*server)) {
            total.connections += ended.connections;
            total.bytes += ended.bytes;
            total.seconds += ended.seconds;
        }
        for (_, flow) in self.flows.iter().filter(|((_, server), flow)| flow.by == by && takes(*server)) {
            flow.add_to(&mut total);
        }
        total
    }
}

impl Flow {
    fn on_sent(&mut self, now: u64, end: u32) {
        self.last = now;
        if self.sent.is_none_or(|sent| is_after(end, sent)) {
            self.sent = Some(end);
            if self.acked.is_some_and(|acked| is_after(end, acked)) {
                self.since.get_or_insert(now);
            }
        }
    }

    fn on_ack(&mut self, now: u64, ack: u32) {
        self.last = now;
        let Some(acked) = self.acked else {
            self.acked = Some(ack);
            return;
        };
        if !is_after(ack, acked) {
            return;
        }
        self.acked = Some(ack);
        self.bytes += u64::from(ack.wrapping_sub(acked));
        if let Some(since) = self.since {
            self.busy += now.saturating_sub(since);
            self.since = self.sent.filter(|sent| is_after(*sent, ack)).map(|_| now);
        }
    }

    fn add_to(&self, total: &mut Total) {
        if self.bytes >= MIN_BYTES {
            total.connections += 1;
            total.bytes += self.bytes;
            total.seconds += self.busy as f64 / 1e9;
        }
    }
}

/// True if an IPv4 packet is no fragment but the first.
fn is_whole(bytes: &[u8]) -> Option<bool> {
    const OFFSET: u16 = 0x1fff;
    Some(u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & OFFSET == 0)
}

/// True if `a` follows `b`; sequence numbers wrap around.
fn is_after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

impl Header {
    /// Reads a packet from its IP header on; none if it is not TCP, or a fragment.
    fn parse(bytes: &[u8], len: usize) -> Option<Header> {
        const TCP: u8 = 6;
        let address = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes.get(at..at + 4)?).ok()?));
        let address_v6 = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.get(at..at + 16)?).ok()?));
        let (ip, from, to): (usize, IpAddr, IpAddr) = match bytes.first()? >> 4 {
            4 if bytes.get(9) == Some(&TCP) && is_whole(bytes)? => {
                (usize::from(bytes[0] & 15) * 4, address(12)?.into(), address(16)?.into())
            }
            6 if bytes.get(6) == Some(&TCP) => (40, address_v6(8)?.into(), address_v6(24)?.into()),
            _ => return None,
        };
        let tcp: &[u8; 20] = bytes.get(ip..ip + 20)?.try_into().ok()?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let number = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let headers = ip + usize::from(tcp[12] >> 4) * 4;
        Some(Header {
            from: SocketAddr::new(from, port(0)),
            to: SocketAddr::new(to, port(2)),
            seq: number(4),
            ack: number(8),
            payload: len.checked_sub(headers)? as u32,
            flags: tcp[13],
        })
    }
}

/// A classic BPF program over the IP packet, which lets TCP pass whose source or destination port is in one of the classes.
pub(crate) fn filter(classes: PortClasses) -> Vec<libc::sock_filter> {
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const LOAD_HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    const LOAD_HALF_AT_X: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
    const LOAD_HEADER_LEN: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ALU: u32 = libc::BPF_ALU | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    // Each test of a port takes five steps; `rest` are those between it and the end, where pass and drop are.
    let test = |load: u32, at: u32, rest: u8| {
        [
            step(load, 0, 0, at),
            step(ALU | libc::BPF_RSH, 0, 0, 1),
            step(ALU | libc::BPF_MOD, 0, 0, classes.period()),
            step(IF_EQUAL, rest + 1, 0, classes.first()),
            step(IF_EQUAL, rest, 0, classes.first() + 1),
        ]
    };
    // IPv4: 2 + 1 + 5 + 5 + 1 steps; IPv6: 3 + 5 + 5 + 1.
    let drop_v4 = step(RETURN, 0, 0, 0);
    let mut program =
        vec![step(LOAD_BYTE, 0, 0, 0), step(ALU | libc::BPF_AND, 0, 0, 0xf0), step(IF_EQUAL, 0, 14, 0x40)];
    program.extend([step(LOAD_BYTE, 0, 0, 9), step(IF_EQUAL, 0, 11, 6), step(LOAD_HEADER_LEN, 0, 0, 0)]);
    program.extend(test(LOAD_HALF_AT_X, 0, 20));
    program.extend(test(LOAD_HALF_AT_X, 2, 15));
    program.push(drop_v4);
    program.extend([step(IF_EQUAL, 0, 12, 0x60), step(LOAD_BYTE, 0, 0, 6), step(IF_EQUAL, 0, 10, 6)]);
    program.extend(test(LOAD_HALF, 40, 6));
    program.extend(test(LOAD_HALF, 42, 1));
    program.extend([step(RETURN, 0, 0, 0), step(RETURN, 0, 0, u32::MAX)]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: PortClasses = PortClasses::new(64);

    fn packet(from: &str, to: &str, [seq, ack]: [u32; 2], flags: u8, payload: usize) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut ip = vec![0; 20];
                (ip[0], ip[9]) = (0x45, 6);
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..20].copy_from_slice(&to.octets());
                ip
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut ip = vec![0; 40];
                (ip[0], ip[6]) = (0x60, 6);
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..40].copy_from_slice(&to.octets());
                ip
            }
            _ => unreachable!(),
        };
        packet.extend([from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
        packet.extend([seq.to_be_bytes(), ack.to_be_bytes()].concat());
        packet.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet.resize(packet.len() + payload, 0);
        packet
    }

    fn client(class: u32) -> String {
        format!("192.0.2.1:{}", (300 * 64 + class) * 2)
    }

    const SERVER: &str = "198.51.100.1:443";

    #[test]
    fn goodput_counts_only_time_with_data_in_flight() {
        let mut comparison = Comparison::new(CLASSES);
        let server = SERVER.parse().unwrap();
        let takes = |address: SocketAddr| address == server;
        let client = client(CLASSES.first());
        let mut see = |ms: u64, packet: &[u8]| comparison.on_packet(ms * 1_000_000, packet, packet.len(), takes);
        see(0, &packet(&client, SERVER, [0, 0], SYN, 0));
        see(10, &packet(&client, SERVER, [1, 1], ACK, 0));
        for n in 0..200_u32 {
            let at = 1000 + u64::from(n) * 10;
            let data = packet(SERVER, &client, [1 + n * 1000, 1], ACK, 1000);
            see(at, &data);
            see(at, &data); // on the second interface
            see(at + 5, &packet(&client, SERVER, [1, 1 + (n + 1) * 1000], ACK, 0));
        }
        let total = comparison.total(By::Kernel, takes);
        assert_eq!((total.connections, total.bytes), (1, 200_000));
        assert!((total.seconds - 1.0).abs() < 1e-9, "{}", total.seconds); // half of the two seconds
        assert_eq!(comparison.total(By::Proxy, takes), Total::default());
    }

    #[test]
    fn a_stall_with_data_in_flight_counts() {
        let mut comparison = Comparison::new(CLASSES);
        let takes = |address: SocketAddr| address.port() == 443;
        let client = client(CLASSES.first() + 1);
        let mut see = |ms: u64, packet: &[u8]| comparison.on_packet(ms * 1_000_000, packet, packet.len(), takes);
        see(0, &packet(&client, SERVER, [0, 0], SYN, 0));
        see(1, &packet(&client, SERVER, [1, u32::MAX - 50_000], ACK, 0)); // the numbers wrap around
        see(2, &packet(SERVER, &client, [u32::MAX - 50_000, 1], ACK, 60_000));
        see(2, &packet(SERVER, &client, [10_000 - 1, 1], ACK, 60_000));
        see(5002, &packet(&client, SERVER, [1, 69_999], ACK | FIN, 0));
        let total = comparison.total(By::Proxy, takes);
        assert_eq!((total.connections, total.bytes), (1, 120_000));
        assert!((total.seconds - 5.0).abs() < 1e-9);
        assert!(comparison.flows.is_empty());
    }

    /// What the kernel's interpreter returns for `packet`.
    fn run(packet: &[u8]) -> u32 {
        let program = filter(CLASSES);
        let (mut at, mut a, mut x) = (0, 0_u32, 0_u32);
        let half = |from: u32| u32::from(u16::from_be_bytes([packet[from as usize], packet[from as usize + 1]]));
        loop {
            let step = program[at];
            at += 1;
            match step.code {
                0x30 => a = packet[step.k as usize].into(),
                0x28 => a = half(step.k),
                0x48 => a = half(x + step.k),
                0xb1 => x = u32::from(packet[step.k as usize] & 15) * 4,
                0x54 => a &= step.k,
                0x74 => a >>= step.k,
                0x94 => a %= step.k,
                0x15 => at += usize::from(if a == step.k { step.jt } else { step.jf }),
                0x06 => return step.k,
                code => panic!("{code:#x} at {at}"),
            }
        }
    }

    #[test]
    fn the_filter_lets_two_classes_pass_in_both_directions_and_families() {
        for class in 0..64 {
            let passes = class == CLASSES.first() || class == CLASSES.first() + 1;
            let port = (300 * 64 + class) * 2 + 1;
            for (client, server) in
                [(format!("192.0.2.1:{port}"), SERVER), (format!("[2001:db8::1]:{port}"), "[2001:db8::2]:443")]
            {
                for (from, to) in [(&*client, server), (server, &*client)] {
                    let one = packet(from, to, [0, 0], ACK, 0);
                    assert_eq!(run(&one) > 0, passes, "{from} to {to}");
                    assert!(Header::parse(&one, one.len()).is_some());
                }
            }
        }
        let mut udp = packet("192.0.2.1:1", SERVER, [0, 0], ACK, 0);
        udp[9] = 17;
        assert_eq!((run(&udp), Header::parse(&udp, udp.len())), (0, None));
        assert_eq!((run(&[0; 60]), Header::parse(&[0; 60], 60)), (0, None));
    }
}
