//! What is missing of a flow, and how it arrived.

use std::collections::{BTreeMap, VecDeque};

use reknit_units::{Duration, Instant};

/// The most missing ranges of a flow that are followed, and the most that have arrived.
const REMEMBERED: usize = 1024;
/// If late data was retransmitted, the retransmission arrives within this time.
const REPEATED_WITHIN: Duration = Duration::from_secs(2);

/// A missing range. It begins at its key.
#[derive(Clone, Copy, Debug)]
struct Gap {
    end: u64,
    /// When the first packet after it arrived.
    since: Instant,
    /// The timestamp of that packet.
    timestamp: Option<u32>,
}

/// Missing data has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fill {
    start: u64,
    end: u64,
    /// Since when it was missing.
    pub(super) since: Instant,
    at: Instant,
    /// The timestamp of the first packet after it.
    after: Option<u32>,
    own: Option<u32>,
    pub(super) verdict: Verdict,
}

/// Why data was missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It was late.
    Late,
    /// This is a retransmission, by its timestamp.
    Lost,
    /// Without timestamps, only a second arrival shows that the first one was late.
    Open,
}

/// What a packet brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// Data after everything so far.
    New,
    /// Missing data.
    Missing(Fill),
    /// Again what was missing before and has arrived since: one of the two was a spurious retransmission.
    AgainAfterMissing(Fill),
    /// Data that has arrived already.
    Again,
}

/// The missing ranges of a flow, and the latest ones that have arrived.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    missing: BTreeMap<u64, Gap>,
    arrived: VecDeque<Fill>,
}

impl Gaps {
    /// `start..end` arrives; the data so far ends at `highest`.
    pub(super) fn on_arrival(
        &mut self,
        now: Instant,
        (start, end): (u64, u64),
        highest: u64,
        timestamp: Option<u32>,
    ) -> Arrival {
        if start >= highest {
            if start > highest {
                self.missing.insert(highest, Gap { end: start, since: now, timestamp });
                if self.missing.len() > REMEMBERED {
                    self.missing.pop_first();
                }
            }
            return Arrival::New;
        }
        let before = self.missing.range(..end).next_back().map(|(at, gap)| (*at, *gap));
        match before.filter(|(_, gap)| gap.end > start) {
            Some((at, gap)) => Arrival::Missing(self.fill(now, (start, end), (at, gap), timestamp)),
            None => self.again(start, end, timestamp),
        }
    }

    /// `start..end` arrives in the gap that begins at `at`.
    fn fill(&mut self, now: Instant, (start, end): (u64, u64), (at, gap): (u64, Gap), own: Option<u32>) -> Fill {
        self.missing.remove(&at);
        if start > at {
            self.missing.insert(at, Gap { end: start, ..gap });
        }
        if end < gap.end {
            self.missing.insert(end, gap);
        }
        let verdict = match (own, gap.timestamp) {
            (Some(own), Some(after)) if is_newer(own, after) => Verdict::Lost,
            (Some(_), Some(_)) => Verdict::Late,
            _ => Verdict::Open,
        };
        let (start, end) = (start.max(at), end.min(gap.end));
        Fill { start, end, since: gap.since, at: now, after: gap.timestamp, own, verdict }
    }

    /// `start..end` has arrived before.
    fn again(&mut self, start: u64, end: u64, own: Option<u32>) -> Arrival {
        let is_same = |fill: &Fill| fill.start < end && start < fill.end;
        let Some(position) = self.arrived.iter().rposition(is_same) else { return Arrival::Again };
        let is_copy = own.is_some() && own == self.arrived[position].own; // made by the network
        match self.arrived.remove(position) {
            Some(mut fill) if !is_copy => {
                let is_original = !own.zip(fill.after).is_some_and(|(own, after)| is_newer(own, after));
                if fill.verdict == Verdict::Lost && !is_original {
                    return Arrival::Again; // retransmitted twice
                }
                fill.own = own;
                Arrival::AgainAfterMissing(fill)
            }
            _ => Arrival::Again,
        }
    }

    /// Keeps what has arrived, to recognise it when it arrives again.
    pub(super) fn remember(&mut self, fill: Fill) {
        if self.arrived.len() >= REMEMBERED {
            self.arrived.pop_front();
        }
        self.arrived.push_back(fill);
    }

    /// Forgets the oldest arrival that can no longer come again.
    pub(super) fn pop_old(&mut self, now: Instant) -> Option<Fill> {
        let is_old = self.arrived.front().is_some_and(|fill| now.since(fill.at) > REPEATED_WITHIN);
        if is_old { self.arrived.pop_front() } else { None }
    }

    /// Since when data at `position` is missing.
    pub(super) fn missing_since(&self, position: u64) -> Option<Instant> {
        let (_, gap) = self.missing.range(..=position).next_back()?;
        (gap.end > position).then_some(gap.since)
    }
}

/// True if the timestamp `a` is later than `b`.
fn is_newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}
