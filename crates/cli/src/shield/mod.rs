//! `reknit shield`: a gateway that holds early packets until late ones have passed.

mod status;

use std::net::SocketAddr;

use reknit_host::instead_of;
use reknit_shield::{METRICS, Mode, Settings};
use reknit_units::Duration;

use crate::{Failure, input, output};

/// Restore the order of TCP packets on a gateway in front of the receiver, without changing either TCP (needs root)
///
/// Runs on a gateway or on the receiver itself, for the packets that arrive on the given interfaces. `observe` only watches, and
/// shows which flows suffer. `resequence` holds early packets of such flows, as long as that makes them faster. `equalise` holds
/// packets of any protocol that arrive on the faster of several interfaces, for the difference of the delays. Both use kernel
/// queues (NFQUEUE) and iptables rules. If the process ends, even by `kill -9`, packets pass as if there were no shield.
/// docs/guide/deploy.md shows when it helps and what it costs.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  reknit shield --interface wan0
  reknit shield --interface wan0 --mode resequence
  reknit shield --interface wan0,wan1 --mode equalise
  reknit shield status"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The interfaces on which the packets arrive, separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    interface: Vec<String>,
    /// What happens to packets
    #[arg(long, value_enum, value_name = "MODE", default_value = "observe")]
    mode: What,
    /// With `equalise`: hold packets of the first interface for this long [default: which interface is faster, and by how much, is
    /// learned from TCP flows that arrive on several interfaces]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    difference: Option<Duration>,
    /// Hold a packet for at most this long [default: 300 ms]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    limit: Option<Duration>,
    /// Use this many queues of the kernel, each with a thread; `equalise` uses one
    #[arg(long, value_name = "N", default_value = "2", value_parser = input::whole::<1, 64>, allow_negative_numbers = true)]
    queues: u32,
    /// The number of the first queue
    #[arg(long, value_name = "N", default_value = "29290", value_parser = input::whole::<0, 65_000>,
          allow_negative_numbers = true)]
    queue: u32,
    /// Serve metrics for Prometheus at this address [default: 127.0.0.1:9437]
    #[arg(long, value_name = "ADDR:PORT", value_parser = input::address)]
    metrics: Option<SocketAddr>,
    /// How lines of the log are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "logfmt")]
    log: input::Log,
    /// Print the commands that would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show what a running shield does
    Status {
        /// Where it serves its metrics
        #[arg(long, value_name = "ADDR:PORT", value_parser = input::address, default_value_t = METRICS)]
        metrics: SocketAddr,
    },
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum What {
    /// Nothing: show which flows suffer
    Observe,
    /// Hold early packets of flows whose senders suffer, as long as that makes them faster
    Resequence,
    /// Hold packets of any protocol that arrive on the faster interface, for the difference of the delays
    Equalise,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Command::Status { metrics }) = &args.command {
        return status::show(*metrics);
    }
    let settings = settings(args).map_err(Failure::Usage)?;
    for interface in &settings.interfaces {
        if let Some(names) = instead_of(interface) {
            let why = format!("--interface {interface}: no interface has this name; interfaces: {names}");
            return Err(Failure::Usage(why));
        }
    }
    if args.dry_run {
        return output::print(&reknit_shield::dry_run(&settings));
    }
    args.log.set();
    reknit_shield::run(&settings).map_err(Failure::Failed)
}

fn mode(args: &Args, limit: Duration) -> Result<Mode, String> {
    let difference = args.difference;
    match args.mode {
        What::Observe | What::Resequence if difference.is_some() => {
            Err("--difference: only with --mode equalise".to_owned())
        }
        What::Observe => Ok(Mode::Observe),
        What::Resequence => Ok(Mode::Resequence),
        What::Equalise if args.interface.len() < 2 => Err(format!(
            "--interface {}: equalise needs at least two, separated by commas, for example wan0,wan1",
            args.interface.join(",")
        )),
        What::Equalise => match difference {
            Some(difference) if difference.is_zero() || difference > limit => {
                Err(format!("--difference {difference}: must be more than 0 and at most --limit, {limit}"))
            }
            _ => Ok(Mode::Equalise { difference }),
        },
    }
}

fn settings(args: &Args) -> Result<Settings, String> {
    let defaults = Settings::default();
    if args.interface.is_empty() {
        return Err("--interface: missing; give the interface on which the packets arrive, for example wan0".to_owned());
    }
    // They become words of commands.
    let is_name =
        |name: &&String| !name.is_empty() && name.len() < 16 && name.chars().all(|c| c.is_ascii_graphic() && c != '/');
    if let Some(name) = args.interface.iter().find(|name| !is_name(name)) {
        return Err(format!(
            "--interface {name:?}: must be the name of an interface: 1 to 15 characters without spaces and `/`"
        ));
    }
    let is_again = |(i, name): (usize, &String)| args.interface[..i].contains(name).then(|| name.clone());
    if let Some(name) = args.interface.iter().enumerate().find_map(is_again) {
        return Err(format!(
            "--interface {}: {name} is given twice; give each interface once",
            args.interface.join(",")
        ));
    }
    let limit = args.limit.unwrap_or(defaults.limit);
    if !(Duration::from_millis(1)..=Duration::from_secs(5)).contains(&limit) {
        return Err(format!("--limit {limit}: must be from 1 ms to 5 s"));
    }
    Ok(Settings {
        mode: mode(args, limit)?,
        interfaces: args.interface.clone(),
        limit,
        first_queue: args.queue as u16,
        queues: args.queues as u16,
        metrics: args.metrics.unwrap_or(defaults.metrics),
    })
}
