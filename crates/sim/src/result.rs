//! What a run has shown.

use reknit_path::RunLengths;
use reknit_tcp::Info;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration, Instant};

use crate::transactions::TransactionStats;

/// One point of a time series: the sender's variables at a moment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The sender's variables.
    pub info: Info,
    /// The share of measured reordering that the duplicate threshold is to cover, if its algorithm steers by one.
    pub coverage: Option<f64>,
    /// Bytes that have arrived in order.
    pub delivered: Bytes,
    /// Retransmissions whose data had already arrived, since the warm-up.
    pub spurious_retransmissions: u64,
}

/// What one flow did, all its connections together.
#[derive(Clone, Debug)]
pub struct FlowResult {
    /// Its group.
    pub group: u32,
    /// Bytes that arrived in order. This and all counts: after the warm-up.
    pub delivered: Bytes,
    /// From its start, or from the end of the warm-up, to its completion, or to the end of the run.
    pub elapsed: Duration,
    /// When the last of its transactions was complete at the receiver; none if there is no last one.
    pub completed: Option<Instant>,
    /// Transactions that were completed.
    pub transactions: u64,
    /// What the sender counted.
    pub send: SendStats,
    /// What the receiver counted.
    pub receive: ReceiveStats,
    /// Segments that arrived although an earlier copy of theirs had arrived: their retransmitting was spurious. Copies that
    /// the network made do not count.
    pub spurious_retransmissions: u64,
    /// Reductions of the window because of a segment of which some copy was not lost.
    pub false_cuts: u64,
    /// Of these, by the loss detector.
    pub false_fast_retransmits: u64,
    /// Data packets that the path lost.
    pub lost: u64,
    /// Of these, the ones for which a queue had no room, or that it dropped early.
    pub queue_drops: u64,
    /// Packets that the path lost beside them, both ways: ACKs, SYNs, FINs, requests.
    pub lost_acks: u64,
    /// How long a segment waited at the receiver for those before it: median over all segments.
    pub wait_p50: Duration,
    /// The same, 99th percentile.
    pub wait_p99: Duration,
    /// The sender's variables at the end, of its latest connection.
    pub last: Info,
    /// The time series, if one was asked for.
    pub series: Vec<Sample>,
}

impl FlowResult {
    /// Bytes in order per second, in bits.
    pub fn goodput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.delivered.0 as f64 * 8.0 / seconds } else { 0.0 }
    }

    /// Whole segments that arrived in order.
    pub fn packets(&self) -> u64 {
        self.delivered.0 / self.last.smss.0
    }
}

/// What a run has shown.
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
    /// Packets on the way of data that stages held up while they let others through at once.
    pub delayed: u64,
    /// How data packets of several connections followed each other when they came to the slowest stage on their way; nothing
    /// unless the tracer [watches](crate::Tracer::WATCHES).
    pub run_lengths: RunLengths,
    /// Events that the simulator dealt with.
    pub events: u64,
}
