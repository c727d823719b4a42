//! Startup, until the delivery rate stops growing, and Drain, until the queue is empty (§4.3.2, §4.3.3).

use reknit_tcp::facts::Context;
use reknit_units::Rate;

use super::{Bbr, Mode, Sample, UNIT};

/// The pipe is full after this many rounds in which the bandwidth grew by less than a quarter.
const FLAT_ROUNDS: u32 = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// `BBR.full_bw`: the bandwidth from which growth by a quarter is measured.
    pub(super) full_bw: Rate,
    /// `BBR.full_bw_count`: rounds in a row without such growth.
    count: u32,
    /// `BBR.filled_pipe`.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Spurious losses may have kept the rate from growing.
    pub(super) fn start_over(&mut self) {
        self.full_bw = Rate::default();
        self.count = 0;
    }
}

impl Bbr {
    /// `BBRCheckFullPipe`.
    pub(super) fn check_full_pipe(&mut self, sample: &Sample) {
        if self.full_pipe.reached || !self.bandwidth.round_start || sample.rate.is_app_limited {
            return;
        }
        let bw = self.bandwidth.max();
        let full_pipe = &mut self.full_pipe;
        if bw >= full_pipe.full_bw.scaled(5, 4) {
            full_pipe.full_bw = bw;
            full_pipe.count = 0;
            return;
        }
        full_pipe.count += 1;
        full_pipe.reached = full_pipe.count >= FLAT_ROUNDS;
    }

    /// `BBRCheckDrain`.
    pub(super) fn check_drain(&mut self, cx: &Context<'_>) {
        if self.mode == Mode::Startup && self.full_pipe.reached {
            self.mode = Mode::Drain;
        }
        let target = self.inflight(cx, self.bandwidth.max(), UNIT);
        if self.mode == Mode::Drain && self.in_flight_when_sending(cx, cx.board.pipe().segments) <= target {
            self.enter_probe_bw(cx);
        }
    }
}
