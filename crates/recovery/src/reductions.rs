//! The reductions that may still turn out to be spurious.

use crate::list::List;
use crate::repairs::{Repair, Repairs};

/// The number of reductions that are kept.
const MAX_REDUCTIONS: usize = 4;

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// The packet for which it was made.
    hole: u64,
    /// Losses of packets before this one, counted from `hole`, belong to the same congestion event.
    len: u32,
    /// It can no longer be undone.
    is_final: bool,
}

impl Reduction {
    const UNUSED: Reduction = Reduction { hole: 0, len: 0, is_final: false };

    fn end(&self) -> u64 {
        self.hole.saturating_add(u64::from(self.len))
    }
}

/// The last reductions, oldest first.
#[derive(Clone, Debug)]
pub struct Reductions {
    list: List<Reduction, MAX_REDUCTIONS>,
    /// Losses of packets below this have caused a reduction.
    answered_until: u64,
    /// The last of these reductions was undone.
    last_was_undone: bool,
}

impl Default for Reductions {
    fn default() -> Reductions {
        Reductions::new()
    }
}

impl Reductions {
    /// None.
    pub const fn new() -> Reductions {
        Reductions { list: List::new(Reduction::UNUSED), answered_until: 0, last_was_undone: false }
    }

    /// The most congestion events: those of the reductions, and the next one.
    pub(crate) const EVENTS: usize = MAX_REDUCTIONS + 1;

    /// Which of them a loss of `number` belongs to. None: to an earlier one, whose reduction was undone or is no longer kept.
    pub(crate) fn event_of(&self, number: u64) -> Option<usize> {
        let found = self.list.as_slice().iter().position(|reduction| number < reduction.end());
        found.or_else(|| (number >= self.answered_until).then_some(MAX_REDUCTIONS))
    }

    /// True if `repair` has not caused a reduction yet.
    pub fn is_unanswered(&self, repair: &Repair) -> bool {
        repair.first >= self.answered_until
    }

    /// True if the reduction that `repair` has caused was undone. Another then needs certainty.
    pub fn was_undone(&self, repair: &Repair) -> bool {
        self.last_was_undone && self.event_of(repair.first).is_none()
    }

    /// The window is reduced for `hole`, because of all losses below `end`.
    pub fn add(&mut self, hole: u64, end: u64) {
        self.push(hole, end, false);
    }

    fn push(&mut self, hole: u64, end: u64, is_final: bool) {
        self.answered_until = end;
        self.last_was_undone = false;
        let len = u32::try_from(end.saturating_sub(hole)).unwrap_or(u32::MAX);
        self.list.push(Reduction { hole, len, is_final });
    }

    /// `repair` is dropped: the reduction that it caused becomes final.
    pub fn settle(&mut self, repair: &Repair) {
        self.finalize(repair.first);
    }

    /// The reduction of the event to which `number` belongs becomes final. False if there is none.
    fn finalize(&mut self, number: u64) -> bool {
        let mut reductions = self.list.as_mut_slice().iter_mut();
        let found = reductions.find(|reduction| number < reduction.end());
        found.map(|reduction| reduction.is_final = true).is_some()
    }

    /// `number` was marked, and packets below `end` have been sent. True if the window is to be reduced for it; otherwise it
    /// was reduced for the same event. Either reduction is final.
    pub fn on_marked(&mut self, number: u64, end: u64) -> bool {
        let is_new = !self.finalize(number);
        if is_new {
            self.push(number, end, true);
        }
        is_new
    }

    /// All reductions so far become final.
    pub fn settle_all(&mut self) {
        self.list.clear();
    }

    /// All reductions so far become final, and losses of packets below `end` cause none.
    pub fn settle_until(&mut self, end: u64) {
        self.settle_all();
        self.push(end.saturating_sub(1), end, true);
    }

    /// Removes the reductions without a remaining repair that may have been needed. Calls `undo` with the hole of each.
    pub fn undo_spurious(&mut self, repairs: &Repairs, mut undo: impl FnMut(u64)) {
        let mut start = 0;
        let (answered_until, last_was_undone) = (self.answered_until, &mut self.last_was_undone);
        self.list.retain(|reduction| {
            let packets = start..reduction.end();
            start = reduction.end();
            let stands = reduction.is_final || repairs.iter().any(|repair| packets.contains(&repair.first));
            if !stands {
                *last_was_undone |= reduction.end() >= answered_until;
                undo(reduction.hole);
            }
            stands
        });
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;
    use crate::Nanos;

    fn undone(reductions: &mut Reductions, repairs: &Repairs) -> Vec<u64> {
        let mut holes = Vec::new();
        reductions.undo_spurious(repairs, |hole| holes.push(hole));
        holes
    }

    /// Packets 1, 5 and 20 were retransmitted at different times.
    fn repairs() -> Repairs {
        let mut repairs = Repairs::new();
        for number in [1, 5, 20] {
            let at = Nanos::from_millis(number);
            repairs.add(at, number, at, number + 10);
        }
        repairs
    }

    #[test]
    fn a_reduction_is_kept_while_one_of_its_repairs_may_have_been_needed() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(1, 10);
        reductions.add(20, 30);
        repairs.on_original(Nanos::ZERO, 1);
        assert!(undone(&mut reductions, &repairs).is_empty());
        repairs.on_original(Nanos::ZERO, 5);
        assert_eq!(undone(&mut reductions, &repairs), [1]);
        assert!(undone(&mut reductions, &repairs).is_empty());
    }

    #[test]
    fn the_reduction_of_a_dropped_repair_can_no_longer_be_undone() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(1, 10);
        let forgotten = *repairs.iter().next().unwrap();
        reductions.settle(&forgotten);
        repairs.on_original(Nanos::ZERO, 1);
        repairs.on_original(Nanos::ZERO, 5);
        assert!(undone(&mut reductions, &repairs).is_empty());
    }

    #[test]
    fn a_mark_belongs_to_the_event_of_its_packet_and_makes_its_reduction_final() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(1, 10);
        assert!(!reductions.on_marked(7, 40), "the window was reduced for 1");
        repairs.on_original(Nanos::ZERO, 1);
        repairs.on_original(Nanos::ZERO, 5);
        assert!(undone(&mut reductions, &repairs).is_empty());
        assert!(reductions.on_marked(10, 40) && !reductions.on_marked(39, 50));
        assert!(
            repairs.iter().all(|repair| !reductions.is_unanswered(repair)),
            "20 was sent before the mark was known"
        );
    }

    #[test]
    fn a_mark_reduces_the_window_again_if_the_reduction_of_its_event_was_undone() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(1, 10);
        repairs.on_original(Nanos::ZERO, 1);
        repairs.on_original(Nanos::ZERO, 5);
        assert_eq!(undone(&mut reductions, &repairs), [1]);
        assert!(reductions.on_marked(7, 10));
    }

    #[test]
    fn losses_of_the_same_event_cause_one_reduction() {
        let (mut reductions, repairs) = (Reductions::new(), repairs());
        reductions.add(1, 10);
        let unanswered = repairs.iter().filter(|repair| reductions.is_unanswered(repair));
        assert_eq!(unanswered.map(|repair| repair.first).collect::<Vec<_>>(), [20]);
    }
}
