//! The densities of RFC 5236, for text and JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::stream::Disorder;

/// Reorder density and reorder buffer-occupancy density (RFC 5236), retransmissions left out. Losses are known from the
/// capture, so the buffer does not wait for lost packets. Packets that are displaced by more than 4096 count as lost.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DensityReport {
    /// The share of packets that were displaced (§3.2), late or early.
    pub displaced: f64,
    /// Mean displacement of the late packets (§9); null if there are none.
    pub late_mean: Option<f64>,
    /// Mean occupancy of the buffer that restores the order, packets (§9); null if no packet arrived.
    pub buffer_mean: Option<f64>,
    /// Its 99th percentile.
    pub buffer_p99: Option<u64>,
    /// Reorder density (§3.6): displacements, each with its number of packets. Negative is early, positive late.
    pub displacements: Vec<(i64, u64)>,
    /// Reorder buffer-occupancy density (§3.11): packets in the buffer, each with the number of arrivals after which it held
    /// that many.
    pub occupancy: Vec<(u64, u64)>,
}

impl DensityReport {
    pub(crate) fn of(disorder: &Disorder) -> DensityReport {
        let (displacements, occupancy) = (disorder.displacements(), disorder.occupancy());
        let count = |is_counted: fn(i64) -> bool| {
            displacements.iter().filter(|(by, _)| is_counted(*by)).map(|(_, packets)| packets).sum::<u64>()
        };
        let late: u64 = displacements.iter().map(|(by, packets)| by.max(&0).unsigned_abs() * packets).sum();
        let (late_packets, arrivals) = (count(|by| by > 0), count(|_| true));
        let buffered: u64 = occupancy.iter().map(|(held, arrivals)| held * arrivals).sum();
        let mean = |sum: u64, of: u64| (of > 0).then(|| sum as f64 / of as f64);
        DensityReport {
            displaced: mean(count(|by| by != 0), arrivals).unwrap_or(0.0),
            late_mean: mean(late, late_packets),
            buffer_mean: mean(buffered, arrivals),
            buffer_p99: p99(&occupancy, arrivals),
            displacements,
            occupancy,
        }
    }
}

/// The 99th percentile of counted values.
fn p99(counts: &[(u64, u64)], all: u64) -> Option<u64> {
    let mut below = 0;
    let is_reached = |(_, count): &&(u64, u64)| {
        below += count;
        below * 100 >= all * 99
    };
    counts.iter().find(is_reached).map(|(value, _)| *value)
}
