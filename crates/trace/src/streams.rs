//! All connections of a capture, numbered as Wireshark numbers them.

mod again;

use std::collections::VecDeque;
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use reknit_units::{Duration, Instant};

use crate::packet::{Endpoint, Flags, Packet, TooBig};
use crate::stream::{Log, Rests, Stream};
pub(crate) use again::Course;
use again::One;

/// The most connections that are analysed.
pub const MAX_STREAMS: usize = 1 << 18;
/// Ranges of data that one direction may remember.
const MAX_RANGES: usize = 1 << 17;
/// Ranges that all directions together may remember. Beyond, each keeps few.
const BUDGET: usize = 1 << 20;
const FEW_RANGES: usize = 16;
/// Packets between two visits of silent connections.
const BETWEEN_VISITS: u64 = 8;
/// If more connections than this are open, paused connections are packed too, and visits are more frequent. A pause is this
/// long.
const MANY: usize = 1 << 12;
const BETWEEN_VISITS_OF_MANY: u64 = 2;
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that have been packed for this long are visited again to forget old data.
const SILENT: Duration = Duration::from_secs(2);

/// The addresses of the two ends of a connection, the smaller end first, and both ports in one number.
type Key = [u64; 5];

/// A connection and its ends.
#[derive(Debug)]
struct Slot {
    key: Key,
    /// Its first packet, as `Streams::passed` counts them.
    first: u64,
    kept: Kept,
}

/// How a connection is kept. Most connections of a large capture are silent most of the time: they are packed, which takes
/// about a tenth of the memory, until their next packet.
#[derive(Debug)]
enum Kept {
    Open(Box<Stream>),
    Packed(Box<[u8]>),
}

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The newest connection between two endpoints. The order in the table is random and not used.
    numbers: HashTable<u32>,
    hasher: RandomState,
    all: Vec<Slot>,
    /// The number of the first of them.
    lowest: u32,
    recent: Recent,
    /// The only connection that is analysed; none: all are.
    one: Option<One>,
    /// TCP packets so far, counted or not.
    passed: u64,
    /// Connections that are not packed, in no order.
    open: Vec<u32>,
    /// The index in `open` of the connection that was visited last.
    visited: usize,
    /// Connections that were packed although they remember data, and when.
    paused: VecDeque<(Instant, u32)>,
    /// Packets of connections beyond the limit.
    pub(crate) left_out: u64,
    /// The budget was exceeded.
    pub(crate) was_short: bool,
    packets: u64,
    /// Reused to pack.
    bytes: Vec<u8>,
}

/// A cache of recently found connections by hash: most packets belong to few connections. The lowest bits of the hash are the
/// index.
#[derive(Debug)]
struct Recent(Box<[(u64, u32); Recent::LEN]>);

impl Recent {
    const LEN: usize = 256;

    #[inline]
    fn at(&mut self, hash: u64) -> &mut (u64, u32) {
        &mut self.0[hash as usize % Recent::LEN]
    }
}

impl Default for Recent {
    fn default() -> Recent {
        Recent(Box::new([(0, u32::MAX); Recent::LEN]))
    }
}

impl Streams {
    pub(crate) fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant, log: &mut Log) {
        self.passed += 1;
        if self.one.is_some() {
            return self.on_packet_again(packet, frame, now, log);
        }
        let is_syn = packet.segment.flags.has(Flags::SYN);
        let known = self.find(&key(packet)).filter(|number| !(is_syn && self.get_mut(*number).is_replaced_by(packet)));
        let Some(number) = known.or_else(|| self.add(packet, now)) else {
            self.left_out += 1;
            return;
        };
        let most_ranges = if log.remembered < BUDGET { MAX_RANGES } else { FEW_RANGES };
        self.was_short |= log.remembered >= BUDGET;
        self.get_mut(number).on_packet(packet, frame, now, most_ranges, log);
        self.packets += 1;
        let are_many = self.open.len() > MANY && self.packets.is_multiple_of(BETWEEN_VISITS_OF_MANY);
        if are_many || self.packets.is_multiple_of(BETWEEN_VISITS) {
            self.visit(now, log);
        }
    }

    /// A router says that a packet was too big.
    #[cold]
    pub(crate) fn on_too_big(&mut self, too_big: &TooBig, frame: u64, now: Instant, log: &mut Log) {
        let key = key(&too_big.packet);
        let number = if self.one.is_some() { self.find_one(&key) } else { self.find(&key) };
        if let Some(number) = number {
            self.get_mut(number).on_too_big(too_big, frame, now, log);
        }
    }

    /// A packet that does not count: its connection gets its number, and its handshake is remembered.
    #[cold]
    pub(crate) fn pass_by(&mut self, packet: &Packet, frame: u64, now: Instant, log: &mut Log) {
        self.passed += 1;
        let is_syn = packet.segment.flags.has(Flags::SYN);
        let Some(number) = self.number_of(packet, now) else { return };
        let stream = self.get_mut(number);
        if is_syn {
            stream.on_packet(packet, frame, now, FEW_RANGES, log);
        } else {
            stream.pass_by(packet.segment.flags);
        }
    }

    /// Packets count from now on: the connections so far start over, except for their handshakes.
    pub(crate) fn resume(&mut self) {
        for number in self.all_numbers() {
            self.get_mut(number).resume();
        }
    }

    /// The connection of a packet that does not count; none if it is beyond the limit or not analysed.
    fn number_of(&mut self, packet: &Packet, now: Instant) -> Option<u32> {
        if self.one.is_some() {
            return self.one_of(packet, now);
        }
        let is_syn = packet.segment.flags.has(Flags::SYN);
        let key = key(packet);
        let is_same = |number: &u32| self.all.get(*number as usize).is_some_and(|slot| slot.key == key);
        let known = self.numbers.find(hash(&self.hasher, &key), is_same).copied();
        let known = known.filter(|number| !(is_syn && self.get_mut(*number).is_replaced_by(packet)));
        known.or_else(|| self.add(packet, now))
    }

    /// The newest connection between these ends.
    #[inline]
    fn find(&mut self, key: &Key) -> Option<u32> {
        // Element by element: a comparison of the whole array would wait for stores that have just been made.
        let differs = |known: &Key| known.iter().zip(key).fold(0, |bits, (a, b)| bits | (a ^ b)) != 0;
        let is_same = |number: &u32| self.all.get(*number as usize).is_some_and(|slot| !differs(&slot.key));
        let hash = hash(&self.hasher, key);
        let recent = self.recent.at(hash);
        if recent.0 != hash || !is_same(&recent.1) {
            *recent = (hash, self.numbers.find(hash, is_same).copied()?);
        }
        Some(recent.1)
    }

    /// A connection, unpacked.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Stream {
        let place = (number - self.lowest) as usize;
        if matches!(self.all[place].kept, Kept::Packed(_)) {
            self.open(number);
        }
        match &mut self.all[place].kept {
            Kept::Open(stream) => stream,
            Kept::Packed(_) => unreachable!("it has been unpacked"),
        }
    }

    #[cold]
    fn open(&mut self, number: u32) {
        let kept = &mut self.all[number as usize].kept;
        if let Kept::Packed(bytes) = kept {
            *kept = Kept::Open(Box::new(unpack(bytes)));
            self.open.push(number);
        }
    }

    /// Packs connections that are silent. Called every few packets; each call visits the next open connection.
    fn visit(&mut self, now: Instant, log: &mut Log) {
        if let Some((since, number)) = self.paused.front().copied()
            && now.since(since) > SILENT
        {
            self.paused.pop_front();
            self.get_mut(number); // its turn comes
        }
        self.visited = if self.visited + 1 < self.open.len() { self.visited + 1 } else { 0 };
        let Some(number) = self.open.get(self.visited).copied() else { return };
        let slot = &mut self.all[number as usize];
        let Kept::Open(stream) = &mut slot.kept else { return };
        stream.rest(self.passed, now, log);
        let is_idle = stream.has_nothing_to_do(now) || self.open.len() > MANY && now.since(stream.last) > PAUSE;
        // New events are about to be counted, which needs the connection.
        if is_idle && log.events.is_empty() {
            if !stream.has_nothing_to_do(now) && stream.memory() > 0 {
                self.paused.push_back((now, number));
            }
            slot.kept = Kept::Packed(pack(stream, &mut self.bytes));
            self.open.swap_remove(self.visited);
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// The numbers of the connections that are analysed.
    pub(crate) fn all_numbers(&self) -> Range<u32> {
        self.lowest..self.lowest + self.len()
    }

    /// True if each connection would be the same if it was analysed alone: no limit for all together was reached.
    pub(crate) fn are_independent(&self, log: &Log) -> bool {
        self.left_out == 0 && !self.was_short && Rests::are_complete(log.rests)
    }

    /// A connection begins with this packet.
    fn push(&mut self, number: u32, packet: &Packet, now: Instant) {
        let kept = Kept::Open(Box::new(Stream::new(number, packet, now)));
        self.all.push(Slot { key: key(packet), first: self.passed, kept });
    }

    /// The first packet of a connection: how many TCP packets had passed with it.
    pub(crate) fn first(&self, number: u32) -> u64 {
        self.all[(number - self.lowest) as usize].first
    }

    /// Removes a connection, at the end.
    pub(crate) fn take(&mut self, number: u32) -> Box<Stream> {
        let slot = &mut self.all[(number - self.lowest) as usize];
        match std::mem::replace(&mut slot.kept, Kept::Packed(Box::default())) {
            Kept::Open(stream) => stream,
            Kept::Packed(bytes) => Box::new(unpack(&bytes)),
        }
    }

    #[cold]
    fn add(&mut self, packet: &Packet, now: Instant) -> Option<u32> {
        if self.all.len() >= MAX_STREAMS {
            return None;
        }
        let number = self.all.len() as u32;
        let key = key(packet);
        self.push(number, packet, now);
        self.open.push(number);
        let hash_of = |number: &u32| hash(&self.hasher, &self.all[*number as usize].key);
        let is_same = |number: &u32| self.all[*number as usize].key == key;
        let hash = hash(&self.hasher, &key);
        *self.recent.at(hash) = (hash, number);
        match self.numbers.entry(hash, is_same, hash_of) {
            Entry::Occupied(mut older) => *older.get_mut() = number,
            Entry::Vacant(place) => drop(place.insert(number)),
        }
        Some(number)
    }
}

/// The connection as bytes. `bytes` is reused.
fn pack(stream: &Stream, bytes: &mut Vec<u8>) -> Box<[u8]> {
    bytes.clear();
    *bytes = postcard::to_extend(stream, std::mem::take(bytes)).expect("a vector takes all that is written");
    Box::from(&bytes[..])
}

fn unpack(bytes: &[u8]) -> Stream {
    postcard::from_bytes(bytes).expect("what was packed can be unpacked")
}

#[inline]
fn hash(state: &RandomState, key: &Key) -> u64 {
    let mut hasher = state.build_hasher();
    for part in key {
        hasher.write_u64(*part);
    }
    hasher.finish()
}

/// The ends of the packet's connection.
#[inline]
fn key(packet: &Packet) -> Key {
    let (mut a, mut b) = (&packet.source, &packet.destination);
    let [mut low, mut high] = [a, b].map(Endpoint::halves);
    // In most cases the lower halves of the addresses decide which is smaller.
    if if low[1] == high[1] { a > b } else { low[1] > high[1] } {
        ((a, low), (b, high)) = ((b, high), (a, low));
    }
    [low[0], low[1], high[0], high[1], u64::from(a.port) << 16 | u64::from(b.port)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(1_700_000_000_000_000_000 + ms * 1_000_000)
    }

    /// A packet from or to this port.
    fn packet(port: u16, is_back: bool) -> Packet {
        let mut packet = Packet { ttl: 64, ..Packet::default() };
        let mut ends = [Endpoint { address: [1; 16], port }, Endpoint { address: [2; 16], port: 443 }];
        ends.rotate_left(usize::from(is_back));
        [packet.source, packet.destination] = ends;
        packet.segment.flags = Flags::ACK;
        packet
    }

    fn data(port: u16, number: u32, stamp: u32) -> Packet {
        let mut packet = packet(port, false);
        (packet.segment.seq, packet.segment.len) = (1 + number * 1000, 1000);
        packet.segment.timestamps = Some((stamp, 1));
        packet
    }

    fn ack(port: u16, number: u32, sack: &[(u32, u32)]) -> Packet {
        let mut packet = packet(port, true);
        packet.segment.ack = 1 + number * 1000;
        packet.segment.timestamps = Some((1, 10));
        for (block, into) in sack.iter().zip(&mut packet.segment.sack) {
            *into = (1 + block.0 * 1000, 1 + block.1 * 1000);
        }
        packet.segment.sack_len = sack.len() as u8;
        packet
    }

    #[test]
    fn a_connection_is_the_same_after_packing() {
        // One segment is lost, one late and one sent again for nothing.
        let passing = [
            data(9, 0, 10),
            data(9, 1, 10),
            data(9, 2, 11),
            data(9, 3, 12),
            ack(9, 1, &[]),
            ack(9, 1, &[(3, 4)]),
            data(9, 1, 60),
            data(9, 2, 60),
            ack(9, 1, &[(2, 4)]),
            ack(9, 4, &[]),
            ack(9, 4, &[(2, 3)]),
            data(9, 4, 90),
        ];
        let (mut log, mut bytes) = (Log::default(), Vec::new());
        let mut stream = Stream::new(3, &passing[0], at(0));
        for (packet, number) in passing.iter().zip(1..) {
            stream.on_packet(packet, number, at(number * 10), 100, &mut log);
            let packed = pack(&stream, &mut bytes);
            assert_eq!(format!("{:?}", unpack(&packed)), format!("{stream:?}"), "after packet {number}");
            assert!(packed.len() < 1100, "{}", packed.len());
        }
        assert!(!log.events.is_empty());
    }

    #[test]
    fn silent_connections_are_packed_until_their_next_packet() {
        let (mut streams, mut log) = (Streams::default(), Log::default());
        for port in 1..=50 {
            streams.on_packet(&data(port, 0, 1), port.into(), at(0), &mut log);
            streams.on_packet(&ack(port, 1, &[]), port.into(), at(1), &mut log);
        }
        assert_eq!(streams.open.len(), 50);
        for i in 0..1000 {
            streams.on_packet(&data(99, i, i), 1000 + u64::from(i), at(2000 + u64::from(i)), &mut log);
        }
        assert_eq!((streams.open.len(), streams.len()), (1, 51));
        streams.on_packet(&data(7, 1, 5), 3000, at(5000), &mut log);
        assert_eq!((streams.open.len(), streams.len()), (2, 51));
        assert_eq!(streams.take(6).packets, 3);
    }
}
