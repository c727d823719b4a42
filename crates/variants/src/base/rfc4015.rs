//! The retransmission timeout of RFC 6298, made more conservative after a spurious timeout (Ludwig and Gurtov, RFC
//! 4015, 2005, §3 steps 0 and 11). A spurious timeout shows how slow the path can be. So the first RTT sample after it
//! is taken in full instead of being averaged, and the deviation does not fall below its value before the timeout.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Spurious};
use reknit_tcp::seams::{Plugin, RtoEstimator};
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::rfc6298::{self, Rfc6298, Smoothed};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rfc4015Config {
    /// The parameters of RFC 6298, which applies otherwise.
    pub base: rfc6298::Rfc6298Config,
}

impl Algorithm<dyn RtoEstimator> for Rfc4015Config {
    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(Rfc4015 { base: Rfc6298::new(self.base.clone()), in_series: false, before: None, adapt: None })
    }
}

#[derive(Clone, Debug)]
struct Rfc4015 {
    base: Rfc6298,
    /// The timer has expired, and not everything that was then outstanding has been acknowledged.
    in_series: bool,
    /// `SRTT_prev` and `RTTVAR_prev`, from before the last timeout.
    before: Option<Smoothed>,
    /// The same once the timeout has proved spurious, and when it did.
    adapt: Option<(Smoothed, Instant)>,
}

impl Rfc4015 {
    /// Step 0.
    fn keep(&mut self) {
        let slower = self.base.config.granularity * 2;
        self.before = self.base.smoothed.map(|s| Smoothed { srtt: s.srtt + slower, rttvar: s.rttvar });
    }

    /// Step 11: the RTT of data that was first sent after the spurious timeout.
    fn adapt(&mut self, before: Smoothed, rtt: Duration) {
        self.base.smoothed = Some(Smoothed { srtt: before.srtt.max(rtt), rttvar: before.rttvar.max(rtt / 2) });
    }
}

impl RtoEstimator for Rfc4015 {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        match (self.adapt, ack.rtt) {
            (Some((before, resumed)), Some(rtt)) if resumed + rtt <= cx.now => {
                self.adapt = None;
                self.adapt(before, rtt.round_to(cx.config.rto_tick));
                true
            }
            _ => self.base.on_ack(cx, ack),
        }
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.base.on_sample(config, rtt);
    }

    fn rto(&self) -> Option<Duration> {
        self.base.rto()
    }

    fn srtt(&self) -> Option<Duration> {
        self.base.srtt()
    }

    fn rttvar(&self) -> Option<Duration> {
        self.base.rttvar()
    }
}

impl Plugin for Rfc4015 {
    fn on_recovery_event(&mut self, cx: &Context<'_>, event: RecoveryEvent) {
        match event {
            RecoveryEvent::Timeout { .. } if !self.in_series => {
                self.in_series = true;
                self.keep();
            }
            RecoveryEvent::Timeout { .. } | RecoveryEvent::Spurious(Spurious::FastRetransmit) => {}
            RecoveryEvent::EnterRecovery => {
                self.in_series = false;
                self.before = None;
            }
            RecoveryEvent::LeaveRecovery => self.in_series = false,
            RecoveryEvent::Spurious(Spurious::Timeout | Spurious::LateTimeout) => {
                self.in_series = false;
                self.adapt = self.before.take().map(|before| (before, cx.now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use reknit_tcp::scoreboard::Scoreboard;

    use super::*;
    use crate::base::given;

    const MS: Duration = Duration::from_millis(1);

    fn estimator() -> Rfc4015 {
        let mut base = Rfc6298::new(rfc6298::Rfc6298Config::default());
        base.smoothed = Some(Smoothed { srtt: MS * 100, rttvar: MS * 20 });
        Rfc4015 { base, in_series: false, before: None, adapt: None }
    }

    /// The estimate after a timeout that `spurious` describes, and an ACK with this RTT of data sent at that moment.
    fn after_timeout(spurious: Option<Spurious>, rtt: Duration) -> Smoothed {
        let (snd, board, config) = (given::state(), Scoreboard::default(), Tcp::default());
        let at = |now| Context { now, config: &config, snd: &snd, board: &board };
        let resumed = Instant::ZERO + MS * 5000;
        let mut estimator = estimator();
        estimator.on_recovery_event(&at(Instant::ZERO), RecoveryEvent::Timeout { expired: MS * 300, first: true });
        estimator
            .on_recovery_event(&at(resumed), spurious.map_or(RecoveryEvent::LeaveRecovery, RecoveryEvent::Spurious));
        // Data that was sent before is not used, however long it took.
        let old = AckFacts { rtt: Some(MS * 900), ..given::ack() };
        assert!(!estimator.on_ack(&at(resumed + MS * 899), &old));
        let new = AckFacts { rtt: Some(rtt), rtt_sample: Some(rtt), ..given::ack() };
        assert!(estimator.on_ack(&at(resumed + rtt), &new));
        estimator.base.smoothed.unwrap()
    }

    #[test]
    fn the_first_sample_after_a_spurious_timeout_is_taken_in_full() {
        // SRTT = max(100 + 2 G, 600), RTTVAR = max(20, 300).
        let expected = Smoothed { srtt: MS * 600, rttvar: MS * 300 };
        assert_eq!(after_timeout(Some(Spurious::Timeout), MS * 600), expected);
        assert_eq!(after_timeout(Some(Spurious::LateTimeout), MS * 600), expected);
    }

    #[test]
    fn srtt_and_rttvar_do_not_fall_below_their_values_before_the_timeout() {
        let expected = Smoothed { srtt: MS * 102, rttvar: MS * 20 };
        assert_eq!(after_timeout(Some(Spurious::Timeout), MS * 30), expected);
    }

    #[test]
    fn a_genuine_timeout_changes_nothing() {
        let mut plain = estimator().base;
        plain.on_sample(&Tcp::default(), MS * 600);
        assert_eq!(Some(after_timeout(None, MS * 600)), plain.smoothed);
        assert_eq!(Some(after_timeout(Some(Spurious::FastRetransmit), MS * 600)), plain.smoothed);
    }
}
