//! The reductions that may still turn out to be spurious.

use reknit_tcp::scoreboard::SegId;

use super::repairs::{Repair, Repairs};

/// The number of reductions that are kept.
const MAX_REDUCTIONS: usize = 4;

/// A reduction of the window.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// The segment for which it was made.
    hole: SegId,
    /// Losses of segments before this one, counted from `hole`, belong to the same congestion event.
    len: u32,
    /// It can no longer be undone.
    is_final: bool,
}

impl Reduction {
    fn end(&self) -> SegId {
        SegId(self.hole.0 + u64::from(self.len))
    }
}

/// The last reductions, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Reductions {
    list: Vec<Reduction>,
    /// Losses of segments below this have caused a reduction.
    answered_until: SegId,
}

impl Reductions {
    pub(super) fn new() -> Reductions {
        Reductions { list: Vec::new(), answered_until: SegId(0) }
    }

    /// True if `repair` has not caused a reduction yet.
    pub(super) fn is_unanswered(&self, repair: &Repair) -> bool {
        repair.first >= self.answered_until
    }

    /// The window is reduced for `hole`, because of all losses below `end`.
    pub(super) fn add(&mut self, hole: SegId, end: SegId) {
        if self.list.len() == MAX_REDUCTIONS {
            self.list.remove(0);
        }
        self.answered_until = end;
        self.list.push(Reduction { hole, len: end.beyond(hole).0, is_final: false });
    }

    /// `repair` is dropped: the reduction that it caused becomes final.
    pub(super) fn settle(&mut self, repair: &Repair) {
        if let Some(reduction) = self.list.iter_mut().find(|reduction| repair.first < reduction.end()) {
            reduction.is_final = true;
        }
    }

    /// All reductions so far become final.
    pub(super) fn settle_all(&mut self) {
        self.list.clear();
    }

    /// Removes the reductions without a remaining repair that may have been needed. Calls `withdraw` with the hole of
    /// each.
    pub(super) fn withdraw_spurious(&mut self, repairs: &Repairs, mut withdraw: impl FnMut(SegId)) {
        let mut start = SegId(0);
        self.list.retain(|reduction| {
            let segments = start..reduction.end();
            start = reduction.end();
            let stands = reduction.is_final || repairs.iter().any(|repair| segments.contains(&repair.first));
            if !stands {
                withdraw(reduction.hole);
            }
            stands
        });
    }

    pub(super) fn heap_size(&self) -> usize {
        self.list.capacity() * size_of::<Reduction>()
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::{Duration, Instant};

    use super::*;

    fn withdrawn(reductions: &mut Reductions, repairs: &Repairs) -> Vec<u64> {
        let mut holes = Vec::new();
        reductions.withdraw_spurious(repairs, |hole| holes.push(hole.0));
        holes
    }

    /// Segments 1, 5 and 20 were retransmitted at different times.
    fn repairs() -> Repairs {
        let mut repairs = Repairs::new();
        for id in [1, 5, 20] {
            let at = Instant::ZERO + Duration::from_millis(id);
            repairs.add(at, SegId(id), at, SegId(id + 10));
        }
        repairs
    }

    #[test]
    fn a_reduction_is_kept_while_one_of_its_repairs_may_have_been_needed() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(SegId(1), SegId(10));
        reductions.add(SegId(20), SegId(30));
        repairs.on_original(Instant::ZERO, SegId(1));
        assert!(withdrawn(&mut reductions, &repairs).is_empty());
        repairs.on_original(Instant::ZERO, SegId(5));
        assert_eq!(withdrawn(&mut reductions, &repairs), [1]);
        assert!(withdrawn(&mut reductions, &repairs).is_empty());
    }

    #[test]
    fn the_reduction_of_a_dropped_repair_can_no_longer_be_withdrawn() {
        let (mut reductions, mut repairs) = (Reductions::new(), repairs());
        reductions.add(SegId(1), SegId(10));
        let forgotten = *repairs.iter().next().unwrap();
        reductions.settle(&forgotten);
        repairs.on_original(Instant::ZERO, SegId(1));
        repairs.on_original(Instant::ZERO, SegId(5));
        assert!(withdrawn(&mut reductions, &repairs).is_empty());
    }

    #[test]
    fn losses_of_the_same_event_cause_one_reduction() {
        let (mut reductions, repairs) = (Reductions::new(), repairs());
        reductions.add(SegId(1), SegId(10));
        let unanswered = repairs.iter().filter(|repair| reductions.is_unanswered(repair));
        assert_eq!(unanswered.map(|repair| repair.first.0).collect::<Vec<_>>(), [20]);
    }
}
