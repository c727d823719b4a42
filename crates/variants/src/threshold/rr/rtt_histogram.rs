//! # The retransmission timeout from a histogram of round-trip times
//!
//! Zhang, Karp, Floyd, Peterson: RR-TCP: A Reordering-Robust TCP with DSACK. ICSI TR-02-006, 2002, §5.3 (DSACK-HG).
//!
//! **What it changes.** The timeout is the value that 99.8 % of the recent round-trip times do not exceed, instead of a
//! smoothed mean plus deviation.
//!
//! **State.** The last samples, at most 4096 and none older than 80 s. RFC 6298 runs in
//! parallel, for SRTT and for the timeout at the start.
//!
//! **Rules.** Each segment that was sent once gives a sample when it is first acknowledged or SACKed. A segment that
//! was sent twice gives the mean of both times when a DSACK reports it (`enhanced-sampling`). The timeout is the
//! sample of rank `ceil(0.998 n)` plus the clock granularity.
//!
//! **Departures.** The paper does not give the number of samples, how long they are kept, or the timeout at the start.
//! Our choice is 4096 samples, 80 s (as for reordering events), and RFC 6298 while there are fewer than 32 samples. The
//! paper has samples "for each packet"; that packets sent twice are sampled as in DSACK-ES is our reading, although its
//! Table 1 has DSACK-HG as "DSACK-TA + histogram RTO estimator".
//!
//! **Status.** Partial: the paper does not say how many samples are kept and for how long. With fewer, the 99.8th
//! percentile is the largest RTT.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{SegmentRecord, SendReason};
use reknit_tcp::seams::{Plugin, RtoEstimator};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::algorithm::Algorithm;
use crate::base::rfc6298;
use crate::threshold::rr::enhanced_sampling::mean_of_both;
use crate::threshold::rr::order_statistic::OrderStatistic;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RttHistogramConfig {
    /// The fraction of round-trip times that the timeout covers (Table 2).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub ratio: f64,
    /// How long a sample is kept.
    pub life: Duration,
    /// With fewer samples RFC 6298 gives the timeout.
    #[schemars(range(min = 1, max = 4096))]
    pub min_samples: u32,
    /// The estimator for the start and for SRTT; its granularity is added to the timeout.
    pub rfc6298: rfc6298::Rfc6298Config,
}

impl Default for RttHistogramConfig {
    fn default() -> RttHistogramConfig {
        RttHistogramConfig {
            ratio: 0.998,
            life: Duration::from_secs(80),
            min_samples: 32,
            rfc6298: rfc6298::Rfc6298Config::default(),
        }
    }
}

impl Algorithm<dyn RtoEstimator> for RttHistogramConfig {
    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(RttHistogram {
            samples: OrderStatistic::new(self.ratio),
            rfc6298: self.rfc6298.build(),
            config: self.clone(),
        })
    }
}

#[derive(Clone, Debug)]
struct RttHistogram {
    config: RttHistogramConfig,
    samples: OrderStatistic,
    rfc6298: Box<dyn RtoEstimator>,
}

impl RttHistogram {
    /// Takes the RTT of each segment that this ACK delivers and that was sent once. Returns true if there is one.
    ///
    /// Without SACK a cumulative ACK may cover segments that arrived long ago above a hole. If any covered segment was
    /// retransmitted, none gives a sample.
    fn sample_each(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let records = || ack.newly.iter().filter_map(|id| cx.board.get(*id));
        if !cx.snd.sack && records().any(|record| record.transmissions > 1) {
            return false;
        }
        let once = |record: &&SegmentRecord| record.transmissions == 1 && record.cause != SendReason::WindowProbe;
        let mut sampled = false;
        for record in records().filter(once) {
            self.samples.insert(cx.now, cx.now.since(record.first_sent));
            sampled = true;
        }
        sampled
    }
}

impl RtoEstimator for RttHistogram {
    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.samples.expire(cx.now, self.config.life);
        let smoothed = self.rfc6298.on_ack(cx, ack);
        let sampled = self.sample_each(cx, ack);
        let enhanced = mean_of_both(cx, ack);
        if let Some(sample) = enhanced {
            self.samples.insert(cx.now, sample);
        }
        smoothed || sampled || enhanced.is_some()
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.rfc6298.on_sample(config, rtt);
    }

    fn rto(&self) -> Option<Duration> {
        if self.samples.len() < self.config.min_samples as usize {
            return self.rfc6298.rto();
        }
        self.samples.value().map(|rtt| rtt + self.config.rfc6298.granularity)
    }

    fn srtt(&self) -> Option<Duration> {
        self.rfc6298.srtt()
    }
}

impl Plugin for RttHistogram {
    fn heap_size(&self) -> usize {
        self.samples.heap_size() + size_of_val(&*self.rfc6298) + self.rfc6298.heap_size()
    }
}

#[cfg(test)]
mod tests {
    use reknit_units::Instant;

    use super::*;

    /// The timeout in milliseconds after these counts of samples, when RFC 6298 gives 300 ms.
    fn rto(counts: &[(u32, u64)]) -> u64 {
        let mut histogram = RttHistogram {
            samples: OrderStatistic::new(0.998),
            rfc6298: rfc6298::Rfc6298Config::default().build(),
            config: RttHistogramConfig::default(),
        };
        histogram.on_sample(&Tcp::default(), Duration::from_millis(100));
        for (count, ms) in counts {
            for _ in 0..*count {
                histogram.samples.insert(Instant::ZERO, Duration::from_millis(*ms));
            }
        }
        histogram.rto().unwrap().as_millis()
    }

    #[test]
    fn two_of_a_thousand_may_be_longer() {
        // The connection raises 101 ms to its smallest timeout of 1 s.
        assert_eq!(rto(&[(999, 100), (1, 2000)]), 101);
        assert_eq!(rto(&[(997, 100), (3, 2000)]), 2001);
    }

    #[test]
    fn below_32_samples_the_timeout_is_a_fixed_one() {
        assert_eq!(rto(&[(31, 2000)]), 300);
        assert_eq!(rto(&[(32, 2000)]), 2001);
    }
}
