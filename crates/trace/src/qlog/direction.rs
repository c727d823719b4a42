//! One direction of a connection: what its sender's log, its receiver's or both show.

use reknit_units::Instant;
use schemars::JsonSchema;
use serde::Serialize;

use super::end::End;
use super::event::{LossReason, Space};
use super::outbound::{Late, Loss, Outbound};
use super::windows::Reduction;
use crate::advice::about_qlog;
use crate::spread::LogHistogram;
use crate::{Advice, LossRuns, ReorderingReport, RoundTripReport};

/// The thresholds that a sender uses until it adapts (RFC 9002 §6.1).
const PACKET_THRESHOLD: u64 = 3;
const TIME_THRESHOLD: f64 = 1.125;
/// As many late packets are covered by each threshold that 99 % are covered by both.
const NEARLY_ALL: f64 = 0.995;
/// Reductions in the document.
const MAX_REDUCTIONS: usize = 1000;

/// One direction of a connection.
#[derive(Clone, Default, PartialEq, Debug, Serialize, JsonSchema)]
pub struct QlogDirection {
    /// The connection's number, from 0.
    pub connection: u32,
    /// What identifies it in the logs (`group_id` or `ODCID`); null if nothing does.
    pub group: Option<String>,
    /// The sender of the data: `client`, `server`, `this end` or `the peer`.
    pub from: &'static str,
    /// Its receiver.
    pub to: &'static str,
    /// The sender's log was given.
    pub sender_logged: bool,
    /// The receiver's log was given.
    pub receiver_logged: bool,
    /// Packets that elicit acknowledgments; if only the receiver's log was given, all packets that it received.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Bytes of streams and datagrams. The sender's log shows which were sent again: they count once.
    pub bytes_of_data: u64,
    /// From the first of these packets to the last, seconds.
    pub duration_s: f64,
    /// Data that was delivered over that time, Mbit/s.
    pub goodput_mbit_s: f64,
    /// Packets that the sender declared lost, without probes of the path MTU.
    pub declared_lost: u64,
    /// Of these, packets that were not lost but late: they were acknowledged later or are in the receiver's log.
    pub late: u64,
    /// Of these, packets that were never acknowledged and are not in the receiver's log.
    pub not_acknowledged: u64,
    /// Of these, packets that arrived, but that the receiver took for duplicates because they were too late; null without its log.
    pub discarded: Option<u64>,
    /// Packets that were lost: the others of `not_acknowledged`, if the receiver's log shows that; else null.
    pub lost: Option<u64>,
    /// Packets that were declared lost because of later packet numbers.
    pub by_packet_threshold: u64,
    /// Packets that were declared lost because of the time.
    pub by_time_threshold: u64,
    /// Packets that were declared lost because of a probe timeout.
    pub by_probe_timeout: u64,
    /// Packets that the log counts as lost without saying which.
    pub lost_without_numbers: u64,
    /// The sender's log has acknowledgments. Without them, only the receiver's log shows what was late.
    pub acks_logged: bool,
    /// Packets that were neither acknowledged nor declared lost, although packets three higher were acknowledged.
    pub passed_over: u64,
    /// Packet numbers that are not in the receiver's log, below the largest one: they were lost or skipped; null without it.
    pub missing_numbers: Option<u64>,
    /// Packets that the receiver logged twice.
    pub duplicated: u64,
    /// The sender's packet threshold (RFC 9002 §6.1.1), as logged when it began; null if the log does not have it.
    pub packet_threshold: Option<u64>,
    /// Its time threshold (§6.1.2), round trips.
    pub time_threshold: Option<f64>,
    /// The thresholds that late packets would have needed; null if no packet that was declared lost was acknowledged.
    pub thresholds: Option<ThresholdReport>,
    /// The reordering (RFC 4737) of the number space with the most packets: in the order of arrival if the receiver's log was
    /// given, else in the order of the acknowledgments, where packets that are acknowledged together are in order.
    pub reordering: ReorderingReport,
    /// Runs of packets that were not late but lost, or never acknowledged.
    pub loss_runs: LossRuns,
    /// The congestion window.
    pub window: WindowReport,
    /// Probe timeouts (PTO) of the sender.
    pub probe_timeouts: u64,
    /// Round trips that the sender measured; null without its log.
    pub round_trip: Option<RoundTripReport>,
    /// What to do, the most important first.
    pub advice: Vec<Advice>,
}

/// How late the packets were that were declared lost and acknowledged later, and the thresholds that would have been enough.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ThresholdReport {
    /// Late packets that this is about.
    pub packets: u64,
    /// How much larger the largest acknowledged packet number was when a late packet was acknowledged: median.
    pub behind_p50: u64,
    /// 99th percentile.
    pub behind_p99: u64,
    /// Largest.
    pub behind_max: u64,
    /// From sending to acknowledgment, in units of the larger of the smoothed and the latest round trip: median.
    pub round_trips_p50: f64,
    /// 99th percentile.
    pub round_trips_p99: f64,
    /// Largest.
    pub round_trips_max: f64,
    /// The smallest packet threshold (RFC 9002 §6.1.1) that, together with the time threshold below, covers 99 % of them.
    pub packet_threshold_99: u64,
    /// The time threshold (§6.1.2), in round trips.
    pub time_threshold_99: f64,
    /// The packet threshold that covers all of them.
    pub packet_threshold_all: u64,
    /// The time threshold that covers all of them.
    pub time_threshold_all: f64,
}

/// The congestion window, as the sender logged it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct WindowReport {
    /// How often it was reduced, by at least 5 %.
    pub reductions: u64,
    /// Of these, reductions of which all losses that caused them were late packets.
    pub false_reductions: u64,
    /// Reductions without a declared loss before them.
    pub without_loss: u64,
    /// For how long it was smaller than before a reduction, seconds.
    pub smaller_s: f64,
    /// The reductions: the first 1000.
    pub list: Vec<ReductionReport>,
}

/// A reduction of the congestion window.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ReductionReport {
    /// When, seconds after the first event.
    pub at_s: f64,
    /// The window before, bytes; null if the log has no windows.
    pub before: Option<u64>,
    /// And after.
    pub after: Option<u64>,
    /// How long it took until the window was as large as before, seconds; null if it was not.
    pub regained_after_s: Option<f64>,
    /// Declared losses that caused it.
    pub losses: u64,
    /// Of these, late packets.
    pub late: u64,
}

impl QlogDirection {
    /// None if nothing was sent. `names`: those of the sender and of the receiver.
    pub(super) fn of(
        connection: u32,
        names: [&'static str; 2],
        sender: Option<&End>,
        receiver: Option<&End>,
    ) -> Option<QlogDirection> {
        let end = sender.or(receiver)?;
        let [from, to] = names;
        let mut report = QlogDirection {
            connection,
            group: end.group.clone(),
            from,
            to,
            sender_logged: sender.is_some(),
            receiver_logged: receiver.is_some(),
            missing_numbers: receiver.map(|end| end.inbound.missing()),
            duplicated: receiver.map_or(0, |end| end.inbound.duplicates),
            ..QlogDirection::default()
        };
        if let Some(sender) = sender {
            report.set_sent(&sender.outbound, receiver);
            report.probe_timeouts = sender.timeouts();
            (report.packet_threshold, report.time_threshold) = sender.thresholds;
        }
        if let Some(receiver) = receiver {
            report.set_received(receiver);
        }
        report.advice = about_qlog(&report);
        (report.packets > 0).then_some(report)
    }

    fn set_sent(&mut self, sent: &Outbound, receiver: Option<&End>) {
        let is_late = |loss: &Loss| {
            let arrived = |end: &End| end.inbound.has(loss.path, loss.space, loss.number);
            loss.late.is_some() || receiver.is_some_and(arrived)
        };
        let losses: Vec<(&Loss, bool)> = sent.losses.iter().map(|loss| (loss, is_late(loss))).collect();
        let count = |reason| losses.iter().filter(|(loss, _)| loss.reason == reason).count() as u64;
        self.packets = sent.packets;
        self.bytes = sent.bytes;
        self.bytes_of_data = sent.data;
        self.set_span(sent.span, sent.delivered());
        self.declared_lost = losses.len() as u64;
        self.late = losses.iter().filter(|(_, late)| *late).count() as u64;
        self.not_acknowledged = self.declared_lost - self.late;
        self.discarded = receiver.map(|end| {
            let is_discarded = |loss: &Loss| end.inbound.has_discarded(loss.path, loss.space, loss.number);
            losses.iter().filter(|(loss, late)| !late && is_discarded(loss)).count() as u64
        });
        self.lost = self.discarded.map(|discarded| self.not_acknowledged - discarded);
        self.by_packet_threshold = count(LossReason::PacketThreshold);
        self.by_time_threshold = count(LossReason::TimeThreshold);
        self.by_probe_timeout = count(LossReason::ProbeTimeout);
        self.lost_without_numbers = sent.unnamed_losses;
        self.acks_logged = sent.has_acks;
        self.passed_over = sent.passed_over();
        self.thresholds = ThresholdReport::of(&sent.losses.iter().filter_map(|loss| loss.late).collect::<Vec<_>>());
        self.reordering = ReorderingReport::of_arrivals(&sent.reordering(), &sent.lateness);
        self.loss_runs = loss_runs(&losses);
        self.window = WindowReport::of(&sent.windows.reductions, &losses);
        self.window.smaller_s = sent.windows.small.as_secs_f64();
        let samples = &sent.round_trip.samples_us;
        let quantile = |q| samples.quantile(q).map(|us| us as f64 / 1e3);
        self.round_trip = sent.round_trip.least.map(|least| RoundTripReport {
            least_ms: least.as_secs_f64() * 1e3,
            ack_p50_ms: quantile(0.5),
            ack_p99_ms: quantile(0.99),
        });
    }

    fn set_received(&mut self, receiver: &End) {
        let arrived = &receiver.inbound;
        self.reordering = ReorderingReport::of_arrivals(&arrived.reordering(), &arrived.lateness);
        if !self.sender_logged {
            self.packets = arrived.packets;
            self.bytes = arrived.bytes;
            self.bytes_of_data = arrived.data;
            self.set_span(arrived.span, arrived.data);
        }
    }

    fn set_span(&mut self, span: Option<(Instant, Instant)>, delivered: u64) {
        self.duration_s = span.map_or(0.0, |(first, last)| last.since(first).as_secs_f64());
        if self.duration_s > 0.0 {
            self.goodput_mbit_s = delivered as f64 * 8e-6 / self.duration_s;
        }
    }

    /// Packets that were reordered.
    pub fn reordered(&self) -> u64 {
        #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
        let reordered = (self.reordering.ratio * self.reordering.arrived as f64).round() as u64;
        reordered
    }

    /// Packets that were lost; those that were never acknowledged, if it is not known how many of them were lost.
    pub fn lost_or_not_acknowledged(&self) -> u64 {
        self.lost.unwrap_or(self.not_acknowledged)
    }

    /// True if nothing was lost or late.
    pub fn is_quiet(&self) -> bool {
        let lost = self.declared_lost + self.lost_without_numbers + self.passed_over;
        lost == 0 && self.reordering.ratio == 0.0
    }
}

/// Runs of lost packets that were sent one after the other.
fn loss_runs(losses: &[(&Loss, bool)]) -> LossRuns {
    let lost = losses.iter().filter(|(_, late)| !late);
    let mut lost: Vec<(u64, Space, u64)> = lost.map(|(loss, _)| (loss.path, loss.space, loss.number)).collect();
    lost.sort_unstable();
    let mut runs = LogHistogram::default();
    for run in lost.chunk_by(|a, b| (a.0, a.1, a.2 + 1) == *b) {
        runs.add(run.len() as u64);
    }
    LossRuns::by(&runs, lost.len() as u64)
}

/// An exact quantile of sorted values: the smallest that is at least as large as this share of them.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    #[expect(clippy::cast_sign_loss, reason = "a share is not negative")]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied()
}

impl ThresholdReport {
    fn of(late: &[Late]) -> Option<ThresholdReport> {
        let mut behind: Vec<u64> = late.iter().map(|late| late.packets).collect();
        let mut times: Vec<f64> = late.iter().filter_map(|late| late.round_trips).collect();
        behind.sort_unstable();
        times.sort_unstable_by(f64::total_cmp);
        let packets = |share| quantile(&behind, share);
        let times = |share| quantile(&times, share).unwrap_or(0.0);
        // A packet is lost if the largest acknowledged number is larger by the threshold.
        let packet_threshold = |share| packets(share).map(|behind| PACKET_THRESHOLD.max(behind + 1));
        let time_threshold = |share| TIME_THRESHOLD.max(times(share));
        Some(ThresholdReport {
            packets: late.len() as u64,
            behind_p50: packets(0.5)?,
            behind_p99: packets(0.99)?,
            behind_max: packets(1.0)?,
            round_trips_p50: times(0.5),
            round_trips_p99: times(0.99),
            round_trips_max: times(1.0),
            packet_threshold_99: packet_threshold(NEARLY_ALL)?,
            time_threshold_99: time_threshold(NEARLY_ALL),
            packet_threshold_all: packet_threshold(1.0)?,
            time_threshold_all: time_threshold(1.0),
        })
    }
}

impl WindowReport {
    /// Losses belong to the first reduction after them, which may be logged later than it happens. Packets that were sent before the
    /// loss that caused the reduction before do not reduce the window again (RFC 9002 §7.3.2), unless that was undone.
    fn of(reductions: &[Reduction], losses: &[(&Loss, bool)]) -> WindowReport {
        let mut report = WindowReport { reductions: reductions.len() as u64, ..WindowReport::default() };
        let mut losses = losses.iter().peekable();
        let mut recovery: Option<(Instant, Option<Instant>)> = None;
        for reduction in reductions {
            let mut of_recovery: Vec<&(&Loss, bool)> = Vec::new();
            let mut new: Vec<&(&Loss, bool)> = Vec::new();
            while let Some(loss) = losses.next_if(|(loss, _)| loss.declared <= reduction.at) {
                let is_of_recovery = recovery.is_some_and(|(start, end)| {
                    let goes_on = end.is_none_or(|end| end > loss.0.declared);
                    goes_on && loss.0.sent.is_some_and(|sent| sent <= start)
                });
                if is_of_recovery { &mut of_recovery } else { &mut new }.push(loss);
            }
            let all = if new.is_empty() { of_recovery } else { new };
            let (causes, late) = (all.len() as u64, all.iter().filter(|(_, is_late)| *is_late).count() as u64);
            recovery = Some((all.first().map_or(reduction.at, |(loss, _)| loss.declared), reduction.regained));
            report.false_reductions += u64::from(causes > 0 && causes == late);
            report.without_loss += u64::from(causes == 0);
            if report.list.len() < MAX_REDUCTIONS {
                report.list.push(ReductionReport {
                    at_s: reduction.at.as_secs_f64(),
                    before: reduction.window.map(|(before, _)| before),
                    after: reduction.window.map(|(_, after)| after),
                    regained_after_s: reduction.regained.map(|at| at.since(reduction.at).as_secs_f64()),
                    losses: causes,
                    late,
                });
            }
        }
        report
    }
}
