//! All connections of a capture, numbered as Wireshark numbers them.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use reknit_units::Instant;

use crate::packet::{Endpoint, Packet};
use crate::stream::{Log, Stream};

/// The most connections that are analysed.
pub const MOST_STREAMS: usize = 1 << 18;
/// Ranges of data that one direction may remember.
const MOST_RANGES: usize = 1 << 17;
/// Ranges that all directions together may remember. Beyond, each keeps few.
const BUDGET: usize = 1 << 20;
const FEW_RANGES: usize = 16;
/// Packets between two visits of silent connections.
const BETWEEN_VISITS: u64 = 8;

/// The two ends, the smaller first.
pub(crate) type Key = (Endpoint, Endpoint);

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The newest connection between two endpoints. The order in the table is random and not used.
    numbers: HashTable<u32>,
    hasher: RandomState,
    pub(crate) all: Vec<Stream>,
    last: Option<(Key, u32)>,
    /// Ranges that are remembered.
    memory: usize,
    /// Packets of connections beyond the limit.
    pub(crate) left_out: u64,
    /// The budget was exceeded.
    pub(crate) was_short: bool,
    packets: u64,
    /// The connection that was looked at last whether it is silent.
    visited: usize,
}

impl Streams {
    pub(crate) fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant, log: &mut Log) {
        let key = key(packet.source, packet.destination);
        let known = match self.last {
            Some((last, number)) if last == key => Some(number),
            _ => {
                self.numbers.find(self.hasher.hash_one(key), |number| self.all[*number as usize].key() == key).copied()
            }
        };
        let known = known.filter(|number| !self.all[*number as usize].is_replaced_by(packet));
        let Some(number) = known.or_else(|| self.add(key, packet, now)) else {
            self.left_out += 1;
            return;
        };
        self.last = Some((key, number));
        let most_ranges = if self.memory < BUDGET { MOST_RANGES } else { FEW_RANGES };
        self.was_short |= self.memory >= BUDGET;
        let stream = &mut self.all[number as usize];
        let before = stream.memory();
        stream.on_packet(packet, frame, now, most_ranges, log);
        self.memory = self.memory + stream.memory() - before;
        self.packets += 1;
        if self.packets.is_multiple_of(BETWEEN_VISITS) {
            self.visit(now, log);
        }
    }

    /// Connections that are silent give back memory: looks at one after the other.
    fn visit(&mut self, now: Instant, log: &mut Log) {
        self.visited = if self.visited + 1 < self.all.len() { self.visited + 1 } else { 0 };
        let Some(stream) = self.all.get_mut(self.visited) else { return };
        let before = stream.memory();
        stream.rest(now, log);
        self.memory = self.memory + stream.memory() - before;
    }

    /// All connections, at the end.
    pub(crate) fn take(&mut self) -> Vec<Stream> {
        self.numbers = HashTable::new();
        std::mem::take(&mut self.all)
    }

    fn add(&mut self, key: Key, packet: &Packet, now: Instant) -> Option<u32> {
        if self.all.len() >= MOST_STREAMS {
            return None;
        }
        let number = self.all.len() as u32;
        self.all.push(Stream::new(number, packet, now));
        let hash = |number: &u32| self.hasher.hash_one(self.all[*number as usize].key());
        let is_same = |number: &u32| self.all[*number as usize].key() == key;
        match self.numbers.entry(self.hasher.hash_one(key), is_same, hash) {
            Entry::Occupied(mut older) => *older.get_mut() = number,
            Entry::Vacant(place) => drop(place.insert(number)),
        }
        Some(number)
    }
}

/// The two ends of a connection.
pub(crate) fn key(a: Endpoint, b: Endpoint) -> Key {
    if a <= b { (a, b) } else { (b, a) }
}
