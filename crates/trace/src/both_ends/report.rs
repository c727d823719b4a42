//! The result of a comparison of two captures, for text and JSON.

use reknit_path::Reordering;
use reknit_units::{Duration, Instant, Rate, grouped};
use schemars::JsonSchema;
use serde::Serialize;

use super::clock::{Clock, ClockReport};
use super::flows::{Delivery, Flow};
use super::passage::{Captured, MAX_ON_WIRE, Passage};
use crate::measured::{self, Limits, Measured};
use crate::packet::{Endpoint, protocol_name};
use crate::spread::{Lateness, LogHistogram};
use crate::{LossRuns, MeasuredPath, ReorderingReport};

/// Version of the JSON document.
const FORMAT: &str = "reknit-both-ends-1";
/// The segment size of a path without TCP traffic.
const USUAL_SEGMENT: u64 = 1448;
/// A capture that lacks more packets than this, which the other capture has, gets a warning.
const FEW: f64 = 0.001;

/// What happened to the packets between two capture points.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct BothEnds {
    /// Version of the document's format: `reknit-both-ends-1`.
    pub format: &'static str,
    /// Version of the program.
    pub reknit: &'static str,
    /// Both captures, as they were given.
    pub captures: [CaptureReport; 2],
    /// How their clocks were aligned.
    pub clock: ClockReport,
    /// What is missing or odd in the captures. Empty if they are good.
    pub warnings: Vec<String>,
    /// Each direction of each flow of which a packet passed both points, those with most bytes first.
    pub flows: Vec<FlowReport>,
}

/// One of the captures.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CaptureReport {
    /// The file's name.
    pub file: String,
    /// Packets of all kinds.
    pub packets: u64,
    /// From the first packet to the last, seconds.
    pub duration_s: f64,
}

/// One direction of a flow.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct FlowReport {
    /// The protocol: `TCP`, `UDP`, or the number of another one.
    pub protocol: String,
    /// The sender: address, and port if the protocol has ports.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The capture that was made nearer to the sender: 0 or 1.
    pub near: u8,
    /// Packets that passed there. TSO and GRO packets of TCP are counted as the packets that cross the network.
    pub sent: u64,
    /// Bytes of these, with IP headers.
    pub bytes: u64,
    /// Packets that passed both points.
    pub arrived: u64,
    /// Packets that did not pass the other point.
    pub lost: u64,
    /// The share of packets that were lost, of those that were lost or arrived.
    pub loss: f64,
    /// Packets of which that is not known, because the other capture began later or ended earlier.
    pub unknown: u64,
    /// Packets that were late: later ones passed the other point before them (RFC 4737).
    pub reordered: u64,
    /// Copies of packets that were made on the way.
    pub duplicated: u64,
    /// Packets that passed only the other point: the capture near the sender lacks them.
    pub not_sent: u64,
    /// Runs of lost packets.
    pub loss_runs: LossRuns,
    /// The reordering on the way (RFC 4737), by the order at the point near the sender.
    pub reordering: ReorderingReport,
    /// One-way delays between the points.
    pub delay: DelayReport,
}

/// One-way delays between two points.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DelayReport {
    /// Delays are those beyond the shortest one: packets passed in one direction only, so the clocks cannot be aligned.
    pub relative: bool,
    /// The shortest, ms.
    pub least_ms: f64,
    /// Mean, ms.
    pub mean_ms: f64,
    /// Median, ms.
    pub p50_ms: f64,
    /// 95th percentile, ms.
    pub p95_ms: f64,
    /// 99th percentile, ms.
    pub p99_ms: f64,
    /// The longest, ms.
    pub most_ms: f64,
}

fn ms(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

impl BothEnds {
    pub(super) fn of(captures: &[Captured; 2], flows: &[Flow], clock: &Clock, files: [String; 2]) -> BothEnds {
        let flows: Vec<FlowReport> = flows.iter().map(|flow| FlowReport::of(flow, captures, clock)).collect();
        let warnings = warnings(captures, &flows, &files);
        let [first, second] = files;
        let report = |captured: &Captured, file| {
            let (first, last) = captured.span.unwrap_or_default();
            CaptureReport { file, packets: captured.packets, duration_s: (last - first) as f64 / 1e9 }
        };
        BothEnds {
            format: FORMAT,
            reknit: env!("REKNIT_VERSION"),
            captures: [report(&captures[0], first), report(&captures[1], second)],
            clock: clock.report(),
            warnings,
            flows,
        }
    }
}

fn warnings(captures: &[Captured; 2], flows: &[FlowReport], files: &[String; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    for ((captured, file), number) in captures.iter().zip(files).zip(0_u8..) {
        if let Some(damage) = &captured.damage {
            warnings
                .push(format!("{file}: the file is damaged, so only the part before the damage was read: {damage}"));
        }
        let mut note = |count: u64, what: &str| {
            if count > 0 {
                warnings.push(format!(
                    "{file}: {} {what}",
                    if count == 1 { "1 packet".to_owned() } else { format!("{} packets", grouped(count)) }
                ));
            }
        };
        note(captured.timeless, "left out, because they have no time");
        note(captured.left_out, "left out, because there are too many");
        let is_combined = |passage: &&Passage| passage.len == 0 && passage.size > MAX_ON_WIRE;
        let combined = captured.passages.iter().filter(is_combined).count() as u64;
        note(
            combined,
            "larger than any MTU: captured before or after segmentation offload, which `ethtool -K DEV tso off gso off gro off` turns off",
        );
        let near = || flows.iter().filter(|flow| flow.near == number);
        let missing: u64 = near().map(|flow| flow.not_sent).sum();
        let all: u64 = near().map(|flow| flow.sent).sum();
        if missing as f64 > all as f64 * FEW {
            note(
                missing,
                "only in the other capture, although they should have passed here first: packets are missing from this capture, or \
                 another host on the way sent them",
            );
        }
    }
    warnings
}

impl FlowReport {
    fn of(flow: &Flow, captures: &[Captured; 2], clock: &Clock) -> FlowReport {
        let mut delays: Vec<i64> = Vec::new();
        let (mut lost, mut unknown) = (0, 0);
        let (mut runs, mut run) = (LogHistogram::default(), 0);
        for sent in &flow.sent {
            match sent.fate {
                Delivery::Arrived { delay, .. } => delays.push(delay),
                Delivery::Lost => lost += 1,
                Delivery::Unknown => unknown += 1,
            }
            if sent.fate == Delivery::Lost {
                run += 1;
            } else if run > 0 {
                runs.add(std::mem::take(&mut run));
            }
        }
        if run > 0 {
            runs.add(run);
        }
        let arrived = delays.len() as u64;
        let order = order(flow, &captures[1 - flow.near]);
        let name = |end: &Endpoint| {
            if end.port == 0 { end.socket().ip().to_string() } else { end.socket().to_string() }
        };
        FlowReport {
            protocol: protocol_name(flow.ends.protocol),
            from: name(&flow.ends.source),
            to: name(&flow.ends.destination),
            near: flow.near as u8,
            sent: flow.sent.len() as u64,
            bytes: flow.bytes(),
            arrived,
            lost,
            loss: lost as f64 / (lost + arrived).max(1) as f64,
            unknown,
            reordered: order.0,
            duplicated: flow.copies,
            not_sent: flow.unsent,
            loss_runs: LossRuns::by(&runs, lost),
            reordering: order.1,
            delay: DelayReport::of(delays, clock.is_relative()),
        }
    }
}

/// How many packets were reordered, and the measures: of the packets of the flow in the order in which they arrived, numbered in
/// the order of sending.
fn order(flow: &Flow, at_far: &Captured) -> (u64, ReorderingReport) {
    let mut arrivals: Vec<(u32, u64)> = Vec::new();
    for (sent, number) in flow.sent.iter().zip(1..) {
        if let Delivery::Arrived { number: other, .. } = sent.fate {
            arrivals.push((other, number));
        }
    }
    arrivals.sort_unstable();
    let (mut reordering, mut lateness) = (Reordering::default(), Lateness::default());
    for (other, number) in arrivals {
        let now = Instant::from_nanos(at_far.passages[other as usize].at);
        if let Some(late) = reordering.on_arrival(number, now) {
            lateness.add(&late);
        }
    }
    (reordering.reordered(), ReorderingReport::of_arrivals(&reordering, &lateness))
}

impl DelayReport {
    /// There is at least one delay.
    fn of(mut delays: Vec<i64>, relative: bool) -> DelayReport {
        delays.sort_unstable();
        let quantile = |per_cent: usize| ms(delays[(delays.len() - 1) * per_cent / 100]);
        let mean = delays.iter().map(|delay| *delay as f64).sum::<f64>() / delays.len() as f64;
        DelayReport {
            relative,
            least_ms: quantile(0),
            mean_ms: mean / 1e6,
            p50_ms: quantile(50),
            p95_ms: quantile(95),
            p99_ms: quantile(99),
            most_ms: quantile(100),
        }
    }
}

impl Flow {
    /// The path of this flow.
    pub(super) fn path(
        &self,
        captures: &[Captured; 2],
        clock: &Clock,
        rate: Option<Rate>,
    ) -> Result<MeasuredPath, String> {
        let report = FlowReport::of(self, captures, clock);
        let Some(round_trip) = clock.round_trip() else {
            return Err(
                "no packet passed both points in the other direction, so the round trip is not known".to_owned()
            );
        };
        let first = self.sent.first().map_or(0, |sent| sent.at);
        let nanos = |at: u64| at.wrapping_sub(first).cast_signed();
        let known = self.sent.iter().filter(|sent| sent.fate != Delivery::Unknown);
        let packets = known.map(|sent| {
            let arrived = match sent.fate {
                Delivery::Arrived { delay, .. } => Some(nanos(sent.at).saturating_add(delay.max(0))),
                _ => None,
            };
            measured::known(nanos(sent.at), arrived, sent.size, if sent.len > 0 { sent.len } else { sent.size })
        });
        let largest = self.sent.iter().map(|sent| sent.len).max().filter(|len| *len > 0);
        let measured = Measured {
            packets: packets.take(measured::MAX_PACKETS).collect(),
            round_trip: Duration::from_secs_f64(round_trip.max(0.0) / 1e9).min(measured::LONGEST_SPAN),
            acknowledged: u64::MAX,
            reorders: report.reordered > 0,
            idle: None,
            limits: Limits::default(),
            tcp: measured::tcp(largest.map_or(USUAL_SEGMENT, u64::from), None, None, Limits::default()),
            source: format!("captures at two points, {}, {} to {}", report.protocol, report.from, report.to),
        };
        measured.path(rate)
    }
}
