//! What can be learned from the hole of a fast retransmit if the retransmission turns out to have been spurious.
//!
//! The measurement is taken when the hole is covered for the first time, by the arrival of the original. The proof
//! follows up to a round trip later, with the DSACK for the copy. Each episode gives at most one measurement, of its
//! first hole.

use std::mem;

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Spurious};
use reknit_tcp::scoreboard::SegId;

/// The hole of the last fast retransmit, and what was measured when it was covered.
#[derive(Clone, Debug)]
pub(crate) struct EpisodeSample<T> {
    hole: Option<SegId>,
    measured: Option<T>,
    spurious: bool,
}

impl<T> Default for EpisodeSample<T> {
    fn default() -> EpisodeSample<T> {
        EpisodeSample { hole: None, measured: None, spurious: false }
    }
}

impl<T> EpisodeSample<T> {
    /// Call it on every recovery event.
    pub(crate) fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        let hole = cx.snd.snapshot.map(|snapshot| snapshot.hole);
        match event {
            RecoveryEvent::EnterRecovery => *self = EpisodeSample { hole, ..EpisodeSample::default() },
            RecoveryEvent::Spurious(Spurious::FastRetransmit) => self.spurious = hole.is_some() && hole == self.hole,
            _ => {}
        }
    }

    /// Call it on every ACK, after the turn that the ACK caused. `measure` is called when the ACK covers the hole. Its
    /// value is returned on the ACK that proves the retransmission spurious.
    pub(crate) fn on_ack(&mut self, ack: &AckFacts<'_>, measure: impl FnOnce(SegId) -> T) -> Option<T> {
        if let Some(hole) = self.hole.filter(|hole| ack.newly.contains(hole)) {
            self.measured = Some(measure(hole));
        }
        if mem::take(&mut self.spurious) { self.measured.take() } else { None }
    }
}
