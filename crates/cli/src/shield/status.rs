//! `reknit shield status`: the metrics of a running shield as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use reknit_host::service;

use crate::{Failure, output};

pub(crate) fn show(address: SocketAddr) -> Result<(), Failure> {
    output::print(&text(&service::fetch("shield", address).map_err(Failure::Failed)?))
}

/// Totals, and a line for each flow that suffers.
fn text(metrics: &str) -> String {
    let samples = || service::samples("shield", metrics);
    let totals: BTreeMap<&str, &str> = samples().map(|one| (one.name, one.value)).collect();
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
    for one in samples().filter(|one| one.name == "delay_seconds") {
        let _ = writeln!(text, "{}: packets are held for {} s", one.label("interface"), one.value);
    }
    for flow in samples().filter(|one| one.name == "flow_spurious") {
        let _ = writeln!(
            text,
            "{} to {}: {}; {} late packets, {} spurious retransmissions, waits {} ms",
            flow.label("from"),
            flow.label("to"),
            flow.label("phase"),
            flow.label("late"),
            flow.value,
            flow.label("wait_ms"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_and_flows_are_shown() {
        let metrics = "# TYPE reknit_shield_flows gauge\nreknit_shield_flows 3\nreknit_shield_delay_seconds{interface=\"wan0\"} 0.055\nreknit_shield_packets_total 12345\n\
                       reknit_shield_flow_spurious{from=\"10.0.0.1:2\",to=\"[fd00::1]:3\",phase=\"held\",late=\"70\",wait_ms=\"55\"} 12\n";
        let text = text(metrics);
        assert!(text.starts_with("packets   12,345 seen, 0 late"), "{text}");
        assert!(text.contains("\nwan0: packets are held for 0.055 s\n"), "{text}");
        assert!(
            text.ends_with(
                "10.0.0.1:2 to [fd00::1]:3: held; 70 late packets, 12 spurious retransmissions, waits 55 ms\n"
            )
        );
    }
}
