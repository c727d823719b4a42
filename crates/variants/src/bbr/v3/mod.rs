//! BBR version 3.

mod aggregation;
mod bounds;
mod control;
mod drain;
mod probe_bw;
mod probe_rtt;
mod rounds;
mod startup;
mod undo;
pub(crate) mod variant;

use reknit_tcp::facts::{AckFacts, Context, LostSegment, Phase, RateSample, RecoveryEvent, Window};
use reknit_tcp::seams::{CongestionControl, CongestionControlTraits, Pacing, Plugin, Reduction};
use reknit_units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::aggregation::Aggregation;
use self::bounds::Bounds;
use self::control::Control;
use self::drain::Drain;
use self::probe_bw::ProbeBw;
use self::probe_rtt::MinRtt;
use self::rounds::Rounds;
use self::startup::FullBw;
use self::undo::Undo;
use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BbrConfig {
    /// Seed of the random wait between bandwidth probes.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub seed: u64,
}

impl Algorithm<dyn CongestionControl> for BbrConfig {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Bbr {
            seed: self.seed,
            state: State::Startup,
            rs: RateSample::default(),
            newly_acked: Bytes::ZERO,
            cwnd: Bytes::ZERO,
            bw: Rate::default(),
            rounds: Rounds::new(),
            full: FullBw::default(),
            drain: Drain::default(),
            probe: ProbeBw::default(),
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::new(),
            bounds: Bounds::default(),
            undo: Undo::default(),
            control: Control::default(),
            idle_restart: false,
        })
    }
}

/// `BBR.state` (§5.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// `IsInAProbeBWState`.
    fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// `IsProbingBW`.
    fn is_probing(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    /// In percent (§5.6.1).
    fn pacing_gain(self) -> u64 {
        match self {
            State::Startup => 277,
            State::Drain => 50,
            State::Down => 90,
            State::Up => 125,
            State::Cruise | State::Refill | State::ProbeRtt => 100,
        }
    }

    /// In percent (§5.6.1).
    fn cwnd_gain(self) -> u64 {
        match self {
            State::Up => 225,
            State::ProbeRtt => 50,
            _ => 200,
        }
    }
}

/// No bound.
const INFINITE_RATE: Rate = Rate::from_bits_per_second(u64::MAX);

#[derive(Clone, Debug)]
struct Bbr {
    seed: u64,
    state: State,
    /// `RS`: the rate sample of the current ACK.
    rs: RateSample,
    /// `RS.newly_acked`.
    newly_acked: Bytes,
    /// `C.cwnd`, including the changes made so far by the current event.
    cwnd: Bytes,
    /// `BBR.bw`.
    bw: Rate,
    rounds: Rounds,
    full: FullBw,
    drain: Drain,
    probe: ProbeBw,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    bounds: Bounds,
    undo: Undo,
    control: Control,
    /// `BBR.idle_restart`.
    idle_restart: bool,
}

impl Bbr {
    /// `RS.delivery_rate`; zero without a sample.
    fn delivery_rate(&self) -> Rate {
        self.rs.rate().unwrap_or_default()
    }

    /// `UpdateModelAndState` (§5.2.3).
    fn update_model_and_state(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation(cx);
        self.check_full_bw_reached();
        self.check_startup_done(cx);
        self.check_drain_done(cx);
        self.update_probe_bw_cycle_phase(cx);
        self.update_min_rtt(cx, ack.rtt);
        self.check_probe_rtt(cx);
        self.advance_latest_delivery_signals();
        self.bound_bw_for_model();
    }

    fn in_flight(cx: &Context<'_>) -> Bytes {
        cx.board.pipe().bytes
    }

    fn in_loss_recovery(phase: Phase) -> bool {
        matches!(phase, Phase::Recovery | Phase::Loss)
    }
}

impl Plugin for Bbr {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        self.undo.in_recovery |= matches!(event, RecoveryEvent::EnterRecovery | RecoveryEvent::Timeout { .. });
    }
}

impl CongestionControl for Bbr {
    fn traits(&self) -> CongestionControlTraits {
        CongestionControlTraits {
            wants_rate_samples: true,
            steers_by_model: true,
            ..CongestionControlTraits::default()
        }
    }

    /// `UpdateOnACK` (§5.2.3).
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        let Some(rs) = ack.rate.filter(|rs| rs.prior_delivered.is_some()) else {
            return cx.snd.window_with(cx.snd.cwnd);
        };
        self.rs = rs;
        self.newly_acked = ack.delivered;
        self.cwnd = cx.snd.cwnd;
        self.leave_recovery_if_over(cx.snd.phase);
        self.update_model_and_state(cx, ack);
        self.set_pacing_rate(cx, self.state.pacing_gain());
        self.set_cwnd(cx);
        cx.snd.window_with(self.cwnd)
    }

    /// `HandleLostPacket` (§5.5.10.2).
    fn on_lost(&mut self, cx: &Context<'_>, lost: &LostSegment) {
        self.handle_lost_packet(cx, lost);
    }

    /// `OnEnterFastRecovery` and `OnEnterRTO` (§5.6.4.4). Losses do not change ssthresh.
    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        self.save_state_upon_loss(cx);
        cx.snd.ssthresh
    }

    fn save(&mut self) {}

    /// `HandleSpuriousLossDetection` (§5.5.11.2).
    fn restore(&mut self, cx: &Context<'_>) {
        self.handle_spurious_loss_detection(cx);
    }

    fn pacing(&self, cx: &Context<'_>) -> Option<Pacing> {
        Some(Pacing { rate: self.pacing_rate(cx), quantum: self.send_quantum(cx), repairs_alone: false })
    }

    /// `MarkConnectionAppLimited` in `HandleProbeRTT` (§5.3.4.3).
    fn limits_itself(&self, _cx: &Context<'_>) -> bool {
        self.state == State::ProbeRtt
    }

    /// `HandleRestartFromIdle` (§5.4.1).
    fn on_restart(&mut self, cx: &Context<'_>) -> Option<Bytes> {
        self.cwnd = cx.snd.cwnd;
        self.idle_restart = true;
        self.aggregation.begin_interval(cx.now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(cx, 100);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(cx);
        }
        Some(self.cwnd)
    }
}
