//! # An RTO with an adaptive factor of the deviation
//!
//! Proposed by Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §6: "a
//! control loop to increase k dynamically in response to spurious timeouts, and decay k back to a minimum of 4".
//!
//! **What it changes.** K in RTO = SRTT + max(G, K RTTVAR) grows with each spurious timeout.
//!
//! **State.** K, and how many samples the estimator has taken since the last spurious timeout or the last reduction of
//! K.
//!
//! **Rules.** A spurious timeout increases K by 2, up to 16. 64 samples without one decrease K by 1, down to 4.
//!
//! **Departures.** The paper gives only the idea; the steps, the limit and the 64 samples are our choice.
//!
//! **Status.** Partial: the paper only says, in one sentence, that K might adapt. It does not say by how much, up
//! to where, or how K falls again; this decides how long a lost segment waits.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context, RecoveryEvent, Spurious};
use reknit_tcp::seams::{Plugin, RtoEstimator};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::rfc6298::{self, Rfc6298};

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AdaptiveKConfig {
    /// The initial and smallest K (§6: 4).
    #[schemars(range(min = 1, max = 1000))]
    pub min_k: u64,
    /// The largest K.
    #[schemars(range(min = 1, max = 1000))]
    pub max_k: u64,
    /// What a spurious timeout adds to K.
    #[schemars(range(min = 0, max = 1000))]
    pub step: u64,
    /// Samples without a spurious timeout after which K falls by 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub quiet_samples: u32,
    /// G, the clock granularity (RFC 6298 §2.3).
    pub granularity: Duration,
}

impl Default for AdaptiveKConfig {
    fn default() -> AdaptiveKConfig {
        let rfc6298::Rfc6298Config { k, granularity, .. } = rfc6298::Rfc6298Config::default();
        AdaptiveKConfig { min_k: k, max_k: 16, step: 2, quiet_samples: 64, granularity }
    }
}

impl Algorithm<dyn RtoEstimator> for AdaptiveKConfig {
    fn build(&self) -> Box<dyn RtoEstimator> {
        let base = rfc6298::Rfc6298Config {
            k: self.min_k,
            granularity: self.granularity,
            ..rfc6298::Rfc6298Config::default()
        };
        Box::new(AdaptiveK { config: self.clone(), base: Rfc6298::new(base), quiet: 0 })
    }
}

#[derive(Clone, Debug)]
struct AdaptiveK {
    config: AdaptiveKConfig,
    /// SRTT and RTTVAR; its K is the adaptive one.
    base: Rfc6298,
    /// Samples since the last spurious timeout or step down.
    quiet: u32,
}

impl AdaptiveK {
    fn on_spurious_timeout(&mut self) {
        let k = &mut self.base.config.k;
        *k = k.saturating_add(self.config.step).min(self.config.max_k);
        self.quiet = 0;
    }

    fn on_quiet_sample(&mut self) {
        self.quiet += 1;
        if self.quiet >= self.config.quiet_samples {
            let k = &mut self.base.config.k;
            *k = k.saturating_sub(1).max(self.config.min_k);
            self.quiet = 0;
        }
    }
}

impl RtoEstimator for AdaptiveK {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let sampled = self.base.on_ack(cx, ack);
        if sampled {
            self.on_quiet_sample();
        }
        sampled
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

impl Plugin for AdaptiveK {
    fn on_recovery_event(&mut self, _cx: &Context<'_>, event: RecoveryEvent) {
        if matches!(event, RecoveryEvent::Spurious(Spurious::Timeout | Spurious::LateTimeout)) {
            self.on_spurious_timeout();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The RTO in milliseconds, with an SRTT of 100 ms and an RTTVAR of 50 ms, after `timeouts` spurious timeouts and
    /// then `quiet_samples` samples.
    fn rto(timeouts: u32, quiet_samples: u32) -> u64 {
        let config = AdaptiveKConfig::default();
        let base = rfc6298::Rfc6298Config {
            k: config.min_k,
            granularity: config.granularity,
            ..rfc6298::Rfc6298Config::default()
        };
        let mut estimator = AdaptiveK { config, base: Rfc6298::new(base), quiet: 0 };
        estimator.on_sample(&Tcp::default(), Duration::from_millis(100));
        for _ in 0..timeouts {
            estimator.on_spurious_timeout();
        }
        for _ in 0..quiet_samples {
            estimator.on_quiet_sample();
        }
        estimator.rto().map_or(0, Duration::as_millis)
    }

    #[test]
    fn k_grows_with_spurious_timeouts_up_to_16() {
        assert_eq!([0, 1, 6, 7].map(|timeouts| rto(timeouts, 0)), [300, 400, 900, 900]);
    }

    #[test]
    fn k_falls_after_64_quiet_samples_down_to_4() {
        assert_eq!([63, 64, 127, 128, 1000].map(|samples| rto(1, samples)), [400, 350, 350, 300, 300]);
    }
}
