//! Packets that were captured more than once: on several interfaces, by a mirror port that copies both ingress and egress, or
//! on both sides of a router. Such copies say nothing about the network, so `Stream::on_packet` skips them as its first step.
//! Owned by [`super::Stream`].
//!
//! A single copy may have been made by the network. If most packets of a direction come twice, from the start, the capture is
//! the likely cause.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::packet::{Flags, Packet};

/// A copy is looked for among this many packets.
const RECENT: usize = 16;
/// This many packets must have come more than once before the capture is held responsible.
const ENOUGH: u32 = 3;
/// Larger packets may have been segmented after they were captured: an Ethernet frame has at most this payload.
const MAX_SEGMENT: u32 = 1_500;
/// Within this many packets of a direction.
const FIRST: u32 = 32;

/// A packet without an IP identification or timestamp is a copy if it comes again about within this time: no host retransmits as soon.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Finds copies in one direction of a connection.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Copies {
    /// The interface of the first packet.
    home: Option<u32>,
    /// None before the first packet, and once no more packets need to be remembered.
    recent: Option<Box<Recent>>,
    packets: u32,
    /// The connection was captured on several interfaces; only `home` counts.
    has_several: bool,
    /// No more packets need to be remembered or compared.
    is_settled: bool,
    /// The last packet that may have been segmented after it was captured.
    large: Option<Large>,
    /// Copies that were skipped.
    pub(super) left_out: u64,
}

/// A packet that the host handed to its network card as a whole (TSO). On a host of virtual machines or containers, a capture may
/// also have the segments that were made of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Large {
    seq: u32,
    len: u32,
    id: u16,
    value: Option<u32>,
    /// The length of the segments that were made of it; zero until the first was seen.
    segment: u32,
}

impl Large {
    fn of(packet: &Packet) -> Option<Large> {
        let segment = &packet.segment;
        let (seq, len, value) = (segment.seq, segment.len, segment.timestamps.map(|(value, _)| value));
        Some(Large { seq, len, id: packet.ip_id.filter(|id| *id != 0)?, value, segment: 0 })
    }

    /// True if `packet` is one of its segments: they count up its IP identification.
    fn has(&mut self, packet: &Packet) -> bool {
        let segment = &packet.segment;
        let (ahead, value) = (segment.seq.wrapping_sub(self.seq), segment.timestamps.map(|(value, _)| value));
        if segment.len == 0 || ahead.saturating_add(segment.len) > self.len || value != self.value {
            return false;
        }
        if ahead == 0 {
            self.segment = segment.len;
        }
        let number = ahead.checked_div(self.segment);
        number.is_some_and(|number| packet.ip_id == Some(self.id.wrapping_add(number as u16)))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Recent {
    packets: Vec<(u32, bool)>,
    next: usize,
    /// Packets that have come more than once.
    copied: u32,
}

/// Whether a packet has been captured before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    New,
    /// It is a copy; the network may have made it.
    Resighting,
    /// It is a copy that the capture made.
    LeftOut,
}

impl Copies {
    /// Compares the packet with the previous ones. `ttl`: that of the first packet.
    #[inline]
    pub(super) fn look(&mut self, packet: &Packet, ttl: Option<u8>, now: Instant) -> Seen {
        let is_here = self.home == Some(packet.interface);
        if self.is_settled && is_here && packet.segment.len <= MAX_SEGMENT {
            return Seen::New;
        }
        let seen = self.look_closely(packet, ttl, now);
        self.is_settled = self.packets > FIRST && self.recent.is_none() && self.large.is_none();
        seen
    }

    #[inline(never)]
    fn look_closely(&mut self, packet: &Packet, ttl: Option<u8>, now: Instant) -> Seen {
        let is_elsewhere = *self.home.get_or_insert(packet.interface) != packet.interface;
        if is_elsewhere && self.has_several {
            self.left_out += 1;
            return Seen::LeftOut;
        }
        if packet.segment.len > MAX_SEGMENT {
            self.large = Large::of(packet);
        } else if self.large.as_mut().is_some_and(|large| large.has(packet)) {
            self.left_out += 1;
            return Seen::LeftOut;
        }
        if self.packets > FIRST && self.recent.is_none() {
            Seen::New
        } else {
            self.compare(packet, (ttl, is_elsewhere), now)
        }
    }

    #[cold]
    fn compare(&mut self, packet: &Packet, (ttl, is_elsewhere): (Option<u8>, bool), now: Instant) -> Seen {
        let is_marked = is_marked(packet);
        // A host sends the same data again only after a round trip, but the same ACK for each packet.
        if !is_marked && packet.segment.len == 0 && self.left_out == 0 {
            return Seen::New;
        }
        // Without a mark, only what comes at once is a copy.
        let time = |back: u64| if is_marked { 0 } else { now.as_nanos() / AT_ONCE.as_nanos() + 1 - back };
        let hashes = [0, u64::from(!is_marked)].map(|back| hash(packet, time(back)));
        let recent = self.recent.get_or_insert_default();
        let is_copy = |(known, _): &&mut (u32, bool)| hashes.contains(known);
        let Some((_, was_repeated)) = recent.packets.iter_mut().find(is_copy) else {
            self.packets += 1;
            recent.add(hashes[0]);
            if self.packets > FIRST && recent.copied * 2 < self.packets {
                self.recent = None;
            }
            return Seen::New;
        };
        recent.copied += u32::from(!std::mem::replace(was_repeated, true));
        self.has_several |= is_elsewhere;
        let are_most = recent.copied >= ENOUGH && recent.copied * 2 >= self.packets;
        // What a router has forwarded is the copy of what it was sent: a retransmission has the same TTL.
        let is_forwarded = self.left_out > 0 && ttl != Some(packet.ttl);
        let is_capture = is_elsewhere || !is_marked || is_forwarded || are_most;
        self.left_out += u64::from(is_capture);
        if is_capture { Seen::LeftOut } else { Seen::Resighting }
    }

    /// True while the first packets are compared, so that it is not known yet who made the copies among them. Called at the end
    /// of a packet, to hold back its events about duplicates.
    pub(super) fn is_undecided(&self) -> bool {
        self.left_out == 0 && self.packets <= FIRST && self.recent.is_some()
    }

    /// Copies were skipped, so the earlier ones are the capture's too.
    pub(super) fn is_doubled(&self) -> bool {
        self.left_out > 0
    }

    /// Nothing passes for a while.
    pub(super) fn rest(&mut self) {
        if !self.is_doubled() {
            self.recent = None;
        }
    }
}

impl Recent {
    fn add(&mut self, hash: u32) {
        if self.packets.len() < RECENT {
            self.packets.push((hash, false));
        } else {
            self.packets[self.next] = (hash, false);
            self.next = (self.next + 1) % RECENT;
        }
    }
}

/// True if a retransmission would differ from the packet: by its IP identification or timestamp.
fn is_marked(packet: &Packet) -> bool {
    let segment = &packet.segment;
    let has_id = packet.ip_id.is_some_and(|id| id != 0);
    has_id || segment.len > 0 && segment.timestamps.is_some() && !segment.flags.has(Flags::SYN)
}

/// A hash of the fields that routers do not change, and of a time.
fn hash(packet: &Packet, time: u64) -> u32 {
    let segment = &packet.segment;
    let id = packet.ip_id.filter(|id| *id != 0);
    let fields = (segment.seq, segment.ack, segment.len, segment.flags.0, segment.window, segment.timestamps, id);
    let fields = (fields, time);
    FixedState::with_seed(0).hash_one(fields) as u32
}
