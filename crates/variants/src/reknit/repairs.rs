//! The retransmissions that may still turn out to be spurious.

use reknit_tcp::scoreboard::SegId;
use reknit_units::{Duration, Instant};

/// The number of repairs that are kept.
const MAX_REPAIRS: usize = 12;
/// The maximum number of segments of one repair.
const SEGMENTS: u64 = u32::BITS as u64;

/// Retransmissions, made at the same time, of segments close to each other that were missing since the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repair {
    pub(super) first: SegId,
    /// One bit for each segment from `first` on: it was retransmitted, and its original is not known to have arrived.
    open: u32,
    /// Those of them that have been acknowledged since.
    acked: u32,
    /// Since when the segments were missing.
    pub(super) opened: Instant,
    /// When they were retransmitted, in microseconds since then; later, when the last open one was acknowledged.
    since: u32,
    /// Segments up to here, counted from `first`, belong to the same congestion event.
    window: u16,
    /// It was decided to be a loss. Until then it is undecided.
    pub(super) is_lost: bool,
}

impl Repair {
    fn bit_at(&self, id: SegId) -> Option<u32> {
        id.0.checked_sub(self.first.0).filter(|i| *i < SEGMENTS).map(|i| 1 << i)
    }

    /// The bit of `id`, if it is open.
    fn open_bit(&self, id: SegId) -> Option<u32> {
        self.bit_at(id).filter(|bit| self.open & bit != 0)
    }

    /// How many segments are open.
    pub(super) fn len(&self) -> u32 {
        self.open.count_ones()
    }

    /// The end of the congestion event that it belongs to.
    pub(super) fn window_end(&self) -> SegId {
        SegId(self.first.0 + u64::from(self.window))
    }

    /// When the last open segment was acknowledged, or `patience` after the retransmission while one is not.
    pub(super) fn answered(&self, patience: Duration) -> Instant {
        let since = self.opened + Duration::from_micros(u64::from(self.since));
        if self.is_answered() { since } else { since + patience }
    }

    fn is_answered(&self) -> bool {
        self.acked == self.open
    }

    /// One open segment more was acknowledged, or closed, `now`.
    fn note_answer(&mut self, now: Instant) {
        if self.is_answered() {
            self.since = micros(now.since(self.opened));
        }
    }
}

/// The effect on a repair when the original of one of its segments arrives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Since when the segment was missing.
    pub(super) opened: Instant,
    /// `Some` if that was the last open segment, so the repair was spurious; true if it had been decided to be a loss.
    pub(super) closed: Option<bool>,
}

/// The last repairs, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Repairs {
    list: Vec<Repair>,
}

impl Repairs {
    pub(super) fn new() -> Repairs {
        Repairs { list: Vec::new() }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Repair> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Repair> {
        self.list.iter_mut()
    }

    /// `id`, missing since `opened`, is retransmitted `now`. Losses of segments below `window_end` belong to the same
    /// congestion event. Returns the repair that is dropped to make room.
    pub(super) fn add(&mut self, now: Instant, id: SegId, opened: Instant, window_end: SegId) -> Option<Repair> {
        let since = micros(now.since(opened));
        if let Some(last) = self.list.last_mut()
            && last.opened == opened
            && last.since == since
            && last.acked == 0
            && let Some(bit) = last.bit_at(id)
        {
            last.open |= bit;
            return None;
        }
        let forgotten = (self.list.len() == MAX_REPAIRS).then(|| self.list.remove(0));
        self.list.reserve_exact(MAX_REPAIRS - self.list.len());
        let window = u16::try_from(window_end.beyond(id).0).unwrap_or(u16::MAX);
        self.list.push(Repair { first: id, open: 1, acked: 0, opened, since, window, is_lost: false });
        forgotten
    }

    /// A copy of `id` was acknowledged; which one is not known.
    pub(super) fn on_acked(&mut self, now: Instant, id: SegId) {
        let found = self.list.iter_mut().find_map(|repair| Some((repair.open_bit(id)?, repair)));
        if let Some((bit, repair)) = found {
            repair.acked |= bit;
            repair.note_answer(now);
        }
    }

    /// The original of `id` has arrived.
    pub(super) fn on_original(&mut self, now: Instant, id: SegId) -> Option<Arrival> {
        let (i, bit) = self.list.iter().enumerate().find_map(|(i, repair)| Some((i, repair.open_bit(id)?)))?;
        let repair = &mut self.list[i];
        let was_answered = repair.is_answered();
        repair.open &= !bit;
        repair.acked &= !bit;
        if !was_answered {
            repair.note_answer(now);
        }
        let (opened, is_closed) = (repair.opened, repair.open == 0);
        let closed = is_closed.then(|| self.list.remove(i).is_lost);
        Some(Arrival { opened, closed })
    }

    pub(super) fn heap_size(&self) -> usize {
        self.list.capacity() * size_of::<Repair>()
    }
}

fn micros(time: Duration) -> u32 {
    (time.as_nanos() / 1000).min(u64::from(u32::MAX)) as u32
}

/// How the last repairs turned out: the best estimate for the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcomes {
    needed: u32,
    spurious: u32,
}

impl Outcomes {
    /// Counts are halved beyond this sum.
    const REMEMBERED: u32 = 16;

    /// Late rather than lost, until there is evidence.
    pub(super) const UNKNOWN: Outcomes = Outcomes { needed: 0, spurious: 2 };

    pub(super) fn note_needed(&mut self) {
        self.needed += 1;
        self.forget();
    }

    /// A repair was spurious; `was_needed` if it was noted as needed before.
    pub(super) fn note_spurious(&mut self, was_needed: bool) {
        self.needed = self.needed.saturating_sub(u32::from(was_needed));
        self.spurious += 1;
        self.forget();
    }

    fn forget(&mut self) {
        if self.needed + self.spurious > Outcomes::REMEMBERED {
            self.needed /= 2;
            self.spurious /= 2;
        }
    }

    pub(super) fn are_mostly_needed(self) -> bool {
        self.needed > self.spurious
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn added(repairs: &mut Repairs, now: u64, id: u64, opened: u64) -> Option<Repair> {
        repairs.add(at(now), SegId(id), at(opened), SegId(id + 10))
    }

    #[test]
    fn neighboring_segments_share_a_repair() {
        let mut repairs = Repairs::new();
        for id in [100, 101, 131] {
            assert!(added(&mut repairs, 20, id, 10).is_none());
        }
        assert_eq!(repairs.iter().map(Repair::len).collect::<Vec<_>>(), [3]);
        added(&mut repairs, 20, 132, 10);
        added(&mut repairs, 20, 133, 11);
        assert_eq!(repairs.iter().map(Repair::len).collect::<Vec<_>>(), [3, 1, 1]);
    }

    #[test]
    fn a_repair_is_spurious_once_the_originals_of_all_its_segments_have_arrived() {
        let mut repairs = Repairs::new();
        added(&mut repairs, 20, 1, 10);
        added(&mut repairs, 20, 2, 10);
        assert_eq!(repairs.on_original(at(60), SegId(2)).unwrap().closed, None);
        assert!(repairs.on_original(at(60), SegId(2)).is_none());
        assert_eq!(repairs.on_original(at(60), SegId(1)).unwrap().closed, Some(false));
        assert_eq!(repairs.iter().count(), 0);
    }

    #[test]
    fn it_is_answered_when_all_its_segments_are_acknowledged() {
        let mut repairs = Repairs::new();
        added(&mut repairs, 20, 1, 10);
        added(&mut repairs, 20, 2, 10);
        let patience = Duration::from_millis(100);
        repairs.on_acked(at(60), SegId(1));
        assert_eq!(repairs.iter().next().unwrap().answered(patience), at(120));
        repairs.on_acked(at(70), SegId(2));
        assert_eq!(repairs.iter().next().unwrap().answered(patience), at(70));
    }

    #[test]
    fn the_oldest_repair_is_dropped() {
        let mut repairs = Repairs::new();
        for i in 0..MAX_REPAIRS as u64 {
            assert!(added(&mut repairs, 20 + i, i, 10).is_none());
        }
        assert_eq!(added(&mut repairs, 90, 90, 80).unwrap().first, SegId(0));
        assert_eq!(repairs.iter().count(), MAX_REPAIRS);
    }

    #[test]
    fn a_repair_that_turns_out_spurious_no_longer_counts_as_needed() {
        let mut outcomes = Outcomes::UNKNOWN;
        for _ in 0..3 {
            outcomes.note_needed();
        }
        assert!(outcomes.are_mostly_needed());
        outcomes.note_spurious(true);
        assert!(!outcomes.are_mostly_needed());
    }
}
