//! Prints live transfers, with one row per pair of ends.

use super::report::{Measured, Report, Transfer, estimate};
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

/// Counters of the sender's kernel that show its reaction to reordering.
const TOLD: [&str; 9] = [
    "TCPSACKReorder",
    "TCPTSReorder",
    "TCPDSACKRecv",
    "TCPDSACKUndo",
    "TCPFullUndo",
    "TCPPartialUndo",
    "TCPLossUndo",
    "TCPSpuriousRTOs",
    "TCPLossProbes",
];

pub(super) fn show(json: bool, report: &Report) -> Result<(), Failure> {
    for transfer in &report.transfers {
        if let Some(error) = &transfer.error {
            output::note(format_args!("error: {}: {error}", who(transfer, report)));
        }
    }
    if json {
        let text = serde_json::to_string_pretty(report).map_err(|error| Failure::Failed(error.to_string()))?;
        return output::print(&format!("{text}\n"));
    }
    if report.transfers.is_empty() {
        return Ok(());
    }
    let screen = Screen::stdout();
    let width = screen.text_width();
    let title = format!(
        "{}; live, Linux {}, reknit {}",
        output::title(&report.path, &report.description),
        report.kernel,
        report.reknit
    );
    let mut text = format!("{}\n\n", table::wrap(&title, width, 2));
    text.push_str(&table::render(&columns(report), screen));
    if report.repeat > 1 {
        let foot = format!("Means of {} transfers with 95 % intervals, and the range of the transfers.", report.repeat);
        text = text + "\n" + &table::wrap(&foot, width, 0) + "\n";
    }
    text.push_str(&counters(report, width));
    text.push_str(&doubts(report, width));
    output::print(&text)
}

/// Names a transfer, for messages.
fn who(transfer: &Transfer, report: &Report) -> String {
    let pair = format!("{} to {}", transfer.sender, transfer.receiver);
    if report.repeat > 1 { format!("{pair}, transfer {}", transfer.repetition) } else { pair }
}

/// Means of what the senders' kernels counted.
fn counters(report: &Report, width: usize) -> String {
    let mut text = String::new();
    for pair in report.by_pair() {
        let count = |name: &str| estimate(&pair, |m| m.counted_by_sender(name) as f64).mean;
        let told = TOLD.iter().map(|name| (name, count(name))).filter(|(_, count)| *count > 0.0);
        let told: Vec<String> = told.map(|(name, mean)| format!("{name} {}", output::count(mean))).collect();
        if !told.is_empty() {
            let line = format!("{} to {}: {}.", pair[0].sender, pair[0].receiver, told.join(", "));
            text = text + &table::wrap(&line, width, 2) + "\n";
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// A line on the results that are unreliable because the machine was busy: for each pair, how many, and one of the reasons.
fn doubts(report: &Report, width: usize) -> String {
    let (mut reason, mut unreliable) = (None, Vec::new());
    for pair in report.by_pair() {
        let doubts: Vec<&String> =
            pair.iter().filter_map(|transfer| transfer.measured.as_ref()?.doubt.as_ref()).collect();
        let Some(first) = doubts.first() else { continue };
        reason.get_or_insert(*first);
        let many = if report.repeat > 1 { format!(" ({} of {})", doubts.len(), pair.len()) } else { String::new() };
        unreliable.push(format!("{} to {}{many}", pair[0].sender, pair[0].receiver));
    }
    let Some(reason) = reason else { return String::new() };
    let line =
        format!("Unreliable: {}. The machine was busy ({reason}); repeat when it is idle.", unreliable.join(", "));
    format!("\n{}\n", table::wrap(&line, width, 2))
}

fn columns(report: &Report) -> Vec<Column> {
    let pairs = report.by_pair();
    let mut columns = vec![
        column("sender", 0, Align::Left, &pairs, |pair| pair[0].sender.clone()),
        column("receiver", 1, Align::Left, &pairs, |pair| pair[0].receiver.clone()),
        column("Mbit/s", 0, Align::Right, &pairs, |pair| {
            measured(pair, |pair| output::estimate(&estimate(pair, |m| m.goodput_mbit_s)))
        }),
    ];
    if report.repeat > 1 {
        columns.push(column("range", 1, Align::Right, &pairs, |pair| measured(pair, range)));
    }
    columns.extend([
        mean("MB", 3, &pairs, |m| m.delivered_bytes as f64 / 1e6, output::number),
        mean("seconds", 3, &pairs, |m| m.elapsed_s, output::number),
        share("retransmitted", &pairs, |m| [m.retransmissions, m.segments_sent]),
        share("spurious", &pairs, |m| [m.spurious_retransmissions, m.retransmissions]),
        mean("RTOs", 1, &pairs, |m| m.timeouts as f64, output::count),
        mean("PAWS discards", 2, &pairs, |m| m.paws_discards as f64, output::count),
    ]);
    if report.transfers.iter().any(|transfer| transfer.ending != "stopped") {
        columns.push(column("outcome", 1, Align::Left, &pairs, outcome));
    }
    columns
}

/// The transfers of a pair of ends.
type Pair<'a> = [&'a Transfer];

fn column(
    title: &'static str,
    rank: u8,
    align: Align,
    pairs: &[Vec<&Transfer>],
    cell: impl Fn(&Pair) -> String,
) -> Column {
    Column::of(title, rank, align, pairs, |pair| cell(pair))
}

/// `cell`, or a dash if nothing of the pair was measured.
fn measured(pair: &Pair, cell: impl Fn(&Pair) -> String) -> String {
    if pair.iter().any(|transfer| transfer.measured.is_some()) { cell(pair) } else { "-".to_owned() }
}

fn mean(
    title: &'static str,
    rank: u8,
    pairs: &[Vec<&Transfer>],
    value: impl Fn(&Measured) -> f64 + Copy,
    print: impl Fn(f64) -> String + Copy,
) -> Column {
    column(title, rank, Align::Right, pairs, |pair| measured(pair, |pair| print(estimate(pair, value).mean)))
}

fn share(title: &'static str, pairs: &[Vec<&Transfer>], counts: impl Fn(&Measured) -> [u64; 2] + Copy) -> Column {
    let of_pair = |pair: &Pair| {
        let sum = |i: usize| estimate(pair, |m| counts(m)[i] as f64).mean;
        let [part, whole] = [sum(0), sum(1)];
        output::per_cent(if whole == 0.0 { 0.0 } else { part / whole })
    };
    column(title, 1, Align::Right, pairs, |pair| measured(pair, of_pair))
}

fn range(pair: &Pair) -> String {
    let goodputs = || pair.iter().filter_map(|transfer| transfer.measured.as_ref()).map(|m| m.goodput_mbit_s);
    let [least, most] = [goodputs().fold(f64::INFINITY, f64::min), goodputs().fold(0.0, f64::max)];
    format!("{} to {}", output::number(least), output::number(most))
}

/// How the transfers of a pair ended.
fn outcome(pair: &Pair) -> String {
    if let [transfer] = pair {
        return match (&transfer.measured, transfer.ending) {
            (Some(Measured { sha256: Some(digest), .. }), _) => format!("finished, SHA-256 equal: {}", &digest[..8]),
            (_, ending) => ending.to_owned(),
        };
    }
    let mut parts: Vec<(usize, &str)> = Vec::new();
    for transfer in pair {
        match parts.iter_mut().find(|(_, ending)| *ending == transfer.ending) {
            Some((count, _)) => *count += 1,
            None => parts.push((1, transfer.ending)),
        }
    }
    parts.iter().map(|(count, ending)| format!("{count} {ending}")).collect::<Vec<_>>().join(", ")
}
