//! BBR version 1.

mod aggregation;
mod bandwidth;
mod control;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;
pub(crate) mod variant;

use reknit_tcp::facts::{AckFacts, Context, Phase, RateSample, RecoveryEvent, Window};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{CongestionControl, CongestionControlTraits, Pacing, Plugin, Reduction};
use reknit_units::{Bytes, Instant, Rate, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::aggregation::Aggregation;
use self::bandwidth::Bandwidth;
use self::control::Control;
use self::policer::Policer;
use self::probe_bw::Cycle;
use self::probe_rtt::MinRtt;
use self::startup::FullPipe;
use crate::algorithm::Algorithm;
use crate::linux::cubic::delivered;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Bbr1Config {
    /// Seed of the random choice of the ProbeBW phase.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
}

impl Algorithm<dyn CongestionControl> for Bbr1Config {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Bbr {
            seed: self.seed,
            mode: Mode::Startup,
            bandwidth: Bandwidth::new(),
            full_pipe: FullPipe::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::default(),
            control: Control::default(),
            idle_restart: false,
        })
    }
}

/// The denominator of gains.
const UNIT: u64 = 256;
/// 2/ln(2): the smallest gain that doubles the rate each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse: it drains in one round the queue that Startup has built.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// The window is this multiple of the bandwidth-delay product, because ACKs are delayed and aggregated.
const CWND_GAIN: u64 = 2 * UNIT;
/// The smallest window with which delayed ACKs keep arriving (`BBRMinPipeCwnd`).
const MIN_CWND: Segments = Segments(4);
/// The window before the first estimate.
const INITIAL_CWND: Segments = Segments(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

#[derive(Clone, Debug)]
struct Bbr {
    seed: u64,
    mode: Mode,
    bandwidth: Bandwidth,
    full_pipe: FullPipe,
    aggregation: Aggregation,
    policer: Policer,
    cycle: Cycle,
    min_rtt: MinRtt,
    control: Control,
    /// The sender was idle, and no ACK has arrived since.
    idle_restart: bool,
}

/// What one ACK reports, in segments.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rate: RateSample,
    /// Segments delivered, including the duplicates that a DSACK reports.
    acked: Segments,
    /// Segments marked lost.
    losses: Segments,
}

impl Sample {
    fn of(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Sample> {
        let rate = ack.rate?;
        let losses = rate.newly_lost.in_segments(cx.snd.smss);
        Some(Sample { rate, acked: delivered(cx, ack), losses })
    }
}

impl Bbr {
    /// The current estimate of the bandwidth: the rate of a policer, if one was detected.
    fn bw(&self) -> Rate {
        self.policer.rate().unwrap_or_else(|| self.bandwidth.max())
    }

    fn pacing_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw if self.policer.rate().is_some() => UNIT,
            Mode::ProbeBw => self.cycle.gain(),
            Mode::ProbeRtt => UNIT,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw => CWND_GAIN,
            Mode::ProbeRtt => UNIT,
        }
    }

    /// `BBRUpdateModelAndState` (§3.5.2). Returns cwnd if ProbeRTT has restored it.
    fn update_model(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, sample: &Sample) -> Option<Segments> {
        self.update_bandwidth(cx, sample);
        self.update_aggregation(cx, sample);
        self.update_cycle_phase(cx, sample);
        self.check_full_pipe(sample);
        self.check_drain(cx);
        self.update_min_rtt(cx, ack, sample)
    }
}

impl Plugin for Bbr {
    /// A timeout ends the round and resets the estimate from which a full pipe is detected.
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        if let RecoveryEvent::Timeout { .. } = event {
            self.control.prev_phase = Phase::Loss;
            self.full_pipe.full_bw = Rate::default();
            self.bandwidth.round_start = true;
            let losses = Segments(1);
            self.sample_policer(cx, &Sample { rate: RateSample::default(), acked: Segments::ZERO, losses });
        }
    }
}

impl CongestionControl for Bbr {
    fn traits(&self) -> CongestionControlTraits {
        CongestionControlTraits {
            wants_rate_samples: true,
            counts_duplicates: true,
            steers_by_model: true,
            ..CongestionControlTraits::default()
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        let Some(sample) = Sample::of(cx, ack) else { return cx.snd.window_with(cx.snd.cwnd) };
        let restored = self.update_model(cx, ack, &sample);
        self.set_pacing_rate(cx, self.bw(), self.pacing_gain());
        let cwnd = restored.unwrap_or(cx.snd.cwnd.whole_segments(cx.snd.smss));
        cx.snd.window_with(self.set_cwnd(cx, &sample, cwnd).of(cx.snd.smss))
    }

    /// Losses do not change ssthresh; the window is saved.
    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        self.save_cwnd(cx);
        cx.snd.ssthresh
    }

    fn save(&mut self) {}

    /// The losses were spurious, so the detection of a full pipe starts over.
    fn restore(&mut self, cx: &Context<'_>) {
        self.full_pipe.start_over();
        self.policer.reset(cx.now, &self.bandwidth, cx.board.lost_so_far());
    }

    fn pacing(&self, cx: &Context<'_>) -> Option<Pacing> {
        let is_first_flight = cx.board.next_id() < SegId(u64::from(INITIAL_CWND.0));
        let (rate, quantum) = (self.pacing_rate(cx), self.quantum(cx));
        (!is_first_flight).then_some(Pacing { rate, quantum, repairs_alone: true })
    }

    fn limits_itself(&self, _cx: &Context<'_>) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// §4.3.4.4: after an idle period the pipe is empty, so there is nothing to drain, and ProbeBW paces at the
    /// bandwidth.
    fn on_restart(&mut self, cx: &Context<'_>) -> Option<Bytes> {
        self.idle_restart = true;
        self.aggregation.begin_epoch(cx.now);
        match self.mode {
            Mode::ProbeBw => {
                self.set_pacing_rate(cx, self.bw(), UNIT);
                None
            }
            Mode::ProbeRtt => self.check_probe_rtt_done(cx).map(|cwnd| cwnd.of(cx.snd.smss)),
            Mode::Startup | Mode::Drain => None,
        }
    }
}

/// The time of an event; `None` before the event.
type Stamp = Option<Instant>;
