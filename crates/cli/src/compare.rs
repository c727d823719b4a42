//! `reknit compare`: variants side by side on one path, in simulation.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use reknit_compare::{Comparison, Job, Plan, Question, Run, Setting};
use reknit_sim::{End, RunResult, run_unless};
use reknit_units::{Duration, Share};

use crate::Failure;
use crate::capture::CaptureTracer;
use crate::table::{self, Align, Column};
use crate::{input, output};

/// Compare variants on a path, in simulation.
///
/// Each variant runs once for each seed; all variants meet the same packets' fates. The speed to measure by is that of
/// `sack` on the same path without whatever reorders.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A built-in path (`reknit paths` lists them) or a TOML file
    #[arg(long, value_name = "NAME|FILE.toml")]
    path: String,
    /// Variants, separated by commas (`reknit variants` lists them); all by default, or those that --variant-file
    /// starts from
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    variants: Vec<String>,
    /// A variant of your own (docs/variants.md says how to write one); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    variant_file: Vec<PathBuf>,
    /// Length of each run, in its own time
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = input::duration)]
    duration: Duration,
    /// Runs of each variant, with the seeds 1, 2, 3, ...
    #[arg(long, value_name = "N", default_value = "5", value_parser = input::whole::<1, 10_000>, allow_negative_numbers = true)]
    seeds: u32,
    /// Connections that share the path, all of the same variant, opened 100 ms apart
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::whole::<1, 100_000>, allow_negative_numbers = true)]
    flows: u32,
    /// Lose each data packet with this probability
    #[arg(long, value_name = "SHARE")]
    loss: Option<Share>,
    /// Change a value of the path: tcp.KEY=VALUE, forward.STAGE.KEY=VALUE, reverse.STAGE.KEY=VALUE or
    /// `drop_notices=true`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Take everything off the path that changes the order of packets
    #[arg(long)]
    in_order: bool,
    /// Print all results as JSON (docs/json.md describes it)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one line for each run as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write what happens in the first run of each variant to a pcapng file (several variants: FILE-VARIANT)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Whose packets go into the capture
    #[arg(long, value_enum, default_value_t = Side::Sender)]
    pcap_side: Side,
    /// No progress bar
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Side {
    Sender,
    Receiver,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let plan = Plan::new(&question(args))?;
    for warning in &plan.warnings {
        eprintln!("warning: {warning}");
    }
    let stop = output::on_interrupt();
    let began = clock();
    let bar = output::progress(plan.jobs.len() as u64, "simulating", args.quiet);
    let comparison = plan.run(|job| {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let result = simulate(args, &plan, job, &stop)?;
        bar.inc(1);
        Ok::<_, Failure>(result)
    })?;
    bar.finish_and_clear();
    for row in &comparison.variants {
        output::tell_of_fall_back(&row.variant, &row.fell_back);
    }
    show(args, &comparison, began)
}

fn question(args: &Args) -> Question {
    Question {
        setting: Setting {
            path: args.path.clone(),
            set: args.set.clone(),
            loss: args.loss,
            in_order: args.in_order,
            flows: args.flows,
            duration: args.duration,
        },
        variants: args.variants.clone(),
        variant_files: args.variant_file.clone(),
        seeds: args.seeds,
    }
}

/// With several variants each has a file of its own: `file-variant.pcapng`.
fn capture_name(file: &Path, variant: &str, variants: usize) -> PathBuf {
    if variants == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let extension = file.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-{variant}{extension}"))
}

/// None if the user has interrupted it. The first run of each variant may go into a capture.
fn simulate(args: &Args, plan: &Plan, job: &Job, stop: &AtomicBool) -> Result<Option<RunResult>, Failure> {
    let (Some(file), Some(contestant), 1) = (&args.pcap, job.contestant(), job.scenario.seed) else {
        return Ok(job.simulate(stop));
    };
    let file = capture_name(file, &plan.contestants[contestant].name, plan.contestants.len());
    let side = if args.pcap_side == Side::Sender { End::Sender } else { End::Receiver };
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", file.display()));
    let tracer = CaptureTracer::create(&file, side).map_err(failed)?;
    let Ok((result, tracer)) = run_unless(&job.scenario, tracer, stop) else { return Ok(None) };
    tracer.finish().map_err(failed)?;
    Ok(Some(result))
}

fn show(args: &Args, comparison: &Comparison, began: std::time::Instant) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(comparison).map_err(|error| Failure::Failed(error.to_string()))?;
        output::print(&format!("{text}\n"))?;
    } else if args.csv {
        output::print(&csv(comparison))?;
    } else {
        output::print(&people(comparison, table::terminal_width(), table::may_colour(), began.elapsed()))?;
    }
    if comparison.complete {
        Ok(())
    } else {
        let finished: usize = comparison.variants.iter().map(|row| row.runs.len()).sum();
        let wanted = comparison.variants.len() * comparison.seeds as usize;
        eprintln!("interrupted: {finished} of {wanted} runs were finished and are shown");
        Err(Failure::Interrupted)
    }
}

fn people(comparison: &Comparison, width: usize, bold: bool, took: std::time::Duration) -> String {
    let title = format!(
        "{}: {}; in order {} Mbit/s",
        comparison.path,
        comparison.description,
        output::number(comparison.in_order_mbit_s)
    );
    let mut text = table::wrap(&title, width, 2);
    text.push_str("\n\n");
    text.push_str(&table::render(&columns(comparison), width, bold));
    let simulated = comparison.duration_s * f64::from(comparison.seeds) * comparison.variants.len() as f64;
    let foot = format!(
        "Means of seeds 1..{} with 95 % intervals, {} s each; {} s of traffic in {:.2} s. reknit {}. All fields: --json. \
         Look inside: --pcap FILE.",
        comparison.seeds,
        output::count(comparison.duration_s),
        output::count(simulated),
        took.as_secs_f64(),
        comparison.reknit
    );
    text.push('\n');
    text.push_str(&table::wrap(&foot, width, 0));
    text.push('\n');
    text
}

fn columns(comparison: &Comparison) -> Vec<Column> {
    let mut columns = [
        Column::new("variant", 0, Align::Left),
        Column::new("Mbit/s", 0, Align::Right),
        Column::new("of in-order", 0, Align::Right),
        Column::new("resent", 2, Align::Right),
        Column::new("needlessly", 1, Align::Right),
        Column::new("window cuts (false)", 1, Align::Right),
        Column::new("undone", 3, Align::Right),
        Column::new("RTOs", 1, Align::Right),
        Column::new("wait p50", 4, Align::Right),
        Column::new("wait p99", 1, Align::Right),
        Column::new("packets", 3, Align::Right),
    ];
    for row in comparison.variants.iter().filter(|row| !row.runs.is_empty()) {
        let span = |ms: fn(&Run) -> f64| output::milliseconds(Duration::from_secs_f64(row.mean(ms) / 1e3));
        let cells = [
            row.variant.clone(),
            output::estimate(&row.goodput_mbit_s),
            output::per_cent(row.of_in_order),
            output::per_cent(row.share(|r| r.retransmissions.total, |r| r.segments_sent)),
            output::per_cent(row.share(|r| r.spurious_retransmissions, |r| r.retransmissions.total)),
            format!(
                "{} ({})",
                output::count(row.mean(|r| r.window_cuts.total as f64)),
                output::count(row.mean(|r| r.false_window_cuts as f64))
            ),
            output::count(row.mean(|r| r.undos as f64)),
            output::count(row.mean(|r| r.timeouts as f64)),
            span(|r| r.wait_p50_ms),
            span(|r| r.wait_p99_ms),
            output::count(row.mean(|r| r.delivered_packets as f64)),
        ];
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }
    columns.into()
}

fn csv(comparison: &Comparison) -> String {
    let mut text = String::from(
        "path,variant,seed,goodput_mbit_s,of_in_order,delivered_packets,segments_sent,retransmissions,\
         spurious_retransmissions,window_cuts,false_window_cuts,undos,timeouts,lost_packets,wait_p50_ms,wait_p99_ms\n",
    );
    for row in &comparison.variants {
        for run in &row.runs {
            let share = run.goodput_mbit_s / comparison.in_order_mbit_s;
            let fields = [
                comparison.path.clone(),
                row.variant.clone(),
                run.seed.to_string(),
                run.goodput_mbit_s.to_string(),
                share.to_string(),
                run.delivered_packets.to_string(),
                run.segments_sent.to_string(),
                run.retransmissions.total.to_string(),
                run.spurious_retransmissions.to_string(),
                run.window_cuts.total.to_string(),
                run.false_window_cuts.to_string(),
                run.undos.to_string(),
                run.timeouts.to_string(),
                run.lost_packets.to_string(),
                run.wait_p50_ms.to_string(),
                run.wait_p99_ms.to_string(),
            ];
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "tells people how long it took; no result depends on it")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
