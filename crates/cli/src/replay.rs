//! `reknit replay`: which variant would have helped on the path that a capture shows.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use reknit_compare::{Replay, ReplayOptions, Replayer, Row};
use reknit_sim::MOST_SEEDS;
use reknit_trace::{Options, Place};
use reknit_units::{Duration, Rate};

use crate::analyze::{self, At};
use crate::compare::show::table_columns;
use crate::output::{count, estimate, number, per_cent};
use crate::table::{self, Screen};
use crate::{Failure, input, output};

/// Compare variants on the path measured in a capture, in simulation
///
/// Measures the bottleneck's rate and queue in the capture, and what happened to each packet behind the bottleneck. In the
/// simulation, packets sent at the same time get the same delays and losses. The first line says whether the replay of
/// the captured sender reproduces the captured throughput: if it does not, do not trust the rest. docs/guide/replay.md
/// explains how it works.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  reknit replay slow.pcap
  reknit replay slow.pcap.gz --stream 3 --sender bbr1 --variants all
  reknit replay slow.pcap --variants linux,reknit --draws 20 --json")]
pub(crate) struct Args {
    /// The capture; `-` is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replay this connection, numbered as `tcp.stream` in Wireshark [default: the one that suffers most]
    #[arg(long, value_name = "N", value_parser = input::whole::<0, { u32::MAX }>, allow_negative_numbers = true)]
    stream: Option<u32>,
    /// Where the capture was made [default: inferred]
    #[arg(long, value_enum, value_name = "PLACE")]
    at: Option<At>,
    /// The variant that sent the data: `linux` for Linux with CUBIC, `bbr1` for Linux with BBR [default: whichever of these
    /// matches the captured retransmissions best]
    #[arg(long, value_name = "VARIANT")]
    sender: Option<String>,
    /// Variants to compare, separated by commas, as in `reknit compare`, or `all` [default: linux, bbr, reknit, rack, pr]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    variants: Vec<String>,
    /// A TOML file with your own variant (docs/reference/variants.md); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    variant_file: Vec<PathBuf>,
    /// The rate of the bottleneck, such as `100 Mbit/s` [default: measured]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    rate: Option<Rate>,
    /// Runs of each variant, each with different draws from the measured delays and losses
    #[arg(long, value_name = "N", default_value = "5", value_parser = input::whole::<1, MOST_SEEDS>,
          allow_negative_numbers = true)]
    draws: u32,
    /// Replay this much of the transfer, from its beginning [default: all, but at most 60 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Leave out the oracle, which shows what is possible
    #[arg(long)]
    no_oracle: bool,
    /// Print JSON (docs/reference/json.md; `reknit schema replay`)
    #[arg(long)]
    json: bool,
    /// Do not show a progress bar
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = Options { at: args.at.map(Place::from), journeys: true, ..Options::default() };
    let (mut analysis, journeys) = analyze::read(&args.file, &options, &mut |_| {})?;
    analyze::keep_stream(&mut analysis, args.stream)?;
    let (direction, path) = analyze::measured_path(&analysis, &journeys, args.rate)?;
    let replayer = Replayer::new(direction, path, &replay_options(args))?;
    drop(journeys);
    let experiment = &replayer.experiment;
    let stop = output::on_interrupt();
    let bar = output::progress(experiment.jobs.len() as u64, "replaying", args.quiet);
    let comparison = experiment.run(|job| {
        let result = if stop.load(Ordering::Relaxed) { None } else { job.simulate(&stop) };
        bar.inc(1);
        Ok::<_, Failure>(result)
    })?;
    bar.finish_and_clear();
    let complete = comparison.complete;
    let Some(replay) = replayer.report(&analysis.file, comparison) else {
        return Err(Failure::Interrupted);
    };
    for warning in &replay.warnings {
        output::note(format_args!("warning: {}: {warning}", replay.file));
    }
    if args.json {
        output::print_json(&replay)?;
    } else {
        output::print(&text(&replay, Screen::stdout()))?;
    }
    if complete { Ok(()) } else { Err(Failure::Interrupted) }
}

fn replay_options(args: &Args) -> ReplayOptions {
    let all = || reknit_variants::VARIANTS.iter().filter(|variant| !variant.is_simulated_only());
    let variants = match &args.variants[..] {
        [only] if only == "all" => all().map(|variant| variant.name.to_owned()).collect(),
        named => named.to_vec(),
    };
    ReplayOptions {
        sender: args.sender.clone(),
        variants,
        variant_files: args.variant_file.clone(),
        draws: args.draws,
        duration: args.duration,
        oracle: !args.no_oracle,
    }
}

fn text(replay: &Replay, screen: Screen) -> String {
    let lines = [("check", check(replay)), ("path", path(replay)), ("best", best(replay))];
    let lines = lines.map(|(name, line)| (name.to_owned(), line));
    let width = screen.text_width();
    let place = match replay.captured_at {
        Place::Sender => "sender",
        Place::Middle => "middle",
        Place::Receiver => "receiver",
    };
    let title =
        format!("{}: stream {}, {} to {}, captured at the {place}", replay.file, replay.stream, replay.from, replay.to);
    let comparison = &replay.comparison;
    let foot = format!(
        "{} {} s each. All numbers: --json. docs/guide/replay.md explains the limits of a replay.",
        draws(comparison.seeds),
        count(comparison.duration_s)
    );
    format!(
        "{}\n{}\n{}\n{}\n",
        table::definitions(&lines, width),
        screen.heading(&title),
        table::render(&table_columns(comparison), screen),
        table::wrap(&foot, width, 0)
    )
}

fn draws(seeds: u32) -> String {
    if seeds == 1 { "1 draw,".to_owned() } else { format!("Mean of {seeds} draws, ± 95 %;") }
}

/// Whether the replay can be trusted.
fn check(replay: &Replay) -> String {
    let check = &replay.check;
    let ratio = check.replayed_mbit_s.mean / check.captured_mbit_s.max(1e-9);
    let differs = format!("{} {}", per_cent((ratio - 1.0).abs()), if ratio < 1.0 { "less" } else { "more" });
    let who = if check.is_given {
        format!("`{}`, as given", check.sender)
    } else {
        format!("`{}`, the closest match to the captured retransmissions (--sender overrides)", check.sender)
    };
    let (there, here) = (number(check.captured_mbit_s), estimate(&check.replayed_mbit_s));
    if check.holds {
        format!("the replay reproduces the capture: {here} Mbit/s with {who}; captured {there} ({differs})")
    } else {
        format!(
            "NOT REPRODUCED, so do not trust what follows: {here} Mbit/s with {who}; captured {there} ({differs}, \
             allowed 15 %)"
        )
    }
}

fn path(replay: &Replay) -> String {
    let path = &replay.path;
    let share = |n: u64| per_cent(n as f64 / path.packets.max(1) as f64);
    let queue = if path.queue_overflowed { "that overflowed" } else { "that did not overflow, so it may be longer" };
    format!(
        "bottleneck {}{} Mbit/s, queue of {} packets {queue}; round trip {} ms; behind it {} of packets were late and {} lost",
        if path.rate_is_least { "at least " } else { "" },
        number(path.rate_mbit_s),
        path.queue_packets,
        number(path.round_trip_ms),
        share(path.late),
        share(path.lost),
    )
}

/// The best variant, compared with the captured sender and with what is possible.
fn best(replay: &Replay) -> String {
    let mean = |row: &&Row| row.goodput_mbit_s.mean;
    let rows = &replay.comparison.variants;
    let Some(best) = rows.iter().max_by(|a, b| mean(a).total_cmp(&mean(b))) else { return "-".to_owned() };
    let sender = &replay.check.sender;
    let at_work = replay.check.replayed_mbit_s.mean;
    let factor = mean(&best) / at_work.max(1e-9);
    let mut text = if best.variant == *sender || factor < 1.05 {
        format!("`{sender}` itself: no variant reaches more than 5 % above its {} Mbit/s", number(at_work))
    } else {
        format!("`{}` with {} Mbit/s, {factor:.1} times `{sender}`", best.variant, estimate(&best.goodput_mbit_s))
    };
    let possible = rows.iter().filter_map(|row| row.oracle_mbit_s).fold(0.0, f64::max);
    if possible > 0.0 {
        let _ = write!(text, "; a sender that knows each loss reaches {}", number(possible)); // writing to a string cannot fail
    }
    text
}
