//! A host that forwards, with UDP sockets and little memory, whose network and program do what the input says.
//!
//! Checks: it stays within its limits, whatever it sends can be parsed, datagrams arrive as they were sent or not at all, and when
//! everything is closed, nothing is left.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reknit_stack::{
    Error, Event, IcmpError, Options, Request, SocketId, SocketOptions, Stack, Transmit, UdpId, UdpOptions,
};
use reknit_tcp::Segment;
use reknit_tcp::segment::Flags;
use reknit_testkit::fragments::fragment;
use reknit_testkit::mixed_composition::live;
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Datagram, Decoded, Endpoints, encode, encode_datagram};

use crate::checksums;
use crate::input::Input;
use crate::segments::{Expected, address, mutated};

const MAX_SOCKETS: usize = 40;
const MAX_UDP: usize = 4;
const MAX_REQUESTS: usize = 6;
const MAX_MEMORY: u64 = 100_000;
/// What each connection may have when no memory is left, and what one call may add.
const LEAST: u64 = 12 << 10;
const ONE_CALL: u64 = 160 << 10;
/// The most packets or events that one operation may cause.
const MAX_AT_ONCE: usize = 10_000;
/// After this time nothing is left: longer than all timeouts.
const LAST: Duration = Duration::from_secs(1000);
/// Waits of [`Host::act`].
const MILLIS: [u64; 16] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 3000, 10_000, 60_000, 400_000];

struct Host {
    now: Instant,
    stack: Stack,
    requests: Vec<Request>,
    sockets: Vec<SocketId>,
    udp: Vec<UdpId>,
    /// The last segment of each flow, from the host.
    last: BTreeMap<(SocketAddr, SocketAddr), Transmit>,
}

/// Takes an input: what happens.
pub(crate) fn run(data: &[u8]) {
    let mut host = Host::new();
    Input::new(data).operations(|input| {
        host.act(input);
        host.settle();
    });
    host.end();
}

/// An address of the host, of another one, or one that no host has.
fn local(which: usize) -> SocketAddr {
    let ip = ["10.0.0.1", "fd00::1", "192.0.2.7", "2001:db8::7", "224.0.0.1", "0.0.0.0", "127.0.0.1", "::1"];
    SocketAddr::new(address(ip[which % ip.len()]), [80, 53, 1, 65_535, 1000][which % 5])
}

fn remote(which: usize, is_v4: bool) -> SocketAddr {
    let ip = if is_v4 { ["10.0.0.2", "10.0.0.1", "255.255.255.255"] } else { ["fd00::2", "fd00::1", "ff02::1"] };
    SocketAddr::new(address(ip[[0, 0, 0, 0, 0, 0, 1, 2][which % 8]]), 1000 + (which % 4) as u16)
}

impl Host {
    fn new() -> Host {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let options = Options {
            addresses: vec![address("10.0.0.1"), address("fd00::1")],
            max_requests: MAX_REQUESTS,
            max_sockets: MAX_SOCKETS,
            max_orphans: 10,
            max_memory: Bytes(MAX_MEMORY),
            resets_per_second: 100,
            icmp_per_second: 100,
            ..Options::default()
        };
        let stack = Stack::new(now, options, [7; 32]);
        Host { now, stack, requests: Vec::new(), sockets: Vec::new(), udp: Vec::new(), last: BTreeMap::new() }
    }

    fn act(&mut self, input: &mut Input<'_>) {
        let operation = input.u8();
        let argument = usize::from(operation >> 4);
        match operation & 15 {
            0 => self.packet(input, argument),
            1 => self.wait(Duration::from_millis(MILLIS[argument])),
            2 => self.open(input, argument),
            3 => self.decide(argument),
            4 | 5 => self.answer(argument),
            6 => self.attack(input, argument),
            7 => self.datagram(input, argument),
            8 => self.fragments(input, argument),
            9 => self.send(input, argument),
            10 => self.receive(argument),
            11 => self.bind(input, argument),
            12 => self.write(argument),
            13 => self.read(argument),
            14 => self.shut_down(argument),
            _ => self.wait(self.stack.deadline().since(self.now).min(LAST)),
        }
    }

    fn flow(&self, which: usize) -> Option<Transmit> {
        self.last.values().nth(which % self.last.len().max(1)).copied()
    }

    fn socket(&self, which: usize) -> Option<SocketId> {
        self.sockets.get(which % self.sockets.len().max(1)).copied()
    }

    fn udp_socket(&self, which: usize) -> Option<UdpId> {
        self.udp.get(which % self.udp.len().max(1)).copied()
    }

    /// Any bytes.
    fn packet(&mut self, input: &mut Input<'_>, how: usize) {
        let mut packet = input.bytes(8 + how * 16).to_vec();
        checksums::fix(&mut packet);
        self.stack.on_packet(self.now, &packet);
    }

    fn deliver(&mut self, endpoints: Endpoints, segment: &Segment) {
        crate::count_segments(1);
        let payload = vec![b'x'; usize::from(segment.len).min(1400)];
        let segment = Segment { len: payload.len() as u16, ..*segment };
        self.stack.on_segment(self.now, &Decoded { endpoints, hop_limit: 64, segment, payload: &payload });
    }

    /// A client sends a SYN, to any address.
    fn open(&mut self, input: &mut Input<'_>, which: usize) {
        let destination = local(input.u8().into());
        let source = remote(which, destination.is_ipv4());
        let window = if which & 8 == 0 { 60_000 } else { 500 };
        let mut segment = Segment { flags: Flags::SYN, window, ..Segment::default() };
        segment.options.mss = Some(1460);
        segment.options.sack_permitted = which & 1 == 0;
        self.deliver(Endpoints { source, destination }, &segment);
    }

    /// The program takes, refuses or ignores a request, or answers it with a cookie.
    fn decide(&mut self, how: usize) {
        self.requests.extend(std::iter::from_fn(|| self.stack.next_request()));
        let Some(request) = self.requests.pop() else { return };
        let errors =
            [IcmpError::HostUnreachable, IcmpError::NoRoute, IcmpError::PortUnreachable, IcmpError::Prohibited];
        match how {
            0 => self.stack.refuse_request(request.id),
            1 => self.stack.ignore_request(request.id),
            2..6 => self.stack.refuse_request_by_icmp(self.now, request.id, errors[how - 2]),
            6 => drop(self.stack.answer_request_with_cookie(self.now, request.id, &SocketOptions::default())),
            _ => {
                let variant = live()[(how * 7) % live().len()];
                let options = SocketOptions::of(std::sync::Arc::new((variant.compose)()));
                self.sockets.extend(self.stack.accept_request(self.now, request.id, &options));
            }
        }
    }

    /// The peer of a flow acknowledges, and sends some data.
    fn answer(&mut self, which: usize) {
        let Some(last) = self.flow(which) else { return };
        let expected = Expected::after(&last.segment);
        let window = if which & 8 == 0 { 60_000 } else { 0 };
        let mut segment = Segment { flags: Flags::ACK, window, ..Segment::default() };
        (segment.seq.0, segment.ack.0) = (expected.seq, expected.ack);
        segment.len = [0, 0, 100, 1400][which % 4];
        self.deliver(last.endpoints.reversed(), &segment);
    }

    fn attack(&mut self, input: &mut Input<'_>, which: usize) {
        let Some(last) = self.flow(which) else { return };
        let segment = mutated(input, &Expected::after(&last.segment));
        self.deliver(last.endpoints.reversed(), &segment);
    }

    /// A datagram of `which`, with a recognizable payload.
    fn made_up_datagram(input: &mut Input<'_>, which: usize) -> Vec<u8> {
        let destination = local(input.u8().into());
        let source = remote(which, destination.is_ipv4());
        let len = usize::from(input.u16()) % 3000;
        let mut packet = Vec::new();
        encode_datagram(Endpoints { source, destination }, 64, &vec![len as u8; len], &mut packet);
        packet
    }

    fn datagram(&mut self, input: &mut Input<'_>, which: usize) {
        crate::count_segments(1);
        let packet = Host::made_up_datagram(input, which);
        self.stack.on_packet(self.now, &packet);
    }

    /// Pieces of a datagram, which may overlap, or be missing.
    fn fragments(&mut self, input: &mut Input<'_>, which: usize) {
        let packet = Host::made_up_datagram(input, which);
        let (header, payload) = packet.split_at(if packet[0] >> 4 == 6 { 40 } else { 20 });
        let step = 8 * (1 + input.below(200));
        let mut at = 0;
        while at < payload.len() {
            crate::count_segments(1);
            let end = (at + step).min(payload.len());
            let how = input.u8();
            let piece = fragment(header, &payload[at..end], at as u16, end < payload.len(), u16::from(how >> 6));
            if how & 7 != 0 {
                self.stack.on_packet(self.now, &piece);
            }
            at = if how & 31 == 1 { at + 8 } else { end };
        }
    }

    fn bind(&mut self, input: &mut Input<'_>, how: usize) {
        if self.udp.len() >= MAX_UDP || how == 0 {
            if let Some(id) = self.udp_socket(how) {
                self.stack.close_udp(id);
                self.udp.retain(|other| *other != id);
            }
            return;
        }
        let at = local(input.u8().into());
        let options = UdpOptions { receive_buffer: Bytes(4000), send_buffer: Bytes(4000), ..UdpOptions::default() };
        let bound = match how {
            1..6 => self.stack.forward_udp(&options),
            6..10 => self.stack.bind_udp_ports(at.ip(), at.port()..=input.u16(), &options),
            10 => self.stack.bind_udp(SocketAddr::new(at.ip(), 0), &options),
            _ => self.stack.bind_udp(at, &options),
        };
        self.udp.extend(bound);
    }

    fn send(&mut self, input: &mut Input<'_>, which: usize) {
        let Some(id) = self.udp_socket(which) else { return };
        let from = local(input.u8().into());
        let to = remote(which, from.is_ipv4());
        let len = usize::from(input.u16()) % 2000;
        if which >= 12 {
            let _ = self.stack.connect_udp(id, to);
            let _ = self.stack.send_udp_to_peer(id, &vec![1; len]);
        }
        let _ = self.stack.send_udp(id, (which & 1 == 0).then_some(from), to, &vec![1; len]);
    }

    fn receive(&mut self, which: usize) {
        let Some(id) = self.udp_socket(which) else { return };
        let mut into = [0; 4000];
        match self.stack.receive_udp(id, &mut into) {
            Ok(received) => {
                let is_as_sent = into[..received.len].iter().all(|byte| *byte == received.len as u8);
                assert!(received.len < 3000 && is_as_sent, "{received:?}");
            }
            Err(error) => assert!(matches!(error, Error::WouldBlock | Error::Refused | Error::Unreachable), "{error}"),
        }
    }

    fn write(&mut self, which: usize) {
        if let Some(id) = self.socket(which) {
            let _ = self.stack.write(id, &[b'y'; 16_000]);
        }
    }

    fn read(&mut self, which: usize) {
        if let Some(id) = self.socket(which) {
            let _ = self.stack.read(self.now, id, &mut [0; 3000]);
        }
    }

    fn shut_down(&mut self, which: usize) {
        let Some(id) = self.socket(which) else { return };
        if which & 1 == 0 {
            self.stack.close(self.now, id);
            self.sockets.retain(|other| *other != id);
        } else {
            self.stack.abort(self.now, id);
        }
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        let mut fired = 0;
        while self.stack.deadline() <= until {
            self.now = self.now.max(self.stack.deadline());
            self.stack.on_timer(self.now);
            self.settle();
            fired += 1;
            assert!(fired < 100 * MAX_AT_ONCE, "timers fire for ever");
        }
        self.now = until;
    }

    /// Takes everything that the stack wants to send or tell.
    fn settle(&mut self) {
        let (mut payload, mut packet) = (Vec::new(), Vec::new());
        let mut count = 0;
        while let Some(transmit) = self.stack.poll(self.now, &mut payload) {
            encode(transmit.endpoints, &transmit.segment, &payload, &mut packet);
            let read = Decoded::read(&packet).expect("what is sent can be read");
            assert_eq!((read.endpoints, read.payload), (transmit.endpoints, payload.as_slice()));
            if self.last.len() >= MAX_SOCKETS {
                self.last.clear();
            }
            self.last.insert((transmit.endpoints.source, transmit.endpoints.destination), transmit);
            payload.clear();
            count += 1;
            assert!(count < MAX_AT_ONCE, "segments without end");
        }
        while self.stack.poll_other(&mut packet) {
            let protocol = if packet[0] >> 4 == 6 { packet[6] } else { packet[9] };
            assert!(matches!(protocol, 1 | 58) || Datagram::read(&packet).is_some(), "{packet:?}");
            assert!(packet.len() <= 1500);
            count += 1;
            assert!(count < MAX_AT_ONCE, "packets without end");
        }
        while let Some(event) = self.stack.next_event() {
            if let Event::Closed(id) = event {
                self.stack.close(self.now, id);
                self.sockets.retain(|other| *other != id);
            }
            count += 1;
            assert!(count < MAX_AT_ONCE, "events without end");
        }
        let sockets = self.stack.sockets();
        let most = MAX_MEMORY + LEAST * sockets as u64 + ONE_CALL;
        assert!(sockets <= MAX_SOCKETS && self.stack.memory().0 <= most, "{sockets}, {}", self.stack.memory());
    }

    fn end(mut self) {
        for id in std::mem::take(&mut self.sockets) {
            self.stack.close(self.now, id);
        }
        for id in std::mem::take(&mut self.udp) {
            self.stack.close_udp(id);
        }
        self.settle();
        self.wait(LAST);
        assert_eq!((self.stack.sockets(), self.stack.memory()), (0, Bytes::ZERO), "something is left after {LAST}");
        assert!(self.stack.is_finished() && !self.stack.deadline().is_set());
    }
}
