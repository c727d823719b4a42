//! The result of a run.

use reknit_path::RunLengths;
use reknit_tcp::Info;
use reknit_tcp::seams::ShownName;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration, Instant};

use crate::shown::PluginMetrics;
use crate::transactions::TransactionStats;

/// One point of a time series: the sender's variables at one time.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// The time.
    pub at: Instant,
    /// The sender's variables.
    pub info: Info,
    /// The numbers that plug-ins show.
    pub shown: Vec<(ShownName, f64)>,
    /// Bytes that have arrived in order.
    pub delivered: Bytes,
    /// Retransmissions whose data had already arrived, since the warm-up.
    pub spurious_retransmissions: u64,
}

/// The result of one flow, all its connections together.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Its group.
    pub group: u32,
    /// Bytes that arrived in order. This and all counts exclude the warm-up.
    pub delivered: Bytes,
    /// From its start, or from the end of the warm-up, to its completion, or to the end of the run.
    pub elapsed: Duration,
    /// When the last of its transactions was complete at the receiver; none if there is no last one.
    pub completed: Option<Instant>,
    /// Transactions that were completed.
    pub transactions: u64,
    /// Counters of the sender.
    pub send: SendStats,
    /// Counters of the receiver.
    pub receive: ReceiveStats,
    /// Segments that arrived after an earlier copy had arrived, so their retransmission was spurious. Copies made by
    /// the network do not count.
    pub spurious_retransmissions: u64,
    /// Reductions of the window because of a segment of which some copy was not lost.
    pub false_cuts: u64,
    /// Of these, by the loss detector.
    pub false_fast_retransmits: u64,
    /// Data packets that the path lost.
    pub lost: u64,
    /// Of these, those dropped by a queue, because it was full or by RED.
    pub queue_drops: u64,
    /// Other packets that the path lost, both ways: ACKs, SYNs, FINs, requests.
    pub lost_acks: u64,
    /// How long a segment waited at the receiver for earlier segments: median over all segments.
    pub wait_p50: Duration,
    /// The same, 99th percentile.
    pub wait_p99: Duration,
    /// Payload bytes of a full-sized segment.
    pub smss: Bytes,
    /// The sender's variables at the end of its latest connection; none for another transport.
    pub last: Option<Info>,
    /// The numbers that plug-ins showed at the end of each of its connections.
    pub shown: PluginMetrics,
    /// The time series, if one was requested.
    pub series: Vec<Sample>,
    /// What is not known of another transport.
    pub unreported: Unreported,
}

/// Counts that another transport does not report; they are zero in its results.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unreported {
    /// What caused retransmissions and reductions: all count as those of the loss detector.
    pub causes: bool,
    /// Reductions of the window.
    pub cuts: bool,
    /// Reductions that were undone.
    pub undos: bool,
    /// Expiries of the retransmission timer.
    pub timeouts: bool,
}

impl FlowResult {
    /// Bytes that arrived in order per second, in bit/s.
    pub fn goodput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.delivered.0 as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Full-sized segments that arrived in order.
    pub fn packets(&self) -> u64 {
        self.delivered.0 / self.smss.0
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// For each flow of the scenario.
    pub flows: Vec<FlowResult>,
    /// For each group of flows.
    pub transactions: Vec<TransactionStats>,
    /// Connections that were opened.
    pub connections: u32,
    /// Packets that entered the path, both ways, from the beginning.
    pub packets: u64,
    /// Packets in the direction of data that stages delayed while they let others pass.
    pub delayed: u64,
    /// The lengths of runs of data packets of the same connection at the slowest stage of their path. Empty unless the
    /// tracer [watches](crate::Tracer::WATCHES).
    pub run_lengths: RunLengths,
    /// Events that the simulator processed.
    pub events: u64,
}
