//! A host with many sockets, whose network and applications do what the input says.
//!
//! Checks: it keeps to its limits, every segment that it sends can be parsed, and when its applications have
//! closed everything, nothing is left after the longest timeout.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use reknit_stack::{Event, ListenOptions, ListenerId, Options, Shutdown, SocketId, SocketOptions, Stack, Transmit};
use reknit_tcp::Segment;
use reknit_tcp::segment::Flags;
use reknit_testkit::mixed_composition::live;
use reknit_units::{Bytes, Duration, Instant};
use reknit_wire::{Decoded, Endpoints, Icmp, IcmpKind, encode};

use crate::checksums;
use crate::input::Input;
use crate::segments::{Expected, address, mutated};

/// The most sockets of the host.
const MAX_SOCKETS: usize = 40;
/// The most segments or events that one operation may cause.
const MAX_AT_ONCE: usize = 10_000;
/// After this time nothing is left of closed sockets: longer than all timeouts.
const LAST: Duration = Duration::from_secs(1000);
/// The port of the listeners.
const PORT: u16 = 80;

struct Host {
    now: Instant,
    stack: Stack,
    listeners: Vec<ListenerId>,
    sockets: Vec<SocketId>,
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

impl Host {
    fn new() -> Host {
        let now = Instant::ZERO + Duration::from_secs(1000);
        let addresses = vec![address("10.0.0.1"), address("fd00::1")];
        let options = Options { addresses, max_sockets: MAX_SOCKETS, resets_per_second: 100, ..Options::default() };
        let mut stack = Stack::new(now, options, [7; 32]);
        let options = ListenOptions { backlog: 3, syn_backlog: 3, ..ListenOptions::default() };
        let listeners = ["0.0.0.0", "::"].map(|local| stack.listen(SocketAddr::new(address(local), PORT), &options));
        let listeners = listeners.into_iter().flatten().collect();
        Host { now, stack, listeners, sockets: Vec::new(), last: BTreeMap::new() }
    }

    fn act(&mut self, input: &mut Input<'_>) {
        let operation = input.u8();
        let argument = usize::from(operation >> 4);
        match operation & 15 {
            0 => self.packet(input, argument),
            1 => self.wait(Duration::from_millis(MILLIS[argument])),
            2 => self.connect(argument),
            3 | 4 => self.answer(argument),
            5 => self.open(argument),
            6 | 7 => self.attack(input, argument),
            8 => self.icmp(input, argument),
            9 => self.write(argument),
            10 => self.read(argument),
            11 => self.shut_down(argument),
            12 => self.change(input, argument),
            13 => self.accept(),
            14 => self.wait(Duration::from_millis(20)),
            _ => self.wait(self.stack.deadline().since(self.now).min(LAST)),
        }
    }

    fn flow(&self, which: usize) -> Option<Transmit> {
        let count = self.last.len().max(1);
        self.last.values().nth(which % count).copied()
    }

    fn socket(&self, which: usize) -> Option<SocketId> {
        let count = self.sockets.len().max(1);
        self.sockets.get(which % count).copied()
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

    /// The peer of a flow does what an honest one does: it answers a SYN, acknowledges, and sends some data.
    fn answer(&mut self, which: usize) {
        let Some(last) = self.flow(which) else { return };
        let expected = Expected::after(&last.segment);
        let mut segment = Segment { flags: Flags::ACK, window: 60_000, ..Segment::default() };
        (segment.seq.0, segment.ack.0) = (expected.seq, expected.ack);
        if last.segment.flags.has(Flags::SYN) && !last.segment.flags.has(Flags::ACK) {
            segment.flags |= Flags::SYN;
            segment.options = last.segment.options;
        } else {
            segment.len = [0, 0, 100, 1400][which % 4];
        }
        if let Some(stamps) = segment.options.timestamps.as_mut().filter(|_| last.segment.options.timestamps.is_some())
        {
            (stamps.val, stamps.ecr) = expected.stamps;
        }
        self.deliver(last.endpoints.reversed(), &segment);
    }

    /// A client sends a SYN.
    fn open(&mut self, port: usize) {
        let (local, remote) = if port & 8 == 0 { ("10.0.0.1", "10.0.0.2") } else { ("fd00::1", "fd00::2") };
        let endpoints = Endpoints {
            source: SocketAddr::new(address(remote), 1000 + port as u16),
            destination: SocketAddr::new(address(local), PORT),
        };
        let mut segment = Segment { flags: Flags::SYN, window: 60_000, ..Segment::default() };
        segment.options.mss = Some(1460);
        segment.options.sack_permitted = port & 1 == 0;
        self.deliver(endpoints, &segment);
    }

    fn attack(&mut self, input: &mut Input<'_>, which: usize) {
        let Some(last) = self.flow(which) else { return };
        let segment = mutated(input, &Expected::after(&last.segment));
        self.deliver(last.endpoints.reversed(), &segment);
    }

    fn icmp(&mut self, input: &mut Input<'_>, which: usize) {
        let Some(last) = self.flow(which) else { return };
        let kind = match input.u8() & 3 {
            0 => IcmpKind::TooBig { mtu: input.u16() },
            1 => IcmpKind::PortUnreachable,
            2 => IcmpKind::HostUnreachable,
            _ => IcmpKind::TimeExceeded,
        };
        let mut seq = last.segment.seq;
        seq.0 = seq.0.wrapping_add(input.delta());
        self.stack.on_icmp(self.now, &Icmp { kind, quoted: last.endpoints, seq, len: usize::from(input.u16()) });
    }

    fn connect(&mut self, which: usize) {
        let remote = SocketAddr::new(address(if which & 8 == 0 { "10.0.0.3" } else { "fd00::3" }), PORT);
        let variant = live()[(which * 7) % live().len()];
        let options = SocketOptions::of(std::sync::Arc::new((variant.compose)()));
        if let Ok(id) = self.stack.connect(self.now, None, remote, &options) {
            self.sockets.push(id);
        }
    }

    fn write(&mut self, which: usize) {
        if let Some(id) = self.socket(which) {
            let _ = self.stack.write(id, &[b'y'; 5000]);
        }
    }

    fn read(&mut self, which: usize) {
        if let Some(id) = self.socket(which) {
            let _ = self.stack.read(self.now, id, &mut [0; 3000]);
        }
    }

    fn shut_down(&mut self, which: usize) {
        let Some(id) = self.socket(which) else { return };
        match which % 4 {
            0 => self.stack.close(self.now, id),
            1 => self.stack.abort(self.now, id),
            2 => _ = self.stack.shutdown(self.now, id, Shutdown::Write),
            _ => _ = self.stack.shutdown(self.now, id, Shutdown::Both),
        }
    }

    fn change(&mut self, input: &mut Input<'_>, which: usize) {
        let Some(id) = self.socket(which) else { return };
        match input.u8() & 3 {
            0 => {
                let variant = live()[input.below(live().len())];
                let _ = self.stack.set_variant(self.now, id, &(variant.compose)());
            }
            1 => _ = self.stack.set_send_buffer(id, Bytes(u64::from(input.u16()))),
            2 => {
                let (nagle, window) = (input.flag(), Bytes(u64::from(input.u16()) + 70_000));
                let _ = self.stack.set_config(self.now, id, |config| {
                    config.nagle = nagle;
                    config.receive_buffer = reknit_units::Capacity::Bytes(window);
                });
            }
            _ => _ = self.stack.info(self.now, id),
        }
    }

    fn accept(&mut self) {
        for listener in &self.listeners {
            self.sockets.extend(self.stack.accept(*listener));
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
            if self.last.len() < MAX_SOCKETS {
                self.last.insert((transmit.endpoints.source, transmit.endpoints.destination), transmit);
            } else {
                self.last.clear();
            }
            payload.clear();
            count += 1;
            assert!(count < MAX_AT_ONCE, "segments without end");
        }
        while self.stack.poll_other(&mut packet) {
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
        assert!(self.stack.sockets() <= MAX_SOCKETS, "{} sockets", self.stack.sockets());
    }

    fn end(mut self) {
        for listener in std::mem::take(&mut self.listeners) {
            self.stack.unlisten(self.now, listener);
        }
        for id in std::mem::take(&mut self.sockets) {
            self.stack.close(self.now, id);
        }
        self.settle();
        self.wait(LAST);
        assert_eq!(self.stack.sockets(), 0, "sockets are left after {LAST}");
        assert!(self.stack.is_finished() && !self.stack.deadline().is_set());
    }
}

/// Waits of [`Host::act`].
const MILLIS: [u64; 16] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500, 1000, 3000, 10_000, 60_000, 400_000];
