//! CUBIC as implemented in Linux (RFC 9438), counting in whole segments. Ha, Rhee, Xu: CUBIC, ACM SIGOPS OSR 42(5),
//! 2008.
//!
//! **Differences from RFC 9438.**
//! - 1: the reduction multiplies cwnd, not FlightSize, by 717/1024. C is 410/1024.
//! - 2: the window grows by one segment for every `cnt` segments delivered. `cnt` is cwnd divided by the distance from
//!   cwnd to the value of the curve one minimum RTT ahead, and at least 2. If the curve is below cwnd, `cnt` is 100
//!   cwnd; before the first reduction it is at most 20.
//! - 3: the Reno-friendly window (§4.3) grows by 8/15 of a segment per window, also after it has passed the window from
//!   before the reduction.
//! - 4: a timeout resets the curve.
//! - 5: an undo does not restore the curve.
//! - 6: HyStart includes the ACK train. It runs in the first slow start and in slow start after a
//!   timeout.
//! - 7: segments count as delivered when they are newly acknowledged or SACKed. While the degree of reordering
//!   ([`super::reordering`]) is 3, only ACKs that advance SND.UNA let the window grow. Duplicates reported by a DSACK
//!   count as delivered too.
//! - 8: RTT samples from the first second of an epoch do not update the minimum RTT.
//! - 9: in slow start, the window grows up to twice what is in flight, otherwise only if it is full (RFC 7661).

use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Window};
use reknit_tcp::seams::{CongestionControl, CongestionControlTraits, Plugin, Reduction};
use reknit_units::{Bytes, Duration, Instant, Segments};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::undo::duplicated;
use crate::algorithm::Algorithm;
use crate::base::hystart::HyStart;

/// While cwnd does not change, the curve is recomputed at most this often.
const RECOMPUTE: Duration = Duration::from_micros(31_250);
/// The clock of the curve has this many ticks per second.
const TICKS_PER_SECOND: u64 = 1024;
/// Up to this degree of reordering, only ACKs that advance SND.UNA let the window grow.
const IN_ORDER: Segments = Segments(3);

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxCubicConfig {
    /// C in 1/1024 segments per second cubed.
    #[schemars(range(min = 1, max = 4096))]
    pub c: u64,
    /// The factor of the reduction, in 1/1024.
    #[schemars(range(min = 1, max = 1023))]
    pub beta: u64,
    /// Release bandwidth to newer flows (RFC 9438 §4.7).
    pub fast_convergence: bool,
    /// Grow at least as fast as AIMD (RFC 9438 §4.3).
    pub friendliness: bool,
    /// Use HyStart to leave slow start.
    pub hystart: bool,
}

impl Default for LinuxCubicConfig {
    fn default() -> LinuxCubicConfig {
        LinuxCubicConfig { c: 410, beta: 717, fast_convergence: true, friendliness: true, hystart: true }
    }
}

impl Algorithm<dyn CongestionControl> for LinuxCubicConfig {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Cubic {
            config: self.clone(),
            curve: Curve::default(),
            min_rtt: None,
            hystart: Some(HyStart::NEW).filter(|_| self.hystart),
            credit: 0,
            unused_since: None,
        })
    }
}

/// How many segments an ACK delivers, including the duplicates that a DSACK reports.
pub(crate) fn delivered(cx: &Context<'_>, ack: &AckFacts<'_>) -> Segments {
    let again = ack.dsack.map_or(Segments::ZERO, |dsack| duplicated(cx, &dsack));
    Segments(ack.newly.len() as u32) + again
}

/// All windows in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// cwnd before the last reduction, less with fast convergence; 0 before the first reduction.
    last_max: u64,
    /// When the epoch began; `None` until the next ACK in congestion avoidance.
    epoch: Option<Instant>,
    /// Ticks from the epoch to the plateau.
    k: u64,
    /// The plateau.
    origin: u64,
    /// Segments to be delivered for each segment by which cwnd grows.
    cnt: u64,
    last_cwnd: u64,
    last_time: Instant,
    /// Segments delivered since the Reno-friendly window last grew.
    delivered: u64,
    /// The window of an AIMD sender.
    friendly: u64,
}

#[derive(Clone, Debug)]
struct Cubic {
    config: LinuxCubicConfig,
    curve: Curve,
    /// The smallest RTT.
    min_rtt: Option<Duration>,
    /// `None` once it has ended slow start.
    hystart: Option<HyStart>,
    /// `snd_cwnd_cnt`: segments delivered since cwnd last grew.
    credit: u64,
    unused_since: Option<Instant>,
}

fn ticks(time: Duration) -> u64 {
    (u128::from(time.as_nanos()) * u128::from(TICKS_PER_SECOND) / 1_000_000_000) as u64
}

/// The cube root, rounded down.
fn cube_root(n: u64) -> u64 {
    let (mut low, mut high) = (0_u64, 2_642_245); // its cube is the largest below 2^64
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle * middle * middle <= n {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

impl Cubic {
    /// Rule 8.
    fn take_rtt(&mut self, cx: &Context<'_>, rtt: Duration) -> bool {
        if self.curve.epoch.is_some_and(|epoch| cx.now.since(epoch) < Duration::from_secs(1)) {
            return false;
        }
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        let ends = cx.snd.in_slow_start() && self.hystart.as_mut().is_some_and(|h| h.ends(cx, rtt, min_rtt));
        if ends {
            self.hystart = None;
        }
        ends
    }

    /// The value of the curve `t` ticks after the epoch (RFC 9438 eq. 1).
    fn value(&self, t: u64) -> u64 {
        let d = t.abs_diff(self.curve.k).min(1 << 15);
        let delta = (self.config.c * d * d * d) >> 40;
        if t < self.curve.k { self.curve.origin.saturating_sub(delta) } else { self.curve.origin + delta }
    }

    fn begin_epoch(&mut self, now: Instant, cwnd: u64, delivered: u64) {
        let curve = &mut self.curve;
        curve.epoch = Some(now);
        curve.delivered = delivered;
        curve.friendly = cwnd;
        let distance = curve.last_max.saturating_sub(cwnd);
        // A distance of 2^24 segments is beyond any window.
        curve.k = cube_root((distance.min(1 << 23) << 40) / self.config.c.max(1));
        curve.origin = curve.last_max.max(cwnd);
    }

    /// Rule 2.
    fn update(&mut self, now: Instant, cwnd: u64, delivered: u64) {
        self.curve.delivered += delivered;
        let stands = self.curve.last_cwnd == cwnd && now.since(self.curve.last_time) <= RECOMPUTE;
        if stands && self.curve.epoch.is_some() {
            return;
        }
        (self.curve.last_cwnd, self.curve.last_time) = (cwnd, now);
        if self.curve.epoch.is_none() {
            self.begin_epoch(now, cwnd, delivered);
        }
        let epoch = self.curve.epoch.unwrap_or(now);
        let ahead = self.value(ticks(now.since(epoch) + self.min_rtt.unwrap_or_default()));
        self.curve.cnt = if ahead > cwnd { cwnd / (ahead - cwnd) } else { 100 * cwnd };
        if self.curve.last_max == 0 {
            self.curve.cnt = self.curve.cnt.min(20);
        }
        if self.config.friendliness {
            self.keep_up(cwnd);
        }
        self.curve.cnt = self.curve.cnt.max(2);
    }

    /// Rule 3.
    fn keep_up(&mut self, cwnd: u64) {
        let beta = self.config.beta;
        let share = 8 * (1024 + beta) / 3 / (1024 - beta);
        let per_segment = ((cwnd * share) >> 3).max(1);
        while self.curve.delivered > per_segment {
            self.curve.delivered -= per_segment;
            self.curve.friendly += 1;
        }
        if self.curve.friendly > cwnd {
            self.curve.cnt = self.curve.cnt.min(cwnd / (self.curve.friendly - cwnd));
        }
    }

    /// One segment for every `cnt` delivered.
    fn grow(&mut self, delivered: u64) -> u64 {
        let mut growth = 0;
        if self.credit >= self.curve.cnt {
            self.credit = 0;
            growth = 1;
        }
        self.credit += delivered;
        growth += self.credit / self.curve.cnt;
        self.credit %= self.curve.cnt;
        growth
    }

    /// Time in which the sender did not use the window does not count (RFC 9438 §5.8).
    fn resume(&mut self, now: Instant) {
        if let (Some(since), Some(epoch)) = (self.unused_since.take(), &mut self.curve.epoch) {
            *epoch = *epoch + now.since(since);
        }
    }
}

impl CongestionControl for Cubic {
    /// Rule 9. The initial window is kept if the SYN was retransmitted once: the first timeout of 1 s is often too short.
    fn traits(&self) -> CongestionControlTraits {
        CongestionControlTraits {
            tolerated_syn_losses: 1,
            half_is_use_in_slow_start: true,
            ..CongestionControlTraits::default()
        }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Window {
        self.resume(cx.now);
        let leaves = ack.rtt.is_some_and(|rtt| self.take_rtt(cx, rtt));
        let ssthresh = if leaves { cx.snd.cwnd } else { cx.snd.ssthresh };
        if !ack.advances() && cx.snd.dup_thresh <= IN_ORDER {
            return Window { cwnd: cx.snd.cwnd, ssthresh };
        }
        let smss = cx.snd.smss;
        let delivered = delivered(cx, ack).of(smss);
        let slow_start = delivered.min(ssthresh - cx.snd.cwnd);
        let cwnd = cx.snd.cwnd + slow_start;
        let rest = (delivered - slow_start).0 / smss.0;
        if rest == 0 {
            return Window { cwnd, ssthresh };
        }
        self.update(cx.now, cwnd.0 / smss.0, rest);
        Window { cwnd: cwnd + smss * self.grow(rest), ssthresh }
    }

    fn on_unused_window(&mut self, now: Instant) {
        self.unused_since = self.unused_since.or(Some(now));
    }

    /// Rule 1.
    fn ssthresh(&mut self, cx: &Context<'_>, _reduction: &Reduction) -> Bytes {
        let cwnd = cx.snd.cwnd.0 / cx.snd.smss.0;
        let beta = self.config.beta;
        let converges = self.config.fast_convergence && cwnd < self.curve.last_max;
        self.curve.last_max = if converges { cwnd * (1024 + beta) / 2048 } else { cwnd };
        self.curve.epoch = None;
        cx.snd.smss * (cwnd * beta / 1024).max(2)
    }

    /// Rule 5: nothing is saved.
    fn save(&mut self) {}

    fn restore(&mut self, _cx: &Context<'_>) {}
}

impl Plugin for Cubic {
    /// Rule 4.
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::EnterRecovery => self.credit = 0,
            RecoveryEvent::Timeout { .. } => {
                self.credit = 0;
                self.curve = Curve::default();
                self.min_rtt = None;
                self.hystart = Some(HyStart::NEW).filter(|_| self.config.hystart);
            }
            RecoveryEvent::LeaveRecovery | RecoveryEvent::Spurious(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cubic() -> Cubic {
        Cubic {
            config: LinuxCubicConfig::default(),
            curve: Curve::default(),
            min_rtt: Some(Duration::from_millis(100)),
            hystart: None,
            credit: 0,
            unused_since: None,
        }
    }

    #[test]
    fn cube_roots_are_whole() {
        assert_eq!([0, 1, 7, 8, 26, 27, u64::MAX].map(cube_root), [0, 1, 1, 2, 2, 3, 2_642_245]);
    }

    #[test]
    fn the_curve_returns_to_the_plateau_after_k() {
        let mut cubic = cubic();
        cubic.curve.last_max = 100;
        cubic.begin_epoch(Instant::ZERO, 70, 1);
        // K = cbrt(30 / (410/1024)) = 4.2158 s, in ticks of 1/1024 s
        assert_eq!(cubic.curve.k, 4316);
        assert_eq!([cubic.value(0), cubic.value(4316), cubic.value(2 * 4316)], [71, 100, 129]);
    }

    #[test]
    fn an_unknown_path_is_probed_by_a_twentieth_per_round_trip() {
        let mut cubic = cubic();
        cubic.update(Instant::ZERO, 70, 1);
        assert_eq!(cubic.curve.cnt, 20);
    }

    #[test]
    fn one_segment_for_every_cnt() {
        let mut cubic = cubic();
        cubic.curve.cnt = 20;
        assert_eq!([19, 1, 40, 39].map(|n| cubic.grow(n)), [0, 1, 2, 1]);
    }
}
