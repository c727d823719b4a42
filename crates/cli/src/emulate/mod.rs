//! `reknit emulate`: any program over an emulated path.

mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use reknit_compare::names;
use reknit_config::file_error;
use reknit_host::emulate::{self, EmulateError, Listener, Reading, Report, Spec, Stages, Uplink};
use reknit_path::{Direction, Profile};
use reknit_units::{Duration, Share};
use toml::Table;

use crate::shaping::{self, ShapingArgs, ShieldArgs};
use crate::{Failure, input, output};

/// How often `--meter` prints a line.
const METER: Duration = Duration::from_secs(1);

/// Run any program, such as curl, iperf3, ping or a shell, over an emulated path, in real time
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The command runs in a network namespace whose only way out is the path; everything is removed when it \
ends, and its exit code is passed on. What it sends takes the forward direction of --path, what it receives the reverse \
direction. For a download over the forward direction, use --down. Without a command, a shell is started. Emulations \
nest: the paths are then in series. docs/guide/emulate.md explains what runs without root.

Examples:
  reknit emulate --down two-paths-50ms -- curl -O https://example.org/file
  reknit emulate --path lossy --server 'iperf3 -s' -- iperf3 -c server
  reknit emulate --up ./dsl.toml --down leo --pcap inside.pcapng
  reknit emulate --rate '10 Mbit/s' --delay 20ms --netem 'delay 10ms 5ms' -- curl -O https://example.org/file"
)]
pub(crate) struct Args {
    /// Send what the command sends over the forward direction of this path (a built-in one or a TOML file), and what it
    /// receives over the reverse direction
    #[arg(long, value_name = "NAME|FILE.toml", conflicts_with_all = ["up", "down"],
          required_unless_present_any = ["up", "down", "delay", "rate", "loss", "netem"])]
    path: Option<String>,
    /// Send what the command sends over the forward direction of this path. Without --down, the same as --path
    #[arg(long, value_name = "NAME|FILE.toml")]
    up: Option<String>,
    /// Send what the command receives over the forward direction of this path. Without --up, what it sends takes the
    /// reverse direction
    #[arg(long, value_name = "NAME|FILE.toml")]
    down: Option<String>,
    /// Change one value of the path, for example `forward.bottleneck.rate="2 Mbit/s"`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    shaping: ShapingArgs,
    #[command(flatten)]
    shield: ShieldArgs,
    /// Lose packets in both directions with this probability, for example `1%` or `0.01`
    #[arg(long, value_name = "PROBABILITY", allow_hyphen_values = true)]
    loss: Option<Share>,
    /// Remove all reordering from the path
    #[arg(long)]
    in_order: bool,
    /// Seed of the path's random decisions
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Run this command, in a shell, at the other end of the path, where it is known as `server`; its standard
    /// output is discarded
    #[arg(long, value_name = "COMMAND")]
    server: Option<OsString>,
    /// Connect the other end of the path to the outside in this way [default: nat for root without --server, else relay]
    #[arg(long, value_name = "HOW")]
    outside: Option<Way>,
    /// Write the packets at the command's end to a pcapng file
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the packets at the other end to a pcapng file
    #[arg(long, value_name = "FILE")]
    pcap_outside: Option<PathBuf>,
    /// Write the delay or loss of every packet as a path, which can be used like any other
    #[arg(long, value_name = "FILE.toml")]
    record: Option<PathBuf>,
    /// Print a line every second: the rate, the packets on the path, and how many were reordered and lost
    #[arg(long)]
    meter: bool,
    /// Write the summary as JSON to a file (docs/guide/emulate.md)
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print neither the addresses nor the summary, only warnings
    #[arg(long, conflicts_with = "meter")]
    quiet: bool,
    /// The command and its arguments; without them, a shell is started
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How the other end of the path is connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Way {
    /// This machine forwards packets and translates their addresses; needs root and nft or iptables
    Nat,
    /// reknit opens connections to the outside on behalf of the command
    Relay,
    /// Nothing but the server, if there is one
    None,
}

/// Returns the exit code of the command.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let (label, up, down) = stages(args)?;
    check(args)?;
    let spec = Spec {
        up,
        down,
        label: label.clone(),
        seed: args.seed,
        command: args.command.clone(),
        server: args.server.clone(),
        outside: args.outside.map(|way| match way {
            Way::Nat => Uplink::Nat,
            Way::Relay => Uplink::Relay,
            Way::None => Uplink::Nothing,
        }),
        capture: args.pcap.clone(),
        capture_outside: args.pcap_outside.clone(),
        record: args.record.is_some(),
    };
    let mut tell = |reading: Reading| output::note(format_args!("reknit: {}", show::reading(&reading)));
    let listener = Listener {
        ready: &mut |ready| {
            if !args.quiet {
                output::note(format_args!("reknit: {}", show::ready(&label, ready)));
            }
        },
        note: &mut |note| {
            if !args.quiet {
                output::note(format_args!("note: {note}"));
            }
        },
        meter: if args.meter { Some((METER, &mut tell)) } else { None },
    };
    let report = match emulate::run(&spec, listener) {
        Ok(report) => report,
        Err(error @ (EmulateError::Command { .. } | EmulateError::Interrupted { .. })) => {
            output::note(format_args!("error: {error}"));
            return Ok(error.exit_code());
        }
        Err(error) => return Err(Failure::Failed(error.to_string())),
    };
    if !args.quiet {
        show::summary(&label, args.seed, &report).lines().for_each(output::note);
    }
    if let Some(lost) = show::unacknowledged(&report) {
        output::note(format_args!("warning: {lost}"));
    }
    if let Some(lost) = show::undelivered_udp(&report) {
        output::note(format_args!("warning: {lost}"));
    }
    if let Some(doubt) = report.punctuality.doubt() {
        output::note(format_args!("warning: the machine could not keep up: {doubt}"));
    }
    write_files(args, &label, &report)?;
    Ok(report.exit_code)
}

/// What the path is called, and its two directions.
fn stages(args: &Args) -> Result<(String, Stages, Stages), Failure> {
    let both = ["forward", "reverse"];
    let mut set = [args.set.clone(), args.shaping.set(&both)?].concat();
    set.extend(args.loss.iter().flat_map(|loss| both.map(|way| shaping::loss(way, *loss))));
    set.extend(args.shield.set());
    let in_order = |profile: Profile| if args.in_order { profile.in_order() } else { profile };
    let load = |name: &String| names::load_path(name, &set).map(in_order);
    let pick = |profile: &Profile, direction| Stages { profile: profile.clone(), direction };
    match (args.path.as_ref().or(args.up.as_ref()), &args.down) {
        (Some(up), Some(down)) => {
            if !args.set.is_empty() {
                let message = "--set cannot be used with both --up and --down; edit a copy of the path file instead";
                return Err(Failure::Usage(message.to_owned()));
            }
            let stages = |name| load(name).map(|profile| pick(&profile, Direction::Forward));
            Ok((format!("up {up}, down {down}"), stages(up)?, stages(down)?))
        }
        (Some(name), None) => {
            let profile = load(name)?;
            Ok((name.clone(), pick(&profile, Direction::Forward), pick(&profile, Direction::Reverse)))
        }
        (None, Some(name)) => {
            let profile = load(name)?;
            Ok((format!("down {name}"), pick(&profile, Direction::Reverse), pick(&profile, Direction::Forward)))
        }
        (None, None) => {
            let profile = in_order(Profile::from_table_with("path", Table::new(), &set)?);
            let label = both_described(&profile);
            Ok((label, pick(&profile, Direction::Forward), pick(&profile, Direction::Reverse)))
        }
    }
}

/// The stages of a path that has no name.
fn both_described(profile: &Profile) -> String {
    let stages: Vec<String> = profile.forward.iter().map(|named| named.spec.to_string()).collect();
    stages.join("; ")
}

/// Refuses options that cannot work before anything is set up.
fn check(args: &Args) -> Result<(), Failure> {
    if args.server.is_some() && args.outside == Some(Way::Nat) {
        let why = "--server cannot be used with --outside nat, because it runs in a private namespace";
        return Err(Failure::Usage(why.to_owned()));
    }
    // So that a long run does not end with a file that cannot be written.
    let written = [
        ("--pcap", &args.pcap),
        ("--pcap-outside", &args.pcap_outside),
        ("--record", &args.record),
        ("--report", &args.report),
    ];
    output::check_writable(&written, args.path.as_slice())?;
    if let Some(file) = args.record.as_ref().filter(|file| file.extension().is_none_or(|end| end != "toml")) {
        let why = "the name must end in .toml, so that --path takes it";
        return Err(Failure::Usage(format!("--record {}: {why}", file.display())));
    }
    for (flag, file) in [("--record", &args.record), ("--report", &args.report)] {
        if let Some(file) = file {
            std::fs::write(file, "")
                .map_err(|error| Failure::Usage(format!("{flag} {}: {}", file.display(), file_error(&error))))?;
        }
    }
    Ok(())
}

fn write_files(args: &Args, label: &str, report: &Report) -> Result<(), Failure> {
    if let Some(file) = &args.record {
        write_record(file, label, args.seed, report)?;
    }
    if let Some(file) = &args.report {
        output::write_file("--report", file, show::json(label, args.seed, report)?)?;
    }
    Ok(())
}

fn write_record(file: &Path, label: &str, seed: u64, report: &Report) -> Result<(), Failure> {
    if report.counts.iter().all(|counts| counts.packets == 0) {
        // A path without packets could not be read. `check` has made an empty file.
        let _ = std::fs::remove_file(file);
        output::note(format_args!(
            "warning: --record {}: not written, because no packet took the path",
            file.display()
        ));
        return Ok(());
    }
    output::write_file("--record", file, show::recorded_path(label, seed, report))?;
    let left_out: u64 = report.records.iter().flatten().map(emulate::PathRecording::left_out).sum();
    if left_out > 0 {
        let packets = output::how_many(left_out, "packet");
        output::note(format_args!("warning: {}: not recorded at the end: {packets}", file.display()));
    }
    Ok(())
}
