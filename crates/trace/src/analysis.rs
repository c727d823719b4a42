//! The result of an analysis, for text and JSON.

use std::collections::BTreeMap;

use reknit_path::Reordering;
use reknit_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;

use crate::densities::DensityReport;
use crate::incidents::IncidentReport;
use crate::measured;
use crate::packet::LeftOut;
use crate::spread::{Lateness, LogHistogram};
use crate::stream::{Data, Direction, Offer, Strays, Stream};
use crate::streams::Course;
use crate::tally::VerdictCounts;
use crate::warnings::warnings;
use crate::{
    Advice, Analyzer, CapturePoint, Confidence, Cost, Incident, Options, PathPart, Replayed, RetransmitReason, SIDES,
    UnknownReason,
};

/// The `n` for which `n`-reordered packets are counted.
pub const N: [u32; 6] = [1, 2, 3, 5, 10, 20];
/// A failed connection counts as this many lost packets in the order of directions.
const FAILURE: f64 = 100.0;
/// Directions with fewer bytes than this and than this share of the largest are never the worst if others have verdicts.
const FLOOR: u64 = 1 << 14;
const FLOOR_SHARE: u64 = 100;
/// Version of the JSON document.
const FORMAT: &str = "reknit-analysis-1";

/// The result of the analysis of a capture.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Analysis {
    /// Version of the document's format: `reknit-analysis-1`.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// The file's name; `-` for standard input.
    pub file: String,
    /// Packets of all kinds.
    pub packets: u64,
    /// TCP packets among them.
    pub tcp_packets: u64,
    /// The other packets by kind, the most frequent first.
    pub left_out: Vec<LeftOut>,
    /// From the first packet to the last, seconds.
    pub duration_s: f64,
    /// TCP connections.
    pub streams: u64,
    /// What is missing or odd in the capture. Empty if it is good.
    pub warnings: Vec<String>,
    /// Each direction of each connection that carried data, the worst first.
    pub directions: Vec<Box<DirectionReport>>,
}

/// One direction of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct DirectionReport {
    /// The connection's number, as `tcp.stream` in Wireshark.
    pub stream: u32,
    /// The sender of the data: address and port.
    pub from: String,
    /// Its receiver.
    pub to: String,
    /// 0 if the sender of the data sent the connection's first packet, else 1.
    pub end: u8,
    /// Where the packets were captured, in the direction of the data: `sender`, `middle` or `receiver`.
    pub captured_at: CapturePoint,
    /// How certain that is: `none`, `low`, `high` or `given`.
    pub confidence: Confidence,
    /// Packets with data. With segmentation offload (TSO, GRO) there are fewer packets than segments.
    pub packets: u64,
    /// Bytes of data, retransmissions included.
    pub bytes: u64,
    /// Bytes that the receiver acknowledged.
    pub acknowledged_bytes: u64,
    /// From the first packet with data to the last, seconds. If data is missing there that was acknowledged, from the packet before
    /// it, and to its acknowledgment.
    pub duration_s: f64,
    /// Acknowledged bytes over that time, Mbit/s.
    pub goodput_mbit_s: f64,
    /// The highest rate of all rounds of one round trip, Mbit/s; retransmissions included.
    pub peak_mbit_s: f64,
    /// What the bottleneck carries, Mbit/s of data, as packets show that were sent faster than they arrived (packet pairs);
    /// null if they do not.
    pub bottleneck_mbit_s: Option<f64>,
    /// Round trips between the two ends, ms; null if unknown.
    pub round_trip: Option<RoundTripReport>,
    /// The verdicts on packets.
    pub verdicts: Verdicts,
    /// Incidents of the connection rather than of single packets.
    pub incidents: Vec<IncidentReport>,
    /// The largest window that the receiver offered, bytes; null if the capture does not show the scale of its window.
    pub largest_window_bytes: Option<u32>,
    /// How long the receiver limited the transfer, seconds: its window was closed or full.
    pub limited_by_receiver_s: f64,
    /// How long the sender limited it, seconds: everything was acknowledged and the window open, but it sent nothing.
    pub limited_by_sender_s: f64,
    /// The reordering of the packets (RFC 4737), without retransmissions.
    pub reordering: ReorderingReport,
    /// The same in the measures of RFC 5236.
    pub density: DensityReport,
    /// Runs of lost packets.
    pub loss_runs: LossRuns,
    /// How long data waited at the receiver behind missing data, seconds.
    pub waited_s: f64,
    /// The sender's window reductions, and what they cost.
    pub cost: Cost,
    /// What the headers show about both ends.
    pub options: OptionsReport,
    /// What a replay of the measured path has shown; null if it was not replayed, or does not reproduce the capture.
    pub replayed: Option<Replayed>,
    /// What to do, the most important first.
    pub advice: Vec<Advice>,
    /// Where the connection is in the capture, if it may be analysed again; none if it cannot be analysed alone.
    #[serde(skip)]
    pub(crate) course: Option<Course>,
}

/// Round trips between the two ends.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct RoundTripReport {
    /// The shortest, ms: the sum of the shortest from the capture point to each end.
    pub least_ms: f64,
    /// Median from packets to their acknowledgments at the capture point, ms. At a receiver this is the delay of its
    /// acknowledgments.
    pub ack_p50_ms: Option<f64>,
    /// 99th percentile.
    pub ack_p99_ms: Option<f64>,
}

/// Counts of verdicts.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Verdicts {
    /// Packets that were lost. At the receiver: retransmissions that replaced lost packets.
    pub lost: u64,
    /// Of these, packets that the receiver's host had: they were captured there, but did not reach its TCP.
    pub lost_in_host: u64,
    /// Packets that were late: later ones arrived before them.
    pub reordered: u64,
    /// Duplicates made by the network.
    pub duplicated: u64,
    /// Retransmissions of data whose earlier transmission was not lost.
    pub spurious: u64,
    /// Of these, the ones that duplicate ACKs or SACK blocks triggered.
    pub spurious_fast_retransmit: u64,
    /// Those that the retransmission timer triggered.
    pub spurious_timeout: u64,
    /// Tail loss probes.
    pub spurious_probe: u64,
    /// Packets that arrived, but that the receiver did not keep because earlier data was missing.
    pub discarded: u64,
    /// Packets without a verdict: the capture does not show what happened to them.
    pub cannot_tell: u64,
    /// Of these, by the reason.
    pub reasons: BTreeMap<UnknownReason, u64>,
}

/// Measures of RFC 4737.
#[derive(Clone, Default, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReorderingReport {
    /// Packets that arrived, without retransmissions.
    pub arrived: u64,
    /// The share of them that was reordered (§4.1).
    pub ratio: f64,
    /// Reordering extent, packets (§4.2): median; null if nothing was reordered.
    pub extent_p50: Option<u64>,
    /// 99th percentile.
    pub extent_p99: Option<u64>,
    /// Largest.
    pub extent_max: Option<u64>,
    /// How late reordered packets were, ms (§4.3): median.
    pub late_p50_ms: Option<f64>,
    /// 99th percentile.
    pub late_p99_ms: Option<f64>,
    /// Largest.
    pub late_max_ms: Option<f64>,
    /// How many packets are `n`-reordered (§5), for `n` = 1, 2, 3, 5, 10, 20.
    pub n_reordered: [u64; N.len()],
    /// Runs without reordering that ended with a reordered packet (§4.6).
    pub free_runs: u64,
    /// Their mean length, packets.
    pub free_run_mean: Option<f64>,
}

/// Runs of consecutive lost packets.
#[derive(Clone, Default, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LossRuns {
    /// How many.
    pub runs: u64,
    /// Mean length, packets.
    pub mean: Option<f64>,
    /// The longest.
    pub longest: u64,
}

/// What the headers show.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct OptionsReport {
    /// SACK was negotiated; null if the handshake was not captured.
    pub sack: Option<bool>,
    /// The same for timestamps.
    pub timestamps: Option<bool>,
    /// Reports of duplicates (DSACK) that passed.
    pub dsacks: u64,
    /// Acknowledgments whose SACK blocks cannot be read: they are cut off, or their numbers are not those of the data.
    pub hidden_sacks: u32,
    /// The largest payload, bytes. More than the segment size: segmentation offload (TSO, GRO).
    pub largest_payload: u32,
    /// The segment size that the receiver announced; null if its SYN was not captured.
    pub mss: Option<u16>,
    /// The largest packet that fits through the path, bytes, as ICMP messages of routers say; null if there are none.
    pub path_mtu: Option<u32>,
}

fn ms(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e6
}

fn us_to_ms(micros: u64) -> f64 {
    micros as f64 / 1e3
}

/// The results of the connections.
#[derive(Debug, Default)]
pub(crate) struct Results {
    #[expect(clippy::vec_box, reason = "there may be many, made one by one while the memory of connections is freed")]
    directions: Vec<Box<DirectionReport>>,
    /// Bytes that were acknowledged, but never captured.
    pub(crate) missed: u64,
    /// Directions of which only the acknowledgments were captured: their streams, and the bytes.
    pub(crate) unseen: Vec<(u32, u64)>,
    /// Packets that were captured more than once.
    pub(crate) copies: u64,
    pub(crate) strays: Strays,
}

impl Results {
    /// Reports a connection that has ended, if it counts. `first`: its first packet, if it can be analysed alone.
    pub(crate) fn add(&mut self, stream: &mut Stream, first: Option<u64>, options: &Options) {
        if !options.filter.has_ends(&stream.ends) {
            return;
        }
        self.missed += stream.missed();
        self.copies += stream.copies();
        if let Some(strays) = stream.strays() {
            self.strays.add(strays);
        }
        stream.end_runs();
        for end in 0..2 {
            let place = options.at.map_or_else(|| stream.place(end), |place| (place, Confidence::Given));
            if let Some(mut report) = DirectionReport::of(stream, end, place).map(Box::new) {
                report.conclude(stream.direction(end));
                report.course = first
                    .filter(|_| report.may_be_faster())
                    .map(|first| Course { first, rests: stream.rests().clone() });
                if stream.direction(end).data().is_some_and(|data| data.missed() == 0) {
                    self.unseen.extend(report.is_unseen().then_some((report.stream, report.acknowledged_bytes)));
                }
                self.directions.push(report);
            }
        }
    }
}

impl Analysis {
    pub(crate) fn of(analyzer: &Analyzer, results: Results) -> Analysis {
        let warnings = warnings(analyzer, &results);
        let mut directions = results.directions;
        if analyzer.reader.compressed() > 0 {
            for direction in &mut directions {
                direction.do_not_compress();
            }
        }
        let bytes = |direction: &DirectionReport| direction.bytes.max(direction.acknowledged_bytes);
        let largest = directions.iter().map(|direction| bytes(direction)).max().unwrap_or(0);
        let floor = FLOOR.min(largest / FLOOR_SHARE);
        let rank = |direction: &DirectionReport| (!direction.is_quiet(), bytes(direction) >= floor);
        directions.sort_by(|a, b| {
            rank(b).cmp(&rank(a)).then(b.severity().total_cmp(&a.severity())).then(b.bytes.cmp(&a.bytes))
        });
        let (first, last) = analyzer.span.unwrap_or_default();
        Analysis {
            format: FORMAT,
            reknit: env!("REKNIT_VERSION"),
            file: String::new(),
            packets: analyzer.frames,
            tcp_packets: analyzer.tcp,
            left_out: analyzer.reader.left_out(),
            duration_s: (last - first) as f64 / 1e9,
            streams: analyzer.streams.len().into(),
            warnings,
            directions,
        }
    }
}

impl DirectionReport {
    /// None if the direction has no data.
    pub(crate) fn of(
        stream: &Stream,
        end: usize,
        (place, confidence): (CapturePoint, Confidence),
    ) -> Option<DirectionReport> {
        let direction = stream.direction(end);
        let data = direction.data()?;
        let (first, last) = direction.active()?;
        let duration_s = last.since(first).as_secs_f64();
        let acknowledged_bytes = direction.acknowledged();
        let per_second = |bytes: f64| if duration_s > 0.0 { bytes * 8e-6 / duration_s } else { 0.0 };
        let reductions = data.rounds.reductions();
        let seen = SIDES.into_iter().filter(|side| place.sees(*side));
        let counted: Vec<&VerdictCounts> = seen.filter_map(|side| data.tallies[side as usize].as_deref()).collect();
        let last = stream.last;
        let waited =
            if place == CapturePoint::Receiver { data.upstream.waited(last) } else { data.downstream.waited(last) };
        let (upstream, downstream) = (&data.upstream.reordering, &data.downstream.reordering);
        // Between the hosts, the worse of the two sides.
        let is_upstream =
            place == CapturePoint::Receiver || place == CapturePoint::Middle && upstream.ratio() > downstream.ratio();
        let (reordering, disorder) =
            if is_upstream { (upstream, &data.upstream.disorder) } else { (downstream, &data.downstream.disorder) };
        let mut report = DirectionReport {
            stream: stream.number,
            from: stream.ends[end].socket().to_string(),
            to: stream.ends[1 - end].socket().to_string(),
            end: end as u8,
            captured_at: place,
            confidence,
            packets: data.packets(),
            bytes: data.bytes(),
            acknowledged_bytes,
            duration_s,
            goodput_mbit_s: per_second(acknowledged_bytes as f64),
            peak_mbit_s: data.rounds.peak() * 8e-6,
            bottleneck_mbit_s: None,
            round_trip: round_trip(direction, data, place),
            verdicts: Verdicts::of(&counted),
            incidents: IncidentReport::all(&counted),
            largest_window_bytes: direction.window().largest(),
            limited_by_receiver_s: direction.window().limited_by_receiver().as_secs_f64(),
            limited_by_sender_s: direction.window().limited_by_sender().as_secs_f64(),
            reordering: ReorderingReport::of(reordering, &counted),
            density: DensityReport::of(disorder),
            loss_runs: LossRuns::of(&counted),
            waited_s: waited.as_secs_f64(),
            cost: Cost::of(&reductions, per_second),
            options: OptionsReport::of(direction, data, stream.direction(1 - end).syn()),
            replayed: None,
            advice: Vec::new(),
            course: None,
        };
        if place.sees(PathPart::AtCapturePoint) {
            report.verdicts.lost_in_host =
                data.tallies[PathPart::AtCapturePoint as usize].as_ref().map_or(0, |tally| tally.lost);
        }
        Some(report)
    }

    /// Finds the rate of the bottleneck, which takes some time, and with it the cost, and what to do. `direction`: what the
    /// report is about.
    pub(crate) fn conclude(&mut self, direction: &Direction) {
        let Some(data) = direction.data() else { return };
        let transits = data.sample.transits(self.stream, self.end, self.captured_at);
        self.bottleneck_mbit_s = measured::bottleneck(self, &transits);
        let mut cost = std::mem::take(&mut self.cost);
        cost.compare(self);
        self.cost = cost;
        self.advice = crate::advice::advice(self, None);
    }

    /// The size of a full segment, bytes.
    pub fn segment(&self) -> u64 {
        let announced = self.options.mss.map_or(1448, u32::from);
        u64::from(self.options.largest_payload.min(announced)).max(1)
    }

    /// The incidents of this kind, if there were any.
    pub fn incident(&self, what: Incident) -> Option<&IncidentReport> {
        self.incidents.iter().find(|incident| incident.what == what)
    }

    /// True if only its acknowledgments were captured.
    pub fn is_unseen(&self) -> bool {
        self.packets == 0 && self.acknowledged_bytes > 0
    }

    /// True if nothing happened to it.
    pub fn is_quiet(&self) -> bool {
        self.verdicts.all() == 0 && self.incidents.is_empty()
    }

    /// The severity, by which directions are ordered: the time that was lost, then the verdicts.
    pub(crate) fn severity(&self) -> f64 {
        let Verdicts { lost, reordered, spurious, cannot_tell, duplicated, discarded, .. } = &self.verdicts;
        let events = lost + reordered + 4 * spurious + cannot_tell + duplicated + discarded;
        let stood: f64 =
            self.incidents.iter().filter(|incident| !incident.what.is_harmless()).map(|i| i.lasted_s).sum();
        let failed = self.incidents.iter().any(|incident| incident.what.is_failure());
        let failure = if failed { FAILURE } else { 0.0 };
        self.waited_s * 100.0 + self.cost.lost_most_mbit_s * self.duration_s + events as f64 + stood * 10.0 + failure
    }
}

/// At the sender, the round trip to the receiver is the whole round trip.
fn round_trip(direction: &Direction, data: &Data, place: CapturePoint) -> Option<RoundTripReport> {
    let acks = &data.far().samples;
    let quantile = |q| acks.quantile(q).map(us_to_ms);
    let alone = data.far().least().filter(|_| place == CapturePoint::Sender);
    let least_ms = direction.whole_round_trip().or(alone).map(ms)?;
    Some(RoundTripReport { least_ms, ack_p50_ms: quantile(0.5), ack_p99_ms: quantile(0.99) })
}

impl Verdicts {
    fn of(tallies: &[&VerdictCounts]) -> Verdicts {
        let mut verdicts = Verdicts::default();
        for tally in tallies {
            verdicts.lost += tally.lost;
            verdicts.reordered += tally.reordered;
            verdicts.duplicated += tally.duplicated;
            verdicts.discarded += tally.discarded;
            let by = |why| tally.spurious.get(&why).copied().unwrap_or(0);
            verdicts.spurious += tally.spurious();
            verdicts.spurious_fast_retransmit += by(RetransmitReason::FastRetransmit);
            verdicts.spurious_timeout += by(RetransmitReason::Timeout);
            verdicts.spurious_probe += by(RetransmitReason::Probe);
            for (reason, count) in &tally.unknown {
                *verdicts.reasons.entry(*reason).or_default() += count;
                verdicts.cannot_tell += count;
            }
        }
        verdicts
    }

    /// Verdicts of all kinds.
    pub fn all(&self) -> u64 {
        self.lost + self.reordered + self.duplicated + self.spurious + self.discarded + self.cannot_tell
    }
}

/// The distribution of the tally with the most values.
fn largest<'a>(
    tallies: &[&'a VerdictCounts],
    of: impl Fn(&'a VerdictCounts) -> &'a LogHistogram,
) -> Option<&'a LogHistogram> {
    tallies.iter().map(|tally| of(tally)).max_by_key(|spread| spread.values)
}

impl ReorderingReport {
    fn of(reordering: &Reordering, tallies: &[&VerdictCounts]) -> ReorderingReport {
        let extents = largest(tallies, |tally| &tally.extents);
        ReorderingReport::by(reordering, extents, largest(tallies, |tally| &tally.late_us))
    }

    /// Of packets that were followed one by one.
    pub(crate) fn of_arrivals(reordering: &Reordering, lateness: &Lateness) -> ReorderingReport {
        ReorderingReport::by(reordering, Some(&lateness.extents), Some(&lateness.late_us))
    }

    /// By the extents and the lateness of reordered packets.
    fn by(reordering: &Reordering, extents: Option<&LogHistogram>, late: Option<&LogHistogram>) -> ReorderingReport {
        let [extents, late] = [extents, late].map(|spread| spread.filter(|spread| spread.values > 0));
        let late_ms = |q| late.and_then(|late| late.quantile(q)).map(us_to_ms);
        let runs = reordering.free_runs();
        ReorderingReport {
            arrived: reordering.arrived(),
            ratio: reordering.ratio(),
            extent_p50: extents.and_then(|extents| extents.quantile(0.5)),
            extent_p99: extents.and_then(|extents| extents.quantile(0.99)),
            extent_max: extents.map(|extents| extents.most),
            late_p50_ms: late_ms(0.5),
            late_p99_ms: late_ms(0.99),
            late_max_ms: late.map(|late| us_to_ms(late.most)),
            n_reordered: N.map(|n| reordering.n_reordered(n)),
            free_runs: runs.runs,
            free_run_mean: runs.mean(),
        }
    }
}

impl LossRuns {
    fn of(tallies: &[&VerdictCounts]) -> LossRuns {
        let runs: Vec<&LogHistogram> = tallies.iter().map(|tally| &tally.loss_runs).collect();
        let count: u64 = runs.iter().map(|spread| spread.values).sum();
        let packets: u64 = tallies.iter().map(|tally| tally.lost).sum();
        LossRuns {
            runs: count,
            mean: (count > 0).then(|| packets as f64 / count as f64),
            longest: runs.iter().map(|spread| spread.most).max().unwrap_or(0),
        }
    }
}

impl LossRuns {
    /// By the lengths of the runs.
    pub(crate) fn by(runs: &LogHistogram, packets: u64) -> LossRuns {
        let mean = (runs.values > 0).then(|| packets as f64 / runs.values as f64);
        LossRuns { runs: runs.values, mean, longest: runs.most }
    }
}

impl OptionsReport {
    fn of(direction: &Direction, data: &Data, other: Option<Offer>) -> OptionsReport {
        let both = direction.syn().zip(other);
        OptionsReport {
            sack: both.map(|(a, b)| a.sack && b.sack),
            timestamps: both.map(|(a, b)| a.timestamps && b.timestamps),
            dsacks: data.downstream.duplicates,
            hidden_sacks: data.downstream.hidden,
            largest_payload: data.largest(),
            mss: other.and_then(|syn| syn.mss),
            path_mtu: data.path_mtu(),
        }
    }
}
