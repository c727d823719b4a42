//! CUBIC (Xu, Ha, Rhee, Goel, Eggert; RFC 9438, 2023). The window is a cubic function of the time since the last
//! reduction. HyStart++ (RFC 9406) ends the first slow start in time (§4.10).

use reknit_tcp::facts::{AckFacts, Context, Phase, Trigger, Window};
use reknit_tcp::seams::{CongestionControl, Plugin, Reduction};
use reknit_units::{Bytes, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::early_exit::EarlyExit;
use crate::base::hystart_plus::{Growth, HyStartPlus};
use crate::base::progress::Progress;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CubicConfig {
    /// C, the aggressiveness, in segments per second cubed (RFC 9438 §5).
    #[schemars(range(min = 0.001, max = 100.0))]
    pub c: f64,
    /// `beta_cubic`, the factor of the reduction (RFC 9438 §4.6).
    #[schemars(range(min = 0.01, max = 0.99))]
    pub beta: f64,
    /// Release bandwidth to newer flows (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Leave the first slow start when the round-trip time rises (HyStart++).
    pub hystart: bool,
    /// As long as everything arrives in order, leave the first slow start as Linux does (HyStart). It resumes if a
    /// segment then arrives late.
    pub early_exit: bool,
    /// `W_est` grows with α = 1 once it has reached the window before the last reduction (RFC 9438 §4.3). Linux does not do
    /// this.
    pub alpha_one: bool,
    /// In the Reno-friendly region, cwnd is set to `W_est` on each ACK (RFC 9438 §4.3). Linux rounds `W_est` down to whole
    /// segments and approaches it over a round trip.
    pub friendly_at_once: bool,
    /// Until the first reduction, the window grows by at least this fraction of itself per round trip. Linux uses 0.05.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_growth: f64,
    /// Which bytes let the window grow.
    pub progress: Progress,
}

impl Default for CubicConfig {
    fn default() -> CubicConfig {
        CubicConfig {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            hystart: true,
            early_exit: false,
            alpha_one: true,
            friendly_at_once: true,
            min_growth: 0.0,
            progress: Progress::Acked,
        }
    }
}

impl Algorithm<dyn CongestionControl> for CubicConfig {
    fn build(&self) -> Box<dyn CongestionControl> {
        let hystart = self.hystart.then(HyStartPlus::default);
        let early_exit = self.early_exit.then(EarlyExit::default);
        Box::new(Cubic {
            config: self.clone(),
            state: State::default(),
            saved: None,
            first: Some(Box::new(FirstSlowStart { hystart, early_exit })).filter(|_| self.hystart || self.early_exit),
            saved_first: None,
            unused_since: Instant::NEVER,
        })
    }
}

/// All windows in segments, as in the RFC.
#[derive(Clone, Copy, Debug)]
struct State {
    w_max: f64,
    /// The time to grow back to `w_max`, in seconds.
    k: f64,
    /// Start of the current congestion avoidance; not set before the first ACK in it.
    epoch: Instant,
    /// `W_est`, the window of an AIMD flow.
    w_est: f64,
    /// The window before the last reduction, for `W_est`.
    cwnd_prior: f64,
    /// Growth that is still due, as a fraction of a segment.
    credit: f64,
}

impl Default for State {
    fn default() -> State {
        State { w_max: 0.0, k: 0.0, epoch: Instant::NEVER, w_est: 0.0, cwnd_prior: 0.0, credit: 0.0 }
    }
}

/// How the first slow start ends.
#[derive(Clone, Copy, Debug)]
struct FirstSlowStart {
    /// `None` once it has ended slow start.
    hystart: Option<HyStartPlus>,
    /// `None` once a segment was late.
    early_exit: Option<EarlyExit>,
}

#[derive(Clone, Debug)]
struct Cubic {
    config: CubicConfig,
    state: State,
    /// The state before the last reduction.
    saved: Option<Box<State>>,
    /// `None` after the first reduction.
    first: Option<Box<FirstSlowStart>>,
    /// The same before the last reduction.
    saved_first: Option<Box<FirstSlowStart>>,
    /// Since when the window has not been fully used; never if it is.
    unused_since: Instant,
}

impl FirstSlowStart {
    /// What this ACK does. `None` without HyStart++.
    fn growth(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, progress: Progress) -> Option<Growth> {
        if self.early_exit.as_mut().is_some_and(|exit| exit.is_due(cx, ack)) {
            return Some(Growth::Leave);
        }
        let growth = self.hystart.as_mut()?.on_ack(cx, ack, progress);
        if growth == Growth::Leave {
            self.hystart = None;
        }
        Some(growth)
    }

    /// Returns true if slow start resumes: until now everything had arrived in order.
    fn resumes(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        if !self.early_exit.as_mut().is_some_and(|exit| exit.on_ack(cx, ack)) {
            return false;
        }
        self.early_exit = None;
        self.hystart.is_some()
    }
}

impl Cubic {
    /// Eq. 1.
    fn w_cubic(&self, t: f64) -> f64 {
        let d = t - self.state.k;
        self.config.c * d * d * d + self.state.w_max
    }

    /// Eq. 2.
    fn begin_epoch(&mut self, now: Instant, cwnd: f64) {
        let state = &mut self.state;
        state.epoch = now;
        state.w_est = cwnd;
        state.credit = 0.0;
        if state.w_max < cwnd {
            state.w_max = cwnd;
            state.k = 0.0;
        } else {
            state.k = libm::cbrt((state.w_max - cwnd) / self.config.c);
        }
    }

    /// §4.3, eq. 4: the window of an AIMD flow with the same reduction.
    fn grow_w_est(&mut self, segments_acked: f64, cwnd: f64) {
        let beta = self.config.beta;
        let is_one = self.config.alpha_one && self.state.w_est >= self.state.cwnd_prior;
        let alpha = if is_one { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        self.state.w_est += alpha * segments_acked / cwnd;
    }

    /// §4.2 to §4.5: the target window at this ACK.
    fn target(&mut self, cx: &Context<'_>, cwnd: f64, epoch: Instant) -> f64 {
        let t = cx.now.since(epoch).as_secs_f64();
        let rtt = cx.snd.srtt.unwrap_or(Duration::ZERO).as_secs_f64();
        let ahead = self.w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd);
        if self.w_cubic(t) >= self.state.w_est {
            ahead
        } else if self.config.friendly_at_once {
            self.state.w_est.max(cwnd)
        } else {
            libm::floor(self.state.w_est).max(ahead)
        }
    }

    /// The first slow start follows HyStart++, later ones RFC 3465.
    fn slow_start(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        let leaves = Window { cwnd: cx.snd.cwnd, ssthresh: cx.snd.cwnd };
        let first = self.first.as_deref_mut();
        let growth = match first.and_then(|first| first.growth(cx, ack, self.config.progress)) {
            Some(Growth::By(growth)) => growth,
            Some(Growth::Leave) => return leaves,
            None => self.config.progress.of(ack).min(if cx.snd.phase == Phase::Loss {
                cx.snd.smss
            } else {
                cx.snd.smss * 2
            }),
        };
        cx.snd.window_with(cx.snd.cwnd + growth)
    }

    /// §5.8: time in which the sender did not use the window does not count.
    fn resume(&mut self, now: Instant) {
        let since = std::mem::replace(&mut self.unused_since, Instant::NEVER);
        if since.is_set() && self.state.epoch.is_set() {
            self.state.epoch = self.state.epoch + now.since(since);
        }
    }

    fn congestion_avoidance(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Bytes {
        let smss = cx.snd.smss.0 as f64;
        let cwnd = cx.snd.cwnd.0 as f64 / smss;
        let acked = self.config.progress.of(ack).0 as f64 / smss;
        if !self.state.epoch.is_set() {
            self.begin_epoch(cx.now, cwnd);
        }
        let epoch = self.state.epoch;
        self.grow_w_est(acked, cwnd);
        let target = self.target(cx, cwnd, epoch);
        let reno_friendly = self.w_cubic(cx.now.since(epoch).as_secs_f64()) < self.state.w_est;
        let growth =
            if reno_friendly && self.config.friendly_at_once { target - cwnd } else { (target - cwnd) / cwnd * acked };
        let probing = if self.state.cwnd_prior == 0.0 { acked * self.config.min_growth } else { 0.0 };
        self.state.credit += growth.max(probing);
        #[expect(clippy::cast_sign_loss, reason = "the target is at least cwnd")]
        let growth = (self.state.credit * smss) as u64;
        self.state.credit -= growth as f64 / smss;
        cx.snd.cwnd + Bytes(growth)
    }
}

impl Plugin for Cubic {
    fn heap_size(&self) -> usize {
        let first = self.first.as_deref().or(self.saved_first.as_deref());
        self.saved.as_deref().map_or(0, size_of_val) + first.map_or(0, size_of_val)
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        self.resume(cx.now);
        if self.first.as_mut().is_some_and(|first| first.resumes(cx, ack)) {
            self.state.epoch = Instant::NEVER;
            return Window { cwnd: cx.snd.cwnd, ssthresh: Bytes::MAX };
        }
        if self.config.progress.of(ack) == Bytes::ZERO {
            cx.snd.window_with(cx.snd.cwnd)
        } else if cx.snd.in_slow_start() {
            self.slow_start(cx, ack)
        } else {
            cx.snd.window_with(self.congestion_avoidance(cx, ack))
        }
    }

    fn on_unused_window(&mut self, now: Instant) {
        self.unused_since = self.unused_since.min(now);
    }

    /// §4.6 to §4.8: after a timeout the curve starts at the window at which congestion avoidance begins.
    fn ssthresh(&mut self, cx: &Context<'_>, reduction: &Reduction) -> Bytes {
        let smss = cx.snd.smss.0 as f64;
        let cwnd = cx.snd.cwnd.max(reduction.flight_size).0 as f64 / smss;
        self.state.w_max = if reduction.trigger == Trigger::Timeout {
            0.0
        } else if self.config.fast_convergence && cwnd < self.state.w_max {
            cwnd * (1.0 + self.config.beta) / 2.0
        } else {
            cwnd
        };
        self.state.cwnd_prior = cwnd;
        self.state.epoch = Instant::NEVER;
        self.saved_first = self.first.take().or(self.saved_first.take());
        #[expect(clippy::cast_sign_loss, reason = "a share of a size")]
        let reduced = (reduction.flight_size.0 as f64 * self.config.beta) as u64;
        Bytes(reduced)
    }

    fn save(&mut self) {
        self.saved = Some(Box::new(self.state));
        self.saved_first = None;
    }

    /// §4.9.2: only if cwnd is still smaller than before the reduction.
    fn restore(&mut self, cx: &Context<'_>) {
        let cwnd = cx.snd.cwnd.0 as f64 / cx.snd.smss.0 as f64;
        match self.saved.take() {
            Some(saved) if cwnd < self.state.cwnd_prior => {
                self.state = *saved;
                self.first = self.first.take().or(self.saved_first.take());
            }
            Some(_) => {}
            None => self.state.epoch = Instant::NEVER,
        }
    }

    /// The curve begins again towards the larger window.
    fn on_earlier_undone(&mut self, cx: &Context<'_>, before: Bytes) {
        let before = before.0 as f64 / cx.snd.smss.0 as f64;
        self.state.w_max = self.state.w_max.max(before);
        self.state.cwnd_prior = self.state.cwnd_prior.max(before);
        self.state.epoch = Instant::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::Config as Tcp;
    use reknit_tcp::facts::SendState;
    use reknit_tcp::scoreboard::{Scoreboard, SegId};

    use super::*;
    use crate::base::given::{self, SMSS, segments};

    /// Calls `body` with the context of a sender with this cwnd, `ms` after the start.
    fn at<T>(ms: u64, cwnd: Bytes, body: impl FnOnce(&Context<'_>) -> T) -> T {
        let (config, board) = (Tcp::default(), Scoreboard::default());
        let snd = SendState { cwnd, phase: Phase::Open, ..given::state() };
        let now = Instant::ZERO + Duration::from_millis(ms);
        body(&Context { now, config: &config, snd: &snd, board: &board })
    }

    fn loss(flight: u32) -> Reduction {
        Reduction { trigger: Trigger::FastRetransmit, hole: SegId(0), flight_size: segments(flight) }
    }

    fn ack_of(bytes: Bytes) -> AckFacts<'static> {
        let una = given::ack().una_before;
        AckFacts { ack: una + bytes, ..given::ack() }
    }

    fn about(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-2
    }

    fn cubic() -> Cubic {
        Cubic {
            config: CubicConfig::default(),
            state: State::default(),
            saved: None,
            first: None,
            saved_first: None,
            unused_since: Instant::NEVER,
        }
    }

    #[test]
    fn the_curve_returns_to_w_max_after_k() {
        let mut cubic = cubic();
        cubic.state.w_max = 100.0;
        cubic.begin_epoch(Instant::ZERO, 70.0);
        // K = cbrt(W_max * (1 - beta) / C) = cbrt(75)
        assert!((cubic.state.k - 4.217_163).abs() < 1e-6);
        assert!((cubic.w_cubic(0.0) - 70.0).abs() < 1e-9);
        assert!((cubic.w_cubic(cubic.state.k) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn below_the_prior_window_w_est_grows_by_alpha() {
        let mut cubic = cubic();
        cubic.state.cwnd_prior = 100.0;
        cubic.state.w_est = 70.0;
        cubic.grow_w_est(70.0, 70.0);
        // One window acknowledged: alpha = 3 (1 - 0.7) / (1 + 0.7)
        assert!((cubic.state.w_est - 70.0 - 0.529_411).abs() < 1e-5);
    }
    #[test]
    fn from_the_prior_window_on_w_est_grows_by_one() {
        let mut cubic = cubic();
        cubic.state.cwnd_prior = 50.0;
        cubic.state.w_est = 50.0;
        cubic.grow_w_est(50.0, 50.0);
        assert!(about(cubic.state.w_est, 51.0));
    }

    #[test]
    fn without_alpha_one_w_est_always_grows_by_alpha() {
        let mut cubic = Cubic { config: CubicConfig { alpha_one: false, ..CubicConfig::default() }, ..cubic() };
        cubic.state.cwnd_prior = 50.0;
        cubic.state.w_est = 50.0;
        cubic.grow_w_est(50.0, 50.0);
        assert!(about(cubic.state.w_est, 50.529), "{}", cubic.state.w_est);
    }

    #[test]
    fn as_in_linux_the_window_follows_an_aimd_flow_in_whole_segments() {
        for (w_est, expected) in [(10.5, 8.5), (9.5, 8.25), (8.5, 8.0)] {
            let mut cubic =
                Cubic { config: CubicConfig { friendly_at_once: false, ..CubicConfig::default() }, ..cubic() };
            at(0, segments(8), |cx| cubic.congestion_avoidance(cx, &ack_of(segments(0))));
            (cubic.state.w_max, cubic.state.w_est) = (5.0, w_est);
            let cwnd = at(0, segments(8), |cx| cubic.congestion_avoidance(cx, &ack_of(segments(2))));
            assert!(about(cwnd.0 as f64 / SMSS.0 as f64, expected), "{w_est}: {cwnd}");
        }
    }

    #[test]
    fn the_window_grows_by_a_minimum_until_the_first_reduction() {
        let mut cubic = Cubic { config: CubicConfig { min_growth: 0.05, ..CubicConfig::default() }, ..cubic() };
        let grown =
            |cubic: &mut Cubic| at(0, segments(100), |cx| cubic.congestion_avoidance(cx, &ack_of(segments(100))));
        assert_eq!(grown(&mut cubic), segments(105));
        cubic.state.cwnd_prior = 200.0;
        assert!(grown(&mut cubic) < segments(105));
    }

    #[test]
    fn the_target_is_at_most_one_and_a_half_windows() {
        for (w_max, target) in [(1000.0, 12.0), (9.0, 9.0), (1.0, 8.0)] {
            let mut cubic = cubic();
            cubic.state.w_max = w_max;
            assert!(about(at(0, segments(8), |cx| cubic.target(cx, 8.0, Instant::ZERO)), target), "{w_max}");
        }
    }

    #[test]
    fn the_window_is_at_least_that_of_aimd() {
        let mut cubic = cubic();
        (cubic.state.w_max, cubic.state.k, cubic.state.w_est) = (5.0, 0.0, 9.0);
        assert!(about(at(0, segments(8), |cx| cubic.target(cx, 8.0, Instant::ZERO)), 9.0));
    }

    #[test]
    fn the_window_follows_the_curve() {
        // Below W_max = 100 after 1 s: 100 + 0.4 (1 - 4.217)^3. Beyond W_max after 3 s: 70 + 0.4 * 3^3.
        for (w_max, ms, expected) in [(100.0, 1000, 86.677), (70.0, 3000, 80.8)] {
            let mut cubic = cubic();
            cubic.state.w_max = w_max;
            at(0, segments(70), |cx| cubic.congestion_avoidance(cx, &given::ack()));
            let cwnd = at(ms, segments(70), |cx| cubic.congestion_avoidance(cx, &ack_of(segments(70))));
            assert!(about(cwnd.0 as f64 / SMSS.0 as f64, expected), "{cwnd}");
        }
    }

    #[test]
    fn a_reduction_multiplies_by_beta() {
        let mut cubic = cubic();
        let ssthresh = at(0, segments(8), |cx| cubic.ssthresh(cx, &loss(8)));
        assert_eq!(ssthresh, Bytes(5600));
        assert!(about(cubic.state.w_max, 8.0) && about(cubic.state.cwnd_prior, 8.0));
    }

    #[test]
    fn a_smaller_window_releases_bandwidth() {
        let mut cubic = cubic();
        cubic.state.w_max = 10.0;
        at(0, segments(8), |cx| cubic.ssthresh(cx, &loss(8)));
        assert!(about(cubic.state.w_max, 8.0 * 1.7 / 2.0));
    }

    #[test]
    fn an_undo_restores_the_curve() {
        for (cwnd_at_undo, w_max) in [(5, 12.0), (9, 6.8)] {
            let mut cubic = cubic();
            cubic.state.w_max = 12.0;
            cubic.save();
            at(0, segments(8), |cx| cubic.ssthresh(cx, &loss(8)));
            at(100, segments(cwnd_at_undo), |cx| cubic.restore(cx));
            assert!(about(cubic.state.w_max, w_max), "{}", cubic.state.w_max);
        }
    }

    #[test]
    fn the_first_reduction_ends_hystart_until_it_is_undone() {
        let first = FirstSlowStart { hystart: Some(HyStartPlus::default()), early_exit: None };
        let mut cubic = Cubic { first: Some(Box::new(first)), ..cubic() };
        let grown = |cubic: &mut Cubic| at(0, segments(8), |cx| cubic.slow_start(cx, &ack_of(segments(5))).cwnd);
        assert_eq!(grown(&mut cubic), segments(13));
        cubic.save();
        at(0, segments(8), |cx| cubic.ssthresh(cx, &loss(8)));
        assert_eq!(grown(&mut cubic), segments(10)); // L = 2
        at(0, segments(5), |cx| cubic.restore(cx));
        assert_eq!(grown(&mut cubic), segments(13));
    }
}
