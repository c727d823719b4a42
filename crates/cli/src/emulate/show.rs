//! What `reknit emulate` prints and writes.

use std::fmt::Write;

use reknit_host::emulate::{Counts, Reading, Ready, Report, Unacknowledged, Uplink};
use reknit_units::Duration;
use serde::Serialize;

use crate::{Failure, output};

/// The two directions, as the command sees them.
const WAYS: [&str; 2] = ["up", "down"];

/// The line before the command starts.
pub(super) fn ready(label: &str, ready: Ready) -> String {
    let Ready { inner, outer, outside, server, shell } = ready;
    let beyond = match outside {
        Uplink::Nat => format!("this machine is {outer}"),
        Uplink::Relay if server => {
            format!("the server's address is {outer}; connections to other addresses are relayed")
        }
        Uplink::Relay => format!("this machine is {outer}; connections to other addresses are relayed"),
        Uplink::Nothing => format!("the server's address is {outer}; no other address can be reached"),
    };
    let end = if shell { "; `exit` ends the emulation" } else { "" };
    format!("{label}: the command's address is {inner}, {beyond}{end}")
}

/// A line of the meter.
pub(super) fn reading(reading: &Reading) -> String {
    let mut text = format!("{:6.1} s", reading.elapsed.as_secs_f64());
    for (i, way) in WAYS.iter().enumerate() {
        let counts = &reading.counts[i];
        let _ = write!(
            text,
            "  {way} {:>7} Mbit/s, {:>4} on the path, {:>5} reordered, {:>5} lost;",
            output::number(mbit_s(counts, reading.interval)),
            reading.inside[i],
            output::per_cent(counts.reordered_share()),
            output::per_cent(counts.lost_share()),
        );
    }
    text.trim_end_matches(';').to_owned()
}

fn mbit_s(counts: &Counts, span: Duration) -> f64 {
    if span.is_zero() { 0.0 } else { counts.delivered_bytes as f64 * 8e-6 / span.as_secs_f64() }
}

/// The lines after the command has ended.
pub(super) fn summary(label: &str, seed: u64, report: &Report) -> String {
    let mut text = format!("reknit: {label}, seed {seed}, {:.1} s\n", report.elapsed.as_secs_f64());
    for (i, way) in WAYS.iter().enumerate() {
        let counts = &report.counts[i];
        let _ = write!(
            text,
            "  {way:<5} {}, {} Mbit/s; lost {} ({}), reordered {} ({})",
            output::how_many(counts.packets, "packet"),
            output::number(mbit_s(counts, report.spans[i])),
            output::whole(counts.lost),
            output::per_cent(counts.lost_share()),
            output::whole(counts.reordered),
            output::per_cent(counts.reordered_share()),
        );
        if counts.reordered > 0 {
            let _ = write!(text, ", by up to {}", output::how_many(counts.largest_extent.into(), "place"));
        }
        if counts.copies > 0 {
            let _ = write!(text, ", {} copies", output::whole(counts.copies));
        }
        text.push('\n');
    }
    let [half, most] = [report.late_p50, report.punctuality.late_p99].map(output_ms);
    let _ = writeln!(text, "  packets left the path {half} late (median), {most} (99th percentile)");
    if !report.congestion_control.is_empty() {
        let _ = writeln!(text, "  congestion control of the kernel inside: {}", report.congestion_control);
    }
    text
}

/// What the peers may not have got; none if all was acknowledged.
pub(super) fn unacknowledged(report: &Report) -> Option<String> {
    let Unacknowledged { bytes, connections } = report.unacknowledged;
    let [bytes, ends] = [(bytes, "byte"), (connections, "connection")].map(|(n, name)| output::how_many(n, name));
    let text = format!(
        "{:.1} s after the command ended, {bytes} and the end of {ends} were not acknowledged; the other end may not get them",
        report.waited.as_secs_f64()
    );
    (connections > 0).then_some(text)
}

/// The UDP packets that the other end does not get; none if there are none.
pub(super) fn undelivered_udp(report: &Report) -> Option<String> {
    let packets = output::how_many(report.undelivered_udp, "UDP packet");
    let text = format!("{packets} had not reached the other end when the emulation ended, and will not reach it");
    (report.undelivered_udp > 0).then_some(text)
}

fn output_ms(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1e3)
}

/// The path file with the delays of all packets.
pub(super) fn recorded_path(label: &str, seed: u64, report: &Report) -> String {
    let quote = |text: String| toml::Value::String(text).to_string();
    let description = quote(format!("recorded from {label}, {:.1} s", report.elapsed.as_secs_f64()));
    let source = quote(format!("reknit {} emulate, seed {seed}", reknit_host::VERSION));
    let mut text = format!("description = {description}\nsource = {source}\n");
    for (record, direction) in report.records.iter().zip(["forward", "reverse"]) {
        if let Some(record) = record {
            text += &record.stage(direction);
        }
    }
    text
}

#[derive(Serialize)]
struct Summary<'a> {
    version: &'static str,
    path: &'a str,
    seed: u64,
    exit_code: u8,
    congestion_control: &'a str,
    elapsed_s: f64,
    up: WaySummary,
    down: WaySummary,
    late_p50_ms: f64,
    late_p99_ms: f64,
    late_max_ms: f64,
    refused: u64,
    doubt: Option<String>,
}

#[derive(Serialize)]
struct WaySummary {
    packets: u64,
    bytes: u64,
    delivered: u64,
    delivered_bytes: u64,
    mbit_s: f64,
    lost: u64,
    copies: u64,
    reordered: u64,
    reordered_ratio: f64,
    largest_extent: u32,
}

/// The summary as JSON.
pub(super) fn json(label: &str, seed: u64, report: &Report) -> Result<String, Failure> {
    let way = |i: usize| {
        let counts = &report.counts[i];
        WaySummary {
            packets: counts.packets,
            bytes: counts.bytes,
            delivered: counts.delivered,
            delivered_bytes: counts.delivered_bytes,
            mbit_s: mbit_s(counts, report.spans[i]),
            lost: counts.lost,
            copies: counts.copies,
            reordered: counts.reordered,
            reordered_ratio: counts.reordered_share(),
            largest_extent: counts.largest_extent,
        }
    };
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    let summary = Summary {
        version: reknit_host::VERSION,
        path: label,
        seed,
        exit_code: report.exit_code,
        congestion_control: &report.congestion_control,
        elapsed_s: report.elapsed.as_secs_f64(),
        up: way(0),
        down: way(1),
        late_p50_ms: ms(report.late_p50),
        late_p99_ms: ms(report.punctuality.late_p99),
        late_max_ms: ms(report.punctuality.late_max),
        refused: report.punctuality.refused,
        doubt: report.punctuality.doubt().map(|doubt| doubt.to_string()),
    };
    let text = serde_json::to_string_pretty(&summary).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(text + "\n")
}
