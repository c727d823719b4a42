//! What the sender did about retransmissions, and what that cost.

use schemars::JsonSchema;
use serde::Serialize;

use crate::DirectionReport;
use crate::stream::Reductions;

/// Round trips at the beginning that do not count: slow start.
const SLOW_START: f64 = 10.0;
/// What a sender carries that halves its window whenever the shortest queue overflows: between a half and all of the link.
const HALVING: f64 = 0.75;

/// The sender's reductions, and their cost. Both are inferred from the data that passed in each round trip.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Cost {
    /// Episodes of retransmissions after which the sender sent less.
    pub reductions: u64,
    /// Of these, episodes in which all retransmissions were spurious.
    pub false_reductions: u64,
    /// Spurious episodes without a reduction: the sender undid it, or made none.
    pub without_reduction: u64,
    /// Throughput that spurious retransmissions cost, Mbit/s: a conservative estimate.
    pub lost_least_mbit_s: f64,
    /// The same, a generous estimate. It compares with the rate of the bottleneck if that is known.
    pub lost_most_mbit_s: f64,
    /// The capture does not show the rate of the bottleneck, so the cost may be higher than both.
    pub lost_is_least: bool,
}

impl Cost {
    pub(crate) fn of(of: &Reductions, per_second: impl Fn(f64) -> f64) -> Cost {
        let [least, most] = of.missing.map(per_second);
        Cost {
            reductions: of.count,
            false_reductions: of.false_count,
            without_reduction: of.undone,
            lost_least_mbit_s: least,
            lost_most_mbit_s: most.max(least),
            lost_is_least: true,
        }
    }

    /// Compares with what the bottleneck carries: a sender that is always slow has no better round trips to compare with.
    /// Only the share that spurious retransmissions have in all of them counts.
    pub(crate) fn compare(&mut self, report: &DirectionReport) {
        let (Some(carries), Some(round_trip)) = (report.bottleneck_mbit_s, &report.round_trip) else { return };
        self.lost_is_least = false;
        let (lost, spurious) = (report.verdicts.lost as f64, report.verdicts.spurious as f64);
        let limited_s = report.limited_by_receiver_s + report.limited_by_sender_s;
        let time_s = report.duration_s - limited_s - SLOW_START * round_trip.least_ms / 1e3;
        if spurious == 0.0 || time_s <= 0.0 {
            return;
        }
        let share = spurious / (lost + spurious);
        let missing = |of: f64| {
            let unused = of * carries * time_s - report.goodput_mbit_s * report.duration_s;
            share * unused.max(0.0) / report.duration_s
        };
        self.lost_most_mbit_s = missing(1.0);
        self.lost_least_mbit_s = self.lost_least_mbit_s.min(self.lost_most_mbit_s).max(missing(HALVING));
    }
}
