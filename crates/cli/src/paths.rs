//! `reknit paths`: lists the paths, and reports what a path does to a train of packets.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use reknit_compare::path_report::{self, PathReport};
use reknit_compare::{Location, names};
use reknit_path::{Direction, Profile, Train, TrainResult};
use reknit_units::Duration;

use crate::plot::{self, Picture};
use crate::table::{self, Screen};
use crate::{Failure, input, output};

/// List the paths, or describe one
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Given a path, lists its stages and reports what they do to a train of packets, in the terms of \
RFC 4737.

Examples:
  reknit paths
  reknit paths two-paths-50ms --plot two-paths.svg
  reknit paths two-paths-50ms --set forward.paths.paths.1.delay=80ms
  reknit paths two-paths-50ms --toml > my-path.toml"
)]
pub(crate) struct Args {
    /// Describe this path: a built-in one or a TOML file
    name: Option<String>,
    /// Set a value of the path, for example `forward.bottleneck.rate="2 Mbit/s"`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "name")]
    set: Vec<String>,
    /// Seed the random decisions of the path
    #[arg(long, value_name = "N", requires = "name", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Plot the delays and extents to this file: of the forward direction, or of the reverse one if only that reorders
    #[arg(long, value_name = "FILE.svg|png", requires = "name")]
    plot: Option<PathBuf>,
    /// Print JSON: the list, or the report of each direction
    #[arg(long)]
    json: bool,
    /// Print the path as a file, to be changed and used like any other
    #[arg(long, requires = "name", conflicts_with_all = ["json", "plot"])]
    toml: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(file) = &args.plot {
        plot::check(file)?;
    }
    let width = Screen::stdout().text_width();
    match &args.name {
        Some(name) if args.toml => output::print(&toml(name, &args.set)?),
        Some(name) => {
            let profile = names::load_path(name, &args.set)?;
            if let Some(file) = &args.plot {
                let (direction, train, result) = worth_a_picture(&profile, args.seed);
                let way = if direction == Direction::Forward { "" } else { ", reverse direction" };
                let title = format!("{}{way}", profile.name);
                Picture { title, description: &profile.description, train, result: &result }.save(file)?;
            }
            if args.json {
                let reports = [Direction::Forward, Direction::Reverse];
                return output::print_json(&reports.map(|way| path_report::report(&profile, way, args.seed)));
            }
            output::print(&describe_path(&profile, args.seed, width))
        }
        None if args.json => output::print_json(&path_report::list()?),
        None => output::print(&list_paths(width)?),
    }
}

/// The file of the path; if values are set, without its comments.
fn toml(name: &str, set: &[String]) -> Result<String, Failure> {
    names::load_path(name, set)?; // refuses what is wrong
    if let (Some(text), []) = (reknit_path::builtin(name), set) {
        return Ok(text.to_owned());
    }
    let mut table = Profile::table(name)?;
    for assignment in set {
        reknit_path::set(&mut table, assignment).map_err(|error| error.at(Location::argument("set")))?;
    }
    toml::to_string_pretty(&table).map_err(|error| Failure::Failed(error.to_string()))
}

fn list_paths(width: usize) -> Result<String, Failure> {
    let items: Vec<_> = path_report::list()?.into_iter().map(|listed| (listed.name, listed.description)).collect();
    let more = "Describe one path: reknit paths NAME. Write your own: docs/reference/paths.md.";
    Ok(format!("{}\n{}\n", table::definitions(&items, width), table::wrap(more, width, 0)))
}

fn describe_path(profile: &Profile, seed: u64, width: usize) -> String {
    let mut text = table::wrap(&output::title(&profile.name, &profile.description), width, 2) + "\n";
    if !profile.source.is_empty() {
        let _ = writeln!(text, "{}", table::wrap(&format!("source: {}", profile.source), width, 2));
    }
    for (title, direction) in [("forward", Direction::Forward), ("reverse", Direction::Reverse)] {
        let _ = write!(text, "\n{title}\n");
        for stage in profile.stages(direction) {
            let line = format!("  {}: {}", stage.name, stage.spec);
            let _ = writeln!(text, "{}", wrap_indented(&line, width));
        }
        text.push_str(&measure(profile, direction, seed, width));
    }
    if profile.drop_notices {
        let _ = write!(text, "\nstages report the packets that they drop to the receivers\n");
    }
    if !profile.tcp.is_empty() {
        let _ = write!(text, "\ntcp\n");
        for (key, value) in &profile.tcp {
            let _ = writeln!(text, "  {key} = {value}");
        }
    }
    let _ = write!(text, "\nCompare variants on it:\n  reknit compare --path {}\n", profile.name);
    text
}

fn wrap_indented(line: &str, width: usize) -> String {
    format!("  {}", table::wrap(line, width.saturating_sub(2), 6))
}

/// The direction to draw: forward, unless only the reverse direction reorders.
fn worth_a_picture(profile: &Profile, seed: u64) -> (Direction, Train, TrainResult) {
    let result = |direction| {
        let train = path_report::train(profile, direction);
        (direction, train, train.through(profile, direction, seed))
    };
    let forward = result(Direction::Forward);
    if forward.2.reordered_ratio() > 0.0 {
        return forward;
    }
    let reverse = result(Direction::Reverse);
    if reverse.2.reordered_ratio() > 0.0 { reverse } else { forward }
}

/// Draws what `profile` does to packets into `file` (SVG or PNG, by its name), as `--plot` does: the forward direction,
/// unless only the reverse direction reorders. Returns the direction and what happened to the packets.
///
/// # Errors
/// If the picture cannot be drawn or written.
pub fn draw(title: &str, profile: &Profile, file: &Path) -> Result<(Direction, TrainResult), String> {
    let (direction, train, result) = worth_a_picture(profile, 1);
    let picture = Picture { title: title.to_owned(), description: &profile.description, train, result: &result };
    match picture.save(file) {
        Err(Failure::Usage(message) | Failure::Failed(message)) => Err(message),
        Ok(()) | Err(Failure::Interrupted) => Ok((direction, result)),
    }
}

/// What one direction does to a train of packets, in the terms of RFC 4737.
fn measure(profile: &Profile, direction: Direction, seed: u64, width: usize) -> String {
    let report = path_report::report(profile, direction, seed);
    let share = |n: u32| 100.0 * f64::from(n) / f64::from(report.packets);
    let mut lines = vec![
        ("delay", delays(&report)),
        ("lost", format!("{:.2} %, duplicated {:.2} %", share(report.lost), share(report.duplicated))),
        ("reordered", reordering(&report)),
    ];
    if report.reordered > 0 {
        let counts = path_report::N.iter().zip(report.extent_at_least);
        let shares = counts.map(|(n, count)| format!("{n}: {:.2} %", share(count)));
        lines.push(("extent >=", shares.collect::<Vec<_>>().join(", ")));
    }
    let gap = rounded(report.gap_ms);
    let packets = output::count(f64::from(report.packets));
    let train = format!("{packets} packets of {} bytes, one every {gap}:", report.size_bytes);
    let mut text = format!("  {}\n", table::wrap(&train, width.saturating_sub(2), 2));
    for (label, value) in lines {
        let wrapped = table::wrap(&value, width.saturating_sub(INDENT), 0).replace('\n', &format!("\n{:INDENT$}", ""));
        let _ = writeln!(text, "    {label:<12}{wrapped}");
    }
    text
}

/// The column in which the values of a measurement begin.
const INDENT: usize = 16;

/// Milliseconds as a duration, rounded to the microsecond.
fn rounded(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3).round_to(Duration::from_micros(1))
}

fn delays(report: &PathReport) -> String {
    let PathReport { delay_p50_ms, delay_p90_ms, delay_p99_ms, delay_max_ms, .. } = *report;
    let [median, p90, p99, largest] = [delay_p50_ms, delay_p90_ms, delay_p99_ms, delay_max_ms].map(rounded);
    format!("median {median}, 90 % {p90}, 99 % {p99}, largest {largest}")
}

fn reordering(report: &PathReport) -> String {
    let (Some(median), Some(p99), Some(largest)) = (report.extent_p50, report.extent_p99, report.extent_max) else {
        return "none".to_owned();
    };
    let ratio = 100.0 * report.reordered_ratio;
    format!("{ratio:.2} % of packets, extent median {median}, 99 % {p99}, largest {largest}")
}
