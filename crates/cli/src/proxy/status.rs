//! `reknit proxy status`: the metrics of a running proxy as text.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use reknit_host::service;

use crate::{Failure, output};

/// With fewer transfers of either kind, nothing is compared.
const MIN_TRANSFERS: f64 = 5.0;
/// A smaller difference is none.
const DIFFERENCE: f64 = 1.1;

pub(crate) fn show(address: SocketAddr) -> Result<(), Failure> {
    output::print(&text(&service::fetch("proxy", address).map_err(Failure::Failed)?))
}

/// The values by listener, and by name with the label `by`.
type Samples = BTreeMap<String, BTreeMap<String, String>>;

fn samples(metrics: &str) -> Samples {
    let mut samples = Samples::new();
    for one in service::samples("proxy", metrics) {
        let name = format!("{}{}", one.name, one.label("by"));
        samples.entry(one.label("listener").to_owned()).or_default().insert(name, one.value.to_owned());
    }
    samples
}

/// A paragraph for each listener.
fn text(metrics: &str) -> String {
    let mut text = String::new();
    for (listener, values) in samples(metrics) {
        let value = |name: &str| values.get(name).and_then(|value| value.parse().ok()).unwrap_or(0.0);
        let count =
            |name: &str| reknit_units::grouped(values.get(name).and_then(|value| value.parse().ok()).unwrap_or(0));
        let _ = writeln!(
            text,
            "{listener}\n  connections  {} open, {} opened, {} refused, {} unreachable, {} unanswered, {} failed\n  \
             bytes        {} to clients, {} to servers\n  by kernel    {} for comparison, {} beyond the limit\n  \
             goodput      {}",
            count("connections"),
            count("connections_opened_total"),
            count("connections_refused_total"),
            count("connections_unreachable_total"),
            count("connections_unanswered_total"),
            count("connections_failed_total"),
            count("bytes_to_clients_total"),
            count("bytes_to_servers_total"),
            count("connections_untouched_total"),
            count("connections_beyond_limit_total"),
            comparison(&value),
        );
    }
    text
}

/// Whether the proxy helps.
fn comparison(value: &dyn Fn(&str) -> f64) -> String {
    let transfers = |by: &str| value(&format!("compared_connections_total{by}"));
    let mbit_s = |by: &str| {
        let seconds = value(&format!("compared_seconds_total{by}"));
        if seconds > 0.0 { value(&format!("compared_bytes_total{by}")) * 8e-6 / seconds } else { 0.0 }
    };
    let ([ours, theirs], [us, them]) = (["proxy", "kernel"].map(mbit_s), ["proxy", "kernel"].map(transfers));
    if us < MIN_TRANSFERS || them < MIN_TRANSFERS || theirs <= 0.0 {
        return format!(
            "not compared yet: {us} transfers of at least 100 kB by the proxy, and {them} by the kernel; at least \
             {MIN_TRANSFERS} of each are needed"
        );
    }
    let ratio = ours / theirs;
    let verdict = if ratio >= DIFFERENCE {
        format!("{ratio:.1} times as fast")
    } else {
        let what = if ratio > 1.0 / DIFFERENCE { "no difference" } else { "slower" };
        format!(
            "{what}: the proxy does not help here; if these servers run Linux with CUBIC, try \
             net.ipv4.tcp_congestion_control=bbr and net.ipv4.tcp_reordering=300 on them"
        )
    };
    format!("{ours:.2} Mbit/s by the proxy ({us} transfers), {theirs:.2} by the kernel ({them}): {verdict}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(proxy_seconds: f64) -> String {
        format!(
            "# TYPE reknit_proxy_connections gauge\n\
             reknit_proxy_connections{{listener=\"web\",variant=\"reknit-bbr\"}} 3\n\
             reknit_proxy_bytes_to_clients_total{{listener=\"web\",variant=\"reknit-bbr\"}} 1234567\n\
             reknit_proxy_connections_untouched_total{{listener=\"web\"}} 7\n\
             reknit_proxy_compared_connections_total{{listener=\"web\",by=\"kernel\"}} 6\n\
             reknit_proxy_compared_connections_total{{listener=\"web\",by=\"proxy\"}} 8\n\
             reknit_proxy_compared_bytes_total{{listener=\"web\",by=\"kernel\"}} 1000000\n\
             reknit_proxy_compared_bytes_total{{listener=\"web\",by=\"proxy\"}} 1000000\n\
             reknit_proxy_compared_seconds_total{{listener=\"web\",by=\"kernel\"}} 8\n\
             reknit_proxy_compared_seconds_total{{listener=\"web\",by=\"proxy\"}} {proxy_seconds}\n"
        )
    }

    #[test]
    fn each_listener_has_its_numbers_and_a_verdict() {
        let fast = text(&metrics(2.0));
        assert!(fast.starts_with("web\n  connections  3 open, 0 opened"), "{fast}");
        assert!(fast.contains("1,234,567 to clients") && fast.contains("7 for comparison"), "{fast}");
        assert!(
            fast.contains("4.00 Mbit/s by the proxy (8 transfers), 1.00 by the kernel (6): 4.0 times as fast"),
            "{fast}"
        );
    }

    #[test]
    fn where_it_does_not_help_it_says_so() {
        assert!(text(&metrics(7.9)).contains("no difference: the proxy does not help here"));
        assert!(text(&metrics(16.0)).contains("slower: the proxy does not help here"));
        assert!(text(&metrics(2.0).replace("} 6\n", "} 4\n")).contains("not compared yet: 8 transfers"));
    }
}
