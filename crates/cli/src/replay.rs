//! `reknit replay`: which variant would have helped on the path that a capture shows.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use reknit_compare::{Best, Comparison, Count, Estimate, Replay, ReplayCheck, ReplayOptions, Replayer, SenderCheck};
use reknit_sim::MAX_SEEDS;
use reknit_trace::{CapturePoint, Options};
use reknit_units::{Duration, Rate};

use crate::analyze::{self, At};
use crate::compare::show::table_columns;
use crate::output::{count, estimate, how_many, number, per_cent};
use crate::table::{self, Screen};
use crate::{Failure, input, output};

/// The exit code if there is no comparison because it would mislead, so that a script need not read the result to see that.
const MISLEADING: u8 = 3;

/// Compare variants on the path measured in a capture, in simulation
///
/// Measures the bottleneck's rate and queue in the capture, and what happened to each packet after it. In the simulation,
/// packets sent at the same times get the same delays and losses. The first line says whether the replay of
/// the captured sender reproduces the capture. If it does not, or if the rate of the bottleneck is not known, there is no
/// comparison, and the exit code is 3. docs/guide/replay.md explains how it works.
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
    /// The variant that sent the data: `linux` for Linux with CUBIC, `bbr1` for Linux with BBR [default: whichever of the two
    /// reproduces the capture]
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
    #[arg(long, value_name = "N", default_value = "5", value_parser = input::whole::<1, MAX_SEEDS>,
          allow_negative_numbers = true)]
    draws: u32,
    /// Replay this much of the transfer, from its beginning [default: all, but at most 60 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Leave out the oracle, a sender that knows each loss and whose window grows in the same way
    #[arg(long)]
    no_oracle: bool,
    /// Compare variants even if that would mislead: the replay does not reproduce the capture, or the rate of the bottleneck
    /// is not known
    #[arg(long)]
    anyway: bool,
    /// Print JSON (docs/reference/json.md; `reknit schema replay`)
    #[arg(long)]
    json: bool,
    /// Do not show a progress bar
    #[arg(long)]
    quiet: bool,
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let options = Options { at: args.at.map(CapturePoint::from), transits: true, ..Options::default() };
    let replay_options = replay_options(args);
    replay_options.check()?;
    let (mut analysis, transits) = analyze::read(&args.file, &options, &mut |_| {})?;
    analyze::keep_stream(&mut analysis, args.stream)?;
    analyze::warn(&analysis);
    let (direction, path) = analyze::measured_path(&analysis, &transits, args.rate)?;
    let replayer = Replayer::new(direction, path, &replay_options)?;
    drop(transits);
    if let Some(why) = replayer.idle().filter(|_| !args.anyway) {
        return Err(Failure::Failed(format!("{}: {why}; --anyway replays it", analysis.file)));
    }
    let stop = output::on_interrupt();
    let bar = output::progress(0, "checking", args.quiet);
    let check = replayer.check(&stop, &|| bar.inc(1));
    bar.finish_and_clear();
    let Some(check) = check else { return Err(Failure::Interrupted) };
    let comparison = match replayer.refusal(&check) {
        Some(_) if !args.anyway => None,
        _ => Some(compare(&replayer, args.quiet)?),
    };
    let (complete, exit_code) = comparison.as_ref().map_or((true, MISLEADING), |comparison| (comparison.complete, 0));
    let replay = replayer.report(&analysis.file, check, comparison);
    for warning in &replay.warnings {
        output::note(format_args!("warning: {}: {warning}", replay.file));
    }
    if args.json {
        output::print_json(&replay)?;
    } else {
        output::print(&text(&replay, Screen::stdout()))?;
    }
    if complete { Ok(exit_code) } else { Err(Failure::Interrupted) }
}

fn compare(replayer: &Replayer, quiet: bool) -> Result<Comparison, Failure> {
    let experiment = &replayer.experiment;
    let stop = output::on_interrupt();
    let bar = output::progress(experiment.jobs.len() as u64, "replaying", quiet);
    let comparison = experiment.run(|job| {
        let result = if stop.load(Ordering::Relaxed) { None } else { job.simulate(&stop) };
        bar.inc(1);
        Ok::<_, Failure>(result)
    })?;
    bar.finish_and_clear();
    Ok(comparison)
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
    let lines = [
        ("check", Some(check(&replay.check))),
        ("path", Some(path(replay))),
        ("best", replay.best.as_ref().map(|found| best(found, &replay.check.closest))),
        ("no best", replay.refused.as_ref().filter(|_| replay.check.closest.holds).cloned()),
    ];
    let lines = lines.into_iter().filter_map(|(name, line)| Some((name.to_owned(), line?)));
    let lines: Vec<(String, String)> = lines.collect();
    let width = screen.text_width();
    let place = match replay.captured_at {
        CapturePoint::Sender => "sender",
        CapturePoint::Middle => "middle",
        CapturePoint::Receiver => "receiver",
    };
    let title =
        format!("{}: stream {}, {} to {}, captured at the {place}", replay.file, replay.stream, replay.from, replay.to);
    let lines = table::definitions(&lines, width);
    let Some(comparison) = &replay.comparison else {
        let foot = "No comparison, because it would mislead; --anyway makes one. docs/guide/replay.md explains why.";
        return format!("{lines}\n{}\n{}\n", screen.heading(&title), table::wrap(foot, width, 0));
    };
    let foot = format!(
        "{} {} s each. --json prints all numbers. docs/guide/replay.md explains the limits of a replay.",
        draws(comparison.seeds),
        count(comparison.duration_s)
    );
    format!(
        "{lines}\n{}\n{}\n{}\n",
        screen.heading(&title),
        table::render(&table_columns(comparison), screen),
        table::wrap(&foot, width, 0)
    )
}

fn draws(seeds: u32) -> String {
    if seeds == 1 { "1 draw,".to_owned() } else { format!("Means of {seeds} draws with 95 % intervals,") }
}

/// Whether the replay can be trusted.
fn check(check: &ReplayCheck) -> String {
    let captured = check.captured_mbit_s;
    let of = |sender: &SenderCheck| {
        let counts = [
            ("retransmissions", &sender.retransmissions),
            ("false reductions", &sender.false_reductions),
            ("timeouts", &sender.timeouts),
        ];
        let counted = |(name, count): (&str, &Count)| {
            let replayed = Estimate { two_groups: None, ..count.replayed };
            format!(", {name} {} ({})", estimate(&replayed), number(count.captured.round()))
        };
        let goodput = Estimate { two_groups: None, ..sender.replayed_mbit_s };
        let counts: String = counts.into_iter().map(counted).collect();
        format!("{} Mbit/s (captured {}){counts}", estimate(&goodput), number(captured))
    };
    let closest = &check.closest;
    let who = format!("`{}`{}", closest.sender, if check.is_given { ", as given," } else { "" });
    let text = if closest.holds {
        format!("{who} reproduces the capture: {}", of(closest))
    } else {
        format!("NOT REPRODUCED: {who} differs in {}: {}", differs(closest), of(closest))
    };
    let others = check.others.iter().map(|other| {
        let how = if other.holds { "does too".to_owned() } else { format!("differs in {}", differs(other)) };
        format!("; `{}` {how}: {} Mbit/s", other.sender, estimate(&other.replayed_mbit_s))
    });
    text + &others.collect::<String>()
}

fn differs(sender: &SenderCheck) -> String {
    sender.differs.join(", ").replace('_', " ")
}

fn path(replay: &Replay) -> String {
    let path = &replay.path;
    let share = |n: u64| per_cent(n as f64 / path.packets.max(1) as f64);
    let [least, overflowed] =
        if path.queue_overflowed { ["", "it overflowed"] } else { ["at least ", "it did not overflow"] };
    let window = path
        .receive_window_bytes
        .map(|bytes| format!("; the receiver's window of {} limits", how_many(bytes.into(), "byte")));
    let buffer = path
        .most_in_flight_packets
        .map(|n| format!("; the sender's buffer limits to {} in flight", how_many(n, "packet")));
    format!(
        "bottleneck {}{} Mbit/s, queue of {least}{} ({overflowed}); round trip {} ms; after the bottleneck, {} of packets were late and {} lost{}{}",
        if path.rate_is_least { "at least " } else { "" },
        number(path.rate_mbit_s),
        how_many(path.queue_packets.into(), "packet"),
        number(path.round_trip_ms),
        share(path.late),
        share(path.lost),
        window.unwrap_or_default(),
        buffer.unwrap_or_default(),
    )
}

/// The best variant, compared with the captured sender and with the oracle whose window grows in the same way.
fn best(best: &Best, sender: &SenderCheck) -> String {
    let goodput = &best.goodput_mbit_s;
    let text = if best.variant == sender.sender {
        format!("`{}` itself: no variant reaches more than 5 % above its {} Mbit/s", best.variant, number(goodput.mean))
    } else {
        format!("`{}` with {} Mbit/s, {:.1} times `{}`", best.variant, estimate(goodput), best.times, sender.sender)
    };
    match best.oracle_mbit_s {
        Some(possible) => format!("{text}; a sender that knows each loss reaches {}", number(possible)),
        None => text,
    }
}
