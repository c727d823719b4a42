//! Drain: empty the queue that Startup has built (§5.3.2).

use reknit_tcp::facts::Context;

use super::{Bbr, State};

/// Drain ends after this many rounds at the latest, because the bandwidth may be wrong; the next probe corrects it.
const MAX_ROUNDS: u64 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct Drain {
    /// `BBR.drain_start_round`.
    start_round: u64,
}

impl Bbr {
    /// `EnterDrain`.
    pub(super) fn enter_drain(&mut self) {
        self.state = State::Drain;
        self.drain.start_round = self.rounds.count;
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, cx: &Context<'_>) {
        let is_drained = Bbr::in_flight(cx) <= self.inflight(cx, self.bw, 100);
        let is_late = self.rounds.count > self.drain.start_round + MAX_ROUNDS;
        if self.state == State::Drain && (is_drained || is_late) {
            self.start_down(cx);
        }
    }
}
