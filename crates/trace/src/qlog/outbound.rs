//! The packets that one end sent: which it declared lost, and which of those were acknowledged later.

use std::collections::BTreeMap;

use reknit_path::Reordering;
use reknit_units::{Duration, Instant, grouped};

use super::event::{Ack, LossReason, Named, Packet, Space, StreamPart};
use super::round_trip::RoundTrip;
use super::windows::Windows;
use crate::spread::Lateness;

/// Packets in flight or declared lost that are remembered.
const MAX_PACKETS: usize = 1 << 22;
/// Declared losses.
const MAX_LOSSES: usize = 1 << 20;
/// Streams whose data is recognized when it is sent again.
const MAX_STREAMS: usize = 1 << 20;
/// A packet that this many higher numbers have passed was lost, for a log without losses (RFC 9002 §6.1.1).
const PASSED: u64 = 3;
const NOT_LOST: u32 = u32::MAX;

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    pub(super) path: u64,
    pub(super) space: Space,
    pub(super) number: u64,
    /// None if the log does not have it.
    pub(super) sent: Option<Instant>,
    pub(super) declared: Instant,
    pub(super) reason: LossReason,
    /// If it was acknowledged later.
    pub(super) late: Option<Late>,
}

/// How late a packet was that was declared lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late {
    /// The largest acknowledged number was this much larger.
    pub(super) packets: u64,
    /// Its own round trip, in units of the time threshold; none if there was no sample yet.
    pub(super) round_trips: Option<f64>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Option<Instant>,
    /// Bytes that were not sent before.
    data: u32,
    /// Its number among the losses.
    loss: u32,
}

/// The packets of one number space that are not acknowledged.
#[derive(Debug, Default)]
struct InFlight {
    packets: BTreeMap<u64, Sent>,
    largest_sent: Option<u64>,
    largest_acked: Option<u64>,
    reordering: Reordering,
}

#[derive(Debug, Default)]
pub(super) struct Outbound {
    spaces: BTreeMap<(u64, Space), InFlight>,
    /// The end of what was sent of each stream.
    streams: BTreeMap<u64, u64>,
    /// The connection acknowledges packets of paths other than the first.
    has_paths: bool,
    pub(super) losses: Vec<Loss>,
    /// Declared losses without numbers.
    pub(super) unnamed_losses: u64,
    pub(super) round_trip: RoundTrip,
    pub(super) windows: Windows,
    pto_count: u64,
    pub(super) timers: u64,
    /// Packets that elicit acknowledgments.
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// The log has acknowledgments.
    pub(super) has_acks: bool,
    /// Bytes of streams and datagrams, each counted once.
    pub(super) data: u64,
    pub(super) lateness: Lateness,
    pub(super) span: Option<(Instant, Instant)>,
}

impl Outbound {
    /// # Errors
    /// If there are too many.
    pub(super) fn on_sent(&mut self, packet: &Packet, at: Instant) -> Result<(), String> {
        let data = packet.streams.iter().map(|part| self.new_bytes(part)).fold(0, u64::saturating_add);
        let space = self.spaces.entry((packet.path, packet.space)).or_default();
        space.largest_sent = space.largest_sent.max(Some(packet.number));
        if !packet.is_eliciting || space.packets.contains_key(&packet.number) {
            return Ok(());
        }
        if space.packets.len() >= MAX_PACKETS {
            return Err(format!("more than {} packets are in flight or lost", grouped(MAX_PACKETS as u64)));
        }
        let sent = Sent { at: Some(at), data: data.try_into().unwrap_or(u32::MAX), loss: NOT_LOST };
        space.packets.insert(packet.number, sent);
        self.packets += 1;
        self.bytes += packet.size;
        self.data += data;
        let (first, _) = *self.span.get_or_insert((at, at));
        self.span = Some((first, at));
        Ok(())
    }

    /// The bytes that were not sent before.
    fn new_bytes(&mut self, part: &StreamPart) -> u64 {
        let Some(stream) = part.stream else { return part.len };
        let end = part.offset.saturating_add(part.len);
        if self.streams.len() >= MAX_STREAMS && !self.streams.contains_key(&stream) {
            return part.len;
        }
        let known = self.streams.entry(stream).or_insert(0);
        let new = end.saturating_sub((*known).max(part.offset));
        *known = end.max(*known);
        new
    }

    pub(super) fn on_ack(&mut self, packet_path: u64, space: Space, ack: &Ack, at: Instant) {
        self.has_acks = true;
        self.has_paths |= ack.path.is_some();
        // A path has its own numbers only if the connection has ACK frames for it; else all share those of the connection.
        let wanted = if self.has_paths { ack.path.unwrap_or(0) } else { packet_path };
        let mut keys: Vec<(u64, Space)> = vec![(wanted, space)];
        if !self.has_paths {
            keys.extend(self.spaces.keys().filter(|(path, other)| *path != wanted && *other == space));
        }
        for key in keys {
            self.acknowledge(key, &ack.ranges, at);
        }
    }

    fn acknowledge(&mut self, key: (u64, Space), ranges: &[(u64, u64)], at: Instant) {
        let Some(space) = self.spaces.get_mut(&key) else { return };
        let before = space.largest_acked;
        let base = self.round_trip.base();
        let mut largest = None;
        for (first, last) in ranges {
            // Nobody acknowledges what was not sent.
            let last = *last.min(&space.largest_sent.unwrap_or(*last));
            let newly: Vec<u64> = if *first <= last {
                space.packets.range(first..=&last).map(|(number, _)| *number).collect()
            } else {
                Vec::new()
            };
            for number in newly {
                let Some(sent) = space.packets.remove(&number) else { continue };
                largest = Some((number, sent.at));
                if let Some(late) = space.reordering.on_arrival(number, at) {
                    self.lateness.add(&late);
                }
                if let Some(loss) = self.losses.get_mut(sent.loss as usize) {
                    let packets = before.unwrap_or(0).saturating_sub(number);
                    let took = sent.at.map(|sent| at.since(sent));
                    let round_trips = took.zip(base).map(|(took, base)| took.as_secs_f64() / base.as_secs_f64());
                    loss.late = Some(Late { packets, round_trips });
                }
            }
            space.largest_acked = space.largest_acked.max(Some(last));
        }
        if let Some((number, Some(sent))) = largest
            && space.largest_acked == Some(number)
            && before < Some(number)
        {
            self.round_trip.on_sample(sent, at);
        }
    }

    /// # Errors
    /// If there are too many.
    pub(super) fn on_lost(&mut self, named: Named, reason: LossReason, at: Instant) -> Result<(), String> {
        let (path, space) = self.find(named);
        let in_flight = self.spaces.entry((path, space)).or_default();
        let known = in_flight.packets.get_mut(&named.number);
        // What the log has as sent, and is not in flight, was acknowledged before, or elicits no acknowledgment.
        let is_over = known.is_none() && in_flight.largest_sent >= Some(named.number);
        if is_over || known.as_ref().is_some_and(|sent| sent.loss != NOT_LOST) {
            return Ok(());
        }
        if self.losses.len() >= MAX_LOSSES {
            return Err(format!("more than {} packets were declared lost", grouped(MAX_LOSSES as u64)));
        }
        let loss = self.losses.len() as u32;
        let sent = known.and_then(|sent| {
            sent.loss = loss;
            sent.at
        });
        if sent.is_none() {
            in_flight.packets.insert(named.number, Sent { at: None, data: 0, loss });
        }
        self.losses.push(Loss { path, space, number: named.number, sent, declared: at, reason, late: None });
        Ok(())
    }

    /// The sender itself says that a loss was spurious.
    pub(super) fn on_spurious(&mut self, named: Named, at: Instant) {
        let (path, space) = self.find(named);
        let known = self.spaces.get(&(path, space)).and_then(|in_flight| in_flight.packets.get(&named.number));
        if known.is_some_and(|sent| sent.loss != NOT_LOST) {
            self.acknowledge((path, space), &[(named.number, named.number)], at);
        }
    }

    /// The space and the path that have this packet in flight.
    fn find(&self, named: Named) -> (u64, Space) {
        let wanted = (named.path, named.space.unwrap_or(Space::Application));
        let has = |key: &(u64, Space)| {
            self.spaces.get(key).is_some_and(|in_flight| in_flight.packets.contains_key(&named.number))
        };
        let others = self.spaces.keys().rev().filter(|(_, space)| named.space.is_none_or(|wanted| wanted == *space));
        std::iter::once(&wanted).chain(others).find(|key| has(key)).copied().unwrap_or(wanted)
    }

    pub(super) fn on_metrics(&mut self, window: Option<u64>, rtt: [Option<f64>; 2], ptos: Option<u64>, at: Instant) {
        let [smoothed, latest] = rtt;
        self.round_trip.on_metrics(smoothed, latest);
        if let Some(window) = window {
            self.windows.on_window(window, at, self.round_trip.base().unwrap_or(Duration::ZERO));
        }
        if let Some(count) = ptos {
            self.timers += count.saturating_sub(self.pto_count);
            self.pto_count = count;
        }
    }

    /// The largest number that was sent, on any path.
    pub(super) fn largest_sent(&self, space: Space) -> Option<u64> {
        let of_space = self.spaces.iter().filter(|((_, other), _)| *other == space);
        of_space.filter_map(|(_, in_flight)| in_flight.largest_sent).max()
    }

    /// Packets that were never acknowledged, nor declared lost, although later ones were acknowledged.
    pub(super) fn passed_over(&self) -> u64 {
        let of = |space: &InFlight| {
            let end = space.largest_acked.map_or(0, |largest| largest.saturating_sub(PASSED - 1));
            space.packets.range(..end).filter(|(_, sent)| sent.loss == NOT_LOST).count() as u64
        };
        self.spaces.values().map(of).sum()
    }

    /// Bytes of streams and datagrams that are not in flight at the end: they were delivered, or sent again.
    pub(super) fn delivered(&self) -> u64 {
        let in_flight = self.spaces.values().flat_map(|space| space.packets.values());
        let in_flight = in_flight.filter(|sent| sent.loss == NOT_LOST).map(|sent| u64::from(sent.data)).sum();
        self.data.saturating_sub(in_flight)
    }

    /// The measures of the number space with the most packets, by the order of the acknowledgments.
    pub(super) fn reordering(&self) -> Reordering {
        let all = self.spaces.values().map(|space| &space.reordering);
        all.max_by_key(|reordering| reordering.arrived()).cloned().unwrap_or_default()
    }
}
