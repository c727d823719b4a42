//! Which retransmissions were needed, when to reduce the window, and which reductions to undo.

use crate::Nanos;
use crate::lateness::Lateness;
use crate::reductions::Reductions;
use crate::repairs::{Outcomes, Repair, Repairs};

/// What a detector has learned, and what it has not decided yet.
#[derive(Clone, Debug)]
pub struct Decisions<const BUCKETS: usize> {
    /// How late packets arrive.
    pub lateness: Lateness<BUCKETS>,
    /// The retransmissions that may still turn out to be spurious.
    pub(crate) repairs: Repairs,
    outcomes: Outcomes,
    reductions: Reductions,
    /// Since the last look for spurious reductions, there is another reduction, or one repair less.
    changed: bool,
}

/// When a retransmission counts as needed, and when the window is reduced.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// How long to wait for the acknowledgment of a retransmission.
    pub patience: Nanos,
    /// A packet that has been missing for this long is certainly lost.
    pub sure: Nanos,
    /// The window is reduced for any retransmission, not only for those that were certainly needed.
    pub at_once: bool,
    /// It is also reduced at once if most of the recent retransmissions were needed.
    pub learns_outcomes: bool,
    /// It is also reduced at once if there are more undecided retransmissions than this.
    pub max_undecided: u32,
}

/// What was decided.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    /// The window is to be reduced for this ([`Decisions::reduce`]).
    pub cause: Option<Repair>,
    /// Too many retransmissions are undecided: a queue overflows, rather than that all these packets are late.
    pub is_burst: bool,
    /// When the next retransmission is decided.
    pub look_again: Nanos,
}

impl<const BUCKETS: usize> Default for Decisions<BUCKETS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BUCKETS: usize> Decisions<BUCKETS> {
    /// Nothing learned, nothing to decide.
    pub const fn new() -> Self {
        Decisions {
            lateness: Lateness::new(),
            repairs: Repairs::new(),
            outcomes: Outcomes::UNKNOWN,
            reductions: Reductions::new(),
            changed: false,
        }
    }

    /// The retransmission of `number` has been acknowledged.
    pub fn on_acked(&mut self, now: Nanos, number: u64) {
        self.repairs.on_acked(now, number);
    }

    /// The original of `number` has arrived. Returns since when the packet was missing, if it was retransmitted.
    pub fn on_original(&mut self, now: Nanos, number: u64) -> Option<Nanos> {
        let arrival = self.repairs.on_original(now, number)?;
        if let Some(was_lost) = arrival.closed {
            self.changed = true;
            self.outcomes.note_spurious(was_lost);
        }
        Some(arrival.opened)
    }

    /// `number`, missing since `opened`, is retransmitted. Losses of packets below `event_end` belong to the same
    /// congestion event.
    pub fn on_retransmitted(&mut self, now: Nanos, number: u64, opened: Nanos, event_end: u64) {
        if let Some(forgotten) = self.repairs.add(now, number, opened, event_end) {
            self.reductions.settle(&forgotten);
            self.changed = true;
        }
    }

    /// True if the retransmission of `number` should be remembered. If there is no room, one retransmission of the congestion
    /// event with the most of them is left out, so that each event keeps some: if these were spurious, so were the others.
    pub(crate) fn make_room(&mut self, number: u64) -> bool {
        if !self.repairs.is_full() {
            return true;
        }
        if self.repairs.remove_last(|repair| self.reductions.event_of(repair.first).is_none()) {
            return true;
        }
        let mut counts = [0_u8; Reductions::EVENTS];
        let its_own = self.reductions.event_of(number);
        for event in self.repairs.iter().map(|repair| self.reductions.event_of(repair.first)).chain([its_own]).flatten()
        {
            counts[event] += 1;
        }
        let (most, count) =
            (0..counts.len()).map(|event| (event, counts[event])).max_by_key(|(_, n)| *n).unwrap_or_default();
        if count > 1 && Some(most) == its_own {
            return false;
        }
        if count > 1 {
            self.repairs.remove_last(|repair| self.reductions.event_of(repair.first) == Some(most));
            self.changed = true;
        }
        true
    }

    /// Calls `undo` with the packet of each reduction that was spurious.
    pub fn undo_spurious(&mut self, mut undo: impl FnMut(u64)) {
        if !core::mem::take(&mut self.changed) {
            return;
        }
        let lateness = &mut self.lateness;
        self.reductions.undo_spurious(&self.repairs, |hole| {
            lateness.unlearn_loss();
            undo(hole);
        });
    }

    /// Decides which retransmissions were needed, and whether to reduce the window.
    pub fn decide(&mut self, now: Nanos, terms: &Terms) -> Decided {
        let is_burst = self.undecided() > terms.max_undecided;
        let at_once = terms.at_once || is_burst || terms.learns_outcomes && self.outcomes.are_mostly_needed();
        let mut decided = Decided { cause: None, is_burst, look_again: Nanos::NEVER };
        for repair in self.repairs.iter_mut().filter(|repair| !repair.is_lost) {
            let due = repair.answered(terms.patience).max(repair.opened + terms.sure);
            if due <= now {
                repair.is_lost = true;
                self.outcomes.note_needed();
            } else {
                decided.look_again = decided.look_again.min(due);
            }
            let is_unanswered = (repair.is_lost || at_once) && self.reductions.is_unanswered(repair);
            if is_unanswered || repair.is_lost && self.reductions.was_undone(repair) {
                decided.cause = decided.cause.or(Some(*repair));
            }
        }
        decided
    }

    /// The packets whose retransmission is undecided and has not caused a reduction.
    fn undecided(&self) -> u32 {
        let undecided = self.repairs.iter().filter(|repair| !repair.is_lost && self.reductions.is_unanswered(repair));
        undecided.map(Repair::open_packets).sum()
    }

    /// True while it is not known of some retransmissions whether they were needed.
    pub fn is_undecided(&self) -> bool {
        self.repairs.iter().any(|repair| !repair.is_lost)
    }

    /// The window is reduced for `hole`, because of all losses below `end`.
    pub fn reduce(&mut self, hole: u64, end: u64) {
        self.lateness.learn_loss();
        self.reductions.add(hole, end);
        self.changed = true;
    }

    /// All reductions so far become final.
    pub fn settle_all(&mut self) {
        self.reductions.settle_all();
    }

    /// All reductions so far become final, and losses of packets below `end` cause none.
    pub fn settle_until(&mut self, end: u64) {
        self.reductions.settle_until(end);
    }

    /// `number` was marked by a queue, and packets below `end` have been sent. True if the window is to be reduced for it;
    /// otherwise it was reduced for the same event. Either reduction is final.
    pub fn on_marked(&mut self, number: u64, end: u64) -> bool {
        self.reductions.on_marked(number, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        patience: Nanos::from_millis(20),
        sure: Nanos::from_millis(30),
        at_once: false,
        learns_outcomes: true,
        max_undecided: 10,
    };

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn cause(decisions: &mut Decisions<92>, now: u64) -> Option<u64> {
        decisions.decide(at(now), &TERMS).cause.map(|repair| repair.first)
    }

    #[test]
    fn the_window_is_reduced_when_a_loss_is_certain() {
        let mut decisions = Decisions::new();
        decisions.on_retransmitted(at(10), 5, at(0), 9);
        assert_eq!(decisions.decide(at(29), &TERMS).look_again, at(30));
        assert_eq!((cause(&mut decisions, 29), cause(&mut decisions, 30)), (None, Some(5)));
    }

    #[test]
    fn it_is_reduced_at_once_when_most_retransmissions_were_needed() {
        let mut decisions = Decisions::new();
        for number in 0..3 {
            decisions.on_retransmitted(at(number), number, at(number), number + 1);
            decisions.decide(at(number + 40), &TERMS);
        }
        decisions.on_retransmitted(at(100), 50, at(100), 51);
        decisions.reduce(0, 10);
        assert_eq!(cause(&mut decisions, 100), Some(50));
    }

    #[test]
    fn many_undecided_retransmissions_are_a_burst() {
        let mut decisions = Decisions::new();
        for number in 0..11 {
            assert_eq!(cause(&mut decisions, 10), None);
            decisions.on_retransmitted(at(10), number, at(0), 20);
        }
        let decided = decisions.decide(at(10), &TERMS);
        assert!(decided.is_burst && decided.cause.is_some());
    }

    #[test]
    fn a_reduction_is_undone_when_its_originals_arrive() {
        let mut decisions = Decisions::<92>::new();
        decisions.on_retransmitted(at(10), 5, at(0), 9);
        decisions.reduce(5, 9);
        decisions.undo_spurious(|_| panic!("the original has not arrived"));
        assert_eq!(decisions.on_original(at(50), 5), Some(at(0)));
        let mut undone = None;
        decisions.undo_spurious(|hole| undone = Some(hole));
        assert_eq!(undone, Some(5));
    }

    /// The reduction for 5 and all losses below 9 was undone.
    fn after_an_undo() -> Decisions<92> {
        let mut decisions = Decisions::<92>::new();
        decisions.on_retransmitted(at(10), 5, at(0), 9);
        decisions.reduce(5, 9);
        decisions.on_original(at(20), 5);
        decisions.undo_spurious(|_| {});
        decisions
    }

    #[test]
    fn after_an_undo_a_loss_of_the_same_event_reduces_the_window_when_it_is_certain() {
        let mut decisions = after_an_undo();
        decisions.on_retransmitted(at(30), 7, at(20), 9);
        let at_once = Terms { at_once: true, ..TERMS };
        assert!(decisions.decide(at(49), &at_once).cause.is_none(), "it is probably late, too");
        assert_eq!(cause(&mut decisions, 50), Some(7));
        decisions.reduce(7, 9);
        assert_eq!(cause(&mut decisions, 51), None, "once for each event");
    }

    #[test]
    fn retransmissions_of_an_event_without_reduction_do_not_keep_later_ones_out() {
        let mut decisions = after_an_undo();
        for number in 0..12 {
            decisions.on_retransmitted(at(30 + number), number % 8, at(20 + number), 9);
        }
        assert!(decisions.make_room(20));
        decisions.on_retransmitted(at(50), 20, at(45), 30);
        let undone = (0..9).map(|number| decisions.reductions.event_of(number));
        assert!(undone.into_iter().all(|event| event.is_none()) && decisions.reductions.event_of(20).is_some());
        assert!(decisions.repairs.iter().any(|repair| repair.first == 20));
    }
}
