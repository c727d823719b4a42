//! ProbeBW: Down, Cruise, Refill, Up (§5.3.3).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Instant};

use super::{Bbr, State};
use crate::bbr::chance;

/// The maximum number of rounds between probes, for coexistence with Reno (§5.3.3.5.3).
const MAX_RENO_ROUNDS: u64 = 63;
/// The minimum time between probes; up to a second is added at random.
const MIN_WAIT: Duration = Duration::from_secs(2);
const MAX_UP_ROUNDS: u32 = 30;

/// `BBR.ack_phase`: which part of the probe the arriving ACKs report on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, Debug)]
pub(super) struct ProbeBw {
    pub(super) ack_phase: AckPhase,
    /// `BBR.cycle_stamp`.
    cycle_stamp: Instant,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.bw_probe_up_acked`.
    up_acked: Bytes,
    /// `BBR.probe_up_acked_per_inc`.
    acked_per_inc: Bytes,
    /// `BBR.is_bw_probe_sample`.
    pub(super) is_sample: bool,
    /// `BBR.prev_probe_too_high`.
    pub(super) prev_too_high: bool,
    /// `BBR.prev_probe_precautionary`.
    prev_precautionary: bool,
}

impl Default for ProbeBw {
    fn default() -> ProbeBw {
        ProbeBw {
            ack_phase: AckPhase::Init,
            cycle_stamp: Instant::ZERO,
            wait: Duration::ZERO,
            up_rounds: 0,
            up_acked: Bytes::ZERO,
            acked_per_inc: Bytes::MAX,
            is_sample: false,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

impl Bbr {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, cx: &Context<'_>) {
        self.bounds.reset_congestion_signals();
        self.probe.acked_per_inc = Bytes::MAX;
        self.pick_probe_wait(cx);
        self.probe.cycle_stamp = cx.now;
        self.probe.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    /// `StartProbeBW_CRUISE`.
    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.bounds.reset_short_term();
        self.probe.up_rounds = 0;
        self.probe.up_acked = Bytes::ZERO;
        self.probe.prev_precautionary = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, cx: &Context<'_>) {
        self.probe.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        let rate = self.delivery_rate();
        self.full.reset(rate);
        self.state = State::Up;
        self.raise_inflight_longterm_slope(cx);
    }

    /// `UpdateProbeBWCyclePhase` (§5.3.3.6).
    pub(super) fn update_probe_bw_cycle_phase(&mut self, cx: &Context<'_>) {
        if !self.full.reached || self.adapt_long_term_model(cx) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe_bw(cx) => self.start_refill(),
            State::Down if self.is_time_to_cruise(cx) => self.start_cruise(),
            State::Refill if self.rounds.start => {
                self.probe.is_sample = true;
                self.start_up(cx);
            }
            State::Up if self.is_time_to_go_down(cx) => {
                // No high loss so far; the ACKs of the data sent while probing will show.
                self.probe.prev_too_high = false;
                self.start_down(cx);
            }
            _ => {}
        }
    }

    /// `IsTimeToCruise`.
    fn is_time_to_cruise(&self, cx: &Context<'_>) -> bool {
        let in_flight = Bbr::in_flight(cx);
        in_flight <= self.inflight_with_headroom(cx) && in_flight <= self.inflight(cx, self.rounds.max_bw(), 100)
    }

    /// `IsTimeToGoDown`.
    fn is_time_to_go_down(&mut self, cx: &Context<'_>) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.probe.prev_too_high && Bbr::in_flight(cx) >= longterm {
            self.probe.prev_precautionary = true;
            return true;
        }
        if self.rs.is_cwnd_limited && self.cwnd >= longterm {
            let rate = self.delivery_rate();
            self.full.reset(rate);
            return false;
        }
        self.full.now
    }

    /// `IsTimeToProbeBW` (§5.3.3.5.3): after the chosen time, or after as many rounds as there are segments in the
    /// target window, the period of Reno.
    fn is_time_to_probe_bw(&self, cx: &Context<'_>) -> bool {
        let has_elapsed = cx.now > self.probe.cycle_stamp + self.probe.wait;
        let reno_rounds = self.target_inflight().0 / cx.snd.smss.0;
        has_elapsed || self.rounds.since_probe_up >= reno_rounds.min(MAX_RENO_ROUNDS)
    }

    /// `PickProbeWait`.
    fn pick_probe_wait(&mut self, cx: &Context<'_>) {
        let drawn = chance::draw(cx, self.seed, self.rs.total_delivered);
        self.rounds.since_probe_up = drawn & 1;
        self.probe.wait = MIN_WAIT + Duration::from_nanos((drawn >> 1) % 1_000_000_000);
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_inflight_longterm_slope(&mut self, cx: &Context<'_>) {
        let growth_this_round = 1 << self.probe.up_rounds;
        self.probe.up_rounds = (self.probe.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.probe.acked_per_inc = Bytes(self.cwnd.0 / growth_this_round).max(cx.snd.smss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn probe_inflight_longterm_upward(&mut self, cx: &Context<'_>) {
        if !self.rs.is_cwnd_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        self.probe.up_acked += self.newly_acked;
        let delta = self.probe.up_acked.0 / self.probe.acked_per_inc.0;
        self.probe.up_acked -= self.probe.acked_per_inc * delta;
        self.bounds.inflight_longterm += cx.snd.smss * delta;
        if self.rounds.start {
            self.raise_inflight_longterm_slope(cx);
        }
    }

    /// `AdaptLongTermModel`. Returns true if it changed the state.
    fn adapt_long_term_model(&mut self, cx: &Context<'_>) -> bool {
        if self.probe.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.probe.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.probe.is_sample = false;
            self.probe.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !self.rs.is_app_limited {
                self.rounds.advance_max_bw_filter();
            }
            if self.state.is_probe_bw() && self.probe.prev_precautionary && !self.probe.prev_too_high {
                self.start_refill();
                return true;
            }
        }
        let longterm = self.bounds.inflight_longterm;
        if !self.is_inflight_too_high(cx) && longterm < Bytes::MAX {
            self.bounds.inflight_longterm = longterm.max(self.rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_inflight_longterm_upward(cx);
            }
        }
        false
    }
}
