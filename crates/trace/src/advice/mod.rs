//! What to do about what happened. The rules here use what the capture shows; what a replay of the path shows refines them
//! ([`DirectionReport::advise`]).

mod of_qlog;
mod replayed;
mod text;

use schemars::JsonSchema;

use crate::{CapturePoint, DirectionReport, Incident, UnknownReason, Verdicts};
pub(crate) use of_qlog::about_qlog;
pub use replayed::{Change, Remedy, Replayed};

/// Advice. `Display` writes the text that JSON has.
#[derive(Clone, Copy, PartialEq, Debug, JsonSchema)]
#[schemars(with = "String")]
pub enum Advice {
    /// Change a setting of the sender.
    Set {
        /// Which.
        change: Change,
        /// What it gives.
        gain: Gain,
    },
    /// Change nothing: no setting of the sender helps.
    NoSetting {
        /// What the sender reaches in a replay, and what the best of the others does.
        gain: Gain,
    },
    /// Change nothing: the transfer uses the bottleneck.
    Full {
        /// The share of what the bottleneck carries.
        share: f64,
    },
    /// Use a sender that waits for late packets.
    Tolerate {
        /// Lateness, ms: 99th percentile.
        late_ms: f64,
    },
    /// Use a sender that does not slow down, because packets are too late to wait for them.
    UseModel {
        /// Lateness, ms: 99th percentile.
        late_ms: f64,
    },
    /// Make the network keep the order.
    KeepOrder {
        /// Packets that a buffer has to hold to restore the order.
        buffer: Option<u64>,
        /// What it gives, if a replay has shown it.
        gain: Option<Gain>,
    },
    /// Enable F-RTO.
    DetectSpuriousTimeouts,
    /// Enable SACK.
    EnableSack,
    /// Enable timestamps.
    EnableTimestamps,
    /// Find the cause of losses.
    FindLosses {
        /// Lost packets.
        lost: u64,
        /// Packets with data.
        packets: u64,
        /// How many are lost in a row, on average.
        run: f64,
        /// What it gives if none are lost, if a replay has shown it.
        gain: Option<Gain>,
    },
    /// Nothing to do: losses are too rare to matter.
    FewLosses,
    /// Find the cause of copies.
    FindCopies,
    /// Nothing to do: the sender tolerates the reordering.
    Nothing,
    /// Find the MTU of the path, and set a smaller one.
    FindMtu,
    /// Set the MTU that routers say.
    LowerMtu {
        /// The largest packet that fits, bytes; none if they do not say.
        mtu: Option<u32>,
        /// The bytes of the IP and TCP headers.
        headers: u32,
    },
    /// Make the receiver read faster, or enlarge its buffers.
    ReadFaster {
        /// How long its window was closed or full, seconds.
        limited_s: f64,
    },
    /// Find out why the other end is silent.
    FindSilence,
    /// Use a receiver that keeps out-of-order data.
    KeepOutOfOrder,
    /// Capture all packets.
    CaptureAll,
    /// Capture the data too, not only its acknowledgments.
    CaptureBoth,
    /// Capture packets that are not compressed.
    CaptureUncompressed,
    /// Find where packets are dropped that were captured near the receiver but did not reach its TCP.
    FindDrops,
    /// Set larger thresholds of loss detection (RFC 9002 §6.1), which cover 99 % of the late packets or all of them.
    Thresholds {
        /// Packet numbers: 99 %, all.
        packets: [u64; 2],
        /// Round trips: 99 %, all.
        round_trips: [f64; 2],
        /// Those of the sender, if they are known.
        set: (Option<u64>, Option<f64>),
    },
    /// Log at the sender too.
    LogSender,
    /// Make the receiver remember more packet numbers.
    RememberLonger,
    /// Log at the receiver too, or log ACK frames.
    LogAcks,
    /// Capture at the other end.
    CaptureAt {
        /// Which end.
        place: CapturePoint,
        /// This one has the handshake.
        has_handshake: bool,
    },
}

/// Goodput on the measured path in a replay, Mbit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// As captured.
    pub without: f64,
    /// With the change.
    pub with: f64,
    /// The capture does not show how fast the path is, so `with` is only a lower limit.
    pub is_least: bool,
}

impl Gain {
    /// A change must give so many times as much to be worth it.
    pub const WORTH: f64 = 1.2;
}

/// Fewer losses than this have no pattern.
pub(crate) const SOME: u64 = 3;
/// Above this share of the time, the receiver limits the transfer.
const MUCH: f64 = 0.05;
/// Payloads of up to this size fit through any tunnel.
const SMALL: u32 = 1_000;
/// Packets that overtook another one, after which a sender that counts duplicate ACKs sends that again (RFC 5681): the index
/// in [`crate::N`].
const THREE: usize = 2;
/// A sender that retransmits at most this share of such packets waits for them.
const FEW: f64 = 0.1;
/// Losses in runs of at least this mean length are those of a queue that overflows, or of a link that fails.
const RUN: f64 = 3.0;
/// Losses in runs of at most this mean length come mostly one by one.
const SINGLE: f64 = 1.5;

/// Advice about what happened to the connection rather than to packets.
fn about_connection(report: &DirectionReport) -> Vec<Advice> {
    let mut advice = Vec::new();
    let has = |what| report.incident(what).is_some();
    let is_large = |bytes: u64| bytes >= u64::from(SMALL) && report.options.largest_payload < SMALL;
    let never_arrived = report.incident(Incident::NeverRepaired).is_some_and(|incident| is_large(incident.bytes));
    if has(Incident::TooBig) {
        let headers = if report.from.starts_with('[') { 60 } else { 40 };
        advice.push(Advice::LowerMtu { mtu: report.options.path_mtu, headers });
    } else if has(Incident::NoAnswerToFullSegments) || never_arrived {
        advice.push(Advice::FindMtu);
    } else if [Incident::NoAnswerToSyn, Incident::KeepAlives, Incident::NoAnswer].into_iter().any(has) {
        advice.push(Advice::FindSilence);
    }
    let limited_s = report.limited_by_receiver_s;
    if has(Incident::WindowClosed) && (limited_s >= 1.0 || limited_s >= MUCH * report.duration_s) {
        advice.push(Advice::ReadFaster { limited_s });
    }
    if report.verdicts.discarded > 0 {
        advice.push(Advice::KeepOutOfOrder);
    }
    if report.is_unseen() {
        advice.push(Advice::CaptureBoth);
    } else if has(Incident::NotCaptured) {
        advice.push(Advice::CaptureAll);
    }
    advice
}

/// Advice about the speed of the transfer, as far as the capture alone shows what helps.
fn about_speed(report: &DirectionReport) -> Vec<Advice> {
    let (verdicts, reordering) = (&report.verdicts, &report.reordering);
    let mut advice = Vec::new();
    let keep_order = Advice::KeepOrder { buffer: report.buffer(), gain: None };
    let full = report.full().filter(|_| verdicts.lost + verdicts.spurious > 0);
    advice.extend(full.map(|share| Advice::Full { share }));
    if report.suffers_from_reordering() {
        let late_ms = reordering.late_p99_ms.unwrap_or(0.0);
        let is_patient = report.waits_for_late_packets();
        let is_slow = full.is_none() && (!is_patient || report.cost.false_reductions > 0);
        // What no sender can wait for is for the network to mend.
        if is_slow && report.round_trip.as_ref().is_some_and(|round_trip| late_ms > round_trip.least_ms) {
            advice.extend([keep_order, Advice::UseModel { late_ms }]);
        } else if is_slow && !is_patient {
            advice.extend([Advice::Tolerate { late_ms }, keep_order]);
        } else {
            advice.push(keep_order);
        }
    } else if full.is_none() && verdicts.spurious_timeout * 2 > verdicts.spurious && !report.undoes() {
        advice.push(Advice::DetectSpuriousTimeouts);
    }
    if verdicts.lost > verdicts.spurious && !report.loses_mostly_in_host() && full.is_none() {
        advice.push(if report.is_held_back_by_losses() { report.find_losses(None) } else { Advice::FewLosses });
    }
    if advice.is_empty() && verdicts.reordered > 0 && verdicts.spurious == 0 && !is_unknown(report) {
        advice.push(Advice::Nothing);
    }
    advice
}

/// True if too many events have no verdict that a capture at the other end would show. Late packets are many, so nearly all events
/// may have one, but hardly any retransmission.
fn is_unknown(report: &DirectionReport) -> bool {
    let verdicts = &report.verdicts;
    let not_shown_there = [UnknownReason::CaptureEnds, UnknownReason::ConnectionReset, UnknownReason::Truncated];
    let not_shown: u64 = not_shown_there.iter().filter_map(|reason| verdicts.reasons.get(reason)).sum();
    let unknown = verdicts.cannot_tell.saturating_sub(not_shown);
    unknown * 20 > verdicts.all() || unknown > verdicts.lost + verdicts.spurious
}

/// Advice for one direction, the most important first. `speed`: what a replay has shown about its speed.
pub(crate) fn advice(report: &DirectionReport, speed: Option<Vec<Advice>>) -> Vec<Advice> {
    let verdicts = &report.verdicts;
    let mut advice = about_connection(report);
    if verdicts.all() == 0 {
        return advice;
    }
    if report.loses_mostly_in_host() {
        advice.push(Advice::FindDrops);
    }
    // Several holes at a time are what SACK is for; reordering makes holes.
    let lacks_sack = report.options.sack == Some(false) && (verdicts.lost >= SOME || verdicts.reordered > 0);
    if lacks_sack && verdicts.reordered > 0 {
        advice.push(Advice::EnableSack);
    }
    advice.extend(speed.unwrap_or_else(|| about_speed(report)));
    if report.loses_in_host() && !report.loses_mostly_in_host() {
        advice.push(Advice::FindDrops);
    }
    if lacks_sack && verdicts.reordered == 0 {
        advice.push(Advice::EnableSack);
    }
    if report.options.timestamps == Some(false) && verdicts.spurious > 0 {
        advice.push(Advice::EnableTimestamps);
    }
    if verdicts.duplicated > verdicts.all() / 4 {
        advice.push(Advice::FindCopies);
    }
    let has_acks = report.acknowledged_bytes > 0 || report.captured_at == CapturePoint::Receiver;
    if is_unknown(report) && has_acks {
        let is_sender = report.captured_at == CapturePoint::Sender;
        let place = if is_sender { CapturePoint::Receiver } else { CapturePoint::Sender };
        advice.push(Advice::CaptureAt { place, has_handshake: report.options.sack.is_some() });
    }
    // Not beside something that should be done.
    if advice.iter().any(|advice| !advice.is_nothing()) {
        advice.retain(|advice| !advice.is_nothing());
    }
    advice.shrink_to_fit();
    advice
}

/// True if so many packets were lost that a window that is halved for each would not allow much more than has passed
/// (Mathis, Semke, Mahdavi and Ott, 1997). `share`: of packets that were lost; `segment`: bytes.
fn holds_back(share: f64, segment: u64, round_trip_ms: f64, goodput_mbit_s: f64) -> bool {
    const CONSTANT: f64 = 1.22;
    const MUCH_MORE: f64 = 2.0;
    let allowed = CONSTANT * segment as f64 * 8e-6 / (round_trip_ms / 1e3 * share.sqrt());
    allowed < MUCH_MORE * goodput_mbit_s
}

/// What a capture shows of the sender.
impl DirectionReport {
    /// The share of what the bottleneck carries, if nothing could make the transfer much faster.
    fn full(&self) -> Option<f64> {
        let share = self.goodput_mbit_s / self.bottleneck_mbit_s?;
        (share * Gain::WORTH >= 1.0).then_some(share.min(1.0))
    }

    /// True if most retransmissions were spurious because packets were late.
    fn suffers_from_reordering(&self) -> bool {
        let Verdicts { lost, reordered, spurious, .. } = self.verdicts;
        spurious > 0 && spurious >= lost && reordered >= spurious.div_ceil(2)
    }

    /// True if packets were captured near the receiver, but did not reach its TCP. A few among many spurious retransmissions
    /// are those that it discards for their old timestamps.
    fn loses_in_host(&self) -> bool {
        const MOSTLY: u64 = 20;
        self.lost_in_host() * MOSTLY > self.verdicts.lost + self.verdicts.spurious
    }

    /// True if these are most of the packets that were lost.
    fn loses_mostly_in_host(&self) -> bool {
        self.loses_in_host() && self.lost_in_host() * 2 > self.verdicts.lost
    }

    /// Packets that were captured near the receiver, but perhaps did not reach its TCP.
    fn lost_in_host(&self) -> u64 {
        let unacknowledged = self.verdicts.reasons.get(&UnknownReason::NotAcknowledged).copied().unwrap_or(0);
        self.verdicts.lost_in_host + unacknowledged
    }

    /// True if the sender hardly ever retransmits packets of which duplicate ACKs say that they are missing, but are late.
    fn waits_for_late_packets(&self) -> bool {
        let late = self.reordering.n_reordered[THREE] as f64;
        late > 0.0 && self.verdicts.spurious_fast_retransmit as f64 <= FEW * late
    }

    /// True if the sender was seen to return to its rate after spurious retransmissions.
    fn undoes(&self) -> bool {
        self.cost.without_reduction > self.cost.false_reductions
    }

    /// True if losses explain why not more has passed.
    fn is_held_back_by_losses(&self) -> bool {
        let share = self.verdicts.lost as f64 / self.packets.max(1) as f64;
        let Some(round_trip) = &self.round_trip else { return true };
        self.incident(Incident::Timeouts).is_some()
            || holds_back(share, self.segment(), round_trip.least_ms, self.goodput_mbit_s)
    }

    /// What is missing may be in packets that cannot be read because they are compressed.
    pub(crate) fn do_not_compress(&mut self) {
        for advice in self.advice.iter_mut().filter(|advice| **advice == Advice::CaptureAll) {
            *advice = Advice::CaptureUncompressed;
        }
    }

    /// Packets that a buffer has to hold to restore the order.
    fn buffer(&self) -> Option<u64> {
        self.density.buffer_p99.filter(|packets| *packets > 0)
    }

    fn find_losses(&self, gain: Option<Gain>) -> Advice {
        let run = self.loss_runs.mean.unwrap_or(1.0);
        Advice::FindLosses { lost: self.verdicts.lost, packets: self.packets, run, gain }
    }
}
