//! The retransmission timeout as computed by Linux: SRTT + max(4 RTTVAR, 200 ms), with a sample from every ACK.
//!
//! **Rules.**
//! - 1: every ACK gives a sample (RFC 7323 appendix G describes how that affects the gains). It is the RTT of the first
//!   newly acknowledged segment, if none of the newly acknowledged ones was retransmitted; otherwise the RTT of the
//!   first newly SACKed segment; otherwise the age of the echoed timestamp.
//! - 2: the gains are 1/8 and 1/4 (RFC 6298 §2.3). A sample so far below SRTT that the deviation would grow has an
//!   eighth of the weight (observed: a falling RTT hardly raises the timeout).
//! - 3: RTTVAR is the largest deviation of the last round trip. It grows at once, and falls by a quarter of the
//!   difference per round trip.
//! - 4: four deviations are at least `tcp_rto_min_us`, 200 ms, so the timeout is never below SRTT + 200 ms.
//! - 5: the timer is restarted when the first segment is retransmitted, and on a SACK for data that was sent before
//!   that.
//! - 6: the timer has the ticks of the kernel: it expires up to 8 ms later, from 252 ms on up to 36 ms
//!   later.
//!
//! RFC 6298 §2.4 requires a timeout of at least one second; Linux instead adds at least 200 ms to SRTT.

use reknit_tcp::Config as Tcp;
use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_tcp::seams::{Plugin, RtoEstimator, RtoEstimatorTraits};
use reknit_tcp::seq::Offset;
use reknit_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ticks::expiry;
use crate::algorithm::Algorithm;

/// Parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LinuxRtoConfig {
    /// The minimum of four deviations (`tcp_rto_min_us`).
    pub min: Duration,
}

impl Default for LinuxRtoConfig {
    fn default() -> LinuxRtoConfig {
        LinuxRtoConfig { min: Duration::from_millis(200) }
    }
}

impl Algorithm<dyn RtoEstimator> for LinuxRtoConfig {
    fn build(&self) -> Box<dyn RtoEstimator> {
        Box::new(Rto { min: self.min, estimate: None })
    }
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    srtt: Duration,
    /// Four times the current mean deviation.
    deviation: Duration,
    /// The largest value of `deviation` in this round trip, at least the minimum.
    largest: Duration,
    /// The difference between the timeout and SRTT.
    margin: Duration,
    /// The round trip ends when this is acknowledged.
    round_end: Offset,
}

#[derive(Clone, Debug)]
struct Rto {
    min: Duration,
    estimate: Option<Estimate>,
}

impl Rto {
    /// Rules 2 to 4. `una` and `nxt` are SND.UNA and SND.NXT.
    fn update(&mut self, rtt: Duration, una: Offset, nxt: Offset) {
        let Some(e) = &mut self.estimate else {
            let margin = (rtt * 2).max(self.min);
            self.estimate = Some(Estimate { srtt: rtt, deviation: rtt * 2, largest: margin, margin, round_end: nxt });
            return;
        };
        let (error, falls) = (e.srtt.abs_diff(rtt), rtt < e.srtt);
        e.srtt = (e.srtt * 7 + rtt) / 8;
        let mean = e.deviation / 4;
        e.deviation = if error <= mean {
            e.deviation - (mean - error)
        } else if falls {
            e.deviation + (error - mean) / 8
        } else {
            e.deviation + (error - mean)
        };
        if e.deviation > e.largest {
            e.largest = e.deviation;
            e.margin = e.margin.max(e.largest);
        }
        if una > e.round_end {
            if e.largest < e.margin {
                e.margin = e.margin - (e.margin - e.largest) / 4;
            }
            e.round_end = nxt;
            e.largest = self.min;
        }
    }
}

/// Rule 1.
fn sample(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Duration> {
    let covered = |id: &&SegId| **id < cx.board.first();
    let acked = || ack.newly.iter().take_while(covered).filter_map(|id| cx.board.get(*id));
    let ambiguous = acked().any(|record| record.transmissions > 1);
    let first_acked = acked().next().filter(|_| !ambiguous);
    let by_acked = first_acked.map(|record| cx.now.since(record.first_sent));
    let by_timestamp = || ack.echoed.filter(|_| ack.advances()).map(|echoed| cx.now.since(echoed));
    by_acked.or_else(|| sacked_sample(cx, ack)).or_else(by_timestamp)
}

/// The RTT of the first segment sent once that `ack` SACKs.
fn sacked_sample(cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<Duration> {
    let sacked = ack.newly.iter().skip_while(|id| **id < cx.board.first());
    let sent_once = sacked.filter(|id| cx.board.get(**id).is_some_and(|record| record.transmissions == 1));
    let first: Option<&SegmentRecord> = sent_once.min().and_then(|id| cx.board.get(*id));
    first.map(|record| cx.now.since(record.first_sent))
}

impl Plugin for Rto {}

impl RtoEstimator for Rto {
    fn traits(&self) -> RtoEstimatorTraits {
        RtoEstimatorTraits { restarts_on_retransmission: true }
    }

    fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let sample = sample(cx, ack);
        if let Some(rtt) = sample {
            self.update(rtt.round_to(cx.config.rto_tick), cx.snd.snd_una, cx.snd.snd_nxt);
        }
        sample.is_some()
    }

    fn on_sample(&mut self, config: &Tcp, rtt: Duration) {
        self.update(rtt.round_to(config.rto_tick), Offset::SYN, Offset::DATA);
    }

    fn rto(&self) -> Option<Duration> {
        self.estimate.map(|e| e.srtt + e.margin)
    }

    fn srtt(&self) -> Option<Duration> {
        self.estimate.map(|e| e.srtt)
    }

    fn rttvar(&self) -> Option<Duration> {
        self.estimate.map(|e| e.deviation / 4)
    }

    /// Rule 6.
    fn expires(&self, now: Instant, timeout: Duration) -> Instant {
        expiry(now, now + timeout)
    }

    /// Rule 5: data sent after the first segment was delivered late, so the first segment is late too, and the path is
    /// not just slow.
    fn restarts_on_sack(&self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        let head = cx.board.get(cx.board.first()).map(|record| cx.now.since(record.last_sent));
        sacked_sample(cx, ack) > head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn after(samples: &[(u64, u64)]) -> Estimate {
        let mut rto = Rto { min: MS * 200, estimate: None };
        for &(rtt, una) in samples {
            rto.update(MS * rtt, Offset(una), Offset(una + 10));
        }
        rto.estimate.unwrap()
    }

    #[test]
    fn the_first_sample_gives_three_times_itself_and_at_least_itself_plus_200_ms() {
        assert_eq!(after(&[(400, 1)]).margin, MS * 800);
        assert_eq!(after(&[(50, 1)]).margin, MS * 200);
    }

    #[test]
    fn a_constant_rtt_gives_a_margin_of_200_ms() {
        let steady: Vec<_> = (0..400).map(|n| (400, 1 + 11 * n)).collect();
        let e = after(&steady);
        assert_eq!(e.srtt, MS * 400);
        assert!(e.margin - MS * 200 < MS, "{:?}", e.margin);
    }

    #[test]
    fn a_falling_sample_has_an_eighth_of_the_weight_of_a_rising_one() {
        let base = [(400, 1), (400, 2), (400, 3)];
        let before = after(&base).deviation;
        let rise = after(&[base.as_slice(), &[(1000, 4)]].concat()).deviation - before;
        let fall = after(&[base.as_slice(), &[(0, 4)]].concat()).deviation - before;
        let mean = before / 4;
        assert_eq!(rise, MS * 600 - mean);
        assert_eq!(fall, (MS * 400 - mean) / 8);
    }
}
