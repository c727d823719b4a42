//! `reknit shield status`: the metrics of a running shield as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use crate::{Failure, output};

pub(crate) fn show(address: SocketAddr) -> Result<(), Failure> {
    let metrics = reknit_shield::fetch(address)
        .map_err(|error| Failure::Failed(format!("{error}; does `reknit shield` run, and with these --metrics?")))?;
    output::print(&text(&metrics))
}

/// Totals, and a line for each flow that suffers.
fn text(metrics: &str) -> String {
    let samples = || metrics.lines().filter_map(|line| line.strip_prefix("reknit_shield_")?.rsplit_once(' '));
    let totals: BTreeMap<&str, &str> = samples().filter(|(name, _)| !name.contains('{')).collect();
    let count = |name: &str| reknit_units::grouped(totals.get(name).and_then(|value| value.parse().ok()).unwrap_or(0));
    let mut text = format!(
        "packets   {} seen, {} late, {} held, {} held now\nflows     {}; {} spurious retransmissions\n\
         trials    {} begun, {} made a flow faster, {} ended\n",
        count("packets_total"),
        count("late_packets_total"),
        count("held_packets_total"),
        count("held_packets"),
        count("flows"),
        count("spurious_retransmissions_total"),
        count("trials_total"),
        count("trials_kept_total"),
        count("trials_ended_total"),
    );
    for (labels, spurious) in samples().filter_map(|(name, value)| Some((name.strip_prefix("flow_spurious{")?, value)))
    {
        let label = |name: &str| {
            let (_, rest) = labels.split_once(&format!("{name}=\"")).unwrap_or_default();
            rest.split('"').next().unwrap_or_default().to_owned()
        };
        let _ = writeln!(
            text,
            "{} to {}: {}; {} late packets, {spurious} spurious retransmissions, waits {} ms",
            label("from"),
            label("to"),
            label("phase"),
            label("late"),
            label("wait_ms"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_flows_are_shown() {
        let metrics = "# TYPE reknit_shield_flows gauge\nreknit_shield_flows 3\nreknit_shield_packets_total 12345\n\
                       reknit_shield_flow_spurious{from=\"10.0.0.1:2\",to=\"[fd00::1]:3\",phase=\"held\",late=\"70\",wait_ms=\"55\"} 12\n";
        let text = text(metrics);
        assert!(text.starts_with("packets   12,345 seen, 0 late"), "{text}");
        assert!(
            text.ends_with(
                "10.0.0.1:2 to [fd00::1]:3: held; 70 late packets, 12 spurious retransmissions, waits 55 ms\n"
            )
        );
    }
}
