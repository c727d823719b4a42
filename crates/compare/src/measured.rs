//! Measurements after every event.

use std::collections::BTreeMap;

use reknit_sim::{Measures, TimeMean};
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Measurements of one run, or of one of its groups, after the warm-up (`docs/reference/json.md`). Means over time are weighted
/// by time; with several connections, each is weighted by the time for which it was open. None if there was nothing to
/// measure.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunMeasurements {
    /// Time from the first SYN to the acknowledgment of the last FIN of a sender of data, seconds, warm-up included; null if a FIN was not acknowledged.
    pub elapsed_s: Option<f64>,
    /// Congestion window, bytes: mean over time.
    pub cwnd_mean_bytes: Option<f64>,
    /// Duplicate threshold, segments: mean over time.
    pub dup_thresh_mean_segments: Option<f64>,
    /// Duplicate threshold, segments: standard deviation over time.
    pub dup_thresh_std_segments: Option<f64>,
    /// Duplicate threshold, segments: largest.
    pub dup_thresh_max_segments: Option<f64>,
    /// Smoothed round-trip time as the sender knew it, ms: mean over time.
    pub srtt_mean_ms: Option<f64>,
    /// True round-trip time of segments, ms: mean. The time from sending a segment to the arrival of the first ACK that was sent after it had arrived; lost and retransmitted segments do not count.
    pub rtt_mean_ms: Option<f64>,
    /// The same, 99th percentile, to three digits.
    pub rtt_p99_ms: Option<f64>,
    /// The same, largest, to three digits.
    pub rtt_max_ms: Option<f64>,
    /// Data segments that one ACK caused the sender to send, over all ACKs: 99th percentile.
    pub burst_p99_segments: u64,
    /// The same, largest.
    pub burst_max_segments: u64,
    /// Segments retransmitted by the loss detector whose earlier copies were all lost.
    pub needed_fast_retransmissions: u64,
    /// Segments retransmitted by the loss detector of which an earlier copy was not lost.
    pub spurious_fast_retransmissions: u64,
    /// Lost data packets whose segment was then retransmitted by the loss detector, or speculatively in fast recovery.
    pub lost_packets_fast_retransmitted: u64,
    /// Bytes of a data segment on the wire, IP and TCP headers included: mean.
    pub wire_bytes_per_segment: Option<f64>,
    /// The most memory that the plug-ins of one end used, less what those of `sack` use, bytes: their size and their allocations.
    pub reordering_state_bytes: u64,
    /// The numbers that algorithms show, by the name in `shown`: `mean` and `std`, the standard deviation, over time.
    pub shown: BTreeMap<String, OverTime>,
}

/// A number that varies over time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OverTime {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
}

impl OverTime {
    /// None if there was no time.
    fn of(values: &TimeMean) -> Option<OverTime> {
        Some(OverTime { mean: values.mean()?, std: values.deviation()? })
    }
}

impl RunMeasurements {
    pub(crate) fn of(measures: &Measures) -> RunMeasurements {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        let per_segment = measures.wire.0 as f64 / measures.segments.max(1) as f64;
        RunMeasurements {
            elapsed_s: measures.lifetime().map(Duration::as_secs_f64),
            cwnd_mean_bytes: measures.cwnd.mean(),
            dup_thresh_mean_segments: measures.dup_thresh.mean(),
            dup_thresh_std_segments: measures.dup_thresh.deviation(),
            dup_thresh_max_segments: measures.dup_thresh.largest(),
            srtt_mean_ms: measures.srtt.mean().map(|seconds| seconds * 1e3),
            rtt_mean_ms: measures.rtt_mean().map(ms),
            rtt_p99_ms: measures.rtt_quantile(0.99).map(ms),
            rtt_max_ms: measures.rtt_quantile(1.0).map(ms),
            burst_p99_segments: measures.burst_quantile(0.99),
            burst_max_segments: measures.burst_quantile(1.0),
            needed_fast_retransmissions: measures.needed_fast_retransmissions,
            spurious_fast_retransmissions: measures.spurious_fast_retransmissions,
            lost_packets_fast_retransmitted: measures.repaired_by_fast_retransmit,
            wire_bytes_per_segment: (measures.segments > 0).then_some(per_segment),
            reordering_state_bytes: measures.reordering_state.0,
            shown: measures
                .shown
                .iter()
                .filter_map(|(name, values)| Some((name.to_string(), OverTime::of(values)?)))
                .collect(),
        }
    }
}
