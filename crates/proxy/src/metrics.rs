//! Counters, by listener and variant, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::goodput::Total;
use crate::steering::TABLE;

/// What became of the connections of a listener.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Open now.
    pub(crate) open: AtomicU64,
    /// Established with both sides.
    pub(crate) opened: AtomicU64,
    /// SYNs that were answered with a cookie.
    pub(crate) cookies: AtomicU64,
    /// Answered by a RST because the server refused.
    pub(crate) refused: AtomicU64,
    /// Answered by ICMP because the server cannot be reached.
    pub(crate) unreachable: AtomicU64,
    /// Not answered, because the server did not.
    pub(crate) unanswered: AtomicU64,
    /// Ended by a reset or another error.
    pub(crate) failed: AtomicU64,
    /// Passed on.
    pub(crate) to_server: AtomicU64,
    pub(crate) to_client: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

/// Counters of a listener, and their labels.
pub(crate) struct Labelled<'a> {
    pub(crate) listener: String,
    pub(crate) variant: &'a str,
    pub(crate) counters: &'a Counters,
    /// The goodput of connections that are left to the kernel, and of as many of ours.
    pub(crate) compared: [(&'static str, Total); 2],
}

/// A metric: its name, its kind, what it means, and where it is.
type Metric = (&'static str, &'static str, &'static str, fn(&Counters) -> &AtomicU64);

const METRICS: [Metric; 9] = [
    ("connections", "gauge", "Open connections.", |c| &c.open),
    ("connections_opened_total", "counter", "Connections that were established with both sides.", |c| &c.opened),
    ("cookies_total", "counter", "SYNs answered with a cookie, because many connections were being opened.", |c| {
        &c.cookies
    }),
    ("connections_refused_total", "counter", "Connections that the server refused.", |c| &c.refused),
    ("connections_unreachable_total", "counter", "Connections to servers that cannot be reached.", |c| &c.unreachable),
    ("connections_unanswered_total", "counter", "Connections that the server did not answer.", |c| &c.unanswered),
    ("connections_failed_total", "counter", "Connections that ended by a reset or another error.", |c| &c.failed),
    ("bytes_to_servers_total", "counter", "Bytes passed on from clients to servers.", |c| &c.to_server),
    ("bytes_to_clients_total", "counter", "Bytes passed on from servers to clients.", |c| &c.to_client),
];

/// All metrics.
pub(crate) fn text(all: &[Labelled<'_>]) -> String {
    let mut text = String::new();
    for (name, kind, help, counter) in METRICS {
        let _ = writeln!(text, "# HELP reknit_proxy_{name} {help}\n# TYPE reknit_proxy_{name} {kind}");
        for Labelled { listener, variant, counters, .. } in all {
            let value = counter(counters).load(Ordering::Relaxed);
            let _ = writeln!(text, "reknit_proxy_{name}{{listener=\"{listener}\",variant=\"{variant}\"}} {value}");
        }
    }
    text += &compared(all);
    let by_kernel = by_kernel();
    for (counter, name, help) in [
        ("untouched", "connections_untouched_total", "Connections left to the kernel for comparison."),
        ("full", "connections_beyond_limit_total", "Connections left to the kernel because of the limit."),
    ] {
        let _ = writeln!(text, "# HELP reknit_proxy_{name} {help}\n# TYPE reknit_proxy_{name} counter");
        for (i, one) in all.iter().enumerate() {
            let value = by_kernel.get(&format!("{counter}_{i}")).copied().unwrap_or(0);
            let _ = writeln!(text, "reknit_proxy_{name}{{listener=\"{}\"}} {value}", one.listener);
        }
    }
    text
}

/// A metric of a comparison: its name, what it means, and where it is.
type Compared = (&'static str, &'static str, fn(&Total) -> String);

/// What is compared, by who sends.
fn compared(all: &[Labelled<'_>]) -> String {
    let metrics: [Compared; 3] = [
        ("connections_total", "Transfers of at least 100 kB to clients.", |total| total.connections.to_string()),
        ("bytes_total", "Bytes that their clients have acknowledged.", |total| total.bytes.to_string()),
        ("seconds_total", "Seconds in which something was not acknowledged.", |total| total.seconds.to_string()),
    ];
    let mut text = String::new();
    for (name, help, value) in metrics {
        let _ =
            writeln!(text, "# HELP reknit_proxy_compared_{name} {help}\n# TYPE reknit_proxy_compared_{name} counter");
        for one in all {
            for (by, total) in &one.compared {
                let listener = &one.listener;
                let value = value(total);
                let _ = writeln!(text, "reknit_proxy_compared_{name}{{listener=\"{listener}\",by=\"{by}\"}} {value}");
            }
        }
    }
    text
}

/// The packets that the counters of the table have counted, by their names.
fn by_kernel() -> BTreeMap<String, u64> {
    let output = Command::new("nft").args(["list", "counters", "table", "inet", TABLE]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    counters(&text)
}

fn counters(text: &str) -> BTreeMap<String, u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let found = words.windows(5).filter_map(|words| match words {
        ["counter", name, "{", "packets", count] => Some(((*name).to_owned(), count.parse().ok()?)),
        _ => None,
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_counters_are_read() {
        let text = "table inet reknit_proxy {\n\tcounter taken_0 {\n\t\tpackets 5 bytes 300\n\t}\n\tcounter full_0 {\n\t\tpackets 0 bytes 0\n\t}\n}\n";
        let found = counters(text);
        assert_eq!((found["taken_0"], found["full_0"], found.len()), (5, 0, 2));
    }

    #[test]
    fn each_metric_has_its_labels() {
        let counters = Counters::default();
        Counters::add(&counters.opened, 3);
        let compared = [("kernel", Total::default()), ("proxy", Total { connections: 1, bytes: 5, seconds: 0.5 })];
        let one = Labelled { listener: "web".to_owned(), variant: "reknit", counters: &counters, compared };
        let text = text(&[one]);
        assert!(text.contains("reknit_proxy_compared_seconds_total{listener=\"web\",by=\"proxy\"} 0.5\n"), "{text}");
        assert!(
            text.contains("reknit_proxy_connections_opened_total{listener=\"web\",variant=\"reknit\"} 3\n"),
            "{text}"
        );
    }
}
