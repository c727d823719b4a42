//! `reknit proxy`: reknit's TCP for the leg that reorders, without changes to clients and servers.

mod status;

use std::net::SocketAddr;
use std::path::PathBuf;

use reknit_config::{KeyError, LARGEST_FILE, read_file};
use reknit_proxy::settings::{
    BadLeg, CLIENTS_ADDRESS, ClientAddress, Fail, Listener, MAX_CONNECTIONS, METRICS, OTHER_FAMILY, Settings,
};
use reknit_units::Share;

use crate::{Failure, input, output};

/// Use reknit's TCP on the leg of a path that reorders, without changing clients or servers (needs root)
///
/// Runs on a gateway or on the server itself. Takes TCP connections to the given addresses: the client is answered when the
/// server has accepted, so refused connections stay refused. The server sees the client's address. If the proxy ends, even by
/// `kill -9`, new connections bypass it. SIGTERM lets open connections end first; SIGHUP makes it read the file again.
/// docs/guide/deploy.md shows whole setups.
#[derive(clap::Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  reknit proxy --listen 203.0.113.10:443 --to 203.0.113.10:443
  reknit proxy --listen 0.0.0.0:443 --bad-leg servers --dry-run
  reknit proxy --config /etc/reknit/proxy.toml
  reknit proxy status"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Take connections to this address; `0.0.0.0` stands for all IPv4 addresses that this machine forwards, `[::]` for all IPv6.
    /// May be repeated
    #[arg(long, value_name = "ADDR:PORT", value_parser = input::address)]
    listen: Vec<SocketAddr>,
    /// The server, one for each `--listen` [default: the address that the client asks for]
    #[arg(long, value_name = "ADDR:PORT", value_parser = input::address)]
    to: Vec<SocketAddr>,
    /// Which leg reorders
    #[arg(long, value_enum, value_name = "LEG", default_value = "clients")]
    bad_leg: Leg,
    /// The TCP on that leg [default: reknit-bbr]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// The address that servers see: the client's; the proxy's, with a header of PROXY protocol version 2; or only the proxy's.
    /// With `--bad-leg servers`, it is the client's
    #[arg(long, value_enum, value_name = "WHICH", default_value = "keep")]
    client_address: Address,
    /// Read settings and listeners from this file (docs/guide/deploy.md); options take precedence
    #[arg(long, value_name = "FILE.toml")]
    config: Option<PathBuf>,
    /// What happens after a crash of the proxy: connections bypass it (`open`), or servers are unreachable (`closed`) [default: open]
    #[arg(long, value_enum, value_name = "HOW")]
    fail: Option<Failing>,
    /// Leave new connections of a listener to the kernel beyond this many [default: 10000]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MAX_CONNECTIONS>, allow_negative_numbers = true)]
    max_connections: Option<u32>,
    /// Leave about this share of new connections to the kernel, for comparison: one in 4, 8, 16, ... [default: 2 %, one in 64]
    #[arg(long, value_name = "SHARE", value_parser = |text: &str| text.parse::<Share>())]
    untouched: Option<Share>,
    /// Serve metrics for Prometheus at this address [default: 127.0.0.1:9436]
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
    /// Show what a running proxy does
    Status {
        /// Where it serves its metrics
        #[arg(long, value_name = "ADDR:PORT", value_parser = input::address, default_value_t = METRICS)]
        metrics: SocketAddr,
    },
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Leg {
    Clients,
    Servers,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Address {
    Keep,
    ProxyV2,
    Hide,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Failing {
    Open,
    Closed,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Command::Status { metrics }) = &args.command {
        return status::show(*metrics);
    }
    let settings = load(args).map_err(Failure::Usage)?;
    if args.dry_run {
        return output::print(&reknit_proxy::dry_run(&settings).map_err(Failure::Failed)?);
    }
    args.log.set();
    reknit_proxy::run(|| load(args)).map_err(Failure::Failed)
}

/// The settings of the file, changed by the options.
fn load(args: &Args) -> Result<Settings, String> {
    let mut settings = Settings::default();
    if let Some(file) = &args.config {
        let name = file.display().to_string();
        let text = read_file(file, LARGEST_FILE).map_err(|error| format!("--config {name}: {error}"))?;
        settings = Settings::parse(&name, &text).map_err(|error| error.to_string())?;
    }
    if args.to.len() > args.listen.len() {
        return Err(format!("--to: {} for {} --listen; give one for each, or none", args.to.len(), args.listen.len()));
    }
    for (i, listen) in args.listen.iter().enumerate() {
        settings.listeners.push(Listener {
            bad_leg: match args.bad_leg {
                Leg::Clients => BadLeg::Clients,
                Leg::Servers => BadLeg::Servers,
            },
            client_address: match args.client_address {
                Address::Keep => ClientAddress::Keep,
                Address::ProxyV2 => ClientAddress::ProxyV2,
                Address::Hide => ClientAddress::Hide,
            },
            ..Listener::new(*listen, args.to.get(i).copied())
        });
    }
    if settings.listeners.is_empty() {
        return Err("--listen: missing; give --listen ADDR:PORT, or --config FILE.toml with [[listeners]]".to_owned());
    }
    override_with(&mut settings, args);
    let word = |error: KeyError| if args.config.is_some() { error.to_string() } else { with_flag(&error) };
    settings.check().map_err(word)?;
    Ok(settings)
}

/// An error in settings that all come from options.
fn with_flag(error: &KeyError) -> String {
    let key = error.key.rsplit('.').next().unwrap_or_default().replace('_', "-");
    let value = error.value.as_deref().map_or(String::new(), |value| format!(" {}", value.trim_matches('"')));
    let message = match error.message.as_str() {
        OTHER_FAMILY => "must be of the same family as --listen, or give --client-address proxy-v2 or hide",
        CLIENTS_ADDRESS => {
            "must be keep with --bad-leg servers, where the proxy connects from the address of the client"
        }
        message => message,
    };
    format!("--{key}{value}: {message}")
}

fn override_with(settings: &mut Settings, args: &Args) {
    if let Some(variant) = &args.variant {
        settings.variant.clone_from(variant);
    }
    if let Some(fail) = args.fail {
        settings.fail = match fail {
            Failing::Open => Fail::Open,
            Failing::Closed => Fail::Closed,
        };
    }
    settings.max_connections = args.max_connections.unwrap_or(settings.max_connections);
    settings.untouched = args.untouched.unwrap_or(settings.untouched);
    settings.metrics = args.metrics.unwrap_or(settings.metrics);
}
