//! Observes a transfer at the emulated path, independently of the ends.

use std::collections::BTreeMap;

use reknit_tcp::SeqNum;
use reknit_tcp::segment::Flags;
use reknit_wire::Decoded;

/// The ranges of one direction's stream that have been seen.
#[derive(Debug, Default)]
struct Seen {
    /// Start and end of each; they are disjoint.
    ranges: BTreeMap<u64, u64>,
}

impl Seen {
    /// Adds `start..end`. True if all of it had been seen before.
    fn add(&mut self, start: u64, end: u64) -> bool {
        let (mut start, mut end) = (start, end);
        let covering = self.ranges.range(..=start).next_back().filter(|(_, e)| **e >= end);
        if covering.is_some() {
            return true;
        }
        while let Some((&s, &e)) = self.ranges.range(..=end).next_back().filter(|(_, e)| **e >= start) {
            start = start.min(s);
            end = end.max(e);
            self.ranges.remove(&s);
        }
        self.ranges.insert(start, end);
        false
    }
}

/// Follows the data from one end to the other.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    isn: Option<SeqNum>,
    /// The highest offset so far; sequence numbers are unwrapped near it.
    highest: u64,
    sent: Seen,
    delivered: Seen,
    pub(crate) segments_sent: u64,
    pub(crate) retransmissions: u64,
    /// Data segments that arrived after all of their data had arrived.
    pub(crate) duplicates_delivered: u64,
    /// Resets that were sent, also those that were lost on the way.
    pub(crate) resets: u64,
    /// FINs that were delivered.
    pub(crate) fins: u64,
}

impl Observer {
    fn position(&mut self, seq: SeqNum) -> Option<u64> {
        let distance = seq.distance_from(self.isn?);
        let near = distance.wrapping_sub(self.highest as u32).cast_signed();
        let position = self.highest.checked_add_signed(i64::from(near))?;
        self.highest = self.highest.max(position);
        Some(position)
    }

    /// Bytes of the stream that were delivered in order.
    pub(crate) fn in_order(&self) -> u64 {
        // The SYN is at offset 0.
        self.delivered.ranges.first_key_value().filter(|(start, _)| **start == 1).map_or(0, |(_, end)| end - 1)
    }

    /// An end sends a packet.
    pub(crate) fn on_sent(&mut self, packet: &Decoded<'_>) {
        let segment = &packet.segment;
        if segment.flags.has(Flags::SYN) {
            self.isn = Some(segment.seq);
        }
        self.resets += u64::from(segment.flags.has(Flags::RST));
        if segment.len > 0
            && let Some(start) = self.position(segment.seq)
        {
            self.segments_sent += 1;
            self.retransmissions += u64::from(self.sent.add(start, start + u64::from(segment.len)));
        }
    }

    /// A packet reaches the other end; `copy` if the network made it.
    pub(crate) fn on_delivered(&mut self, packet: &Decoded<'_>, copy: bool) {
        let segment = &packet.segment;
        self.fins += u64::from(segment.flags.has(Flags::FIN));
        if segment.len > 0
            && let Some(start) = self.position(segment.seq)
        {
            let duplicate = self.delivered.add(start, start + u64::from(segment.len));
            self.duplicates_delivered += u64::from(duplicate && !copy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_repetitions_are_noticed() {
        let mut seen = Seen::default();
        assert!(!seen.add(0, 10));
        assert!(!seen.add(20, 30));
        assert!(seen.add(22, 28));
        assert!(!seen.add(5, 25));
        assert_eq!(seen.ranges, BTreeMap::from([(0, 30)]));
        assert!(seen.add(0, 30));
    }
}
