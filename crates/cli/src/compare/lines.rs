//! A run as comma-separated values.

use reknit_compare::{Completions, RunSummary};

/// Names of [`cells`].
pub(crate) const TITLES: [&str; 16] = [
    "goodput_mbit_s",
    "delivered_packets",
    "segments_sent",
    "retransmissions",
    "spurious_retransmissions",
    "window_cuts",
    "false_window_cuts",
    "undos",
    "timeouts",
    "lost_packets",
    "wait_p50_ms",
    "wait_p99_ms",
    "transactions",
    "completion_p50_ms",
    "completion_p99_ms",
    "jain",
];

/// The run's numbers; empty where there are none.
pub(crate) fn cells(run: &RunSummary) -> [String; TITLES.len()] {
    let of_transactions = |value: fn(&Completions) -> String| run.transactions.as_ref().map_or(String::new(), value);
    [
        run.goodput_mbit_s.to_string(),
        run.delivered_packets.to_string(),
        run.segments_sent.to_string(),
        run.retransmissions.total.to_string(),
        run.spurious_retransmissions.to_string(),
        run.window_cuts.total.to_string(),
        run.false_window_cuts.to_string(),
        run.undos.to_string(),
        run.timeouts.to_string(),
        run.lost_packets.to_string(),
        run.wait_p50_ms.to_string(),
        run.wait_p99_ms.to_string(),
        of_transactions(|t| t.completed.to_string()),
        of_transactions(|t| t.p50_ms.to_string()),
        of_transactions(|t| t.p99_ms.to_string()),
        run.jain.to_string(),
    ]
}
