//! BBR version 1; `variant.rs` says what it is.

mod aggregation;
mod bandwidth;
mod control;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;
pub(crate) mod variant;

use reknit_tcp::facts::{AckFacts, Context, Phase, RateSample, Turn, Window};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seams::{CongestionControl, Pacing, Plugin, Reduction};
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
use crate::part::{Algorithm, Part};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where the phases that the algorithm chooses at random come from.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
}

impl Algorithm for Config {
    const NAME: &'static str = "bbr1";
    const SOURCE: &'static str = include_str!("variant.rs");
}

impl Part<dyn CongestionControl> for Config {
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

/// A gain, as a fraction of this.
const UNIT: u64 = 256;
/// 2/ln(2): the least gain with which the rate doubles each round.
const HIGH_GAIN: u64 = UNIT * 2885 / 1000 + 1;
/// Its inverse, which drains in one round what the other has built.
const DRAIN_GAIN: u64 = UNIT * 1000 / 2885;
/// In flight at most this share of the product, for ACKs that are delayed or come together.
const CWND_GAIN: u64 = 2 * UNIT;
/// What delayed ACKs need to keep coming (`BBRMinPipeCwnd`).
const MIN_CWND: Segments = Segments(4);
/// What is sent before anything is known.
const INITIAL_CWND: Segments = Segments(10);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

#[derive(Debug)]
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
    /// The first ACK after an idle time has not come.
    idle_restart: bool,
}

/// What one ACK tells, in segments.
#[derive(Clone, Copy, Debug)]
struct Sample {
    rate: RateSample,
    /// Segments delivered.
    acked: Segments,
    /// Segments marked lost.
    losses: Segments,
}

impl Sample {
    fn of(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Sample> {
        let rate = ack.rate?;
        let losses = rate.newly_lost.in_segments(cx.snd.smss);
        Some(Sample { rate, acked: Segments(ack.newly.len() as u32), losses })
    }
}

impl Bbr {
    /// The bandwidth that is believed in: that of a policer, if there seems to be one.
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
    /// A timeout ends a round and says nothing of the pipe.
    fn on_turn(&mut self, cx: &Context<'_>, turn: Turn) {
        if let Turn::Timeout { .. } = turn {
            self.control.prev_phase = Phase::Loss;
            self.full_pipe.full_bw = Rate::default();
            self.bandwidth.round_start = true;
            let losses = Segments(1);
            self.sample_policer(cx, &Sample { rate: RateSample::default(), acked: Segments::ZERO, losses });
        }
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        let Some(sample) = Sample::of(cx, ack) else { return cx.snd.window_with(cx.snd.cwnd) };
        let restored = self.update_model(cx, ack, &sample);
        self.set_pacing_rate(cx, self.bw(), self.pacing_gain());
        let cwnd = restored.unwrap_or(cx.snd.cwnd.whole_segments(cx.snd.smss));
        cx.snd.window_with(self.set_cwnd(cx, &sample, cwnd).of(cx.snd.smss))
    }

    /// No loss changes the threshold; the window before it is remembered.
    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        self.save_cwnd(cx);
        cx.snd.ssthresh
    }

    fn save(&mut self) {}

    /// The losses were none: whether the pipe is full has to be seen again.
    fn restore(&mut self, cx: &Context<'_>) {
        self.full_pipe.start_over();
        self.policer.reset(cx.now, &self.bandwidth, cx.board.lost_so_far());
    }

    fn pacing(&self, cx: &Context<'_>) -> Option<Pacing> {
        let is_first_flight = cx.board.next_id() < SegId(u64::from(INITIAL_CWND.0));
        (!is_first_flight).then(|| Pacing { rate: self.pacing_rate(cx), quantum: self.quantum(cx) })
    }

    fn wants_rate_samples(&self) -> bool {
        true
    }

    fn steers_by_model(&self) -> bool {
        true
    }

    fn limits_itself(&self, _cx: &Context<'_>) -> bool {
        self.mode == Mode::ProbeRtt
    }

    /// §4.3.4.4: after an idle time the pipe is empty, so there is nothing to probe and nothing to drain.
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

/// The time of an event, or none yet.
type Stamp = Option<Instant>;
