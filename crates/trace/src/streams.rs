//! All connections of a capture, numbered as Wireshark numbers them.

use std::collections::BTreeMap;

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

/// The two ends, the smaller first.
type Key = (Endpoint, Endpoint);

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// The newest connection between two endpoints.
    numbers: BTreeMap<Key, u32>,
    pub(crate) all: Vec<Stream>,
    last: Option<(Key, u32)>,
    /// Ranges that are remembered.
    memory: usize,
    /// Packets of connections beyond the limit.
    pub(crate) left_out: u64,
    /// The budget was exceeded.
    pub(crate) was_short: bool,
}

impl Streams {
    pub(crate) fn on_packet(&mut self, packet: &Packet, frame: u64, now: Instant, log: &mut Log) {
        let key = if packet.source <= packet.destination {
            (packet.source, packet.destination)
        } else {
            (packet.destination, packet.source)
        };
        let known = match self.last {
            Some((last, number)) if last == key => Some(number),
            _ => self.numbers.get(&key).copied(),
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
    }

    fn add(&mut self, key: Key, packet: &Packet, now: Instant) -> Option<u32> {
        if self.all.len() >= MOST_STREAMS {
            return None;
        }
        let number = self.all.len() as u32;
        self.all.push(Stream::new(number, packet, now));
        self.numbers.insert(key, number);
        Some(number)
    }
}
