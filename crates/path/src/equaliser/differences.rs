//! How much later packets arrive by one branch than by another.
//!
//! Two consecutive segments of a TCP flow leave their sender one after the other, so if they take different branches, the times of
//! their arrivals differ by the difference of the delays, and by the time between them. That time counts for the branch of the
//! second one: with pairs of both orders, it cancels out. The medians of recent pairs are not disturbed by a retransmission, or by
//! a pause of the sender.

use std::collections::{BTreeMap, VecDeque};

use reknit_units::{Duration, Instant};

use crate::resequencer::TcpHeader;

/// Flows that are followed at a time. Others would give the same measurement.
const MAX_FLOWS: usize = 64;
/// A flow without segments for this long makes room for another.
const IDLE: Duration = Duration::from_secs(10);
/// Segments of a flow that are remembered: more than arrive by the faster branch before the next one of the slower.
const REMEMBERED: usize = 4096;
/// Pairs of one order: the latest ones count, if there are enough.
const MOST_PAIRS: usize = 64;
const FEWEST_PAIRS: usize = 4;
/// Pairs older than this do not count beside newer ones.
const RECENT: Duration = Duration::from_secs(10);
/// What was learned is forgotten after this time without a pair.
const KEPT: Duration = Duration::from_secs(600);
/// The difference is computed again after so many pairs.
const STEP: u64 = 4;

/// Sequence numbers are counted without wrapping from here, so that those before the first are positive too.
const ORIGIN: u64 = 1 << 32;

/// The differences between each branch and the first.
#[derive(Debug)]
pub(super) struct Differences<K> {
    flows: BTreeMap<K, Flow>,
    /// Pairs whose first segment took the first branch, and those whose second did, by the other branch.
    pairs: Vec<[VecDeque<Pair>; 2]>,
    /// Pairs so far, and how many of them count in what [`Differences::pop_changed`] has returned.
    seen: u64,
    used: u64,
    last: Instant,
}

/// How much later the segment arrived that took the other branch.
#[derive(Clone, Copy, Debug)]
struct Pair {
    at: Instant,
    nanos: i64,
}

#[derive(Debug)]
struct Flow {
    /// The end of the latest segment.
    next: u64,
    last: Instant,
    segments: BTreeMap<u64, Segment>,
}

/// A segment that has arrived. It begins at its key.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: u64,
    at: Instant,
    branch: usize,
    timestamp: Option<u32>,
}

impl<K: Copy + Ord> Differences<K> {
    pub(super) fn new() -> Differences<K> {
        Differences { flows: BTreeMap::new(), pairs: Vec::new(), seen: 0, used: 0, last: Instant::ZERO }
    }

    /// A segment of `flow` has arrived by `branch`. The number of pairs that it makes with earlier ones.
    pub(super) fn on_segment(&mut self, now: Instant, branch: usize, flow: K, header: TcpHeader) -> u64 {
        if header.opens || header.resets {
            self.flows.remove(&flow);
        }
        if header.len == 0 || header.resets || !self.admit(now, flow, header.seq) {
            return 0;
        }
        let Some(state) = self.flows.get_mut(&flow) else { return 0 };
        let (start, new) = state.locate(now, branch, header);
        let found = state.neighbours(start, &new);
        state.remember(start, new);
        let before = self.seen;
        for (first, second) in found.into_iter().flatten() {
            self.learn(now, &first, &second);
        }
        self.seen - before
    }

    /// True if the flow is followed.
    fn admit(&mut self, now: Instant, flow: K, seq: u32) -> bool {
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= MAX_FLOWS {
                self.flows.retain(|_, flow| now.since(flow.last) < IDLE);
            }
            if self.flows.len() >= MAX_FLOWS {
                return false;
            }
            let next = ORIGIN + u64::from(seq);
            self.flows.insert(flow, Flow { next, last: now, segments: BTreeMap::new() });
        }
        true
    }

    /// Two consecutive segments that arrived by different branches.
    fn learn(&mut self, now: Instant, first: &Segment, second: &Segment) {
        let later = nanos(second.at, first.at);
        let (other, order, nanos) = match (first.branch, second.branch) {
            (0, other) => (other, 0, later),
            (other, 0) => (other, 1, -later),
            _ => return,
        };
        if other >= self.pairs.len() {
            self.pairs.resize_with(other + 1, Default::default);
        }
        let pairs = &mut self.pairs[other][order];
        if pairs.len() >= MOST_PAIRS {
            pairs.pop_front();
        }
        pairs.push_back(Pair { at: now, nanos });
        self.seen += 1;
        self.last = now;
    }

    /// How much later packets of each branch arrive than those of the earliest, if that was learned anew or has been forgotten.
    pub(super) fn pop_changed(&mut self, now: Instant) -> Option<Vec<Duration>> {
        if self.seen > 0 && now.since(self.last) > KEPT {
            let branches = self.pairs.len();
            *self = Differences::new();
            return Some(vec![Duration::ZERO; branches]);
        }
        if self.seen < self.used + STEP {
            return None;
        }
        self.used = self.seen;
        let known: Vec<Option<i64>> = self.pairs.iter().map(|pairs| difference(now, pairs)).collect();
        let earliest = known.iter().flatten().copied().min()?.min(0);
        let latest = known.iter().flatten().copied().max()?.max(0);
        let later = |(i, nanos): (usize, &Option<i64>)| {
            // All are compared with the first. One without measurements counts as the latest: its packets
            // are not held.
            let nanos = if i == 0 { 0 } else { nanos.unwrap_or(latest) };
            Duration::from_nanos(u64::try_from(nanos - earliest).unwrap_or(0))
        };
        Some(known.iter().enumerate().map(later).collect())
    }
}

impl Flow {
    /// The segment, and where it begins.
    fn locate(&mut self, now: Instant, branch: usize, header: TcpHeader) -> (u64, Segment) {
        let distance = header.seq.wrapping_sub(self.next as u32).cast_signed();
        let start = self.next.saturating_add_signed(distance.into());
        let end = start + u64::from(header.len);
        (self.next, self.last) = (end, now);
        (start, Segment { end, at: now, branch, timestamp: header.timestamp })
    }

    /// The pairs of this segment with the one before it and with the one after it, if they took another branch.
    fn neighbours(&self, start: u64, new: &Segment) -> [Option<(Segment, Segment)>; 2] {
        let before = self.segments.range(..new.end).next_back();
        if before.is_some_and(|(_, other)| other.end > start) {
            return [None, None]; // it has arrived before
        }
        let before = before.map(|(_, before)| (*before, *new)).filter(|(before, _)| before.end == start);
        let after = self.segments.get(&new.end).map(|after| (*new, *after));
        [before, after]
            .map(|pair| pair.filter(|(first, second)| first.branch != second.branch && in_turn(first, second)))
    }

    fn remember(&mut self, start: u64, new: Segment) {
        self.segments.insert(start, new);
        if self.segments.len() > REMEMBERED {
            self.segments.pop_first();
        }
    }
}

/// False if the first was sent after the second: it is a retransmission.
fn in_turn(first: &Segment, second: &Segment) -> bool {
    first.timestamp.zip(second.timestamp).is_none_or(|(first, second)| second.wrapping_sub(first).cast_signed() >= 0)
}

/// The middle between the pairs of both orders; none if there are too few.
fn difference(now: Instant, pairs: &[VecDeque<Pair>; 2]) -> Option<i64> {
    let medians: Vec<i64> = pairs.iter().filter_map(|pairs| median(now, pairs)).collect();
    match medians[..] {
        [first, second] => Some(i64::midpoint(first, second)),
        [only] => Some(only),
        _ => None,
    }
}

fn median(now: Instant, pairs: &VecDeque<Pair>) -> Option<i64> {
    let mut recent: Vec<i64> =
        pairs.iter().filter(|pair| now.since(pair.at) <= RECENT).map(|pair| pair.nanos).collect();
    if recent.len() < FEWEST_PAIRS {
        return None;
    }
    let middle = recent.len() / 2;
    Some(*recent.select_nth_unstable(middle).1)
}

/// The time from `b` to `a`.
fn nanos(a: Instant, b: Instant) -> i64 {
    a.as_nanos().cast_signed() - b.as_nanos().cast_signed()
}
