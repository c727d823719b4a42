//! ProbeBW: a cycle of eight phases, about a round trip each (§4.3.4). The first sends faster than the bandwidth, the
//! second slower, to drain the queue, and the other six at the bandwidth.

use reknit_tcp::facts::Context;
use reknit_units::{Duration, Instant, Segments};

use super::{Bbr, Mode, Sample, UNIT};
use crate::bbr::chance;

const GAINS: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];

#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    index: usize,
    /// When the phase began.
    stamp: Instant,
}

impl Cycle {
    pub(super) fn gain(&self) -> u64 {
        GAINS[self.index]
    }

    /// True in the phase that sends faster than the bandwidth.
    pub(super) fn is_probing(&self) -> bool {
        self.index == 0
    }

    fn advance(&mut self, now: Instant) {
        self.index = (self.index + 1) % GAINS.len();
        self.stamp = now;
    }
}

impl Bbr {
    /// `BBREnterProbeBW`: begins in a random phase, but not in the draining one, so that flows that start together do
    /// not probe together.
    pub(super) fn enter_probe_bw(&mut self, cx: &Context<'_>) {
        self.mode = Mode::ProbeBw;
        let phases = GAINS.len() - 1;
        self.cycle.index = phases - (chance::draw(cx, self.seed, self.bandwidth.delivered) % phases as u64) as usize;
        self.cycle.advance(self.bandwidth.delivered_time);
    }

    /// `BBRCheckCyclePhase`.
    pub(super) fn update_cycle_phase(&mut self, cx: &Context<'_>, sample: &Sample) {
        if self.mode == Mode::ProbeBw && self.is_next_cycle_phase(cx, sample) {
            self.cycle.advance(self.bandwidth.delivered_time);
        }
    }

    /// `BBRIsNextCyclePhase`: the probing phase lasts until the increased amount is in flight or a segment is lost; the
    /// draining phase may end early, once the queue is empty.
    fn is_next_cycle_phase(&self, cx: &Context<'_>, sample: &Sample) -> bool {
        let elapsed = self.bandwidth.delivered_time.since(self.cycle.stamp);
        let is_full_length = elapsed > self.min_rtt.get().unwrap_or(Duration::MAX);
        let gain = self.pacing_gain();
        if gain == UNIT {
            return is_full_length;
        }
        let prior_in_flight = sample.rate.prior_in_flight.in_segments(cx.snd.smss);
        let in_flight = self.in_flight_when_sending(cx, prior_in_flight);
        let bw = self.bandwidth.max();
        if gain > UNIT {
            let has_more = sample.losses > Segments::ZERO || in_flight >= self.inflight(cx, bw, gain);
            return is_full_length && has_more;
        }
        is_full_length || in_flight <= self.inflight(cx, bw, UNIT)
    }
}
