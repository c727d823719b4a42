//! Counters in the text format of Prometheus.

use std::fmt::Write;

use reknit_path::resequencer::{Counts, Phase};

use crate::reader::Known;

/// A metric: its name, what it means, and where it is.
type Metric = (&'static str, &'static str, fn(&Counts) -> u64);

const METRICS: [Metric; 8] = [
    ("packets_total", "TCP packets that were seen.", |c| c.packets),
    ("late_packets_total", "Packets that arrived after others that were sent later.", |c| c.late),
    ("spurious_retransmissions_total", "Retransmissions of data that was only late.", |c| c.spurious),
    ("held_packets_total", "Packets that were held.", |c| c.held),
    ("given_up_total", "Times that a missing packet was no longer waited for.", |c| c.given_up),
    ("trials_total", "Trials that were begun.", |c| c.trials),
    ("trials_kept_total", "Trials that made a flow faster.", |c| c.kept),
    ("trials_ended_total", "Trials that did not, or no longer.", |c| c.ended),
];

/// All metrics of these readers together.
pub(crate) fn text(all: &[Known]) -> String {
    let mut text = String::new();
    for (name, help, value) in METRICS {
        let value: u64 = all.iter().map(|known| value(&known.counts)).sum();
        let _ = writeln!(text, "# HELP reknit_shield_{name} {help}\n# TYPE reknit_shield_{name} counter");
        let _ = writeln!(text, "reknit_shield_{name} {value}");
    }
    for (name, help, value) in [
        ("held_packets", "Packets that are held now.", all.iter().map(|known| known.held).sum::<usize>()),
        ("flows", "Flows that are followed.", all.iter().map(|known| known.flows).sum()),
    ] {
        let _ = writeln!(text, "# HELP reknit_shield_{name} {help}\n# TYPE reknit_shield_{name} gauge");
        let _ = writeln!(text, "reknit_shield_{name} {value}");
    }
    let delays = || all.iter().flat_map(|known| &known.delays);
    if delays().next().is_some() {
        let help = "How long packets of an interface are held.";
        let _ = writeln!(text, "# HELP reknit_shield_delay_seconds {help}\n# TYPE reknit_shield_delay_seconds gauge");
    }
    for (interface, delay) in delays() {
        let _ = writeln!(text, "reknit_shield_delay_seconds{{interface=\"{interface}\"}} {}", delay.as_secs_f64());
    }
    let help = "Spurious retransmissions of the flows that suffer most.";
    let _ = writeln!(text, "# HELP reknit_shield_flow_spurious {help}\n# TYPE reknit_shield_flow_spurious gauge");
    for (flow, state) in all.iter().flat_map(|known| &known.worst) {
        let wait = state.wait.map_or(0, reknit_units::Duration::as_millis);
        let _ = writeln!(
            text,
            "reknit_shield_flow_spurious{{from=\"{}\",to=\"{}\",phase=\"{}\",late=\"{}\",wait_ms=\"{wait}\"}} {}",
            flow.source,
            flow.destination,
            name(state.phase),
            state.late,
            state.spurious
        );
    }
    text
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Watched => "watched",
        Phase::OnTrial => "on-trial",
        Phase::Held => "held",
        Phase::Left => "left",
    }
}

#[cfg(test)]
mod tests {
    use reknit_path::resequencer::FlowState;
    use reknit_wire::Endpoints;

    use super::*;

    #[test]
    fn the_readers_are_added_up() {
        let flow = Endpoints { source: "10.0.0.1:2".parse().unwrap(), destination: "10.0.0.2:3".parse().unwrap() };
        let state = FlowState { phase: Phase::OnTrial, late: 7, spurious: 4, wait: None, bytes: 9 };
        let counts = Counts { packets: 5, spurious: 4, ..Counts::default() };
        let known = Known { counts, held: 1, flows: 2, worst: vec![(flow, state)], ..Known::default() };
        let delays = vec![("wan0".to_owned(), reknit_units::Duration::from_millis(55))];
        let text = text(&[known.clone(), Known { delays, ..known }]);
        assert!(text.contains("\nreknit_shield_delay_seconds{interface=\"wan0\"} 0.055\n"), "{text}");
        for line in ["reknit_shield_packets_total 10", "reknit_shield_held_packets 2", "reknit_shield_flows 4"] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        let line = "{from=\"10.0.0.1:2\",to=\"10.0.0.2:3\",phase=\"on-trial\",late=\"7\",wait_ms=\"0\"} 4";
        assert_eq!(text.matches(line).count(), 2, "{text}");
    }
}
