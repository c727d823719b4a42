//! One direction of the emulated path: a pipe, and what is measured at it. Time is an argument. [`super::bridge`] calls it for
//! each packet that enters, and whenever one is due.

use reknit_path::resequencer::TcpHeader;
use reknit_path::stages::DropReason;
use reknit_path::{Direction, DropNotice, DropRange, Packet, Phases, Pipe, Profile};
use reknit_units::{Bytes, Instant};

use super::meter::Meter;
use super::record::PathRecording;
use crate::packet::IpPacket;

/// A packet in transit.
#[derive(Debug)]
pub(super) struct InTransit {
    packet: IpPacket,
    number: u64,
    entered: Instant,
    is_udp: bool,
}

impl InTransit {
    pub(super) fn bytes(&self) -> &[u8] {
        self.packet.bytes()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.packet.into_bytes()
    }
}

impl Packet for InTransit {
    fn size(&self) -> Bytes {
        self.packet.size()
    }

    fn copy(&self) -> InTransit {
        InTransit { packet: self.packet.copy(), ..*self }
    }

    fn flow(&self) -> u32 {
        self.packet.flow()
    }

    fn flip(&mut self, bit: u64) -> bool {
        self.packet.flip(bit)
    }

    fn tcp(&self) -> Option<TcpHeader> {
        self.packet.tcp()
    }

    fn notice(&self) -> Option<DropNotice> {
        self.packet.notice()
    }

    fn set_dropped(&mut self, dropped: DropRange) {
        self.packet.set_dropped(dropped);
    }
}

/// The stages of one direction.
#[derive(Clone, Debug)]
pub struct Stages {
    /// The path that they belong to.
    pub profile: Profile,
    /// Which of its directions.
    pub direction: Direction,
}

/// A direction in operation.
#[derive(Debug)]
pub(super) struct EmulatedDirection {
    pipe: Pipe<InTransit>,
    pub(super) meter: Meter,
    pub(super) record: Option<PathRecording>,
    /// The number of the next packet.
    next: u64,
    /// UDP packets inside, without copies.
    pub(super) udp_inside: u64,
    /// What routers have to say to the end where this direction begins.
    messages: Vec<Vec<u8>>,
}

impl EmulatedDirection {
    pub(super) fn new(stages: &Stages, seed: u64, record: bool) -> EmulatedDirection {
        EmulatedDirection {
            pipe: Pipe::new(&stages.profile, stages.direction, seed, Phases::Drawn),
            meter: Meter::default(),
            record: record.then(PathRecording::default),
            next: 0,
            udp_inside: 0,
            messages: Vec::new(),
        }
    }

    /// A packet enters. Times must not decrease.
    pub(super) fn enter(&mut self, now: Instant, bytes: Vec<u8>) {
        self.meter.on_entry(bytes.len());
        if let Some(record) = &mut self.record {
            record.on_entry();
        }
        let number = self.next;
        self.next += 1;
        let packet = IpPacket::new(bytes);
        let is_udp = packet.is_udp(); // the path may damage the header that says so
        self.udp_inside += u64::from(is_udp);
        self.pipe.push(now, InTransit { packet, number, entered: now, is_udp });
        self.note_losses();
    }

    /// The next packet that is due at `now`, and when it was due.
    pub(super) fn leave(&mut self, now: Instant) -> Option<(Instant, InTransit)> {
        let popped = self.pipe.pop(now);
        self.note_losses();
        let (due, carried) = popped?;
        let InTransit { packet, number, entered, is_udp } = &carried;
        self.meter.on_exit(now, *number, packet.bytes().len(), packet.is_copy());
        self.udp_inside -= u64::from(*is_udp && !packet.is_copy());
        if let Some(record) = self.record.as_mut().filter(|_| !packet.is_copy()) {
            record.on_exit(*number, *entered, due);
        }
        Some((due, carried))
    }

    fn note_losses(&mut self) {
        while let Some(lost) = self.pipe.pop_lost() {
            if lost.packet.packet.is_copy() {
                continue;
            }
            if let DropReason::TooBig { told: Some(mtu) } = lost.why {
                self.messages.extend(lost.packet.packet.too_big(mtu));
            }
            self.meter.on_loss();
            self.udp_inside -= u64::from(lost.packet.is_udp);
            if let Some(record) = &mut self.record {
                record.on_loss(lost.packet.number);
            }
        }
    }

    /// Takes what routers have to say to the end where this direction begins.
    pub(super) fn take_messages(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.messages)
    }

    /// When the next packet leaves.
    pub(super) fn next_at(&self) -> Instant {
        self.pipe.next_at()
    }

    /// The number of packets inside.
    pub(super) fn inside(&self) -> usize {
        self.pipe.len()
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::{Segment, SeqNum};
    use reknit_units::Duration;
    use reknit_wire::{Endpoints, encode};

    use super::*;

    /// A packet of a simulation, which has no bytes.
    #[derive(Clone, Copy, Debug)]
    struct Simulated(u64);

    const SIZE: usize = 1000;
    const PACKETS: u64 = 2000;
    const GAP: Duration = Duration::from_micros(1700);

    impl Packet for Simulated {
        fn size(&self) -> Bytes {
            Bytes(SIZE as u64)
        }

        fn copy(&self) -> Simulated {
            *self
        }

        fn flow(&self) -> u32 {
            0
        }
    }

    fn profile(name: &str) -> Profile {
        Profile::load(name, &[]).unwrap()
    }

    /// What the simulator does: for each packet the delay, or none if it is lost.
    fn simulated(profile: &Profile, seed: u64) -> Vec<Option<Duration>> {
        let mut pipe = Pipe::new(profile, Direction::Forward, seed, Phases::Drawn);
        let mut delays = vec![None; PACKETS as usize];
        for number in 0..PACKETS {
            pipe.push(Instant::ZERO + GAP * number, Simulated(number));
        }
        while pipe.next_at().is_set() {
            let next = pipe.next_at();
            while let Some((at, Simulated(number))) = pipe.pop(next) {
                delays[number as usize].get_or_insert(at.since(Instant::ZERO + GAP * number));
            }
        }
        delays
    }

    /// The emulator's, if it looks at the path only every `nap`.
    fn emulated(profile: &Profile, seed: u64, nap: Duration) -> Vec<Option<Duration>> {
        let stages = Stages { profile: profile.clone(), direction: Direction::Forward };
        let mut direction = EmulatedDirection::new(&stages, seed, true);
        let mut looked = Instant::ZERO;
        for number in 0..PACKETS {
            let now = Instant::ZERO + GAP * number;
            if now >= looked + nap {
                looked = now;
                while direction.leave(now).is_some() {}
            }
            direction.enter(now, vec![0x45; SIZE]);
        }
        while direction.leave(Instant::ZERO + Duration::from_secs(600)).is_some() {}
        assert_eq!(direction.inside(), 0);
        direction.record.as_ref().unwrap().delays().collect()
    }

    #[test]
    fn packets_are_treated_as_in_the_simulator() {
        for name in ["two-paths-50ms", "rr-tcp", "lossy", "wireless-arq", "bursty-loss", "switch-planes"] {
            let profile = profile(name);
            let expected = simulated(&profile, 7);
            for nap in [Duration::from_micros(1), Duration::from_millis(40)] {
                assert_eq!(emulated(&profile, 7, nap), expected, "{name}, every {nap}");
            }
        }
        let lossy = profile("lossy");
        assert_ne!(simulated(&lossy, 8), simulated(&lossy, 7));
    }

    /// An IPv4 packet of this protocol.
    fn packet(protocol: u8) -> Vec<u8> {
        let mut bytes = vec![0; SIZE];
        (bytes[0], bytes[9]) = (0x45, protocol);
        bytes
    }

    #[test]
    fn udp_packets_are_counted_until_they_leave_or_are_lost() {
        let [udp, tcp] = [17, 6];
        let copied = "[[forward]]\nkind = \"duplicate\"\nprobability = 1\n\
                      [[forward]]\nkind = \"loss\"\nprobability = 0.2\n\
                      [[forward]]\nkind = \"link\"\ndelay = \"10 ms\"\n";
        let stages = Stages { profile: Profile::parse("copied", copied).unwrap(), direction: Direction::Forward };
        let mut direction = EmulatedDirection::new(&stages, 3, false);
        for number in 0..100 {
            direction.enter(Instant::ZERO, packet(if number < 40 { udp } else { tcp }));
        }
        let lost = direction.meter.counts.lost;
        assert!(lost > 0 && (1..40).contains(&direction.udp_inside), "{lost} lost, {} inside", direction.udp_inside);
        while direction.leave(Instant::ZERO + Duration::from_secs(1)).is_some() {}
        assert_eq!((direction.udp_inside, direction.inside()), (0, 0));
    }

    #[test]
    fn a_gateway_on_the_path_reads_tcp_headers() {
        let segment = Segment { seq: SeqNum(77), len: 100, ..Segment::default() };
        let endpoints = Endpoints { source: "10.0.0.1:2".parse().unwrap(), destination: "10.0.0.2:3".parse().unwrap() };
        let mut bytes = Vec::new();
        encode(endpoints, &segment, &[0; 100], &mut bytes);
        let carried = InTransit { packet: IpPacket::new(bytes), number: 0, entered: Instant::ZERO, is_udp: false };
        assert_eq!(carried.tcp().map(|header| (header.seq, header.len)), Some((77, 100)));
    }

    #[test]
    fn a_record_repeats_what_happened() {
        let path = profile("rr-tcp");
        let stages = Stages { profile: path.clone(), direction: Direction::Forward };
        let mut direction = EmulatedDirection::new(&stages, 3, true);
        for number in 0..200 {
            direction.enter(Instant::ZERO + GAP * number, vec![0x45; SIZE]);
        }
        while direction.leave(Instant::ZERO + Duration::from_secs(600)).is_some() {}
        let record = direction.record.take().unwrap();
        let replay = Profile::parse("replay", &record.stage("forward")).unwrap();
        let delays: Vec<_> = record.delays().collect();
        assert_eq!(simulated(&replay, 9)[..200], delays);
        assert_eq!(direction.meter.counts.delivered, delays.iter().flatten().count() as u64);
    }
}
