//! The result of the analysis of qlogs, for text and JSON.

use reknit_units::grouped;
use schemars::JsonSchema;
use serde::Serialize;

use super::connections::connections;
use super::direction::QlogDirection;
use super::end::{End, Vantage};
use super::log::Log;

/// Version of the JSON document.
const FORMAT: &str = "reknit-qlog-1";

/// What qlogs of QUIC connections show.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct QlogAnalysis {
    /// Version of the document's format: `reknit-qlog-1`.
    pub format: &'static str,
    /// What made it: the version, the commit, and a digest of the sources that the numbers depend on.
    pub reknit: &'static str,
    /// The logs, as they were given.
    pub files: Vec<QlogFile>,
    /// Connections. The logs of both ends of one are joined.
    pub connections: u64,
    /// What is missing or odd in the logs. Empty if they are good.
    pub warnings: Vec<String>,
    /// Each direction of each connection that carried data, the worst first.
    pub directions: Vec<QlogDirection>,
}

/// A log.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct QlogFile {
    /// The file's name; `-` for standard input.
    pub file: String,
    /// The version or the schema of qlog that it names; null if it names none.
    pub version: Option<String>,
    /// Events of all kinds.
    pub events: u64,
    /// From the first event to the last, seconds.
    pub duration_s: f64,
}

impl QlogAnalysis {
    pub(super) fn of(logs: &[(String, Log)]) -> QlogAnalysis {
        let connections = connections(logs.iter().flat_map(|(_, log)| &log.ends).collect());
        let mut directions: Vec<QlogDirection> = Vec::new();
        for (number, connection) in connections.iter().enumerate() {
            for from in 0..2 {
                let [sender, receiver] = [connection.ends[from], connection.ends[1 - from]];
                let names = names(sender.or(receiver).map(|end| end.vantage), from, sender.is_some());
                directions.extend(QlogDirection::of(number as u32, names, sender, receiver));
            }
        }
        let carries = |direction: &QlogDirection| direction.bytes_of_data > 0 || direction.declared_lost > 0;
        if directions.iter().any(carries) {
            directions.retain(carries);
        }
        let rank = |of: &QlogDirection| (!of.is_quiet(), of.declared_lost.saturating_add(of.reordered()), of.bytes);
        directions.sort_by_key(|direction| std::cmp::Reverse(rank(direction)));
        let files = logs.iter().map(|(file, log)| QlogFile {
            file: file.clone(),
            version: log.version.clone(),
            events: log.events,
            duration_s: log.duration_s,
        });
        QlogAnalysis {
            format: FORMAT,
            reknit: env!("REKNIT_VERSION"),
            files: files.collect(),
            connections: connections.len() as u64,
            warnings: logs.iter().flat_map(|(file, log)| warnings(file, log)).collect(),
            directions,
        }
    }
}

/// The sender and the receiver of the data. `is_sender`: the end that has a log is the sender.
fn names(vantage: Option<Vantage>, from: usize, is_sender: bool) -> [&'static str; 2] {
    match (vantage, is_sender) {
        (None | Some(Vantage::Other), true) => ["this end", "its peer"],
        (None | Some(Vantage::Other), false) => ["the peer", "this end"],
        _ if from == 0 => ["client", "server"],
        _ => ["server", "client"],
    }
}

fn warnings(file: &str, log: &Log) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut warn = |text: String| warnings.push(format!("{file}: {text}"));
    if let Some(damage) = &log.damage {
        warn(format!("the file is damaged, so only the part before the damage was read: {damage}"));
    }
    let sum = |of: fn(&End) -> u64| log.ends.iter().map(of).sum::<u64>();
    let mut count = |number: u64, what: &str| {
        if number > 0 {
            let (events, are) = if number == 1 { ("event", "is") } else { ("events", "are") };
            warn(format!("{} {events} {are} {what}", grouped(number)));
        }
    };
    count(log.backwards, "earlier than the event before");
    count(sum(|end| end.unnumbered), "left out: packets without numbers");
    let unnamed = sum(|end| end.outbound.unnamed_losses);
    if unnamed > 0 {
        warn(format!(
            "{} packets were declared lost without their numbers, so they may have been late",
            grouped(unnamed)
        ));
    }
    let without_acks = |end: &&End| !end.outbound.has_acks && !end.outbound.losses.is_empty();
    if log.ends.iter().any(|end| without_acks(&end)) {
        warn(
            "the log has no ACK frames, so it does not show which packets that were declared lost were late".to_owned(),
        );
    }
    let (passed, declared) = (sum(|end| end.outbound.passed_over()), sum(|end| end.outbound.losses.len() as u64));
    if passed > 0 && declared + unnamed == 0 {
        warn(format!(
            "the log has no event packet_lost, but {} packets were never acknowledged although later ones were",
            grouped(passed)
        ));
    }
    warnings
}
