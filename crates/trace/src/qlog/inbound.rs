//! The packets that one end received.

use std::collections::BTreeMap;

use reknit_path::Reordering;
use reknit_units::Instant;

use super::event::{Named, Packet, Space};
use crate::spread::Lateness;

#[derive(Debug, Default)]
pub(super) struct Inbound {
    pub(super) spaces: BTreeMap<(u64, Space), Arrived>,
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Bytes of streams.
    pub(super) data: u64,
    pub(super) duplicates: u64,
    pub(super) lateness: Lateness,
    pub(super) span: Option<(Instant, Instant)>,
}

/// The packets of one number space.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) numbers: Numbers,
    /// Those that this end took for duplicates, although it had not received them: it does not remember that far back.
    discarded: Numbers,
    pub(super) reordering: Reordering,
}

impl Inbound {
    pub(super) fn on_packet(&mut self, packet: &Packet, at: Instant) {
        let arrived = self.spaces.entry((packet.path, packet.space)).or_default();
        if !arrived.numbers.add(packet.number) {
            self.duplicates += 1;
            return;
        }
        self.packets += 1;
        self.bytes += packet.size;
        self.data += packet.streams.iter().map(|part| part.len).fold(0, u64::saturating_add);
        let (first, _) = *self.span.get_or_insert((at, at));
        self.span = Some((first, at));
        if let Some(late) = arrived.reordering.on_arrival(packet.number, at) {
            self.lateness.add(&late);
        }
    }

    pub(super) fn on_discarded(&mut self, named: Named) {
        let key = (named.path, named.space.unwrap_or(Space::Application));
        let arrived = self.spaces.entry(key).or_default();
        if arrived.numbers.has(named.number) {
            self.duplicates += 1;
        } else {
            arrived.discarded.add(named.number);
        }
    }

    /// True if the packet arrived, but was taken for a duplicate.
    pub(super) fn has_discarded(&self, path: u64, space: Space, number: u64) -> bool {
        self.spaces.get(&(path, space)).is_some_and(|arrived| arrived.discarded.has(number))
    }

    /// Numbers between others that never arrived.
    pub(super) fn missing(&self) -> u64 {
        self.spaces.values().map(|arrived| arrived.numbers.missing()).sum()
    }

    /// True if the packet arrived, on any path if the log does not say on which.
    pub(super) fn has(&self, path: u64, space: Space, number: u64) -> bool {
        let on = |path| self.spaces.get(&(path, space)).is_some_and(|arrived| arrived.numbers.has(number));
        on(path) || path != 0 && on(0)
    }

    /// The measures of the number space with the most packets.
    pub(super) fn reordering(&self) -> Reordering {
        let all = self.spaces.values().map(|arrived| &arrived.reordering);
        all.max_by_key(|reordering| reordering.arrived()).cloned().unwrap_or_default()
    }
}

/// A set of numbers that has few gaps.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The first number of each run, and its last.
    runs: BTreeMap<u64, u64>,
    count: u64,
}

impl Numbers {
    /// False if it was there.
    pub(super) fn add(&mut self, number: u64) -> bool {
        let before = self.runs.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| last >= number) {
            return false;
        }
        self.count += 1;
        let first = before.filter(|(_, last)| *last + 1 == number).map_or(number, |(first, _)| first);
        let after = number.checked_add(1).and_then(|next| self.runs.remove(&next));
        self.runs.insert(first, after.unwrap_or(number));
        true
    }

    pub(super) fn has(&self, number: u64) -> bool {
        self.runs.range(..=number).next_back().is_some_and(|(_, last)| *last >= number)
    }

    /// Numbers between the smallest and the largest that are not there.
    fn missing(&self) -> u64 {
        let ends = self.runs.keys().next().zip(self.runs.values().next_back());
        ends.map_or(0, |(first, last)| (last - first).saturating_sub(self.count - 1))
    }

    pub(super) fn largest(&self) -> Option<u64> {
        self.runs.values().next_back().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_are_joined() {
        let mut numbers = Numbers::default();
        assert!([5, 3, 4, u64::MAX, 0].map(|number| numbers.add(number)).iter().all(|new| *new));
        assert!([5, 3, 4, u64::MAX, 0].map(|number| numbers.add(number)).iter().all(|new| !*new));
        assert_eq!(numbers.runs, BTreeMap::from([(0, 0), (3, 5), (u64::MAX, u64::MAX)]));
        assert_eq!((numbers.missing(), numbers.largest()), (u64::MAX - 4, Some(u64::MAX)));
        assert!(numbers.has(4) && !numbers.has(6));
    }
}
