//! Reorder density and reorder buffer-occupancy density (RFC 5236) of one direction.
//! Owned by [`super::upstream`] and [`super::downstream`], one each.
//!
//! Both need packets numbered without gaps, and the lost packets. These are known only when data is settled, in the order of its
//! bytes, which is the order of sending. Until then each range keeps its place in the order of arrival, and packets that arrived
//! out of order wait here until all earlier arrivals are settled. `on_settled` or `on_lost` is called for each side as a range is
//! settled.

use std::collections::{BTreeMap, VecDeque};

use reknit_path::Density;
use serde::{Deserialize, Serialize};

/// The largest displacement that is counted; packets beyond it count as lost (§5: no useful TCP window is larger).
const THRESHOLD: u64 = 1 << 12;

/// The place of a packet that did not arrive or whose arrival was not seen.
pub(super) const NONE: u32 = u32::MAX;

/// The densities of one direction, on one side of the capture point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Disorder {
    /// The place of the next arrival.
    next: u32,
    /// The place that was settled last: further pieces of the same packet have the same place.
    last: u32,
    /// The packet that was lost last, by its frame: further pieces of it are no further losses.
    last_lost: u64,
    /// Packets that arrived in order before the first that did not.
    in_order: u64,
    out: Option<Box<Densities>>,
}

/// The state since the first packet that was out of order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Densities {
    density: Density,
    /// The packets that wait: their places, ascending, and their numbers.
    waiting: VecDeque<(u32, u64)>,
    /// Packets that were settled, lost ones included.
    settled: u64,
}

impl Default for Disorder {
    fn default() -> Disorder {
        Disorder { next: 0, last: NONE, last_lost: 0, in_order: 0, out: None }
    }
}

impl Disorder {
    /// The next packet in the order of sending is settled. `place`: its place in the order of arrival, or [`NONE`]; `frame`: the
    /// packet that carried it.
    #[inline]
    pub(super) fn on_settled(&mut self, place: u32, frame: u64) {
        if place == NONE {
            self.on_lost(frame);
            return;
        }
        if place == self.next && self.out.is_none() {
            self.next += 1;
            self.in_order += 1;
        } else if place != self.last {
            self.on_disorder(place);
        }
        self.last = place;
    }

    #[cold]
    fn on_lost(&mut self, frame: u64) {
        // As long as everything is in order, a loss displaces nothing.
        if std::mem::replace(&mut self.last_lost, frame) != frame && self.out.is_some() {
            self.on_disorder(NONE);
        }
    }

    fn on_disorder(&mut self, place: u32) {
        let new = || Box::new(Densities { density: Density::starting_at(0, THRESHOLD), ..Densities::default() });
        let out = self.out.get_or_insert_with(new);
        let number = out.settled;
        out.settled += 1;
        if place == NONE || place < self.next {
            out.density.on_lost(number);
            return;
        }
        if place == self.next && out.waiting.is_empty() {
            out.density.on_arrival(number);
            self.next += 1;
            return;
        }
        out.wait(place, number);
        while let Some((place, number)) = out.waiting.front().copied() {
            if place != self.next && out.waiting.len() as u64 <= THRESHOLD {
                break;
            }
            out.waiting.pop_front();
            out.density.on_arrival(number);
            self.next = place + 1;
        }
    }

    /// The capture ends: nothing more arrives.
    pub(super) fn finish(&mut self) {
        let Some(out) = &mut self.out else { return };
        while let Some((_, number)) = out.waiting.pop_front() {
            out.density.on_arrival(number);
        }
    }

    /// How many packets had each displacement (RD).
    pub(crate) fn displacements(&self) -> Vec<(i64, u64)> {
        self.with_in_order(0, |density| density.displacements().collect())
    }

    /// After how many arrivals the resequencing buffer held each number of packets (RBD).
    pub(crate) fn occupancy(&self) -> Vec<(u64, u64)> {
        self.with_in_order(0, |density| density.occupancy().collect())
    }

    /// Counts from the density, plus the packets in order before it, which have the value `zero`.
    fn with_in_order<K: Ord + Copy>(&self, zero: K, counts: impl Fn(&Density) -> Vec<(K, u64)>) -> Vec<(K, u64)> {
        let counted = self.out.iter().flat_map(|out| counts(&out.density));
        let mut all: BTreeMap<K, u64> = counted.collect();
        if self.in_order > 0 {
            *all.entry(zero).or_default() += self.in_order;
        }
        let mut counts: Vec<(K, u64)> = all.into_iter().collect();
        counts.shrink_to_fit(); // there may be many directions with one count each
        counts
    }
}

impl Densities {
    /// The packet with this place waits. If its pieces are separated by data of other packets, it is added several times, and its
    /// last number counts.
    fn wait(&mut self, place: u32, number: u64) {
        match self.waiting.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(known) => self.waiting[known].1 = number,
            Err(at) => self.waiting.insert(at, (place, number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets in the order of sending, with their places in the order of arrival; none for a lost packet.
    fn disorder(places: &[Option<u32>]) -> Disorder {
        let mut disorder = Disorder::default();
        for (place, frame) in places.iter().zip(1..) {
            disorder.on_settled(place.unwrap_or(NONE), frame);
        }
        disorder.finish();
        disorder
    }

    #[test]
    fn the_example_of_the_rfc_in_the_order_of_sending() {
        // RFC 5236 §8 a: 1, 4, 2, 5, 3, 6, 7, 8 arrive.
        let disorder = disorder(&[0, 2, 4, 1, 3, 5, 6, 7].map(Some));
        assert_eq!(disorder.displacements(), [(-2, 1), (-1, 1), (0, 4), (1, 1), (2, 1)]);
        assert_eq!(disorder.occupancy(), [(0, 5), (1, 2), (2, 1)]);
    }

    #[test]
    fn a_lost_packet_between_reordered_ones() {
        // §4, example 5: 4 is lost, and 1, 2, 5, 3, 6 arrive.
        let disorder = disorder(&[Some(0), Some(1), Some(3), None, Some(2), Some(4)]);
        assert_eq!(disorder.displacements(), [(-2, 1), (0, 3), (2, 1)]);
    }

    #[test]
    fn pieces_of_one_packet_count_once_and_losses_alone_not_at_all() {
        let disorder = disorder(&[Some(0), Some(1), Some(1), None, None, Some(2)]);
        assert_eq!(disorder.displacements(), [(0, 3)]);
        assert_eq!(disorder.occupancy(), [(0, 3)]);
    }

    #[test]
    fn pieces_of_a_lost_packet_are_one_loss() {
        // As in §4, example 5, and packet 4 is split by what replaced it.
        let mut disorder = Disorder::default();
        let settled = [(0, 1), (1, 2), (3, 3), (NONE, 4), (NONE, 4), (NONE, 4), (2, 5), (4, 6)];
        for (place, frame) in settled {
            disorder.on_settled(place, frame);
        }
        disorder.finish();
        assert_eq!(disorder.displacements(), [(-2, 1), (0, 3), (2, 1)]);
        assert_eq!(disorder.out.map(|out| out.settled), Some(4));
    }
}
