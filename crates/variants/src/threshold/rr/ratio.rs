//! The FA ratio of RR-TCP and its adaptation (Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002, §4.3).
//!
//! **State.** `fa`, the ratio. `D`, the EWMA of how long a false fast retransmit keeps the window small. `W`, the EWMA
//! of the steady window. The current idle period: when it began, and how many segments have arrived since.
//!
//! **Rules.**
//! - 3: W is sampled once per round trip.
//! - 4: a false fast retransmit gives a sample of D; `fa += S`.
//! - 5: on a timeout, `fa -= S * C(timeout) / C(false fast retransmit)`.
//! - 6: if limited transmit was exhausted when SND.UNA advances, `fa -= S * C(limited transmit) / C(false fast
//!   retransmit)`, unless the quotient is at most 1. The costs are in `costs.rs`.
//!
//! **Departures.** The cost of limited transmit counts newly SACKed segments, so that lost ACKs do not reduce it; the paper
//! (§4.3.3) counts duplicate ACKs. An episode in which a DSACK proves every retransmission spurious counts as one false fast
//! retransmit, however many segments it retransmitted: one reduction, one cost. The paper (§5.7) only says that W is an
//! EWMA; it gets the gain of D. W is sampled outside recovery and outside slow start after a timeout, and also in
//! disorder: limited transmit does not change cwnd, and under persistent reordering the sender is almost always in
//! disorder. The ratio stays between 0 and 0.99 (the paper observes that it settles there). Before the first RTT sample
//! the ratio of costs is taken as 1.
//!
//! *Idle periods.* Limited transmit is exhausted when it has sent its k windows, or when it may not send because the
//! maximum window of the connection is full (`largest_window_exhausts`). The paper mentions only the former. With the
//! second case, the mean RTO of DSACK-TA is that of Table 3 (1.5 s; 2.0 s without it), but then its fast retransmits in
//! Fig. 18 are not near 0 %, which they are without it.
//! If the window offered by the peer is full, or there is no data, limited transmit does not count as exhausted, and a
//! measurement in progress is discarded. So it is by a fast retransmit, which ends the idle period; the paper (§4.3.3)
//! excludes only timeouts.

use reknit_tcp::config::MaxWindowCaps;
use reknit_tcp::facts::{AckFacts, Context, Phase, RecoveryEvent, Spurious};
use reknit_tcp::scoreboard::SegId;
use reknit_tcp::seq::Offset;
use reknit_units::{Bytes, Duration, Instant, Segments};

use crate::threshold::rr::config::RrTcpConfig;
use crate::threshold::rr::costs as cost;

/// The ratio is never high enough to avoid every false fast retransmit (§5.1.1).
const MAX_FA: f64 = 0.99;

/// Limited transmit is exhausted.
#[derive(Clone, Copy, Debug)]
struct Exhausted {
    since: Instant,
    /// d: segments that have reached the receiver since then.
    arrived: Segments,
}

#[derive(Clone, Debug)]
pub(crate) struct FaRatio {
    config: RrTcpConfig,
    fa: f64,
    /// D.
    duration: Option<Duration>,
    /// W, in segments.
    window: Option<f64>,
    /// The next ACK at or above this gives a sample of W.
    round_end: Offset,
    /// Slow start after a timeout is in progress.
    after_timeout: bool,
    /// The time of the last ACK that advanced, or that arrived outside disorder: limited transmit starts over with it.
    episode_began: Instant,
    exhausted: Option<Exhausted>,
}

impl FaRatio {
    pub(crate) fn new(config: &RrTcpConfig) -> FaRatio {
        FaRatio {
            config: config.clone(),
            fa: config.fa,
            duration: None,
            window: None,
            round_end: Offset::DATA,
            after_timeout: false,
            episode_began: Instant::ZERO,
            exhausted: None,
        }
    }

    pub(crate) fn fa(&self) -> f64 {
        self.fa
    }

    /// Begins with the ratio of an earlier connection.
    pub(crate) fn begin_with(&mut self, fa: f64) {
        if self.config.adaptive {
            self.fa = fa;
        }
    }

    /// Returns true if the ratio may have changed.
    pub(crate) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.sample_window(cx, ack);
        self.note_exhaustion(cx, ack);
        self.measure_idleness(cx, ack)
    }

    pub(crate) fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        self.exhausted = None;
        match event {
            RecoveryEvent::Spurious(Spurious::FastRetransmit) => self.on_false_fast_retransmit(cx),
            RecoveryEvent::Timeout { expired, .. } => {
                self.on_timeout(cx, expired);
                self.after_timeout = true;
            }
            RecoveryEvent::Spurious(Spurious::Timeout | Spurious::LateTimeout) => self.after_timeout = false,
            RecoveryEvent::EnterRecovery | RecoveryEvent::LeaveRecovery => {}
        }
    }

    /// Rule 3.
    fn sample_window(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        self.after_timeout &= cx.snd.in_slow_start() || cx.snd.phase == Phase::Loss;
        let steady = matches!(cx.snd.phase, Phase::Open | Phase::Disorder) && !self.after_timeout;
        if steady && ack.ack >= self.round_end {
            self.round_end = cx.snd.snd_nxt + Bytes(1);
            let cwnd = cwnd(cx);
            let window = self.window.unwrap_or(cwnd);
            self.window = Some(window + (cwnd - window) / f64::from(self.config.memory));
        }
    }

    /// Rule 4: the window was reduced from the fast retransmit until now.
    fn on_false_fast_retransmit(&mut self, cx: &Context<'_>) {
        if let Some(snapshot) = &cx.snd.snapshot {
            let sample = cx.now.since(snapshot.at);
            let memory = u64::from(self.config.memory);
            self.duration = Some(self.duration.map_or(sample, |d| (d * (memory - 1) + sample) / memory));
        }
        if self.config.adaptive {
            self.fa = (self.fa + self.config.step).min(MAX_FA);
        }
    }

    /// Rule 5, for each expiry, spurious or not.
    fn on_timeout(&mut self, cx: &Context<'_>, expired: Duration) {
        let w = self.steady_window(cx);
        let ratio = rtt(cx).map_or(1.0, |r| {
            cost::timeout(w, expired.as_secs_f64() / r, self.config.windows) / self.cost_of_false_fast_retransmit(w, r)
        });
        self.lower(ratio);
    }

    /// Rule 6, first half: new data is waiting, the threshold has not been reached, and limited transmit may not send
    /// more.
    fn note_exhaustion(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) {
        let smss = cx.snd.smss;
        if cx.snd.phase != Phase::Disorder {
            return;
        }
        if !cx.snd.can_send_new {
            self.exhausted = self.exhausted.filter(|_| ack.advances());
            return;
        }
        let bound = self.bound(cx);
        let below_threshold = cx.snd.dup_thresh > bound + Segments(1);
        let is_exhausted = below_threshold && ack.flight_before + smss > cx.snd.cwnd + bound.of(smss);
        if self.exhausted.is_none() && is_exhausted {
            let newest = SegId(cx.board.next_id().0.saturating_sub(1));
            let last_sent = cx.board.get(newest).map_or(self.episode_began, |record| record.first_sent);
            self.exhausted = Some(Exhausted { since: last_sent.max(self.episode_began), arrived: Segments::ZERO });
        }
    }

    /// Rule 6, second half: counts arrivals in the idle period, and detects its end.
    fn measure_idleness(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        if let Some(exhausted) = &mut self.exhausted
            && !ack.advances()
        {
            exhausted.arrived += ack.newly_sacked;
        }
        if !ack.advances() && cx.snd.phase != Phase::Open {
            return false;
        }
        self.episode_began = cx.now;
        let over = self.exhausted.take();
        if let Some(exhausted) = over {
            self.on_idle(cx, exhausted);
        }
        over.is_some()
    }

    fn on_idle(&mut self, cx: &Context<'_>, exhausted: Exhausted) {
        let Some(r) = rtt(cx) else { return };
        let w = self.steady_window(cx);
        let rounds = cx.now.since(exhausted.since).as_secs_f64() / r;
        let ratio = cost::idle(w, rounds, f64::from(exhausted.arrived.0)) / self.cost_of_false_fast_retransmit(w, r);
        if ratio > 1.0 {
            self.lower(ratio);
        }
    }

    /// Rules 5 and 6: a mistake that costs `ratio` times as much as a false fast retransmit.
    fn lower(&mut self, ratio: f64) {
        if self.config.adaptive {
            self.fa = (self.fa - self.config.step * ratio).max(0.0);
        }
    }

    /// Before the first sample of D, a false fast retransmit is assumed to last one round trip of `r` seconds.
    fn cost_of_false_fast_retransmit(&self, w: f64, r: f64) -> f64 {
        cost::false_fast_retransmit(w, self.duration.map_or(1.0, |d| d.as_secs_f64() / r))
    }

    /// W. Before its first sample, the window from before the reduction.
    fn steady_window(&self, cx: &Context<'_>) -> f64 {
        let before = cx.snd.snapshot.as_ref().map(|snapshot| snapshot.cwnd.0 as f64 / cx.snd.smss.0 as f64);
        self.window.or(before).unwrap_or_else(|| cwnd(cx)).max(1.0)
    }

    /// Segments that limited transmit may send beyond the window.
    fn bound(&self, cx: &Context<'_>) -> Segments {
        let cwnd = cx.snd.cwnd.whole_segments(cx.snd.smss);
        #[expect(clippy::cast_sign_loss, reason = "a multiple of a window is not negative")]
        let bound = Segments((self.config.windows * f64::from(cwnd.0)) as u32);
        let counts = self.config.largest_window_exhausts && cx.config.max_window_caps == MaxWindowCaps::Flight;
        cx.config.max_window.filter(|_| counts).map_or(bound, |largest| bound.min(largest - cwnd))
    }
}

/// cwnd in segments.
fn cwnd(cx: &Context<'_>) -> f64 {
    cx.snd.cwnd.0 as f64 / cx.snd.smss.0 as f64
}

/// R in seconds. With a coarse clock it may be zero.
fn rtt(cx: &Context<'_>) -> Option<f64> {
    cx.snd.srtt.filter(|srtt| !srtt.is_zero()).map(Duration::as_secs_f64)
}

#[cfg(test)]
mod tests {
    use reknit_tcp::facts::{SendState, Snapshot, Trigger};
    use reknit_tcp::scoreboard::Scoreboard;

    use super::*;
    use crate::base::given::{self, SMSS, segments};

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn with(w: f64, d_ms: u64) -> FaRatio {
        let mut ratio = FaRatio::new(&RrTcpConfig::default());
        ratio.window = Some(w);
        ratio.duration = Some(ms(d_ms));
        ratio
    }

    /// Passes a turn at `now_ms` to `ratio`, with an SRTT of `srtt_ms` and a fast retransmit at time zero.
    fn event(ratio: &mut FaRatio, event: RecoveryEvent, now_ms: u64, srtt_ms: u64) {
        let snapshot = Snapshot {
            trigger: Trigger::FastRetransmit,
            at: Instant::ZERO,
            cwnd: segments(16),
            ssthresh: segments(16),
            flight_size: segments(16),
            dup_acks: Segments(3),
            hole: SegId(0),
            snd_nxt: Offset::DATA,
            retransmitted: 1,
            is_final: false,
        };
        let snd = SendState { srtt: Some(ms(srtt_ms)), snapshot: Some(snapshot), ..given::state() };
        let (board, config) = (Scoreboard::default(), reknit_tcp::Config::default());
        let now = Instant::ZERO + ms(now_ms);
        ratio.on_recovery_event(&Context { now, config: &config, snd: &snd, board: &board }, event);
    }

    fn assert_close(fa: f64, expected: f64) {
        assert!((fa - expected).abs() < 1e-5, "{fa} instead of {expected}");
    }

    #[test]
    fn a_timeout_lowers_the_ratio_by_its_cost() {
        let timeout = RecoveryEvent::Timeout { expired: Duration::from_secs(1), first: true };
        for (w, srtt, d, fa) in [(50.0, 100, 100, 0.64672), (16.0, 100, 100, 0.67875), (32.0, 200, 300, 0.804_255)] {
            let mut ratio = with(w, d);
            event(&mut ratio, timeout, 5000, srtt);
            assert_close(ratio.fa, fa);
        }
    }

    #[test]
    fn an_idle_period_lowers_the_ratio_if_it_costs_more() {
        for (idle_ms, fa) in [(200, 0.9 - 0.030_204), (50, 0.9)] {
            let mut ratio = with(20.0, 125);
            let snd = SendState { srtt: Some(ms(100)), ..given::state() };
            let (board, config) = (Scoreboard::default(), reknit_tcp::Config::default());
            let cx = Context { now: Instant::ZERO + ms(idle_ms), config: &config, snd: &snd, board: &board };
            ratio.on_idle(&cx, Exhausted { since: Instant::ZERO, arrived: Segments(3) });
            assert_close(ratio.fa, fa);
        }
    }

    #[test]
    fn a_false_fast_retransmit_raises_the_ratio_to_at_most_99_percent() {
        let mut ratio = with(20.0, 100);
        for step in 1..=12 {
            event(&mut ratio, RecoveryEvent::Spurious(Spurious::FastRetransmit), 100, 100);
            assert_close(ratio.fa, (0.9 + 0.01 * f64::from(step)).min(0.99));
        }
    }

    #[test]
    fn a_fixed_ratio_stays() {
        let mut ratio = FaRatio::new(&RrTcpConfig { adaptive: false, ..RrTcpConfig::default() });
        event(&mut ratio, RecoveryEvent::Spurious(Spurious::FastRetransmit), 100, 100);
        event(&mut ratio, RecoveryEvent::Timeout { expired: Duration::from_secs(1), first: true }, 100, 100);
        assert_close(ratio.fa, 0.9);
    }

    #[test]
    fn durations_are_averaged_over_eight() {
        let mut ratio = FaRatio::new(&RrTcpConfig::default());
        for (sample, average) in [(130, 130), (210, 140)] {
            event(&mut ratio, RecoveryEvent::Spurious(Spurious::FastRetransmit), sample, 100);
            assert_eq!(ratio.duration, Some(ms(average)));
        }
    }

    #[test]
    fn the_window_is_sampled_once_per_round_trip_and_not_in_slow_start_after_a_timeout() {
        let mut ratio = FaRatio::new(&RrTcpConfig::default());
        let (board, config) = (Scoreboard::default(), reknit_tcp::Config::default());
        let mut sample = |cwnd: u32, acked: u32, after_timeout: bool| {
            ratio.after_timeout |= after_timeout;
            let ssthresh = if after_timeout { segments(64) } else { segments(2) };
            let snd = SendState { cwnd: segments(cwnd), ssthresh, phase: Phase::Open, ..given::state() };
            let cx = Context { now: Instant::ZERO, config: &config, snd: &snd, board: &board };
            ratio.sample_window(&cx, &AckFacts { ack: Offset::DATA + SMSS * u64::from(acked), ..given::ack() });
            ratio.window
        };
        assert_eq!(sample(8, 1, false), Some(8.0));
        assert_eq!(sample(16, 8, false), Some(8.0)); // the same round trip
        assert_eq!(sample(16, 9, true), Some(8.0));
        assert_eq!(sample(16, 9, false), Some(9.0));
    }
}
