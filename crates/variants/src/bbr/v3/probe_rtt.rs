//! The minimum RTT, and ProbeRTT, which measures it again (§5.3.4, §5.5.7).

use reknit_tcp::facts::Context;
use reknit_units::{Bytes, Duration, Instant};

use super::probe_bw::AckPhase;
use super::{Bbr, State};

/// `BBR.MinRTTFilterLen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTInterval`.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// `BBR.ProbeRTTDuration`.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// A minimum RTT, and when it was measured.
#[derive(Clone, Copy, Debug)]
struct Minimum {
    rtt: Duration,
    stamp: Instant,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MinRtt {
    /// `BBR.min_rtt` and its stamp.
    min: Option<Minimum>,
    /// `BBR.probe_rtt_min_delay` and its stamp.
    recent: Option<Minimum>,
    /// `BBR.probe_rtt_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`.
    done_stamp: Option<Instant>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.min.map(|min| min.rtt)
    }
}

impl Bbr {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, cx: &Context<'_>, rtt: Option<Duration>) {
        let min_rtt = &mut self.min_rtt;
        min_rtt.expired = min_rtt.recent.is_some_and(|recent| cx.now > recent.stamp + PROBE_RTT_INTERVAL);
        if let Some(rtt) = rtt
            && (min_rtt.expired || min_rtt.recent.is_none_or(|recent| rtt < recent.rtt))
        {
            min_rtt.recent = Some(Minimum { rtt, stamp: cx.now });
        }
        let Some(recent) = min_rtt.recent else { return };
        let is_outdated = |min: Minimum| recent.rtt < min.rtt || cx.now > min.stamp + MIN_RTT_WINDOW;
        if min_rtt.min.is_none_or(is_outdated) {
            min_rtt.min = Some(recent);
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, cx: &Context<'_>) {
        if self.state != State::ProbeRtt && self.min_rtt.expired && !self.idle_restart {
            self.save_cwnd(cx);
            self.state = State::ProbeRtt;
            self.min_rtt.done_stamp = None;
            self.probe.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(cx);
        }
        if self.rs.delivered > Bytes::ZERO {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn handle_probe_rtt(&mut self, cx: &Context<'_>) {
        if self.min_rtt.done_stamp.is_some() {
            self.min_rtt.round_done |= self.rounds.start;
            if self.min_rtt.round_done {
                self.check_probe_rtt_done(cx);
            }
        } else if Bbr::in_flight(cx) <= self.probe_rtt_cwnd(cx) {
            self.min_rtt.done_stamp = Some(cx.now + PROBE_RTT_DURATION);
            self.min_rtt.round_done = false;
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone`.
    pub(super) fn check_probe_rtt_done(&mut self, cx: &Context<'_>) {
        if self.min_rtt.done_stamp.is_none_or(|done| cx.now <= done) {
            return;
        }
        if let Some(recent) = &mut self.min_rtt.recent {
            recent.stamp = cx.now;
        }
        self.restore_cwnd();
        self.exit_probe_rtt(cx);
    }

    /// `ExitProbeRTT` (§5.3.4.4).
    fn exit_probe_rtt(&mut self, cx: &Context<'_>) {
        self.bounds.reset_short_term();
        if self.full.reached {
            self.start_down(cx);
            self.start_cruise();
        } else {
            self.enter_startup();
        }
    }
}
