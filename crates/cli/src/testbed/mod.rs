//! `reknit testbed`: live transfers between reknit's TCP and this machine's kernel.

pub(crate) mod ends;
mod report;
mod setup;
mod show;

use std::path::{Path, PathBuf};

use reknit_compare::warnings;
use reknit_host::{Initiator, Spec, Tcp};
use reknit_units::{Bytes, Duration};

use self::report::{Report, Transfer};
use self::setup::TransferSetup;
use crate::scenario_args::{ScenarioArgs, SourceArgs};
use crate::{Failure, capture, input, output};

/// Transfer data between reknit's TCP and this machine's kernel, live, over an emulated path (needs root)
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Runs in real time, in network namespaces that are removed when the command ends. Each sender, \
including the variants of --variant-file, transfers data to each receiver, one transfer at a time. With --size or \
--file, SHA-256 verifies the data; otherwise each transfer lasts for --duration.

Examples:
  reknit testbed --path two-paths-50ms --size 4MB
  reknit testbed --path lossy --variants kernel:cubic,kernel:reno,rack --duration 10s"
)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Send with these, separated by commas: variants, patterns and families as in `reknit compare`, or
    /// kernel:cubic, kernel:reno, kernel:bbr. A kernel may have
    /// settings (`net.ipv4.tcp_NAME` in its namespace): kernel:cubic+timestamps=0,recovery=0 [default: kernel:cubic, and
    /// reknit or the variants of the scenario]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    variants: Vec<String>,
    /// Receive with these, separated by commas and named like senders; `same` is the sender's variant or kernel
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', default_value = "kernel:cubic")]
    to: Vec<String>,
    /// Let the receiver open the connection instead of the sender
    #[arg(long)]
    receiver_opens: bool,
    /// Send this much data, for example `4MB`
    #[arg(long, value_name = "SIZE", conflicts_with = "file", allow_hyphen_values = true)]
    size: Option<Bytes>,
    /// Send this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Stop each transfer after this time; with --size or --file, a transfer that takes longer counts as unfinished [default: 20 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Seed the random decisions of the path
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Run this many transfers for each pair of sender and receiver, with seeds counting up from --seed; the pairs take
    /// turns
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::whole::<1, 10_000>,
          allow_negative_numbers = true)]
    repeat: u32,
    /// Use IPv6 instead of IPv4
    #[arg(long)]
    ipv6: bool,
    /// Write the sender's packets to a pcapng file; with several transfers, to one file each (FILE-SENDER,
    /// FILE-SENDER-to-RECEIVER, FILE-SENDER-2)
    #[arg(long, value_name = "FILE")]
    pcap_sender: Option<PathBuf>,
    /// Write the receiver's packets to a pcapng file; with several transfers, as above
    #[arg(long, value_name = "FILE")]
    pcap_receiver: Option<PathBuf>,
    /// Print all results as JSON (docs/reference/json.md)
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    output::check_writable(
        &[("--pcap-sender", &args.pcap_sender), ("--pcap-receiver", &args.pcap_receiver)],
        &args.source.files(),
    )?;
    let live = TransferSetup::new(args)?;
    for warning in warnings(&live.profile, &live.customs) {
        output::note(format_args!("warning: {warning}"));
    }
    let pairs = ends::pairs(args, &live.senders, &live.customs)?;
    ends::warn_if_both_ends_delay(&pairs);
    let stop = output::on_interrupt();
    let bar = output::progress(pairs.len() as u64 * u64::from(args.repeat), "transferring", args.json);
    let mut report = Report::new(&live.profile, args.seed, args.repeat);
    let mut failure = None;
    // Round by round, so that load that changes over time affects all pairs alike.
    let rounds = (0..args.repeat).flat_map(|round| pairs.iter().map(move |pair| (round, pair)));
    for (round, pair) in rounds {
        match Transfer::run(&spec(args, &live, &pairs, pair, round), round + 1, &stop) {
            Ok(transfer) => report.transfers.push(transfer),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    report.complete = failure.is_none();
    show::show(args.json, &report)?;
    failure.map_or_else(|| report.verdict(), Err)
}

fn spec(args: &Args, live: &TransferSetup, pairs: &[(Tcp, Tcp)], (sender, receiver): &(Tcp, Tcp), round: u32) -> Spec {
    let label = label(args, pairs, (sender, receiver), round);
    let capture = |file: &Option<PathBuf>| file.as_deref().map(|file: &Path| capture::labelled(file, &label));
    Spec {
        profile: live.profile.clone(),
        tcp: live.tcp.clone(),
        sender: sender.clone(),
        receiver: receiver.clone(),
        opener: if args.receiver_opens { Initiator::Receiver } else { Initiator::Sender },
        payload: live.payload.clone(),
        duration: live.duration,
        ipv6: args.ipv6,
        seed: args.seed.wrapping_add(u64::from(round)),
        capture_sender: capture(&args.pcap_sender),
        capture_receiver: capture(&args.pcap_receiver),
    }
}

/// The part of a capture's name that distinguishes it from others: sender, receiver and repetition, as far as needed.
fn label(args: &Args, pairs: &[(Tcp, Tcp)], (sender, receiver): (&Tcp, &Tcp), round: u32) -> String {
    let mut parts = Vec::new();
    if pairs.len() > 1 {
        parts.push(sender.to_string());
    }
    if args.to.len() > 1 {
        parts.push(format!("to-{receiver}"));
    }
    if args.repeat > 1 {
        parts.push((round + 1).to_string());
    }
    parts.join("-")
}
