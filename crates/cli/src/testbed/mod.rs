//! `reknit testbed`: live transfers between our engine and this machine's kernel.

mod live;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use reknit_compare::NamedVariant;
use reknit_host::testbed::Payload;
use reknit_host::{Opener, Outcome, Spec, Stack, TestbedError};
use reknit_units::{Bytes, Duration};
use reknit_variants::{Custom, rules};
use serde::Serialize;

use self::live::Live;
use crate::scenario_args::ScenarioArgs;
use crate::table::{self, Align, Column};
use crate::{Failure, input, output};

/// Transfer data between our engine and this machine's kernel, live, over an emulated path.
///
/// Runs in real time, in network namespaces that vanish with the command; needs root. Each sender transfers data to
/// each receiver in turn, and so does each variant of --variant-file. With --size or --file the transfer is verified by SHA-256; else it goes on for --duration.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Senders, separated by commas: variants, or kernel:cubic, kernel:reno, kernel:bbr [default: kernel:cubic, and
    /// rack or the scenario's]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    variants: Vec<String>,
    /// Receivers, separated by commas: the same, or `same` as the sender
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', default_value = "kernel:cubic")]
    to: Vec<String>,
    /// The receiver opens the connection instead of the sender
    #[arg(long)]
    receiver_opens: bool,
    /// Send this much
    #[arg(long, value_name = "SIZE", conflicts_with = "file")]
    size: Option<Bytes>,
    /// Send this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Length of each transfer; with --size or --file, the longest that is waited for [default: 20 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    duration: Option<Duration>,
    /// Seed of the path's random decisions
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    /// IPv6 instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// Write the sender's packets to a pcapng file (several senders: the last)
    #[arg(long, value_name = "FILE")]
    pcap_sender: Option<PathBuf>,
    /// Write the receiver's packets to a pcapng file (several senders: the last)
    #[arg(long, value_name = "FILE")]
    pcap_receiver: Option<PathBuf>,
    /// Print all results as JSON (docs/json.md describes it)
    #[arg(long)]
    json: bool,
}

/// One finished transfer.
#[derive(Debug, Serialize)]
struct Row {
    sender: String,
    receiver: String,
    goodput_mbit_s: f64,
    delivered_bytes: u64,
    elapsed_s: f64,
    segments_sent: u64,
    retransmissions: u64,
    spurious_retransmissions: u64,
    timeouts: u64,
    /// SHA-256 of what was sent, if the same was received; none for a transfer that was stopped by time.
    sha256: Option<String>,
    fell_back: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    format: &'static str,
    reknit: &'static str,
    path: String,
    description: String,
    kernel: String,
    seed: u64,
    transfers: Vec<Row>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Live { profile, tcp, payload, duration, customs, senders } = Live::new(args)?;
    for warning in customs.iter().flat_map(|custom| &custom.warnings) {
        eprintln!("warning: {warning}");
    }
    let pairs = pairs(args, &senders, &customs)?;
    warn_of_double_waits(&pairs);
    let stop = output::on_interrupt();
    let bar = output::progress(pairs.len() as u64, "transferring", args.json);
    let mut report = Report {
        format: "reknit-testbed-1",
        reknit: env!("CARGO_PKG_VERSION"),
        path: profile.name.clone(),
        description: profile.description.clone(),
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        seed: args.seed,
        transfers: Vec::new(),
    };
    let mut failure = None;
    for (sender, receiver) in pairs {
        let spec = Spec {
            profile: profile.clone(),
            tcp: tcp.clone(),
            sender,
            receiver,
            opener: if args.receiver_opens { Opener::Receiver } else { Opener::Sender },
            payload: payload.clone(),
            duration,
            ipv6: args.ipv6,
            seed: args.seed,
            capture_sender: args.pcap_sender.clone(),
            capture_receiver: args.pcap_receiver.clone(),
        };
        match transfer(&spec, &stop) {
            Ok(row) => report.transfers.push(row),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    show(args, &report)?;
    failure.map_or(Ok(()), Err)
}

/// Every sender with every receiver.
fn pairs(args: &Args, senders: &[String], customs: &[Custom]) -> Result<Vec<(Stack, Stack)>, Failure> {
    let known = available_congestion_controls();
    let parse = |flag: &str, text: &str| {
        let own = customs.iter().find(|custom| custom.name == text).map(NamedVariant::custom);
        let stack = match own {
            Some(own) => Stack::Engine(own.name, own.composition),
            None => text.parse::<Stack>().map_err(|error| {
                Failure::Usage(format!("{flag}: {error}; or kernel:NAME with a congestion control of this kernel"))
            })?,
        };
        match &stack {
            Stack::Kernel(name) if !known.split_whitespace().any(|k| k == name) => {
                Err(Failure::Usage(format!("{flag}: this kernel has no congestion control `{name}`; it has {known}")))
            }
            _ => Ok(stack),
        }
    };
    let mut pairs = Vec::new();
    for receiver in &args.to {
        for sender in senders {
            let sender = parse("--variants", sender)?;
            let receiver = if receiver == "same" { sender.clone() } else { parse("--to", receiver)? };
            pairs.push((sender, receiver));
        }
    }
    Ok(pairs)
}

fn available_congestion_controls() -> String {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    std::fs::read_to_string(file).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn transfer(spec: &Spec, stop: &AtomicBool) -> Result<Row, Failure> {
    let who = format!("{} to {}", spec.sender, spec.receiver);
    let outcome = reknit_host::run(spec, stop).map_err(|error| match error {
        TestbedError::Cancelled => Failure::Interrupted,
        other => Failure::Failed(format!("{who}: {other}")),
    })?;
    let sha256 = verify(spec, &outcome).map_err(|message| Failure::Failed(format!("{who}: {message}")))?;
    Ok(Row {
        sender: spec.sender.to_string(),
        receiver: spec.receiver.to_string(),
        goodput_mbit_s: outcome.goodput() / 1e6,
        delivered_bytes: outcome.delivered.0,
        elapsed_s: outcome.elapsed.as_secs_f64(),
        segments_sent: outcome.segments,
        retransmissions: outcome.retransmissions,
        spurious_retransmissions: outcome.spurious_retransmissions,
        timeouts: outcome.timeouts(),
        sha256,
        fell_back: fall_backs(spec, &outcome),
    })
}

/// What either end did without, each of our variants by its name.
fn fall_backs(spec: &Spec, outcome: &Outcome) -> Vec<String> {
    let Some(info) = &outcome.info else { return Vec::new() };
    let mut told = Vec::new();
    let mut all = Vec::new();
    for stack in [&spec.sender, &spec.receiver] {
        let Stack::Engine(name, composition) = stack else { continue };
        let variant = NamedVariant { name: name.clone(), composition: composition.clone() };
        if !told.contains(&name) {
            let lines = variant.fall_backs(info);
            output::tell_of_fall_back(name, &lines);
            all.extend(lines.into_iter().map(|line| format!("{name}: {line}")));
            told.push(name);
        }
    }
    all
}

/// Tells of ends that wait for each other.
fn warn_of_double_waits(pairs: &[(Stack, Stack)]) {
    for (sender, receiver) in pairs {
        if let (Stack::Engine(_, at_sender), Stack::Engine(_, at_receiver)) = (sender, receiver)
            && let Some(warning) = rules::between(at_sender, at_receiver)
        {
            eprintln!("warning: {sender} to {receiver}: {warning}");
        }
    }
}

/// What was received is what was sent, to the last byte.
fn verify(spec: &Spec, outcome: &Outcome) -> Result<Option<String>, String> {
    if spec.payload == Payload::Endless {
        Ok(None)
    } else if outcome.sent == outcome.received {
        Ok(Some(outcome.sent.digest.clone()))
    } else {
        Err(format!("the data differ: sent {:?}, received {:?}", outcome.sent, outcome.received))
    }
}

fn show(args: &Args, report: &Report) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(report).map_err(|error| Failure::Failed(error.to_string()))?;
        return output::print(&format!("{text}\n"));
    }
    if report.transfers.is_empty() {
        return Ok(());
    }
    let width = table::terminal_width();
    let title = format!("{}: {}; live, Linux {}", report.path, report.description, report.kernel);
    let mut columns = [
        Column::new("sender", 0, Align::Left),
        Column::new("receiver", 1, Align::Left),
        Column::new("Mbit/s", 0, Align::Right),
        Column::new("MB", 2, Align::Right),
        Column::new("seconds", 2, Align::Right),
        Column::new("retransmitted", 1, Align::Right),
        Column::new("spuriously", 1, Align::Right),
        Column::new("RTOs", 1, Align::Right),
        Column::new("SHA-256", 1, Align::Left),
    ];
    for row in &report.transfers {
        let share = |part: u64, whole: u64| output::per_cent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 });
        let cells = [
            row.sender.clone(),
            row.receiver.clone(),
            output::number(row.goodput_mbit_s),
            output::number(row.delivered_bytes as f64 / 1e6),
            output::number(row.elapsed_s),
            share(row.retransmissions, row.segments_sent),
            share(row.spurious_retransmissions, row.retransmissions),
            output::count(row.timeouts as f64),
            row.sha256.as_ref().map_or("-".to_owned(), |digest| format!("equal {}", &digest[..8])),
        ];
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }
    output::print(&format!(
        "{}\n\n{}",
        table::wrap(&title, width, 2),
        table::render(&columns, width, table::may_colour())
    ))
}
