//! The retransmissions that may still turn out to be spurious.

use crate::Nanos;
use crate::list::List;

/// The number of repairs that are kept.
const MAX_REPAIRS: usize = 12;
/// The maximum number of packets of one repair.
const PACKETS: u64 = u32::BITS as u64;

/// Retransmissions, made at the same time, of packets close to each other that were missing since the same time.
#[derive(Clone, Copy, Debug)]
pub struct Repair {
    /// The first packet.
    pub first: u64,
    /// One bit for each packet from `first` on: it was retransmitted, and its original is not known to have arrived.
    open: u32,
    /// Those of them that have been acknowledged since.
    acked: u32,
    /// Since when the packets were missing.
    pub opened: Nanos,
    /// When they were retransmitted, in microseconds since then; later, when the last open one was acknowledged.
    since: u32,
    /// Packets up to here, counted from `first`, belong to the same congestion event.
    event_len: u16,
    /// It was decided to be a loss. Until then it is undecided.
    pub is_lost: bool,
}

impl Repair {
    const UNUSED: Repair =
        Repair { first: 0, open: 0, acked: 0, opened: Nanos::ZERO, since: 0, event_len: 0, is_lost: false };

    fn bit_at(&self, number: u64) -> Option<u32> {
        number.checked_sub(self.first).filter(|i| *i < PACKETS).map(|i| 1 << i)
    }

    /// The bit of `number`, if it is open.
    fn open_bit(&self, number: u64) -> Option<u32> {
        self.bit_at(number).filter(|bit| self.open & bit != 0)
    }

    /// How many packets are open.
    pub fn open_packets(&self) -> u32 {
        self.open.count_ones()
    }

    /// The first open packet from `first` to `last`.
    pub(crate) fn open_in(&self, first: u64, last: u64) -> Option<u64> {
        let skip = first.saturating_sub(self.first);
        if skip >= PACKETS {
            return None;
        }
        let open = self.open >> skip << skip;
        let number = self.first.saturating_add(u64::from(open.trailing_zeros()));
        (open != 0 && number <= last).then_some(number)
    }

    /// The end of the congestion event that it belongs to.
    pub fn event_end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.event_len))
    }

    /// When the last open packet was acknowledged, or `patience` after the retransmission while one is not.
    pub fn answered(&self, patience: Nanos) -> Nanos {
        let since = self.opened + Nanos::from_micros(u64::from(self.since));
        if self.is_answered() { since } else { since + patience }
    }

    fn is_answered(&self) -> bool {
        self.acked == self.open
    }

    /// One open packet more was acknowledged, or closed, `now`.
    fn note_answer(&mut self, now: Nanos) {
        if self.is_answered() {
            self.since = (now - self.opened).as_micros_u32();
        }
    }
}

/// The effect on a repair when the original of one of its packets arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Since when the packet was missing.
    pub opened: Nanos,
    /// `Some` if that was the last open packet, so the repair was spurious; true if it had been decided to be a loss.
    pub closed: Option<bool>,
}

/// The last repairs, oldest first.
#[derive(Clone, Debug)]
pub struct Repairs {
    list: List<Repair, MAX_REPAIRS>,
}

impl Default for Repairs {
    fn default() -> Repairs {
        Repairs::new()
    }
}

impl Repairs {
    /// None.
    pub const fn new() -> Repairs {
        Repairs { list: List::new(Repair::UNUSED) }
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Repair> {
        self.list.as_slice().iter()
    }

    /// All of them, oldest first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Repair> {
        self.list.as_mut_slice().iter_mut()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.list.is_full()
    }

    /// Forgets the last repair for which `is_one` is true. False if there is none.
    pub(crate) fn remove_last(&mut self, is_one: impl Fn(&Repair) -> bool) -> bool {
        let found = self.list.as_slice().iter().rposition(is_one);
        found.map(|i| self.list.remove(i)).is_some()
    }

    /// `number`, missing since `opened`, is retransmitted `now`. Losses of packets below `event_end` belong to the same
    /// congestion event. Returns the repair that is dropped to make room.
    pub fn add(&mut self, now: Nanos, number: u64, opened: Nanos, event_end: u64) -> Option<Repair> {
        let since = (now - opened).as_micros_u32();
        if let Some(last) = self.list.as_mut_slice().last_mut()
            && last.opened == opened
            && last.since == since
            && last.acked == 0
            && let Some(bit) = last.bit_at(number)
        {
            last.open |= bit;
            return None;
        }
        let event_len = u16::try_from(event_end.saturating_sub(number)).unwrap_or(u16::MAX);
        self.list.push(Repair { first: number, open: 1, acked: 0, opened, since, event_len, is_lost: false })
    }

    /// A copy of `number` was acknowledged; which one is not known.
    pub fn on_acked(&mut self, now: Nanos, number: u64) {
        let found = self.iter_mut().find_map(|repair| Some((repair.open_bit(number)?, repair)));
        if let Some((bit, repair)) = found {
            repair.acked |= bit;
            repair.note_answer(now);
        }
    }

    /// The original of `number` has arrived.
    pub fn on_original(&mut self, now: Nanos, number: u64) -> Option<Arrival> {
        let (i, bit) = self.iter().enumerate().find_map(|(i, repair)| Some((i, repair.open_bit(number)?)))?;
        let repair = &mut self.list.as_mut_slice()[i];
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
}

/// How the last repairs turned out: the best estimate for the next.
#[derive(Clone, Copy, Debug)]
pub struct Outcomes {
    needed: u32,
    spurious: u32,
}

impl Outcomes {
    /// Counts are halved beyond this sum.
    const REMEMBERED: u32 = 16;

    /// Late rather than lost, until there is evidence.
    pub const UNKNOWN: Outcomes = Outcomes { needed: 0, spurious: 2 };

    /// A repair was needed.
    pub fn note_needed(&mut self) {
        self.needed += 1;
        self.forget();
    }

    /// A repair was spurious; `was_needed` if it was noted as needed before.
    pub fn note_spurious(&mut self, was_needed: bool) {
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

    /// True if most of the last repairs were needed.
    pub fn are_mostly_needed(self) -> bool {
        self.needed > self.spurious
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn added(repairs: &mut Repairs, now: u64, number: u64, opened: u64) -> Option<Repair> {
        repairs.add(at(now), number, at(opened), number + 10)
    }

    fn open(repairs: &Repairs) -> Vec<u32> {
        repairs.iter().map(Repair::open_packets).collect()
    }

    #[test]
    fn neighboring_packets_share_a_repair() {
        let mut repairs = Repairs::new();
        for number in [100, 101, 131] {
            assert!(added(&mut repairs, 20, number, 10).is_none());
        }
        assert_eq!(open(&repairs), [3]);
        added(&mut repairs, 20, 132, 10);
        added(&mut repairs, 20, 133, 11);
        assert_eq!(open(&repairs), [3, 1, 1]);
    }

    #[test]
    fn a_repair_is_spurious_once_the_originals_of_all_its_packets_have_arrived() {
        let mut repairs = Repairs::new();
        added(&mut repairs, 20, 1, 10);
        added(&mut repairs, 20, 2, 10);
        assert_eq!(repairs.on_original(at(60), 2).unwrap().closed, None);
        assert!(repairs.on_original(at(60), 2).is_none());
        assert_eq!(repairs.on_original(at(60), 1).unwrap().closed, Some(false));
        assert_eq!(repairs.iter().count(), 0);
    }

    #[test]
    fn it_is_answered_when_all_its_packets_are_acknowledged() {
        let mut repairs = Repairs::new();
        added(&mut repairs, 20, 1, 10);
        added(&mut repairs, 20, 2, 10);
        let patience = Nanos::from_millis(100);
        repairs.on_acked(at(60), 1);
        assert_eq!(repairs.iter().next().unwrap().answered(patience), at(120));
        repairs.on_acked(at(70), 2);
        assert_eq!(repairs.iter().next().unwrap().answered(patience), at(70));
    }

    #[test]
    fn the_oldest_repair_is_dropped() {
        let mut repairs = Repairs::new();
        for i in 0..MAX_REPAIRS as u64 {
            assert!(added(&mut repairs, 20 + i, i, 10).is_none());
        }
        assert_eq!(added(&mut repairs, 90, 90, 80).unwrap().first, 0);
        assert_eq!(repairs.iter().count(), MAX_REPAIRS);
    }

    #[test]
    fn open_packets_are_found_in_a_range() {
        let mut repairs = Repairs::new();
        added(&mut repairs, 20, 100, 10);
        added(&mut repairs, 20, 131, 10);
        let repair = repairs.iter().next().unwrap();
        assert_eq!(repair.open_in(0, 99), None);
        assert_eq!(repair.open_in(0, 100), Some(100));
        assert_eq!(repair.open_in(101, 1000), Some(131));
        assert_eq!(repair.open_in(132, 1000), None);
        assert_eq!(repair.open_in(140, u64::MAX), None);
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
