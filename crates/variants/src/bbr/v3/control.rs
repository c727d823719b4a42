//! The pacing rate, the quantum and the window that follow from the model (§5.6).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Rate};

use super::{Bbr, State};

/// `BBR.PacingMarginPercent`.
const MARGIN: u64 = 1;
/// `BBR.Headroom`, in percent.
const HEADROOM: u64 = 15;
/// `BBR.MinPipeCwnd`, in segments.
const MIN_PIPE_CWND: u64 = 4;
const LARGEST_QUANTUM: Bytes = Bytes(64 << 10);

#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    /// `C.pacing_rate`; `None` before the first ACK.
    pacing_rate: Option<Rate>,
}

fn min_pipe_cwnd(cx: &Context<'_>) -> Bytes {
    cx.snd.smss * MIN_PIPE_CWND
}

fn initial_cwnd(cx: &Context<'_>) -> Bytes {
    cx.config.initial_window.of(cx.snd.smss)
}

impl Bbr {
    /// The pacing rate; `InitPacingRate` (§5.6.2) before the first ACK.
    pub(super) fn pacing_rate(&self, cx: &Context<'_>) -> Rate {
        self.control.pacing_rate.unwrap_or_else(|| {
            let rtt = cx.snd.srtt.unwrap_or(Duration::from_millis(1));
            Rate::of(initial_cwnd(cx), rtt).scaled(State::Startup.pacing_gain(), 100)
        })
    }

    /// `SetPacingRateWithGain`, with a gain in percent. While no delivery rate was measured, the rate stays: with zero,
    /// nothing would ever be sent again.
    pub(super) fn set_pacing_rate(&mut self, cx: &Context<'_>, gain: u64) {
        let current = self.pacing_rate(cx);
        let rate = self.bw.scaled(gain * (100 - MARGIN), 100 * 100);
        self.control.pacing_rate =
            Some(if self.full.reached && rate > Rate::default() { rate } else { rate.max(current) });
    }

    /// `SetSendQuantum` (§5.6.3).
    pub(super) fn send_quantum(&self, cx: &Context<'_>) -> Bytes {
        let per_ms = self.pacing_rate(cx).bytes_in(Duration::from_millis(1));
        per_ms.min(LARGEST_QUANTUM).max(cx.snd.smss * 2)
    }

    /// `BDPMultiple` of `BBR.bw`; zero before the first RTT sample. `gain` is in percent.
    pub(super) fn bdp(&self, gain: u64) -> Bytes {
        self.bw.scaled(gain, 100).bytes_in(self.min_rtt.get().unwrap_or_default())
    }

    fn bdp_multiple(&self, cx: &Context<'_>, bw: Rate, gain: u64) -> Bytes {
        match self.min_rtt.get() {
            Some(rtt) => bw.scaled(gain, 100).bytes_in(rtt),
            None => initial_cwnd(cx),
        }
    }

    /// `QuantizationBudget` (§5.6.4.2).
    fn quantization_budget(&self, cx: &Context<'_>, inflight_cap: Bytes) -> Bytes {
        let offload_budget = self.send_quantum(cx) * 3;
        let probing = if self.state == State::Up { cx.snd.smss * 2 } else { Bytes::ZERO };
        inflight_cap.max(offload_budget).max(min_pipe_cwnd(cx)) + probing
    }

    /// `Inflight`.
    pub(super) fn inflight(&self, cx: &Context<'_>, bw: Rate, gain: u64) -> Bytes {
        self.quantization_budget(cx, self.bdp_multiple(cx, bw, gain))
    }

    /// `TargetInflight`.
    pub(super) fn target_inflight(&self) -> Bytes {
        self.bdp(100).min(self.cwnd)
    }

    /// `InflightWithHeadroom`.
    pub(super) fn inflight_with_headroom(&self, cx: &Context<'_>) -> Bytes {
        let longterm = self.bounds.inflight_longterm;
        if longterm == Bytes::MAX {
            return longterm;
        }
        let headroom = Bytes(longterm.0 * HEADROOM / 100).max(cx.snd.smss);
        (longterm - headroom).max(min_pipe_cwnd(cx))
    }

    /// `UpdateMaxInflight`.
    fn max_inflight(&self, cx: &Context<'_>) -> Bytes {
        let inflight_cap = self.bdp_multiple(cx, self.bw, self.state.cwnd_gain()) + self.extra_acked();
        self.quantization_budget(cx, inflight_cap)
    }

    /// `SetCwnd` (§5.6.4.6).
    pub(super) fn set_cwnd(&mut self, cx: &Context<'_>) {
        let max_inflight = self.max_inflight(cx);
        let grown = self.cwnd + self.newly_acked;
        if self.full.reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || self.rs.total_delivered < initial_cwnd(cx) {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(min_pipe_cwnd(cx));
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd(cx));
        }
        self.bound_cwnd_for_model(cx);
    }

    /// `ProbeRTTCwnd` (§5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self, cx: &Context<'_>) -> Bytes {
        let half = self.bdp_multiple(cx, self.bw, State::ProbeRtt.cwnd_gain());
        half.max(min_pipe_cwnd(cx))
    }

    /// `BoundCwndForModel` (§5.6.4.7).
    fn bound_cwnd_for_model(&mut self, cx: &Context<'_>) {
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(cx),
            State::Startup | State::Drain => Bytes::MAX,
        };
        let cap = cap.min(self.bounds.inflight_shortterm).max(min_pipe_cwnd(cx));
        self.cwnd = self.cwnd.min(cap);
    }
}
