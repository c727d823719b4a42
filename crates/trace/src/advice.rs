//! Advice on what to do about the verdicts and incidents.

use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::{DirectionReport, Incident, Place, Reason};

/// Advice. `Display` writes the text that JSON has.
#[derive(Clone, Copy, PartialEq, Debug, JsonSchema)]
#[schemars(with = "String")]
pub enum Advice {
    /// Use a sender that tolerates reordering of this extent.
    Tolerate {
        /// Reordering extent, packets: 99th percentile.
        extent: u64,
        /// Lateness, ms: 99th percentile.
        late_ms: f64,
        /// The sender was seen to slow down without a loss. A sender that is always slow shows no slowdown.
        slowed: bool,
    },
    /// Find the cause of the reordering.
    FindReordering,
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
        /// They are lost in runs.
        in_runs: bool,
    },
    /// Find the cause of copies.
    FindCopies,
    /// Nothing to do: the sender tolerates the reordering.
    Nothing,
    /// Find the MTU of the path, and set a smaller one.
    FindMtu,
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
    /// Find where packets are dropped that were captured near the receiver but did not reach its TCP.
    FindDrops,
    /// Capture at the other end.
    CaptureAt {
        /// Which end.
        place: Place,
        /// This one has the handshake.
        has_handshake: bool,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Advice::Tolerate { extent, late_ms, slowed } => write_tolerate(f, extent, late_ms, slowed),
            Advice::FindReordering => f.write_str(
                "find what reorders: load balancing by packet, bonded links, Wi-Fi or a tunnel with several threads; let it \
                 keep each flow on one path",
            ),
            Advice::DetectSpuriousTimeouts => f.write_str(
                "the sender's timer expired while packets were only delayed: enable F-RTO (Linux: net.ipv4.tcp_frto=2) and \
                 timestamps, and look for stalls or full queues on the path",
            ),
            Advice::EnableSack => f.write_str(
                "enable SACK at both ends (Linux: net.ipv4.tcp_sack=1): without it no algorithm against reordering works well",
            ),
            Advice::EnableTimestamps => f.write_str(
                "enable timestamps at both ends (Linux: net.ipv4.tcp_timestamps=1): the sender can then undo false \
                 reductions",
            ),
            Advice::FindLosses { lost, packets, in_runs } => write_losses(f, lost, packets, in_runs),
            Advice::FindCopies => f.write_str(
                "the network duplicates packets, or the capture contains them twice: look for a mirror port, a loop or a \
                 tunnel that sends twice",
            ),
            Advice::Nothing => f.write_str("the sender copes with this reordering: nothing to do there"),
            Advice::FindMtu => f.write_str(
                "full-sized packets vanish and smaller ones arrive: look for a link or tunnel with a smaller MTU that sends no \
                 ICMP messages; lower the MTU, limit the MSS to it, or set net.ipv4.tcp_mtu_probing=1 (Linux)",
            ),
            Advice::ReadFaster { limited_s } => write!(
                f,
                "the receiver held the transfer back for {limited_s:.1} s: its application did not read, or its receive buffer \
                 is too small (Linux: net.ipv4.tcp_rmem)"
            ),
            Advice::FindSilence => f.write_str(
                "nothing came back: look for a host that is down, and for a firewall or NAT that drops the packets or has \
                 forgotten the connection",
            ),
            Advice::KeepOutOfOrder => f.write_str(
                "the receiver keeps nothing that arrives out of order, so each loss costs all packets behind it: use one that \
                 does, with SACK",
            ),
            Advice::CaptureAll => f.write_str(
                "the capture lacks packets: give it a larger buffer (tcpdump -B 65536), or capture only the headers (-s 128)",
            ),
            Advice::FindDrops => f.write_str(
                "packets that were captured near the receiver did not reach its TCP: look for a firewall between them, for \
                 bad checksums and for drops in the host (`ethtool -S`, `nstat`)",
            ),
            Advice::CaptureAt { place, has_handshake } => write!(
                f,
                "some events have no verdict: capture at the {} too{}",
                if place == Place::Sender { "sender" } else { "receiver" },
                if has_handshake { "" } else { ", including the handshake" }
            ),
        }
    }
}

fn write_tolerate(f: &mut fmt::Formatter<'_>, extent: u64, late_ms: f64, slowed: bool) -> fmt::Result {
    let when = if slowed { "use" } else { "unless this is one, use" };
    let max_reordering = (extent + extent / 2).max(300);
    write!(
        f,
        "{when} a sender that tolerates packets {extent} places and {late_ms:.0} ms late: Linux with RACK \
         (net.ipv4.tcp_recovery=1) and net.ipv4.tcp_max_reordering of at least {max_reordering}, or FreeBSD with its rack \
         stack; `reknit replay` compares senders on this path"
    )
}

fn write_losses(f: &mut fmt::Formatter<'_>, lost: u64, packets: u64, in_runs: bool) -> fmt::Result {
    let share = 100.0 * lost as f64 / packets.max(1) as f64;
    let how = if in_runs {
        "in runs: a queue that overflows, or a link that fails for moments"
    } else {
        "one by one: a noisy link, or a policer"
    };
    write!(f, "{share:.2} % of packets were really lost, mostly {how}; tolerance of reordering does not help with that")
}

impl Serialize for Advice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Above this share of the time, the receiver limits the transfer.
const MUCH: f64 = 0.05;
/// Payloads of up to this size fit through any tunnel.
const SMALL: u32 = 1_000;

/// Advice about what happened to the connection rather than to packets.
fn about_connection(report: &DirectionReport) -> Vec<Advice> {
    let mut advice = Vec::new();
    let has = |what| report.incident(what).is_some();
    let is_large = |bytes: u64| bytes >= u64::from(SMALL) && report.options.largest_payload < SMALL;
    let never_arrived = report.incident(Incident::NeverRepaired).is_some_and(|incident| is_large(incident.bytes));
    if has(Incident::NoAnswerToFullSegments) || never_arrived {
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
    if has(Incident::NotCaptured) {
        advice.push(Advice::CaptureAll);
    }
    advice
}

/// Advice for one direction, the most important first.
pub(crate) fn advice(report: &DirectionReport) -> Vec<Advice> {
    let verdicts = &report.verdicts;
    let mut advice = about_connection(report);
    if verdicts.all() == 0 {
        return advice;
    }
    let has_drops = verdicts.lost_in_host > 0 || verdicts.reasons.contains_key(&Reason::NotAcknowledged);
    if has_drops {
        advice.push(Advice::FindDrops);
    }
    if verdicts.spurious > 0 && verdicts.reordered >= verdicts.spurious.div_ceil(2) {
        let extent = report.reordering.extent_p99.unwrap_or(0);
        let late_ms = report.reordering.late_p99_ms.unwrap_or(0.0);
        advice.push(Advice::Tolerate { extent, late_ms, slowed: report.cost.false_reductions > 0 });
        advice.push(Advice::FindReordering);
    } else if verdicts.spurious_timeout * 2 > verdicts.spurious && verdicts.spurious > 0 {
        advice.push(Advice::DetectSpuriousTimeouts);
    }
    let has_happened = verdicts.lost + verdicts.spurious + verdicts.reordered > 0;
    if report.options.sack == Some(false) && has_happened {
        advice.push(Advice::EnableSack);
    }
    if report.options.timestamps == Some(false) && verdicts.spurious > 0 {
        advice.push(Advice::EnableTimestamps);
    }
    if verdicts.lost > verdicts.spurious && !has_drops {
        let in_runs = report.loss_runs.mean.unwrap_or(1.0) >= 3.0;
        advice.push(Advice::FindLosses { lost: verdicts.lost, packets: report.packets, in_runs });
    }
    if verdicts.duplicated > verdicts.all() / 4 {
        advice.push(Advice::FindCopies);
    }
    // Late packets are frequent: nearly all events may have a verdict although hardly any retransmission has one.
    let unknown =
        verdicts.cannot_tell * 20 > verdicts.all() || verdicts.cannot_tell > verdicts.lost + verdicts.spurious;
    if verdicts.reordered > 0 && verdicts.spurious == 0 && !unknown {
        advice.push(Advice::Nothing);
    }
    if unknown {
        let is_sender = report.captured_at == Place::Sender;
        let place = if is_sender { Place::Receiver } else { Place::Sender };
        advice.push(Advice::CaptureAt { place, has_handshake: report.options.sack.is_some() });
    }
    advice.shrink_to_fit();
    advice
}
