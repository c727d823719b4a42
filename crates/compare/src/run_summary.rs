//! The results of one run.

use std::collections::BTreeMap;

use reknit_sim::{
    FlowResult, Group, Meter, Plan, PluginMetrics, RunResult, TransactionStats, Unreported, WorkloadShare, jain,
};
use reknit_tcp::stats::Armings;
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::RunMeasurements;

/// The results of one run, all its connections together (`docs/reference/json.md`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Its seed.
    pub seed: u64,
    /// Bytes that arrived in order, Mbit/s: for each flow from its start, or the end of the warm-up, to its completion, or the end of the run.
    pub goodput_mbit_s: f64,
    /// Segments that arrived in order.
    pub delivered_packets: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// For another transport than reknit's TCP: the counts that it does not report. They are zero here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreported: Vec<String>,
    /// Data segments retransmitted, in total and by what caused them.
    pub retransmissions: Retransmissions,
    /// Segments that arrived after an earlier copy had arrived; copies made by the network do not count.
    pub spurious_retransmissions: u64,
    /// Reductions of the congestion window, in total and by what caused them.
    pub window_cuts: Cuts,
    /// Of these, caused by a segment of which at least one copy was not lost.
    pub false_window_cuts: u64,
    /// Of these, by the loss detector.
    pub false_fast_retransmits: u64,
    /// Reductions that the sender undid.
    pub undos: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Retransmission timeout when the timer was started, with back-off, ms: mean; null if it was never started.
    pub rto_mean_ms: Option<f64>,
    /// The same, largest.
    pub rto_max_ms: Option<f64>,
    /// The same, mean over the expiries; null if the timer did not expire.
    pub rto_expired_mean_ms: Option<f64>,
    /// Data packets that the path lost.
    pub lost_packets: u64,
    /// Of these, those dropped by a queue, because it was full or by RED.
    pub queue_drops: u64,
    /// Other packets that the path lost, both ways: ACKs, SYNs, FINs, requests.
    pub lost_acks: u64,
    /// Forward packets that a stage delayed while it let others through.
    pub delayed_packets: u64,
    /// Data segments that arrived when all of their bytes had already arrived, including copies made by the network.
    pub duplicate_packets: u64,
    /// Data segments that arrived and were discarded because of their older timestamps (PAWS, RFC 7323 §5).
    pub paws_discards: u64,
    /// How long a segment waited at the receiver for earlier segments, ms: median over all segments.
    pub wait_p50_ms: f64,
    /// The same, 99th percentile.
    pub wait_p99_ms: f64,
    /// Jain's fairness index over the goodputs of all flows.
    pub jain: f64,
    /// Transactions of all flows; null if there are none.
    pub transactions: Option<Completions>,
    /// The numbers that algorithms show, by seam and name (`dup_thresh.fa_ratio`): the value at the end of a connection, mean over the connections that show it. Empty for most variants.
    pub shown: BTreeMap<String, f64>,
    /// Measurements after every event; null in a comparison.
    pub measured: Option<RunMeasurements>,
    /// Mean number of consecutive data packets of the same connection at the slowest stage of the path; null in a comparison.
    pub run_length_mean_packets: Option<f64>,
    /// One entry for each set of flows of the scenario, and for each workload of a mix.
    pub groups: Vec<GroupSummary>,
}

/// Transactions and their completion times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Completions {
    /// Transactions that completed.
    pub completed: u64,
    /// Transactions that failed because their connection was aborted.
    pub failed: u64,
    /// Completion time, ms: mean.
    pub mean_ms: f64,
    /// Completion time, ms: median.
    pub p50_ms: f64,
    /// Completion time, ms: 90th percentile, to three digits.
    pub p90_ms: f64,
    /// Completion time, ms: 99th percentile, to three digits.
    pub p99_ms: f64,
    /// Bytes of a transaction divided by its completion time, Mbit/s: mean over the transactions.
    pub each_mbit_s: f64,
}

/// The flows of one workload of a plan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupSummary {
    /// Name of the set of flows, or `SET/NAME` for a workload of a mix.
    pub group: String,
    /// The variant that these flows set; null if it is the compared one.
    pub variant: Option<String>,
    /// How many flows.
    pub flows: usize,
    /// Bytes that arrived in order, all flows together, Mbit/s.
    pub goodput_mbit_s: f64,
    /// Goodput of each flow, in the order of the flows.
    pub flow_goodputs_mbit_s: Vec<f64>,
    /// Segments that arrived in order.
    pub delivered_packets: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Data segments retransmitted.
    pub retransmissions: u64,
    /// Segments that arrived after an earlier copy had arrived.
    pub spurious_retransmissions: u64,
    /// Reductions of the congestion window.
    pub window_cuts: u64,
    /// Of these, caused by a segment of which at least one copy was not lost.
    pub false_window_cuts: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Data packets that the path lost.
    pub lost_packets: u64,
    /// Jain's index over its flows' goodputs.
    pub jain: f64,
    /// Transactions of these flows; null if they have none.
    pub transactions: Option<Completions>,
    /// The numbers that algorithms show, as in the run.
    pub shown: BTreeMap<String, f64>,
    /// Measurements after every event; null in a comparison.
    pub measured: Option<RunMeasurements>,
}

/// Data segments retransmitted, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Retransmissions {
    /// All.
    pub total: u64,
    /// By the loss detector.
    pub fast_retransmit: u64,
    /// By the retransmission timer.
    pub timeout: u64,
    /// Tail loss probes.
    pub probe: u64,
    /// Speculative (RFC 6675 rules 3 and 4).
    pub rescue: u64,
}

/// Reductions of the congestion window, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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

impl Completions {
    /// None if there are no transactions.
    fn of(stats: &TransactionStats) -> Option<Completions> {
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        (stats.completed() + stats.failed() > 0).then(|| Completions {
            completed: stats.completed(),
            failed: stats.failed(),
            mean_ms: ms(stats.mean()),
            p50_ms: ms(stats.quantile(0.5)),
            p90_ms: ms(stats.quantile(0.9)),
            p99_ms: ms(stats.quantile(0.99)),
            each_mbit_s: stats.goodput() / 1e6,
        })
    }
}

impl GroupSummary {
    /// All workloads of `plan`.
    fn all(plan: &Plan, result: &RunResult) -> Vec<GroupSummary> {
        let one = |(i, (group, share)): (usize, (&Group, &WorkloadShare))| {
            let flows: Vec<&FlowResult> = result.flows.iter().filter(|flow| flow.group as usize == i).collect();
            let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput()).collect();
            let sum = |count: fn(&FlowResult) -> u64| flows.iter().map(|flow| count(flow)).sum();
            GroupSummary {
                group: share.name.clone(),
                variant: group.variant.clone(),
                flows: goodputs.len(),
                goodput_mbit_s: goodputs.iter().sum::<f64>() / 1e6,
                flow_goodputs_mbit_s: goodputs.iter().map(|goodput| goodput / 1e6).collect(),
                delivered_packets: sum(FlowResult::packets),
                segments_sent: sum(|f| f.send.sent.total()),
                retransmissions: sum(|f| f.send.sent.retransmissions()),
                spurious_retransmissions: sum(|f| f.spurious_retransmissions),
                window_cuts: sum(|f| f.send.cuts.total()),
                false_window_cuts: sum(|f| f.false_cuts),
                timeouts: sum(|f| f.send.timeouts),
                lost_packets: sum(|f| f.lost),
                jain: jain(goodputs),
                transactions: result.transactions.get(i).and_then(Completions::of),
                shown: shown(flows.iter().copied()),
                measured: None,
            }
        };
        plan.workloads().enumerate().map(one).collect()
    }
}

/// The numbers that algorithms showed at the end of the connections of `flows`.
fn shown<'a>(flows: impl IntoIterator<Item = &'a FlowResult>) -> BTreeMap<String, f64> {
    let mut shown = PluginMetrics::default();
    flows.into_iter().for_each(|flow| shown.add(&flow.shown));
    shown.means().map(|(name, mean)| (name.to_string(), mean)).collect()
}

/// The names of the counts that a transport does not report.
fn unreported(unreported: Unreported) -> Vec<String> {
    let Unreported { causes, cuts, undos, timeouts } = unreported;
    let counts = [(causes, "causes"), (cuts, "window_cuts"), (undos, "undos"), (timeouts, "timeouts")];
    counts.into_iter().filter(|(missing, _)| *missing).map(|(_, name)| name.to_owned()).collect()
}

/// Goodput of all connections together, Mbit/s.
pub(crate) fn goodput_mbit_s(result: &RunResult) -> f64 {
    result.flows.iter().map(FlowResult::goodput).sum::<f64>() / 1e6
}

impl RunSummary {
    /// True if the transport reports the count with this name.
    pub fn reports(&self, count: &str) -> bool {
        self.unreported.iter().all(|missing| missing != count)
    }

    /// The results of all connections of `result` together, and of each workload of `plan`.
    pub fn new(seed: u64, plan: &Plan, result: &RunResult) -> RunSummary {
        let mut transactions = TransactionStats::default();
        result.transactions.iter().for_each(|group| transactions.add(group));
        let sum = |count: fn(&FlowResult) -> u64| result.flows.iter().map(count).sum();
        let timeouts: u64 = sum(|f| f.send.timeouts);
        let mut armings = Armings::default();
        result.flows.iter().for_each(|flow| armings += flow.send.armings);
        let mean_ms = |total: Duration, n: u64| (n > 0).then(|| total.as_secs_f64() * 1e3 / n as f64);
        let worst = |span: fn(&FlowResult) -> Duration| {
            result.flows.iter().map(span).max().unwrap_or_default().as_secs_f64() * 1e3
        };
        RunSummary {
            seed,
            goodput_mbit_s: goodput_mbit_s(result),
            delivered_packets: sum(FlowResult::packets),
            segments_sent: sum(|f| f.send.sent.total()),
            unreported: unreported(result.flows.first().map(|flow| flow.unreported).unwrap_or_default()),
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
            false_fast_retransmits: sum(|f| f.false_fast_retransmits),
            undos: sum(|f| f.send.undos),
            timeouts,
            rto_mean_ms: mean_ms(armings.total, armings.count),
            rto_max_ms: mean_ms(armings.largest, armings.count.min(1)),
            rto_expired_mean_ms: mean_ms(armings.expired, if armings.count > 0 { timeouts } else { 0 }),
            lost_packets: sum(|f| f.lost),
            queue_drops: sum(|f| f.queue_drops),
            lost_acks: sum(|f| f.lost_acks),
            delayed_packets: result.delayed,
            duplicate_packets: sum(|f| f.receive.duplicates),
            paws_discards: sum(|f| f.receive.paws_discards),
            wait_p50_ms: worst(|f| f.wait_p50),
            wait_p99_ms: worst(|f| f.wait_p99),
            jain: jain(result.flows.iter().map(FlowResult::goodput)),
            transactions: Completions::of(&transactions),
            shown: shown(&result.flows),
            measured: None,
            run_length_mean_packets: None,
            groups: GroupSummary::all(plan, result),
        }
    }

    /// Adds the measurements of `meter`.
    #[must_use]
    pub fn with(mut self, meter: &Meter, result: &RunResult) -> RunSummary {
        let lengths = result.run_lengths;
        self.measured = Some(RunMeasurements::of(&meter.total()));
        self.run_length_mean_packets = (lengths.runs > 0).then(|| lengths.packets as f64 / lengths.runs as f64);
        for (group, measures) in self.groups.iter_mut().zip(meter.groups()) {
            group.measured = Some(RunMeasurements::of(measures));
        }
        self
    }
}
