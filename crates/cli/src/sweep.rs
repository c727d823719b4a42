//! `reknit sweep`: a grid of runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use rayon::prelude::*;
use reknit_compare::{Error, Estimate, Grid, GridFile, Point, RunSummary, Store, columns, names};
use reknit_path::is_file_name;
use reknit_sim::{MAX_SEEDS, Transports};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::scenario_args::SimulationArgs;
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, help, input, output};

/// Simulate a grid of scenarios
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The file is a scenario (docs/reference/scenarios.md) with a table `[axes]`: keys of the scenario or of the \
path, each with a list of values. Every combination runs once per seed. For a given seed, every variant sees the same \
losses and delays. Options override the file; an option with several values becomes an axis.

Examples:
  reknit sweep loss.toml --store results
  reknit sweep loss.toml --variants sack,family:time --path 'two-paths-*' --seeds 10 --csv > runs.csv

where loss.toml is, for example:
  path = \"two-paths-50ms\"
  variants = [\"sack\", \"rack\"]
  [axes]
  loss = [0, \"1 %\", \"3 %\"]"
)]
pub(crate) struct Args {
    /// Run this scenario file, which has a table `[axes]`
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Use these paths, separated by commas: built-in ones or TOML files; `*` and `?` are wildcards
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',')]
    path: Vec<String>,
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', help = help::variants("Run these variants", ""))]
    variants: Vec<String>,
    /// Save finished runs in this directory, and skip those that are already there
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Run each point this many times, with the seeds 1, 2, 3, ... [default: 5]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MAX_SEEDS>, allow_negative_numbers = true)]
    seeds: Option<u32>,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// Print all runs as JSON (docs/reference/json.md)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one line per run as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Hide the progress bar
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, transports: &Transports) -> Result<(), Failure> {
    let seeds = args.seeds.map(|n| (1..=u64::from(n)).collect());
    let grid = Grid::new(grid_file(args, transports)?, seeds, &args.simulation.scenario.variant_file)?;
    for warning in &grid.warnings {
        output::note(format_args!("warning: {warning}"));
    }
    let store = args.store.as_deref().map(open_store).transpose()?;
    let runs = simulate(&grid, transports, store.as_ref(), args.quiet)?;
    if args.json {
        let text = serde_json::to_string_pretty(&Document::of(&grid, &runs));
        output::print(&(text.map_err(|error| Failure::Failed(error.to_string()))? + "\n"))?;
    } else if args.csv {
        output::print(&csv(&grid, &runs))?;
    } else {
        output::print(&render_text(&grid, &runs, Screen::stdout()))?;
    }
    let finished = runs.iter().flatten().count();
    if finished == runs.len() {
        return Ok(());
    }
    let kept = if store.is_some() { "; run it again with this store to resume" } else { "" };
    output::note(format_args!("interrupted: showing the {finished} of {} runs that finished{kept}", runs.len()));
    Err(Failure::Interrupted)
}

fn open_store(folder: &Path) -> Result<Store, Failure> {
    Store::open(folder).map_err(|error| Failure::Failed(format!("--store {error}")))
}

/// The file, with the options that override it.
fn grid_file(args: &Args, transports: &Transports) -> Result<GridFile, Failure> {
    let mut file = GridFile::load(&args.file)?;
    file.transports = transports.clone();
    let paths = names::expand_paths(&args.path)?;
    let absolute = |path: &String| if is_file_name(path) { std::path::absolute(path).ok() } else { None };
    let path = |path: &String| absolute(path).map_or_else(|| path.clone(), |file| file.display().to_string());
    file.set("path", paths.iter().map(|name| (name.as_str().into(), path(name).into())).collect())?;
    file.set_variants(&args.variants);
    args.simulation.apply(&mut file)?;
    Ok(file)
}

/// The run of each point; none if it was interrupted.
fn simulate(
    grid: &Grid,
    transports: &Transports,
    store: Option<&Store>,
    quiet: bool,
) -> Result<Vec<Option<RunSummary>>, Failure> {
    let stop = output::on_interrupt();
    let bar = output::progress(grid.points.len() as u64, "simulating", quiet);
    let one = |point: &Point| {
        if let Some(run) = store.and_then(|store| store.run(&point.key())) {
            bar.inc(1);
            return Ok(Some(run.clone()));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let Some(run) = point.run(transports, &stop)? else { return Ok(None) };
        if let Some(store) = store {
            store.add(point, &run)?;
        }
        bar.inc(1);
        Ok::<_, Error>(Some(run))
    };
    let runs = grid.points.par_iter().map(one).collect::<Result<_, Error>>();
    bar.finish_and_clear();
    Ok(runs?)
}

/// All runs, as the JSON document of `docs/reference/json.md`.
#[derive(Serialize)]
struct Document<'a> {
    format: &'static str,
    reknit: &'static str,
    axes: Vec<&'a str>,
    complete: bool,
    points: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    at: Map<String, Value>,
    run: &'a RunSummary,
}

impl<'a> Document<'a> {
    fn of(grid: &'a Grid, runs: &'a [Option<RunSummary>]) -> Document<'a> {
        let entry = |(i, run): (usize, &'a Option<RunSummary>)| {
            let label = |value| serde_json::to_value(value).unwrap_or_default();
            let names = grid.axes.iter().map(|axis| axis.key.clone());
            Some(Entry { at: names.zip(grid.labels(i).into_iter().map(label)).collect(), run: run.as_ref()? })
        };
        Document {
            format: "reknit-sweep-1",
            reknit: reknit_compare::VERSION,
            axes: grid.axes.iter().map(|axis| axis.key.as_str()).collect(),
            complete: runs.iter().all(Option::is_some),
            points: runs.iter().enumerate().filter_map(entry).collect(),
        }
    }
}

/// The values at a point, one for each axis, as text.
fn labels(grid: &Grid, point: usize) -> Vec<String> {
    let text = |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    grid.labels(point).into_iter().map(text).collect()
}

fn csv(grid: &Grid, runs: &[Option<RunSummary>]) -> String {
    let numbers = [columns::counts(), columns::measured(), columns::shown(runs.iter().flatten())].concat();
    let axes = grid.axes.iter().map(|axis| axis.key.as_str()).chain(["seed"]);
    let titles = axes.chain(numbers.iter().map(|column| column.name.as_str()));
    let finished = runs.iter().enumerate().filter_map(|(i, run)| Some((i, run.as_ref()?)));
    let cells = |(i, run): (usize, &RunSummary)| {
        let mut cells = labels(grid, i);
        cells.push(run.seed.to_string());
        cells.extend(columns::cells(&numbers, run));
        cells
    };
    output::csv(titles, finished.map(cells))
}

/// One line for each point of the grid, with means over the seeds.
fn render_text(grid: &Grid, runs: &[Option<RunSummary>], screen: Screen) -> String {
    let goodput =
        |of_seeds: &[Option<RunSummary>]| Estimate::of(of_seeds.iter().flatten().map(|run| run.goodput_mbit_s));
    let finished = runs.chunks(grid.seeds.len()).filter(|of_seeds| of_seeds.iter().any(Option::is_some));
    let goodputs: Vec<Estimate> = finished.map(goodput).collect();
    let seeds = runs.iter().all(Option::is_some).then_some(grid.seeds.len());
    let foot = format!(
        "{} reknit {}. --csv and --json print all runs.",
        output::legend(seeds, &mut goodputs.iter()),
        reknit_compare::VERSION
    );
    let table = table::render(&table_columns(grid, runs), screen);
    format!("{table}\n{}\n", table::wrap(&foot, screen.text_width(), 0))
}

fn table_columns(grid: &Grid, runs: &[Option<RunSummary>]) -> Vec<Column> {
    let mut columns: Vec<Column> = grid.axes.iter().map(|axis| Column::new(axis.key.clone(), 0, Align::Left)).collect();
    let first = columns.len();
    columns.extend([
        Column::new("Mbit/s", 0, Align::Right),
        Column::new("retransmitted", 2, Align::Right),
        Column::new("spurious", 1, Align::Right),
        Column::new("window cuts (false)", 1, Align::Right),
        Column::new("undone", 3, Align::Right),
        Column::new("RTOs", 1, Align::Right),
    ]);
    for (i, of_seeds) in runs.chunks(grid.seeds.len()).enumerate() {
        let finished: Vec<&RunSummary> = of_seeds.iter().flatten().collect();
        if finished.is_empty() {
            continue;
        }
        for (column, label) in columns.iter_mut().zip(labels(grid, i * grid.seeds.len())) {
            column.cells.push(label);
        }
        for (column, cell) in columns[first..].iter_mut().zip(means(&finished)) {
            column.cells.push(cell);
        }
    }
    columns
}

fn means(runs: &[&RunSummary]) -> [String; 6] {
    let estimate = |value: fn(&RunSummary) -> f64| Estimate::of(runs.iter().map(|run| value(run)));
    let count = |value: fn(&RunSummary) -> u64| runs.iter().map(|run| value(run)).sum::<u64>() as f64;
    let share = |part: f64, whole: f64| output::per_cent(if whole > 0.0 { part / whole } else { 0.0 });
    let mean = |sum: f64| output::count(sum / runs.len() as f64);
    let reported = |count: &str, shown: String| {
        if runs.iter().all(|run| run.reports(count)) { shown } else { "-".to_owned() }
    };
    let cuts = format!("{} ({})", mean(count(|run| run.window_cuts.total)), mean(count(|run| run.false_window_cuts)));
    let retransmitted = count(|run| run.retransmissions.total);
    [
        output::estimate(&estimate(|run| run.goodput_mbit_s)),
        share(retransmitted, count(|run| run.segments_sent)),
        share(count(|run| run.spurious_retransmissions), retransmitted),
        reported("window_cuts", cuts),
        reported("undos", mean(count(|run| run.undos))),
        reported("timeouts", mean(count(|run| run.timeouts))),
    ]
}
