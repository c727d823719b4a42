//! The pacing rate, the quantum and the window that follow from the model (§4.2).

use reknit_tcp::facts::{Context, Phase};
use reknit_units::{Bytes, Duration, Rate, Segments};

use super::{Bbr, HIGH_GAIN, INITIAL_CWND, MIN_CWND, Mode, Sample, UNIT};

/// Below this rate the quantum is one segment.
const SINGLE_SEGMENT_RATE: Rate = Rate::from_bits_per_second(1_200_000);
/// The largest quantum.
const LARGEST_QUANTUM: Bytes = Bytes(64 * 1024 - 1);
/// On short paths Linux adds to the quantum. It halves the addition for each of these that fits into the RTT.
const QUANTUM_RTT: Duration = Duration::from_micros(512);

#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    pacing_rate: Option<Rate>,
    /// The last window before losses or ProbeRTT reduced it.
    pub(super) prior_cwnd: Segments,
    /// The first round of a recovery sends one segment for each that is delivered.
    pub(super) packet_conservation: bool,
    /// The phase of the sender at the last ACK.
    pub(super) prev_phase: Phase,
}

fn in_recovery(phase: Phase) -> bool {
    matches!(phase, Phase::Recovery | Phase::Loss)
}

/// `gain` times `bw`, less a margin of 1 % that lets queues drain.
fn pace(bw: Rate, gain: u64) -> Rate {
    bw.scaled(gain * 99, UNIT * 100)
}

impl Bbr {
    /// §4.2.1. Before the first sample, the rate that sends one window in one smoothed RTT.
    pub(super) fn pacing_rate(&self, cx: &Context<'_>) -> Rate {
        self.control.pacing_rate.unwrap_or_else(|| {
            let rtt = cx.snd.srtt.unwrap_or(Duration::from_millis(1));
            pace(Rate::of(cx.snd.cwnd, rtt), HIGH_GAIN)
        })
    }

    /// The rate is lowered only once the pipe is known to be full, and not to zero, which means that no delivery rate
    /// was measured.
    pub(super) fn set_pacing_rate(&mut self, cx: &Context<'_>, bw: Rate, gain: u64) {
        let current = self.pacing_rate(cx);
        let rate = pace(bw, gain);
        self.control.pacing_rate =
            Some(if self.full_pipe.reached && rate > Rate::default() { rate } else { rate.max(current) });
    }

    fn least_quantum(rate: Rate) -> Segments {
        if rate < SINGLE_SEGMENT_RATE { Segments(1) } else { Segments(2) }
    }

    /// The burst size that the model assumes: what is sent in a 1024th of a second.
    fn quantum_goal(&self, cx: &Context<'_>) -> Segments {
        let rate = self.pacing_rate(cx);
        let bytes = Bytes(rate.bits_per_second() / 8 / 1024).min(LARGEST_QUANTUM);
        bytes.whole_segments(cx.snd.smss).max(Bbr::least_quantum(rate)).min(Segments(127))
    }

    /// The burst size that is used: larger on short paths.
    pub(super) fn quantum(&self, cx: &Context<'_>) -> Bytes {
        let rate = self.pacing_rate(cx);
        let halvings = self.min_rtt.get().map_or(32, |rtt| rtt.as_nanos() / QUANTUM_RTT.as_nanos());
        let short = if halvings < 32 { Bytes(LARGEST_QUANTUM.0 >> halvings) } else { Bytes::ZERO };
        let bytes = (Bytes(rate.bits_per_second() / 8 / 1024) + short).min(LARGEST_QUANTUM);
        bytes.whole_segments(cx.snd.smss).max(Bbr::least_quantum(rate)).of(cx.snd.smss)
    }

    /// `BBRInflight`: `gain` times the bandwidth-delay product, plus three quanta, rounded up to an even number.
    pub(super) fn inflight(&self, cx: &Context<'_>, bw: Rate, gain: u64) -> Segments {
        self.quantized(cx, self.bdp(cx, bw, gain))
    }

    fn bdp(&self, cx: &Context<'_>, bw: Rate, gain: u64) -> Segments {
        match self.min_rtt.get() {
            Some(rtt) => bw.scaled(gain, UNIT).bytes_in(rtt).in_segments(cx.snd.smss),
            None => INITIAL_CWND,
        }
    }

    fn quantized(&self, cx: &Context<'_>, cwnd: Segments) -> Segments {
        let quanta = self.quantum_goal(cx).0 * 3;
        let even = (cwnd.0 + quanta).next_multiple_of(2);
        let is_probing = self.mode == Mode::ProbeBw && self.cycle.is_probing();
        Segments(even + if is_probing { 2 } else { 0 })
    }

    /// How much of `in_flight` will still be in flight when pacing allows the next burst.
    pub(super) fn in_flight_when_sending(&self, cx: &Context<'_>, in_flight: Segments) -> Segments {
        let delivered = self.bw().bytes_in(cx.snd.next_send_time.since(cx.now)).whole_segments(cx.snd.smss);
        let burst = if self.pacing_gain() > UNIT { self.quantum_goal(cx) } else { Segments::ZERO };
        in_flight + burst - delivered
    }

    /// `BBRSaveCwnd`.
    pub(super) fn save_cwnd(&mut self, cx: &Context<'_>) {
        let cwnd = cx.snd.cwnd.whole_segments(cx.snd.smss);
        let is_good = !in_recovery(self.control.prev_phase) && self.mode != Mode::ProbeRtt;
        self.control.prior_cwnd = if is_good { cwnd } else { self.control.prior_cwnd.max(cwnd) };
    }

    /// `BBRSetCwnd` (§4.2.3).
    pub(super) fn set_cwnd(&mut self, cx: &Context<'_>, sample: &Sample, cwnd: Segments) -> Segments {
        let mut cwnd = cwnd;
        if sample.acked > Segments::ZERO {
            cwnd = self.modulate_for_recovery(cx, sample, cwnd);
            if !self.control.packet_conservation {
                cwnd = self.approach_target(cx, sample, cwnd);
            }
        }
        if self.mode == Mode::ProbeRtt { cwnd.min(MIN_CWND) } else { cwnd }
    }

    /// Grows the window towards the target by what was delivered.
    fn approach_target(&self, cx: &Context<'_>, sample: &Sample, cwnd: Segments) -> Segments {
        let bdp = self.bdp(cx, self.bw(), self.cwnd_gain());
        let target = self.quantized(cx, bdp + self.aggregation_cwnd(cx.snd.smss));
        let is_early = self.bandwidth.delivered < INITIAL_CWND.of(cx.snd.smss);
        let cwnd = if self.full_pipe.reached {
            (cwnd + sample.acked).min(target)
        } else if cwnd < target || is_early {
            cwnd + sample.acked
        } else {
            cwnd
        };
        cwnd.max(MIN_CWND)
    }

    /// `BBRModulateCwndForRecovery` (§4.2.3.4): a recovery begins with cwnd at the data in flight, keeps it there for a
    /// round, and at its end restores the window from before.
    fn modulate_for_recovery(&mut self, cx: &Context<'_>, sample: &Sample, cwnd: Segments) -> Segments {
        let (before, phase) = (self.control.prev_phase, cx.snd.phase);
        let conserved = cx.board.pipe().segments + sample.acked;
        let mut cwnd = (cwnd - sample.losses).max(Segments(1));
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.control.packet_conservation = true;
            self.bandwidth.next_round_delivered = self.bandwidth.delivered;
            cwnd = conserved;
        } else if in_recovery(before) && !in_recovery(phase) {
            self.control.packet_conservation = false;
            cwnd = cwnd.max(self.control.prior_cwnd);
        }
        self.control.prev_phase = phase;
        if self.control.packet_conservation { cwnd.max(conserved) } else { cwnd }
    }
}
