//! What one run has shown.

use reknit_sim::{FlowResult, RunResult};
use reknit_units::Duration;
use serde::Serialize;

/// What one run has shown, all its connections together (`docs/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Run {
    /// Its seed.
    pub seed: u64,
    /// Octets that arrived in order, Mbit/s.
    pub goodput_mbit_s: f64,
    /// Segments that arrived in order.
    pub delivered_packets: u64,
    /// Data segments sent, again or for the first time.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmissions: Retransmissions,
    /// Segments that arrived although an earlier copy had arrived.
    pub spurious_retransmissions: u64,
    /// Reductions of the window.
    pub window_cuts: Cuts,
    /// Of these, blamed on a segment of which some copy was not lost.
    pub false_window_cuts: u64,
    /// Reductions that the sender undid.
    pub undos: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data packets that the path lost.
    pub lost_packets: u64,
    /// How long a segment waited at the receiver for those before it, ms: median.
    pub wait_p50_ms: f64,
    /// The same, 99th percentile.
    pub wait_p99_ms: f64,
}

/// Data segments sent again, by what caused it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Retransmissions {
    /// All.
    pub total: u64,
    /// By the loss detector.
    pub fast_retransmit: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// Tail loss probes.
    pub probe: u64,
    /// On suspicion (RFC 6675 rules 3 and 4).
    pub rescue: u64,
}

/// Reductions of the window, by what caused them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Cuts {
    /// All.
    pub total: u64,
    /// By the loss detector.
    pub fast_retransmit: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// By a tail loss probe.
    pub probe: u64,
    /// By ECN.
    pub ecn: u64,
}

impl Run {
    /// All connections of `result` together.
    pub fn new(seed: u64, result: &RunResult) -> Run {
        let sum = |count: fn(&FlowResult) -> u64| result.flows.iter().map(count).sum();
        let worst = |span: fn(&FlowResult) -> Duration| {
            result.flows.iter().map(span).max().unwrap_or_default().as_secs_f64() * 1e3
        };
        Run {
            seed,
            goodput_mbit_s: result.flows.iter().map(FlowResult::goodput).sum::<f64>() / 1e6,
            delivered_packets: sum(FlowResult::packets),
            segments_sent: sum(|f| f.send.sent.total()),
            retransmissions: Retransmissions {
                total: sum(|f| f.send.sent.retransmissions()),
                fast_retransmit: sum(|f| f.send.sent.fast_retransmit),
                timeout: sum(|f| f.send.sent.timeout),
                probe: sum(|f| f.send.sent.probe),
                rescue: sum(|f| f.send.sent.rescue),
            },
            spurious_retransmissions: sum(|f| f.spurious_retransmissions),
            window_cuts: Cuts {
                total: sum(|f| f.send.cuts.total()),
                fast_retransmit: sum(|f| f.send.cuts.fast_retransmit),
                timeout: sum(|f| f.send.cuts.timeout),
                probe: sum(|f| f.send.cuts.probe),
                ecn: sum(|f| f.send.cuts.ecn),
            },
            false_window_cuts: sum(|f| f.false_cuts),
            undos: sum(|f| f.send.undos),
            timeouts: sum(|f| f.send.timeouts),
            lost_packets: sum(|f| f.lost),
            wait_p50_ms: worst(|f| f.wait_p50),
            wait_p99_ms: worst(|f| f.wait_p99),
        }
    }
}
