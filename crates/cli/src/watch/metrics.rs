//! The metrics of `reknit watch`, in the text format of Prometheus.

use std::fmt::Write as _;
use std::io;
use std::net::{SocketAddr, TcpListener};

use reknit_trace::{Cost, Incident, Totals};

use super::{Shared, State, locked};

/// Connections that have metrics of their own: the worst ones.
const MAX_FLOWS: usize = 20;
/// Estimates of what spurious retransmissions cost, Mbit/s.
type Estimate = fn(&Cost) -> f64;
const COSTS: [(&str, &str, Estimate); 2] = [
    (
        "flow_cost_least_bits_per_second",
        "Throughput that spurious retransmissions cost, a conservative estimate.",
        |cost| cost.lost_least_mbit_s,
    ),
    ("flow_cost_most_bits_per_second", "Throughput that spurious retransmissions cost, a generous estimate.", |cost| {
        cost.lost_most_mbit_s
    }),
];

/// What to do about an address that cannot be used.
pub(super) fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; another program uses the port: choose another one, or 0 for a free one",
        io::ErrorKind::AddrNotAvailable => "; no interface has this address: use 127.0.0.1 or 0.0.0.0",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are for root: choose another one",
        _ => "",
    }
}

/// Serves until the program ends. Returns the address, which has a port even if 0 was given.
pub(super) fn serve(address: SocketAddr, shared: &Shared) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    let bound = listener.local_addr()?;
    let shared = shared.clone();
    reknit_host::service::serve(listener, move || text(&locked(&shared)));
    Ok(bound)
}

/// The label and the value of each verdict.
fn verdicts(totals: &Totals) -> Vec<(String, String)> {
    let counts = [
        ("lost", totals.lost),
        ("reordered", totals.reordered),
        ("duplicated", totals.duplicated),
        ("spurious", totals.spurious),
        ("discarded", totals.discarded),
        ("cannot_tell", totals.cannot_tell),
    ];
    let sample = |(name, count): (&str, u64)| (format!("{{verdict=\"{name}\"}}"), count.to_string());
    counts.into_iter().map(sample).collect()
}

/// The same for each incident.
fn incidents(totals: &Totals) -> Vec<(String, String)> {
    let sample =
        |what: Incident| (format!("{{incident=\"{}\"}}", what.name()), totals.incidents[what as usize].to_string());
    Incident::ALL.into_iter().map(sample).collect()
}

fn text(state: &State) -> String {
    let totals = state.watcher.totals();
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(text, "# HELP reknit_{name} {help}\n# TYPE reknit_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "reknit_{name}{labels} {value}");
        }
    };
    let one = |value: u64| [(String::new(), value.to_string())];
    metric("packets_total", "counter", "TCP packets seen.", &one(totals.tcp_packets));
    metric("payload_bytes_total", "counter", "Bytes of TCP payload seen.", &one(totals.bytes));
    metric("connections_total", "counter", "Connections seen.", &one(totals.flows));
    metric("connections", "gauge", "Connections that are followed.", &one(state.watcher.len() as u64));
    metric("connections_forgotten_total", "counter", "Connections beyond the limit.", &one(totals.forgotten));
    metric(
        "packets_copied_total",
        "counter",
        "Packets that were left out because they had been captured before.",
        &one(totals.copies),
    );
    metric(
        "kernel_drops_total",
        "counter",
        "Packets that the kernel dropped before they were seen.",
        &one(state.drops),
    );
    metric("verdicts_total", "counter", "Packets by what happened to them.", &verdicts(&totals));
    metric("incidents_total", "counter", "What happened to connections.", &incidents(&totals));
    let worst = state.watcher.worst(MAX_FLOWS);
    let mut of_flows =
        |name: &str, kind: &str, help: &str, value: &dyn Fn(&reknit_trace::DirectionReport) -> String| {
            let labels = |d: &reknit_trace::DirectionReport| {
                format!("{{connection=\"{}\",from=\"{}\",to=\"{}\"}}", d.stream, d.from, d.to)
            };
            let samples: Vec<(String, String)> = worst.iter().map(|d| (labels(d), value(d))).collect();
            metric(name, kind, help, &samples);
        };
    of_flows("flow_acknowledged_bytes_total", "counter", "Bytes acknowledged, of the worst connections.", &|d| {
        d.acknowledged_bytes.to_string()
    });
    of_flows("flow_lost_total", "counter", "Packets that were lost.", &|d| d.verdicts.lost.to_string());
    of_flows("flow_reordered_total", "counter", "Packets that were late.", &|d| d.verdicts.reordered.to_string());
    of_flows("flow_spurious_total", "counter", "Spurious retransmissions.", &|d| d.verdicts.spurious.to_string());
    of_flows(
        "flow_false_reductions_total",
        "counter",
        "Times the sender reduced its window although nothing was lost.",
        &|d| d.cost.false_reductions.to_string(),
    );
    for (name, help, value) in COSTS {
        of_flows(name, "gauge", help, &|d| (value(&d.cost) * 1e6).to_string());
    }
    of_flows("flow_late_p99_seconds", "gauge", "Lateness of reordered packets, 99th percentile.", &|d| {
        (d.reordering.late_p99_ms.unwrap_or(0.0) / 1e3).to_string()
    });
    text
}
