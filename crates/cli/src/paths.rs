//! `reknit paths`: which paths there are, and what one does to a train of packets.

use std::fmt::Write;
use std::path::PathBuf;

use reknit_path::{Direction, NAMES, Passage, Profile, Train};
use reknit_units::{Bytes, Duration, Rate};

use crate::plot::{self, Picture};
use crate::{Failure, causes, input, output, table};

/// List the paths, or describe one.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Describe this one: a built-in path or a TOML file
    name: Option<String>,
    /// Change one value, for example `forward.bottleneck.rate="2 Mbit/s"`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "name")]
    set: Vec<String>,
    /// Seed of the packet train
    #[arg(long, value_name = "N", requires = "name", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Draw the delays and extents into this file, as SVG or PNG; of the way back if only that reorders
    #[arg(long, value_name = "FILE.svg|png", requires = "name")]
    plot: Option<PathBuf>,
    /// Write docs/causes.md and docs/pictures
    #[arg(long, value_name = "DIR", hide = true, conflicts_with = "name")]
    docs: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if let Some(folder) = &args.docs {
        return causes::write(folder);
    }
    if let Some(file) = &args.plot {
        plot::check(file)?;
    }
    let width = table::terminal_width();
    match &args.name {
        Some(name) => {
            let profile = input::path(name, &args.set)?;
            if let Some(file) = &args.plot {
                let (direction, train, passage) = worth_a_picture(&profile, args.seed);
                let way = if direction == Direction::Forward { "" } else { ", the way back" };
                picture(format!("{}{way}", profile.name), &profile, train, &passage).save(file)?;
            }
            output::print(&describe_path(&profile, args.seed, width))
        }
        None => output::print(&list_paths(width)?),
    }
}

fn list_paths(width: usize) -> Result<String, Failure> {
    let mut items = Vec::new();
    for name in NAMES {
        let profile = Profile::load(name, &[]).map_err(|error| Failure::Failed(error.to_string()))?;
        items.push(((*name).to_owned(), profile.description));
    }
    let more = "More about one: reknit paths NAME. Your own: a TOML file (docs/paths.md).";
    Ok(format!("{}\n{}\n", table::definitions(&items, width), table::wrap(more, width, 0)))
}

fn describe_path(profile: &Profile, seed: u64, width: usize) -> String {
    let mut text = table::wrap(&format!("{}: {}", profile.name, profile.description), width, 2);
    let _ = write!(text, "\n{}\n", table::wrap(&format!("source: {}", profile.source), width, 2));
    for (title, direction) in [("forward", Direction::Forward), ("reverse", Direction::Reverse)] {
        let _ = write!(text, "\n{title}\n");
        for stage in profile.stages(direction) {
            let line = format!("  {}: {}", stage.name, stage.spec);
            let _ = writeln!(text, "{}", wrap_indented(&line, width));
        }
        text.push_str(&measure(profile, direction, seed, width));
    }
    if profile.drop_notices {
        let _ = write!(text, "\nstages that drop packets tell the receivers\n");
    }
    if !profile.tcp.is_empty() {
        let _ = write!(text, "\ntcp\n");
        for (key, value) in &profile.tcp {
            let _ = writeln!(text, "  {key} = {value}");
        }
    }
    let _ = write!(text, "\nCompare variants on it: reknit compare --path {}\n", profile.name);
    text
}

fn wrap_indented(line: &str, width: usize) -> String {
    format!("  {}", table::wrap(line, width.saturating_sub(2), 6))
}

/// Packets of a train.
const PACKETS: u32 = 20_000;
/// Octets of each.
const SIZE: Bytes = Bytes(1500);

/// A train at 80 % of the path's rate, so that what happens to it is not the queue's doing.
fn train(profile: &Profile, direction: Direction) -> Train {
    let rate = profile.bottleneck(direction).unwrap_or(Rate::from_bits_per_second(10_000_000));
    Train { packets: PACKETS, size: SIZE, gap: rate.time_for(SIZE).mul_f64(1.25) }
}

/// What is worth a picture: the way forward, unless only the way back reorders.
pub(crate) fn worth_a_picture(profile: &Profile, seed: u64) -> (Direction, Train, Passage) {
    let passage = |direction| {
        let train = train(profile, direction);
        (direction, train, train.through(profile, direction, seed))
    };
    let forward = passage(Direction::Forward);
    if forward.2.reordered_ratio() > 0.0 {
        return forward;
    }
    let reverse = passage(Direction::Reverse);
    if reverse.2.reordered_ratio() > 0.0 { reverse } else { forward }
}

/// Its picture.
pub(crate) fn picture<'a>(title: String, profile: &'a Profile, train: Train, passage: &'a Passage) -> Picture<'a> {
    Picture { title, description: &profile.description, train, passage }
}

/// What one direction does to a train, in the terms of RFC 4737.
fn measure(profile: &Profile, direction: Direction, seed: u64, width: usize) -> String {
    let train = train(profile, direction);
    let passage = train.through(profile, direction, seed);
    let share = |n: u32| 100.0 * f64::from(n) / f64::from(passage.sent);
    let mut lines = vec![
        ("delay", delays(&passage)),
        ("lost", format!("{:.2} %, duplicated {:.2} %", share(passage.lost()), share(passage.duplicates()))),
        ("reordered", reordering(&passage)),
    ];
    if passage.reordered_ratio() > 0.0 {
        let n = [1, 2, 3, 5, 10, 20].map(|n| format!("{n}: {:.2} %", share(passage.n_reordered(n))));
        lines.push(("n-reordered", n.join(", ")));
    }
    let mut text = format!(
        "  {} packets of {} octets, one each {}:\n",
        output::count(f64::from(PACKETS)),
        SIZE.0,
        rounded(train.gap)
    );
    for (label, value) in lines {
        let wrapped = table::wrap(&value, width.saturating_sub(INDENT), 0).replace('\n', &format!("\n{:INDENT$}", ""));
        let _ = writeln!(text, "    {label:<12}{wrapped}");
    }
    text
}

/// Where the values of a measurement begin.
const INDENT: usize = 16;

pub(crate) fn rounded(duration: Duration) -> Duration {
    duration.round_to(Duration::from_micros(1))
}

fn delays(passage: &Passage) -> String {
    let at = |quantile| rounded(passage.delay_quantile(quantile));
    format!("median {}, 90 % {}, 99 % {}, largest {}", at(0.5), at(0.9), at(0.99), at(1.0))
}

fn reordering(passage: &Passage) -> String {
    let mut extents = passage.extents();
    extents.sort_unstable();
    let Some(largest) = extents.last() else { return "nothing".to_owned() };
    let at = |quantile: usize| extents[(extents.len() - 1) * quantile / 100];
    let ratio = 100.0 * passage.reordered_ratio();
    format!("{ratio:.2} % of packets, extent median {}, 99 % {}, largest {largest}", at(50), at(99))
}
