//! Advice about what a qlog shows.

use super::{Advice, holds_back};
use crate::qlog::QlogDirection;

/// Advice for one direction, the most important first.
pub(crate) fn about_qlog(report: &QlogDirection) -> Vec<Advice> {
    let mut advice = Vec::new();
    let keep_order = Advice::KeepOrder { buffer: None, gain: None };
    if report.declared_lost > 0 && !report.acks_logged && !report.receiver_logged {
        return vec![Advice::LogAcks];
    }
    if !report.sender_logged {
        if report.reordering.ratio > 0.0 {
            advice.extend([Advice::LogSender, keep_order]);
        }
        return advice;
    }
    let lost = report.lost_or_not_acknowledged();
    let discarded = report.discarded.unwrap_or(0);
    let losses = (lost > 0).then(|| about_losses(report, lost));
    if discarded > report.late.max(lost) {
        advice.push(Advice::RememberLonger);
    }
    if report.late > 0 && report.late >= lost {
        advice.extend(report.thresholds.as_ref().map(|needed| Advice::Thresholds {
            packets: [needed.packet_threshold_99, needed.packet_threshold_all],
            round_trips: [needed.time_threshold_99, needed.time_threshold_all],
            set: (report.packet_threshold, report.time_threshold),
        }));
        if discarded > 0 && !advice.contains(&Advice::RememberLonger) {
            advice.push(Advice::RememberLonger);
        }
        advice.push(keep_order);
        // A few losses among many late packets do not change the picture.
        advice.extend(losses.filter(|_| lost * 4 > report.late));
    } else {
        advice.extend(losses);
        if report.late > 0 {
            advice.push(keep_order);
        }
    }
    if advice.is_empty() && report.reordering.ratio > 0.0 {
        advice.push(Advice::Nothing);
    }
    advice
}

fn about_losses(report: &QlogDirection, lost: u64) -> Advice {
    let share = lost as f64 / report.packets.max(1) as f64;
    let size = report.bytes / report.packets.max(1);
    let explain = |least_ms| holds_back(share, size, least_ms, report.goodput_mbit_s);
    let matter = report.probe_timeouts > 0 || report.round_trip.as_ref().is_none_or(|trip| explain(trip.least_ms));
    if !matter {
        return Advice::FewLosses;
    }
    let run = report.loss_runs.mean.unwrap_or(1.0);
    Advice::FindLosses { lost, packets: report.packets, run, gain: None }
}
