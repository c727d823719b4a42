//! Startup: double the rate each round until it stops growing, or too much is lost (§5.3.1).

use reknit_tcp::facts::{Context, Phase};
use reknit_units::{Bytes, Rate};

use super::{Bbr, State};

/// The rate has stopped growing after this many rounds with growth by less than a quarter.
const FLAT_ROUNDS: u32 = 3;
/// `BBRStartupFullLossCnt`: a round has high loss if at least this many separate ranges were lost.
const LOST_RANGES: u32 = 6;

#[derive(Clone, Debug, Default)]
pub(super) struct FullBw {
    /// `BBR.full_bw`.
    bw: Rate,
    /// `BBR.full_bw_count`.
    count: u32,
    /// `BBR.full_bw_now`.
    pub(super) now: bool,
    /// `BBR.full_bw_reached`.
    pub(super) reached: bool,
}

impl FullBw {
    /// `ResetFullBW`, with the bandwidth from which growth is measured.
    pub(super) fn reset(&mut self, bw: Rate) {
        *self = FullBw { bw, reached: self.reached, ..FullBw::default() };
    }
}

impl Bbr {
    /// `EnterStartup`.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, cx: &Context<'_>) {
        self.check_startup_high_loss(cx);
        if self.state == State::Startup && self.full.reached {
            self.enter_drain();
        }
    }

    /// `CheckFullBWReached` (§5.3.1.2).
    pub(super) fn check_full_bw_reached(&mut self) {
        if self.full.now || !self.rounds.start || self.rs.is_app_limited {
            return;
        }
        let rate = self.delivery_rate();
        if rate >= self.full.bw.scaled(5, 4) {
            self.full.reset(rate);
            return;
        }
        self.full.count += 1;
        self.full.now = self.full.count >= FLAT_ROUNDS;
        self.full.reached |= self.full.now;
    }

    /// `CheckStartupHighLoss` (§5.3.1.3): a whole round of fast recovery had too many losses, in enough separate
    /// ranges.
    fn check_startup_high_loss(&mut self, cx: &Context<'_>) {
        let round_ends = self.bounds.loss_round_start;
        let ranges = if round_ends { self.bounds.take_lost_ranges() } else { 0 };
        if self.state != State::Startup || cx.snd.phase != Phase::Recovery {
            return;
        }
        let is_high = if cx.snd.sack {
            round_ends && ranges >= LOST_RANGES && self.is_inflight_too_high(cx)
        } else {
            self.rs.lost > Bytes::ZERO
        };
        if is_high {
            self.undo.state = Some(State::Startup);
            self.full.reached = true;
            self.bounds.inflight_longterm = self.bdp(100).max(self.bounds.inflight_latest);
        }
    }
}
