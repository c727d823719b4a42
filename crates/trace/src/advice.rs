//! What to do about what happened.

use crate::{DirectionReport, Place};

/// Advice for one direction, the most important first.
pub(crate) fn advice(report: &DirectionReport) -> Vec<String> {
    let verdicts = &report.verdicts;
    let mut advice = Vec::new();
    if verdicts.all() == 0 {
        return advice;
    }
    if verdicts.spurious > 0 && verdicts.reordered >= verdicts.spurious.div_ceil(2) {
        advice.push(against_reordering(report));
        advice.push(
            "find what reorders: load balancing by packet, bonded links, Wi-Fi or a tunnel with several threads; let it keep \
             each flow on one path"
                .to_owned(),
        );
    } else if verdicts.spurious_timeout * 2 > verdicts.spurious && verdicts.spurious > 0 {
        advice.push(
            "the sender's timer expired while packets were only delayed: enable F-RTO (Linux: net.ipv4.tcp_frto=2) and \
             timestamps, and look for stalls or full queues on the path"
                .to_owned(),
        );
    }
    if report.options.sack == Some(false) {
        advice.push("enable SACK at both ends (Linux: net.ipv4.tcp_sack=1): without it no cure works well".to_owned());
    }
    if report.options.timestamps == Some(false) && verdicts.spurious > 0 {
        advice.push(
            "enable timestamps at both ends (Linux: net.ipv4.tcp_timestamps=1): the sender can then undo false reductions"
                .to_owned(),
        );
    }
    if verdicts.lost > verdicts.spurious {
        advice.push(against_loss(report));
    }
    if verdicts.duplicated > verdicts.all() / 4 {
        advice
            .push("the network copies packets: look for a mirror port, a loop or a tunnel that sends twice".to_owned());
    }
    if verdicts.reordered > 0 && verdicts.spurious == 0 {
        advice.push("the sender copes with this reordering: nothing to do there".to_owned());
    }
    if verdicts.cannot_tell * 20 > verdicts.all() {
        let other = if report.captured_at == Place::Sender { "receiver" } else { "sender" };
        advice.push(format!("some events cannot be told: capture at the {other} too, with the handshake"));
    }
    advice
}

fn against_reordering(report: &DirectionReport) -> String {
    let late = report.reordering.late_p99_ms.unwrap_or(0.0);
    let extent = report.reordering.extent_p99.unwrap_or(0);
    format!(
        "use a sender that tolerates packets {extent} places and {late:.0} ms late: Linux with RACK (net.ipv4.tcp_recovery=1) \
         and net.ipv4.tcp_max_reordering of at least {}, FreeBSD with its rack stack; write the path with --path and \
         compare variants such as reknit, rack and linux on it",
        (extent + extent / 2).max(300)
    )
}

fn against_loss(report: &DirectionReport) -> String {
    let share = 100.0 * report.verdicts.lost as f64 / report.packets.max(1) as f64;
    let runs = report.loss_runs.mean.unwrap_or(1.0);
    let kind = if runs >= 3.0 {
        "in runs: a queue that overflows, or a link that fails for moments"
    } else {
        "one by one: a noisy link, or a policer"
    };
    format!("{share:.2} % of packets were really lost, mostly {kind}; no cure for reordering helps against that")
}
