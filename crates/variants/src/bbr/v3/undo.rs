//! What is saved when a recovery begins, and restored when it ends or proves spurious (§5.5.11, §5.6.4.4).

use reknit_tcp::facts::{Context, Phase};
use reknit_units::{Bytes, Rate};

use super::{Bbr, State};

#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// `BBR.prior_cwnd`.
    prior_cwnd: Bytes,
    /// `BBR.undo_state`.
    pub(super) state: Option<State>,
    /// `BBR.undo_bw_shortterm`.
    bw_shortterm: Rate,
    /// `BBR.undo_inflight_shortterm`.
    inflight_shortterm: Bytes,
    /// `BBR.undo_inflight_longterm`.
    inflight_longterm: Bytes,
    /// A recovery has begun, and its end has not been noticed yet.
    pub(super) in_recovery: bool,
}

impl Bbr {
    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self, cx: &Context<'_>) {
        let is_good = !Bbr::in_loss_recovery(cx.snd.phase) && self.state != State::ProbeRtt;
        let prior = if is_good { Bytes::ZERO } else { self.undo.prior_cwnd };
        self.undo.prior_cwnd = prior.max(cx.snd.cwnd);
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.undo.prior_cwnd);
    }

    /// Restores the window at the end of fast recovery or of a timeout recovery.
    pub(super) fn leave_recovery_if_over(&mut self, phase: Phase) {
        if self.undo.in_recovery && !Bbr::in_loss_recovery(phase) {
            self.undo.in_recovery = false;
            self.restore_cwnd();
        }
    }

    /// `SaveStateUponLoss`.
    pub(super) fn save_state_upon_loss(&mut self, cx: &Context<'_>) {
        self.save_cwnd(cx);
        self.undo.state = None;
        self.undo.bw_shortterm = self.bounds.bw_shortterm;
        self.undo.inflight_shortterm = self.bounds.inflight_shortterm;
        self.undo.inflight_longterm = self.bounds.inflight_longterm;
    }

    /// `HandleSpuriousLossDetection`. The window is restored when the recovery ends.
    pub(super) fn handle_spurious_loss_detection(&mut self, cx: &Context<'_>) {
        self.undo.in_recovery = true;
        self.bounds.is_loss_in_round = false;
        self.full.reset(Rate::default());
        self.bounds.bw_shortterm = self.bounds.bw_shortterm.max(self.undo.bw_shortterm);
        self.bounds.inflight_shortterm = self.bounds.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(self.undo.inflight_longterm);
        let is_free = self.state != State::ProbeRtt;
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full.reached = false;
                if is_free {
                    self.enter_startup();
                }
            }
            Some(State::Up) if self.state != State::Up && is_free => {
                self.cwnd = cx.snd.cwnd;
                self.start_refill();
            }
            _ => {}
        }
    }
}
