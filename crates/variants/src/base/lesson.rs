//! What the hole of a fast retransmit teaches, should the retransmission turn out to have been spurious.
//!
//! The measurement is made when the hole is covered for the first time, which is when the original came; the verdict
//! follows up to a round trip later, by the DSACK of the copy. One lesson for each episode, from its first hole.

use std::mem;

use reknit_tcp::facts::{AckFacts, Context, Spurious, Turn};
use reknit_tcp::scoreboard::SegId;

/// The hole of the last fast retransmit, and what was measured when it was covered.
#[derive(Debug)]
pub(crate) struct Lesson<T> {
    hole: Option<SegId>,
    measured: Option<T>,
    spurious: bool,
}

impl<T> Default for Lesson<T> {
    fn default() -> Lesson<T> {
        Lesson { hole: None, measured: None, spurious: false }
    }
}

impl<T> Lesson<T> {
    /// To be told of every turn.
    pub(crate) fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        let hole = cx.snd.snapshot.map(|snapshot| snapshot.hole);
        match turn {
            Turn::EnterRecovery => *self = Lesson { hole, ..Lesson::default() },
            Turn::Spurious(Spurious::FastRetransmit) => self.spurious = hole.is_some() && hole == self.hole,
            _ => {}
        }
    }

    /// To be told of every ACK, after the turn that it caused. `measure` is asked when the ACK covers the hole; what it
    /// said then is the answer to the ACK that brings the verdict.
    pub(crate) fn on_ack(&mut self, ack: &AckFacts<'_>, measure: impl FnOnce(SegId) -> T) -> Option<T> {
        if let Some(hole) = self.hole.filter(|hole| ack.newly.contains(hole)) {
            self.measured = Some(measure(hole));
        }
        if mem::take(&mut self.spurious) { self.measured.take() } else { None }
    }
}
