//! The cost of retransmissions: how much less data passed after them than before. [`super::data`] calls `on_data` for each packet
//! with data, then `on_retransmission` if it is one; `Analyzer` and `Watcher` call `on_spurious` as they count that verdict.
//! Owned by [`super::data`].
//!
//! Data is counted in rounds, each as long as the shortest round trip, so that the bytes of a round show the rate and not the
//! queue. The retransmissions of successive rounds form an episode. Its cost is what is missing in the rounds from its start
//! until the previous rate is reached again: at least compared with the rounds just before, at most compared with the best round.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// The previous rate is the mean of this many rounds before an episode.
const ROUNDS_BEFORE: usize = 8;
/// An episode is closed after this many rounds even if the previous rate is not reached.
const MAX_ROUNDS: u32 = 256;
/// Beyond this many episodes, those whose packets all have a verdict become part of a sum.
const MANY_EPISODES: usize = 4096;
/// The shortest round, so that rounds contain packets.
const SHORTEST_ROUND: Duration = Duration::from_millis(1);
/// Below this share of the previous rate, the sender has reduced its window.
const REDUCED: f64 = 0.85;

/// Retransmissions that belong together, and what they cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Episode {
    first_frame: u64,
    last_frame: u64,
    retransmissions: u32,
    spurious: u32,
    /// Bytes per round: the mean of the last rounds before the episode, and the most of all rounds so far.
    usual: f64,
    most: f64,
    /// Bytes that are missing compared with these: at least, and at most.
    missing: [f64; 2],
    /// Rounds since the last retransmission, and the fewest bytes in one of them.
    rounds: u32,
    lowest: f64,
    is_closed: bool,
    /// Rounds since the episode was closed.
    since: usize,
}

/// The cost of all episodes of one direction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reductions {
    /// Episodes after which the rate fell, and how many of them had only spurious retransmissions.
    pub(crate) count: u64,
    pub(crate) false_count: u64,
    /// Closed episodes with only spurious retransmissions after which the rate did not fall.
    pub(crate) undone: u64,
    /// Bytes that the false reductions cost: at least, and at most.
    pub(crate) missing: [f64; 2],
}

/// Rates and episodes of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rounds {
    began: Option<Instant>,
    bytes: u64,
    /// Bytes per second of the best round.
    peak: f64,
    /// The most bytes of a round.
    best: f64,
    /// Bytes of the last rounds.
    last: Vec<f64>,
    has_retransmission: bool,
    /// Rounds in a row without data; from two on, the application may have paused.
    empty: u32,
    episodes: Vec<Episode>,
    /// So many episodes remained when the decided ones were forgotten.
    remained: usize,
    /// Episodes that are no longer remembered.
    forgotten: Reductions,
}

impl Rounds {
    /// A packet with `len` bytes. `round_trip` is the shortest between both ends.
    pub(super) fn on_data(&mut self, len: u32, now: Instant, round_trip: Option<Duration>) {
        let Some(length) = round_trip.map(|round_trip| round_trip.max(SHORTEST_ROUND)) else { return };
        let began = *self.began.get_or_insert(now);
        let elapsed = now.since(began);
        if elapsed >= length {
            self.peak = self.peak.max(self.bytes as f64 / elapsed.as_secs_f64());
            self.end_round();
            let idle = (elapsed.as_nanos() / length.as_nanos().max(1)).min(u64::from(MAX_ROUNDS));
            for _ in 1..idle {
                self.end_round();
            }
            self.began = Some(now);
        }
        self.bytes += u64::from(len);
    }

    fn end_round(&mut self) {
        let bytes = std::mem::take(&mut self.bytes) as f64;
        let again = std::mem::take(&mut self.has_retransmission);
        self.best = self.best.max(bytes);
        self.empty = if bytes == 0.0 { self.empty + 1 } else { 0 };
        if let Some(episode) = self.episodes.last_mut().filter(|episode| episode.is_closed) {
            episode.since += 1;
        } else if let Some(episode) = self.episodes.last_mut() {
            episode.rounds = if again { 0 } else { episode.rounds + 1 };
            if episode.rounds > 0 {
                episode.lowest = episode.lowest.min(bytes);
            }
            // The application may have paused, so the lower estimate ignores the round.
            let least = if self.empty > 1 { 0.0 } else { episode.usual - bytes };
            episode.missing[0] += least.max(0.0);
            episode.missing[1] += (episode.most - bytes).max(0.0);
            let has_given_up = episode.rounds >= MAX_ROUNDS;
            episode.is_closed = episode.rounds > 0 && bytes >= episode.usual || has_given_up;
            episode.since = if has_given_up { ROUNDS_BEFORE } else { 0 };
        }
        if self.last.len() == ROUNDS_BEFORE {
            self.last.remove(0);
        }
        self.last.push(bytes);
    }

    /// A retransmission. Called after `on_data` of the same packet, which may have begun the round that it belongs to.
    /// `undecided_from`: the first packet that may still be found to be spurious; it is seldom needed.
    pub(super) fn on_retransmission(&mut self, frame: u64, undecided_from: impl FnOnce() -> u64) {
        self.has_retransmission = true;
        let open = self.episodes.last_mut().filter(|episode| !episode.is_closed && episode.rounds < 2);
        if let Some(episode) = open {
            episode.last_frame = frame;
            episode.retransmissions += 1;
            return;
        }
        // What is undecided is bounded by the ranges that are remembered.
        if self.episodes.len() >= MANY_EPISODES.max(self.remained * 2) {
            self.forget(undecided_from());
        }
        // Before the last episode is closed, the rate is still reduced, so the earlier baseline applies.
        let open = self.episodes.last_mut().filter(|episode| !episode.is_closed);
        let (usual, most) = if let Some(episode) = open {
            episode.is_closed = true;
            (episode.usual, self.best)
        } else {
            let rounds = self.last.iter().copied().filter(|bytes| *bytes > 0.0);
            let (sum, count) = rounds.fold((0.0, 0.0), |(sum, count), bytes| (sum + bytes, count + 1.0));
            let mean = if count > 0.0 { sum / count } else { 0.0 };
            // Soon after an episode, the mean contains its reduced rounds: it would make each further false reduction look
            // cheaper.
            let last = self.episodes.last().filter(|episode| episode.since < ROUNDS_BEFORE);
            (last.map_or(mean, |episode| episode.usual.max(mean)), self.best)
        };
        let episode = Episode {
            first_frame: frame,
            last_frame: frame,
            retransmissions: 1,
            usual,
            most,
            lowest: f64::MAX,
            ..Episode::default()
        };
        self.episodes.push(episode);
    }

    /// Forgets the episodes before this packet, except for the last one.
    #[cold]
    fn forget(&mut self, undecided_from: u64) {
        let decided = self.episodes.partition_point(|episode| episode.is_closed && episode.last_frame < undecided_from);
        for episode in self.episodes.drain(..decided.min(self.episodes.len() - 1)) {
            self.forgotten.add(&episode);
        }
        self.remained = self.episodes.len();
    }

    /// The packet `frame` is a spurious retransmission. Called when that verdict is counted, long after `on_retransmission`.
    pub(crate) fn on_spurious(&mut self, frame: u64) {
        let index = self.episodes.partition_point(|episode| episode.last_frame < frame);
        if let Some(episode) = self.episodes.get_mut(index).filter(|episode| episode.first_frame <= frame) {
            episode.spurious += 1;
        }
    }

    /// Bytes per second of the best round.
    pub(crate) fn peak(&self) -> f64 {
        self.peak
    }

    pub(crate) fn reductions(&self) -> Reductions {
        let mut sum = self.forgotten;
        self.episodes.iter().for_each(|episode| sum.add(episode));
        sum
    }
}

impl Reductions {
    fn add(&mut self, episode: &Episode) {
        let is_reduced = episode.lowest < REDUCED * episode.usual;
        let is_false = episode.spurious >= episode.retransmissions;
        self.count += u64::from(is_reduced);
        if is_false {
            self.false_count += u64::from(is_reduced);
            self.undone += u64::from(!is_reduced && episode.is_closed);
            self.missing[0] += episode.missing[0];
            self.missing[1] += episode.missing[1];
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of whole numbers of bytes")]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(10);

    /// Rounds with this many kilobytes each; a retransmission, frame 100 + i, at the beginning of those in `again`.
    fn rounds(kilobytes: &[u32], again: &[usize]) -> Rounds {
        let mut rounds = Rounds::default();
        for (i, kilobytes) in kilobytes.iter().enumerate() {
            let now = Instant::ZERO + ROUND * (i as u64 + 1);
            rounds.on_data(1000, now, Some(ROUND));
            if again.contains(&i) {
                rounds.on_retransmission(100 + i as u64, || 0);
            }
            for _ in 1..*kilobytes {
                rounds.on_data(1000, now, Some(ROUND));
            }
        }
        rounds
    }

    #[test]
    fn what_is_missing_until_the_rate_is_back_is_the_cost() {
        let mut rounds = rounds(&[10, 10, 10, 10, 5, 6, 8, 10, 10, 10], &[3]);
        assert_eq!(rounds.reductions(), Reductions { count: 1, ..Reductions::default() });
        rounds.on_spurious(103);
        let sum = rounds.reductions();
        assert_eq!((sum.count, sum.false_count, sum.undone), (1, 1, 0));
        assert_eq!(sum.missing, [11_000.0, 11_000.0]);
    }

    #[test]
    fn the_second_of_two_false_cuts_costs_as_much_as_the_first() {
        let mut rounds = rounds(&[10, 10, 10, 10, 5, 5, 10, 10, 5, 5, 10, 10], &[3, 7]);
        rounds.on_spurious(103);
        rounds.on_spurious(107);
        let sum = rounds.reductions();
        assert_eq!((sum.false_count, sum.missing), (2, [20_000.0, 20_000.0]));
    }

    #[test]
    fn a_reduction_that_is_undone_at_once_costs_nothing() {
        let mut rounds = rounds(&[10, 10, 10, 10, 10, 10, 10], &[3]);
        rounds.on_spurious(103);
        let sum = rounds.reductions();
        assert_eq!((sum.false_count, sum.undone, sum.missing), (0, 1, [0.0, 0.0]));
    }

    #[test]
    fn verdicts_on_any_number_of_episodes_count() {
        let with = |decided_at_once: bool| {
            let mut rounds = Rounds::default();
            let mut most = 0;
            for round in 0..60_000_u64 {
                for _ in 0..if round % 6 == 3 { 5 } else { 10 } {
                    rounds.on_data(1000, Instant::ZERO + ROUND * (round + 1), Some(ROUND));
                }
                if round % 6 == 2 {
                    rounds.on_retransmission(round, || if decided_at_once { round } else { 0 });
                    if decided_at_once {
                        rounds.on_spurious(round);
                    }
                }
                most = most.max(rounds.episodes.len());
            }
            if !decided_at_once {
                (0..60_000).filter(|round| round % 6 == 2).for_each(|round| rounds.on_spurious(round));
            }
            (rounds.reductions(), most)
        };
        let (at_once, most) = with(true);
        assert_eq!((at_once.count, at_once.false_count), (10_000, 10_000));
        assert!(most <= MANY_EPISODES, "{most}");
        assert_eq!(with(false).0, at_once);
    }
}
