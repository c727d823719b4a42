//! `reknit compare`: variants side by side on one path, in simulation.

pub(crate) mod lines;
mod show;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use reknit_compare::{CompareOptions, Experiment, Job, ScenarioOptions};
use reknit_sim::{End, MOST_FLOWS, MOST_SEEDS, RunResult, run_unless};
use reknit_units::Duration;

use crate::capture::{self, CaptureTracer};
use crate::scenario_args::ScenarioArgs;
use crate::{Failure, input, output};

/// Compare variants on a path, in simulation.
///
/// Each variant runs once per seed. For a given seed, every variant sees the same losses and delays. "Of in-order" is
/// relative to `sack` on the same path without reordering.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Variants, separated by commas (`reknit variants` lists them) [default: all, or with --variant-file those that the
    /// files are based on]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    variants: Vec<String>,
    /// Length of each run, in simulated time [default: 60 s]
    #[arg(long, value_name = "TIME", value_parser = input::duration)]
    duration: Option<Duration>,
    /// Runs of each variant, with the seeds 1, 2, 3, ... [default: 5]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MOST_SEEDS>, allow_negative_numbers = true)]
    seeds: Option<u32>,
    /// Connections that share the path, all of the same variant, opened 100 ms apart
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::whole::<1, MOST_FLOWS>,
          allow_negative_numbers = true, conflicts_with = "scenario")]
    flows: u32,
    /// Print all results as JSON (docs/json.md describes it)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one line per run as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write the packets of each variant's first run to a pcapng file (several variants: FILE-VARIANT)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// The end at which to capture packets
    #[arg(long, value_enum, default_value_t = Side::Sender)]
    pcap_side: Side,
    /// Do not show a progress bar
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Side {
    Sender,
    Receiver,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let experiment = Experiment::new(&options(args)?)?;
    for warning in &experiment.warnings {
        eprintln!("warning: {warning}");
    }
    let stop = output::on_interrupt();
    let began = clock();
    let bar = output::progress(experiment.jobs.len() as u64, "simulating", args.quiet);
    let comparison = experiment.run(|job| {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let result = simulate(args, &experiment, job, &stop)?;
        bar.inc(1);
        Ok::<_, Failure>(result)
    })?;
    bar.finish_and_clear();
    for row in &comparison.variants {
        output::tell_of_fall_back(&row.variant, &row.fell_back);
    }
    show::show(args, &comparison, began)
}

fn options(args: &Args) -> Result<CompareOptions, Failure> {
    let scenario = ScenarioOptions { duration: args.duration, ..args.scenario.options(args.flows)? };
    Ok(CompareOptions { scenario, variants: args.variants.clone(), seeds: args.seeds })
}

/// With several variants each has a file of its own: `file-variant.pcapng`.
fn capture_name(file: &Path, variant: &str, variants: usize) -> PathBuf {
    capture::labelled(file, if variants == 1 { "" } else { variant })
}

/// None if the user has interrupted it. The first run of each variant may go into a capture.
fn simulate(args: &Args, experiment: &Experiment, job: &Job, stop: &AtomicBool) -> Result<Option<RunResult>, Failure> {
    let (Some(file), Some(variant), 1) = (&args.pcap, job.variant(), job.scenario.seed) else {
        return Ok(job.simulate(stop));
    };
    let file = capture_name(file, &experiment.variants[variant].name, experiment.variants.len());
    let side = if args.pcap_side == Side::Sender { End::Sender } else { End::Receiver };
    let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", file.display()));
    let tracer = CaptureTracer::create(&file, side).map_err(failed)?;
    let Ok((result, tracer)) = run_unless(&job.scenario, tracer, stop) else { return Ok(None) };
    tracer.finish().map_err(failed)?;
    Ok(Some(result))
}

#[expect(clippy::disallowed_methods, reason = "tells people how long it took; no result depends on it")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
