//! The recent reductions that can still be undone, each separately. `Sender::reduce` adds one for a fast retransmit (step 8)
//! and closes all for another trigger. Owned by [`super::Sender`].
//!
//! The evidence that a reduction was spurious may arrive after the next reduction. The window then becomes what it would be
//! without the spurious reduction, and the later reductions remain.

use reknit_units::Bytes;

use crate::facts::Window;
use crate::scoreboard::SegId;

/// The most open reductions. If there are more, the oldest becomes final.
const MAX_OPEN: usize = 8;

/// A reduction that can still be undone.
#[derive(Clone, Copy, PartialEq, Debug)]
struct UndoableReduction {
    hole: SegId,
    before: Window,
    /// The window after the reduction.
    after: Bytes,
}

/// The window without a reduction that was spurious.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UndoneReduction {
    pub(super) window: Window,
    /// The window before the last remaining reduction, as it would have been without the spurious one; none if no later
    /// reduction remains.
    pub(super) before_last: Option<Window>,
}

/// The open reductions, oldest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct UndoableReductions {
    open: Vec<UndoableReduction>,
}

impl UndoableReductions {
    pub(super) fn push(&mut self, hole: SegId, before: Window, after: Bytes) {
        if self.open.len() == MAX_OPEN {
            self.open.remove(0);
        }
        self.open.push(UndoableReduction { hole, before, after });
    }

    /// The window `current` without the reduction for `hole`; none if that reduction is not open. Called by `undo_earlier` (step 7)
    /// and, for the verdicts of the loss detector, by `Sender::withdraw` (step 8).
    pub(super) fn withdraw(&mut self, hole: SegId, current: Window) -> Option<UndoneReduction> {
        let i = self.open.iter().position(|open| open.hole == hole)?;
        let mut window = self.open.remove(i).before;
        let mut before_last = None;
        for later in &mut self.open[i..] {
            let before = later.before.cwnd.max(window.cwnd);
            let after = scale(later.after, before, later.before.cwnd);
            later.before = Window { cwnd: before, ssthresh: later.before.ssthresh.max(window.ssthresh) };
            later.after = after;
            window = Window { cwnd: after, ssthresh: after };
            before_last = Some(later.before);
        }
        let window = Window { cwnd: window.cwnd.max(current.cwnd), ssthresh: window.ssthresh.max(current.ssthresh) };
        Some(UndoneReduction { window, before_last })
    }

    /// The last reduction is no longer open if it was made for `hole`. Called by `respond_to_spurious` (step 7).
    pub(super) fn forget_last(&mut self, hole: SegId) {
        self.open.pop_if(|open| open.hole == hole);
    }

    /// True if no reduction can be undone.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// All reductions so far become final.
    pub(super) fn close(&mut self) {
        self.open.clear();
    }
}

/// `size` in proportion to a window that is `now` instead of `then`: `size` * `now` / `then`.
fn scale(size: Bytes, now: Bytes, then: Bytes) -> Bytes {
    Bytes(size.0 * now.0 / then.0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd: Bytes(cwnd), ssthresh: Bytes(ssthresh) }
    }

    /// 1000 bytes were halved to 500, grew to 600, and were halved to 300.
    fn twice_halved() -> UndoableReductions {
        let mut reductions = UndoableReductions::default();
        reductions.push(SegId(1), window(1000, 2000), Bytes(500));
        reductions.push(SegId(2), window(600, 500), Bytes(300));
        reductions
    }

    #[test]
    fn undoing_the_last_reduction_restores_its_window() {
        let withdrawal = twice_halved().withdraw(SegId(2), window(310, 300)).unwrap();
        assert_eq!(withdrawal, UndoneReduction { window: window(600, 500), before_last: None });
    }

    #[test]
    fn undoing_an_earlier_reduction_restores_its_factor() {
        let mut reductions = twice_halved();
        let withdrawal = reductions.withdraw(SegId(1), window(310, 300)).unwrap();
        assert_eq!(withdrawal, UndoneReduction { window: window(500, 500), before_last: Some(window(1000, 2000)) });
        assert_eq!(reductions.withdraw(SegId(1), window(500, 500)), None);
        assert_eq!(reductions.withdraw(SegId(2), window(500, 500)).unwrap().window, window(1000, 2000));
    }

    #[test]
    fn growth_since_the_reduction_is_kept() {
        let withdrawal = twice_halved().withdraw(SegId(2), window(900, 300)).unwrap();
        assert_eq!(withdrawal.window, window(900, 500));
    }
}
