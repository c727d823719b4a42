//! `reknit compare`: variants side by side on one path, in simulation.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use indicatif::ProgressBar;
use rayon::prelude::*;
use reknit_path::{Direction, Profile, Train};
use reknit_sim::{End, FlowSpec, NoTracer, RunResult, Scenario, Workload, run_unless, tcp_config};
use reknit_units::{Bytes, Duration, Instant, Share};
use serde::Serialize;

use crate::Failure;
use crate::capture::CaptureTracer;
use crate::contestants::{self, Contestant};
use crate::statistics::Estimate;
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

/// What one run has shown, all its connections together.
#[derive(Clone, Debug, Serialize)]
struct Run {
    seed: u64,
    goodput_mbit_s: f64,
    delivered_packets: u64,
    segments_sent: u64,
    retransmissions: Retransmissions,
    spurious_retransmissions: u64,
    window_cuts: Cuts,
    false_window_cuts: u64,
    undos: u64,
    timeouts: u64,
    lost_packets: u64,
    wait_p50_ms: f64,
    wait_p99_ms: f64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Retransmissions {
    total: u64,
    fast_retransmit: u64,
    timeout: u64,
    probe: u64,
    rescue: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Cuts {
    total: u64,
    fast_retransmit: u64,
    timeout: u64,
    probe: u64,
    ecn: u64,
}

impl Run {
    fn new(seed: u64, result: &RunResult) -> Run {
        let sum = |count: fn(&reknit_sim::FlowResult) -> u64| result.flows.iter().map(count).sum();
        let worst = |span: fn(&reknit_sim::FlowResult) -> Duration| {
            result.flows.iter().map(span).max().unwrap_or_default().as_secs_f64() * 1e3
        };
        Run {
            seed,
            goodput_mbit_s: result.flows.iter().map(reknit_sim::FlowResult::goodput).sum::<f64>() / 1e6,
            delivered_packets: sum(reknit_sim::FlowResult::packets),
            segments_sent: sum(|f| f.send.sent.total()),
            retransmissions: Retransmissions {
                total: sum(|f| f.send.sent.retransmissions()),
                fast_retransmit: sum(|f| f.send.sent.fast_retransmit),
                timeout: sum(|f| f.send.sent.timeout),
                probe: sum(|f| f.send.sent.probe),
                rescue: sum(|f| f.send.sent.rescue),
            },
            spurious_retransmissions: sum(|f| f.spurious_retransmissions),
            window_cuts: Cuts {
                total: sum(|f| f.send.cuts.total()),
                fast_retransmit: sum(|f| f.send.cuts.fast_retransmit),
                timeout: sum(|f| f.send.cuts.timeout),
                probe: sum(|f| f.send.cuts.probe),
                ecn: sum(|f| f.send.cuts.ecn),
            },
            false_window_cuts: sum(|f| f.false_cuts),
            undos: sum(|f| f.send.undos),
            timeouts: sum(|f| f.send.timeouts),
            lost_packets: sum(|f| f.lost),
            wait_p50_ms: worst(|f| f.wait_p50),
            wait_p99_ms: worst(|f| f.wait_p99),
        }
    }
}

/// One variant with its finished runs.
#[derive(Debug, Serialize)]
struct Row {
    variant: String,
    runs: Vec<Run>,
    goodput_mbit_s: Estimate,
    of_in_order: f64,
    fell_back: Vec<String>,
}

impl Row {
    fn new(variant: &str, runs: Vec<Run>, in_order: f64, fell_back: Vec<String>) -> Row {
        let goodput = Estimate::of(runs.iter().map(|run| run.goodput_mbit_s));
        let of_in_order = if in_order > 0.0 { goodput.mean / in_order } else { 0.0 };
        Row { variant: variant.to_owned(), runs, goodput_mbit_s: goodput, of_in_order, fell_back }
    }

    fn mean(&self, value: impl Fn(&Run) -> f64) -> f64 {
        Estimate::of(self.runs.iter().map(value)).mean
    }

    /// Of all runs' events of one kind, the share that is also of another.
    fn share(&self, part: impl Fn(&Run) -> u64, whole: impl Fn(&Run) -> u64) -> f64 {
        let whole: u64 = self.runs.iter().map(whole).sum();
        if whole == 0 { 0.0 } else { self.runs.iter().map(part).sum::<u64>() as f64 / whole as f64 }
    }
}

/// Everything that was found: the JSON document.
#[derive(Debug, Serialize)]
struct Comparison {
    format: &'static str,
    reknit: &'static str,
    path: String,
    description: String,
    duration_s: f64,
    seeds: u32,
    flows: u32,
    in_order_mbit_s: f64,
    complete: bool,
    variants: Vec<Row>,
}

/// One simulation to run.
struct Job {
    /// Its place among the contestants; none for the reference.
    contestant: Option<usize>,
    scenario: Scenario,
    capture: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut profile = input::path(&args.path, &args.set)?;
    if let Some(loss) = args.loss {
        profile.set_loss(loss);
    }
    if args.in_order {
        profile = profile.in_order();
        profile.description = format!("{} (taken off: whatever reorders)", profile.description);
    }
    let tcp = tcp_config(&profile).map_err(Failure::Usage)?;
    let customs = contestants::load(&args.variant_file)?;
    let variants = contestants::choose(&args.variants, &customs)?;
    takes_time(&profile)?;
    takes_time(&profile.in_order())?;
    let stop = output::on_interrupt();
    let profile = Arc::new(profile);
    let reference = contestants::find("sack", &[]).map_err(Failure::Failed)?;
    let in_order = Arc::new(profile.in_order());
    let scenario = |profile: &Arc<Profile>, variant: &Contestant, seed| scenario(args, profile, &tcp, variant, seed);
    let mut jobs = vec![Job { contestant: None, scenario: scenario(&in_order, &reference, 1), capture: None }];
    for (i, variant) in variants.iter().enumerate() {
        for seed in 1..=u64::from(args.seeds) {
            let capture = args.pcap.as_deref().filter(|_| seed == 1);
            jobs.push(Job {
                contestant: Some(i),
                scenario: scenario(&profile, variant, seed),
                capture: capture.map(|file| capture_name(file, &variant.name, variants.len())),
            });
        }
    }
    let began = clock();
    let bar = output::progress(jobs.len() as u64, "simulating", args.quiet);
    let side = if args.pcap_side == Side::Sender { End::Sender } else { End::Receiver };
    let results: Vec<Option<RunResult>> =
        jobs.par_iter().map(|job| simulate(job, side, &stop, &bar)).collect::<Result<_, _>>()?;
    bar.finish_and_clear();
    let comparison = collect(args, &profile, &variants, &jobs, &results);
    for row in &comparison.variants {
        contestants::tell_of_fall_back(&row.variant, &row.fell_back);
    }
    show(args, &comparison, began)
}

/// Refuses a path on which data would arrive without any time passing: a simulation of it would not come to an end.
fn takes_time(profile: &Profile) -> Result<(), Failure> {
    let train = Train { packets: 1000, size: Bytes(1500), gap: Duration::ZERO };
    let is_instant = |direction| train.through(profile, direction, 1).delay_quantile(1.0).is_zero();
    if [Direction::Forward, Direction::Reverse].into_iter().all(is_instant) {
        let message = "data take no time on this path, or none once whatever reorders is taken off; add a link";
        return Err(Failure::Usage(format!("{}: {message} with a `rate` or a `delay`", profile.name)));
    }
    Ok(())
}

fn scenario(
    args: &Args,
    profile: &Arc<Profile>,
    tcp: &reknit_tcp::Config,
    variant: &Contestant,
    seed: u64,
) -> Scenario {
    let flow = |i: u32| FlowSpec {
        sender: variant.composition.clone(),
        receiver: variant.composition.clone(),
        start: Instant::ZERO + Duration::from_millis(100) * u64::from(i),
        workload: Workload::Bulk,
    };
    Scenario {
        profile: profile.clone(),
        tcp: tcp.clone(),
        flows: (0..args.flows).map(flow).collect(),
        duration: args.duration,
        seed,
        sample_every: None,
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

/// None if the user has interrupted it.
fn simulate(job: &Job, side: End, stop: &AtomicBool, bar: &ProgressBar) -> Result<Option<RunResult>, Failure> {
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let result = match &job.capture {
        None => run_unless(&job.scenario, NoTracer, stop).ok().map(|(result, _)| result),
        Some(file) => {
            let failed = |error: std::io::Error| Failure::Failed(format!("{}: {error}", file.display()));
            let tracer = CaptureTracer::create(file, side).map_err(failed)?;
            match run_unless(&job.scenario, tracer, stop) {
                Ok((result, tracer)) => {
                    tracer.finish().map_err(failed)?;
                    Some(result)
                }
                Err(_) => None,
            }
        }
    };
    bar.inc(1);
    Ok(result)
}

fn collect(
    args: &Args,
    profile: &Profile,
    variants: &[Contestant],
    jobs: &[Job],
    results: &[Option<RunResult>],
) -> Comparison {
    let finished = |i: usize| results[i].as_ref().map(|result| Run::new(jobs[i].scenario.seed, result));
    let in_order = finished(0).map_or(0.0, |run| run.goodput_mbit_s);
    let rows = variants.iter().enumerate().map(|(n, variant)| {
        let of_this = || (0..jobs.len()).filter(|i| jobs[*i].contestant == Some(n));
        let info = of_this().find_map(|i| Some(results[i].as_ref()?.flows.first()?.last));
        let fell_back = info.map_or(Vec::new(), |info| variant.fall_backs(&info));
        Row::new(&variant.name, of_this().filter_map(finished).collect(), in_order, fell_back)
    });
    Comparison {
        format: "reknit-compare-1",
        reknit: env!("CARGO_PKG_VERSION"),
        path: profile.name.clone(),
        description: profile.description.clone(),
        duration_s: args.duration.as_secs_f64(),
        seeds: args.seeds,
        flows: args.flows,
        in_order_mbit_s: in_order,
        complete: results.iter().all(Option::is_some),
        variants: rows.collect(),
    }
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
