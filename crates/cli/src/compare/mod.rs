//! `reknit compare`: compares variants on a path, in simulation.

pub(crate) mod show;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use reknit_compare::{CompareOptions, Comparison, Job, PreparedComparison, names};
use reknit_sim::{MAX_SEEDS, PathSource, Role, RunResult, Transports, run_unless};

use crate::capture::{self, CaptureTracer};
use crate::scenario_args::SimulationArgs;
use crate::shaping::ShapingArgs;
use crate::{Failure, help, input, output};

/// Compare variants on a path, in simulation
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Each variant runs once per seed. For a given seed, every variant sees the same losses and delays. \
\"Of in-order\" is goodput relative to `sack` on the same path without reordering. \"Of oracle\" is goodput relative to \
that of the oracle, a sender on the same path whose window grows in the same way and which the simulator tells which \
packets were lost.

Examples:
  reknit compare --path two-paths-50ms --variants sack,rack
  reknit compare --path 'two-paths-*,rr-tcp' --variants sack,linux,reknit
  reknit compare --path rr-tcp --variants 'family:undo,rr-*' --duration 200s --csv
  reknit compare --path lossy --loss 2% --set forward.link.rate='2 Mbit/s' --seeds 10 --json
  reknit compare --rate '20 Mbit/s' --delay 20ms --netem 'delay 10ms 5ms' --variants sack,reknit"
)]
pub(crate) struct Args {
    /// Use these paths, separated by commas: built-in ones (`reknit paths` lists them) or TOML files; `*` and `?` are
    /// wildcards
    #[arg(long, value_name = "NAME|FILE.toml", value_delimiter = ',',
          required_unless_present_any = ["scenario", "delay", "rate", "netem"])]
    path: Vec<String>,
    #[command(flatten)]
    shaping: ShapingArgs,
    /// Read the flows on the path and what they send from a TOML file (docs/reference/scenarios.md); options override the file
    #[arg(long, value_name = "FILE.toml")]
    scenario: Option<PathBuf>,
    #[arg(long, value_name = "A,B,C", value_delimiter = ',',
          help = help::variants("Compare these variants", " [default: all, or those of --variant-file and their bases]"))]
    variants: Vec<String>,
    /// Run each variant this many times, with the seeds 1, 2, 3, ... [default: 5]
    #[arg(long, value_name = "N", value_parser = input::whole::<1, MAX_SEEDS>, allow_negative_numbers = true)]
    seeds: Option<u32>,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// Leave out the column "of oracle" and the runs for it, which take as long as one or two more variants
    #[arg(long)]
    no_oracle: bool,
    /// Print all results as JSON (docs/reference/json.md)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print one line per run as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write the packets of each variant's first run to a pcapng file; with several paths or variants, to one file each
    /// (FILE-PATH-VARIANT)
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Capture the packets at this end
    #[arg(long, value_enum, value_name = "END", default_value_t = Side::Sender)]
    pcap_side: Side,
    /// Hide the progress bar and notes
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Side {
    Sender,
    Receiver,
}

pub(crate) fn run(args: &Args, transports: &Transports) -> Result<(), Failure> {
    output::check_writable(&[("--pcap", &args.pcap)], &args.path)?;
    let experiments = experiments(args, transports)?;
    let stop = output::on_interrupt();
    let started = clock();
    let jobs: usize = experiments.iter().map(|experiment| experiment.jobs.len()).sum();
    let bar = output::progress(jobs as u64, "simulating", args.quiet);
    let mut comparisons: Vec<Comparison> = Vec::new();
    for experiment in &experiments {
        let comparison = experiment.run(|job| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let result = simulate(args, experiments.len(), experiment, job, &stop)?;
            bar.inc(1);
            Ok::<_, Failure>(result)
        })?;
        comparisons.push(comparison);
    }
    bar.finish_and_clear();
    for row in comparisons.iter().flat_map(|comparison| &comparison.variants).filter(|_| !args.quiet) {
        output::warn_fallbacks(&row.variant, &row.fell_back);
    }
    show::show(args, &comparisons, started)
}

/// One experiment for each path. All names are resolved before the first run.
fn experiments(args: &Args, transports: &Transports) -> Result<Vec<PreparedComparison>, Failure> {
    let mut scenario = args.simulation.options(args.scenario.as_deref())?;
    scenario.set.extend(args.shaping.set(&["forward"])?);
    scenario.transports = transports.clone();
    let options =
        CompareOptions { scenario, variants: args.variants.clone(), seeds: args.seeds, oracle: !args.no_oracle };
    let mut paths: Vec<PathSource> = names::expand_paths(&args.path)?.into_iter().map(PathSource::Given).collect();
    if paths.is_empty() && args.scenario.is_none() {
        paths.push(PathSource::GivenInline(args.shaping.path()));
    }
    let experiments = PreparedComparison::on_paths(&options, paths)?;
    let variants = experiments.iter().flat_map(|experiment| &experiment.variants);
    if let Some(transport) = variants.filter(|variant| variant.transport.is_some()).find(|_| args.pcap.is_some()) {
        let why = "is another transport, whose packets cannot be captured";
        return Err(Failure::Usage(format!("--pcap: `{}` {why}", transport.name)));
    }
    for warning in PreparedComparison::all_warnings(&experiments) {
        output::note(format_args!("warning: {warning}"));
    }
    Ok(experiments)
}

/// With several paths or variants, each run has its own file: `file-path-variant.pcapng`.
fn capture_name(file: &Path, path: Option<&str>, variant: Option<&str>) -> PathBuf {
    let path = path.map(|path| Path::new(path).file_stem().unwrap_or_default().to_string_lossy());
    let label: Vec<&str> = [path.as_deref(), variant].into_iter().flatten().collect();
    capture::labelled(file, &label.join("-"))
}

/// None if the user has interrupted the run. The first run of each variant may write a capture.
fn simulate(
    args: &Args,
    paths: usize,
    experiment: &PreparedComparison,
    job: &Job,
    stop: &AtomicBool,
) -> Result<Option<RunResult>, Failure> {
    let (Some(file), Some(variant), 1) = (&args.pcap, job.variant(), job.scenario.seed) else {
        return Ok(job.simulate(stop));
    };
    let path = (paths > 1).then_some(job.scenario.profile.name.as_str());
    let variant = (experiment.variants.len() > 1).then_some(experiment.variants[variant].name.as_str());
    let file = capture_name(file, path, variant);
    let side = if args.pcap_side == Side::Sender { Role::Sender } else { Role::Receiver };
    let failed = |error: std::io::Error| Failure::of_option("--pcap", &file, &error);
    let tracer = CaptureTracer::create(&file, side).map_err(failed)?;
    let Ok((result, tracer)) = run_unless(&job.scenario, tracer, stop) else { return Ok(None) };
    tracer.finish().map_err(failed)?;
    Ok(Some(result))
}

#[expect(clippy::disallowed_methods, reason = "shows the user how long it took; no result depends on it")]
fn clock() -> std::time::Instant {
    std::time::Instant::now()
}
