//! The retransmission timeout of RFC 6298: smoothed round-trip time plus four mean deviations.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::seams::{Plugin, RtoEstimator, RtoEstimatorTraits};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Rfc6298Config {
    /// K, the factor of the deviation (§2.2).
    #[schemars(range(min = 1, max = 1000))]
    pub k: u64,
    /// G, the clock granularity (§2.3).
    pub granularity: Duration,
    /// Restart the timer when the first outstanding segment is retransmitted, as Linux does. §5 restarts it only when
    /// new data is acknowledged.
    pub restart_on_retransmission: bool,
}

impl Default for Rfc6298Config {
    fn default() -> Rfc6298Config {
        Rfc6298Config { k: 4, granularity: Duration::from_millis(1), restart_on_retransmission: false }
    }
}

impl Algorithm<dyn RtoEstimator> for Rfc6298Config {
    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(Rfc6298::new(self.clone()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Smoothed {
    pub(crate) srtt: Duration,
    pub(crate) rttvar: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct Rfc6298 {
    pub(crate) config: Rfc6298Config,
    pub(crate) smoothed: Option<Smoothed>,
}

impl Rfc6298 {
    pub(crate) fn new(config: Rfc6298Config) -> Rfc6298 {
        Rfc6298 { config, smoothed: None }
    }

    /// §2.2 and §2.3, with alpha = 1/8 and beta = 1/4.
    fn update(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            None => Smoothed { srtt: rtt, rttvar: rtt / 2 },
            Some(Smoothed { srtt, rttvar }) => {
                Smoothed { rttvar: (rttvar * 3 + srtt.abs_diff(rtt)) / 4, srtt: (srtt * 7 + rtt) / 8 }
            }
        });
    }
}

impl Plugin for Rfc6298 {}

impl RtoEstimator for Rfc6298 {
    fn traits(&self) -> RtoEstimatorTraits {
        RtoEstimatorTraits { restarts_on_retransmission: self.config.restart_on_retransmission }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        match ack.rtt_sample {
            Some(rtt) => {
                self.on_sample(cx.config, rtt);
                true
            }
            None => false,
        }
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.update(rtt.round_to(config.rto_tick));
    }

    fn rto(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.srtt + self.config.granularity.max(s.rttvar * self.config.k))
    }

    fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.srtt)
    }

    fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.rttvar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_samples_follow_the_formulas_of_the_rfc() {
        let mut estimator = Rfc6298::new(Rfc6298Config::default());
        let mut rtos = Vec::new();
        for ms in [100, 100, 300] {
            estimator.on_sample(&Tcp::default(), Duration::from_millis(ms));
            rtos.push(estimator.rto().unwrap());
        }
        let smoothed = estimator.smoothed.unwrap();
        assert_eq!(rtos, [300_000, 250_000, 437_500].map(Duration::from_micros));
        assert_eq!((smoothed.srtt, smoothed.rttvar), (Duration::from_millis(125), Duration::from_micros(78_125)));
    }

    #[test]
    fn samples_are_rounded_to_the_tick() {
        let tcp = Tcp { rto_tick: Duration::from_millis(100), ..Tcp::default() };
        let mut estimator = Rfc6298::new(Rfc6298Config::default());
        estimator.on_sample(&tcp, Duration::from_millis(140));
        assert_eq!(estimator.srtt(), Some(Duration::from_millis(100)));
    }
}
