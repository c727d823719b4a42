//! `reknit simulate`: one run, with its time series.

use std::path::PathBuf;

use reknit_compare::{RunSummary, ScenarioOptions, SimulateOptions, Trajectory, named_variant};
use reknit_sim::Transports;
use reknit_units::Duration;
use serde_json::Value;

use crate::scenario_args::{SimulationArgs, SourceArgs};
use crate::table::{self, Screen};
use crate::{Failure, input, output};

/// The default interval of the series.
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Simulate a single run of one variant, and show its details
#[derive(clap::Args, Debug)]
#[command(after_help = "Prints a summary. --csv prints the sender's variables over time instead (congestion window, \
threshold, round-trip time, ...), and --json prints both.

Examples:
  reknit simulate --path two-paths-50ms --variant rack
  reknit simulate --path two-paths-50ms --variant rack --seed 2 --sample-every 50ms --csv > rack.csv
  reknit simulate --path two-paths-50ms --variant rack --duration 5s --qlog rack.qlog")]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Run this variant (`reknit variants` lists them) [default: that of the scenario or of --variant-file, if there is
    /// only one]
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Seed all random decisions; the same seed gives the same run
    #[arg(long, value_name = "N", default_value = "1", value_parser = input::seed, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    simulation: SimulationArgs,
    /// Record a time series at this interval, for example `50ms` [default with --csv: 100 ms]
    #[arg(long, value_name = "TIME", value_parser = input::duration, allow_hyphen_values = true)]
    sample_every: Option<Duration>,
    /// Print the summary and the time series as JSON (docs/reference/json.md)
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print the time series as comma-separated values
    #[arg(long)]
    csv: bool,
    /// Also write what both ends saw as qlog, for `reknit analyze` and QUIC viewers such as qvis: packets, losses,
    /// acknowledgments, windows
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, transports: &Transports) -> Result<(), Failure> {
    let options = options(args, transports)?;
    output::check_writable(&[("--qlog", &args.qlog)], &args.source.files())?;
    let stop = output::on_interrupt();
    let Some(trajectory) = reknit_compare::simulate(&options, &stop)? else { return Err(Failure::Interrupted) };
    for warning in &trajectory.warnings {
        output::note(format_args!("warning: {warning}"));
    }
    output::warn_fallbacks(&trajectory.variant, &trajectory.fell_back);
    if let Some(file) = &args.qlog {
        let Some(text) = reknit_compare::qlog(&options, &stop)? else { return Err(Failure::Interrupted) };
        output::write_file("--qlog", file, text)?;
    }
    if args.json {
        let text = serde_json::to_string_pretty(&trajectory).map_err(|error| Failure::Failed(error.to_string()))?;
        output::print(&(text + "\n"))
    } else if args.csv {
        output::print(&csv(&trajectory)?)
    } else {
        output::print(&render_text(&trajectory, options.seed, Screen::stdout()))
    }
}

fn options(args: &Args, transports: &Transports) -> Result<SimulateOptions, Failure> {
    let options = args.simulation.options(args.source.scenario.as_deref())?;
    let scenario = ScenarioOptions { path: args.source.path(), transports: transports.clone(), ..options };
    let variant = variant(args, &scenario)?;
    let sample_every = args.sample_every.or(args.csv.then_some(SAMPLE_EVERY));
    Ok(SimulateOptions { scenario, variant, seed: args.seed, sample_every })
}

/// The named variant, or the only one in the variant files or the scenario.
fn variant(args: &Args, scenario: &ScenarioOptions) -> Result<String, Failure> {
    if let Some(name) = &args.variant {
        return Ok(name.clone());
    }
    let own = named_variant::load(&args.simulation.scenario.variant_file)?;
    let mut names: Vec<&str> = own.iter().map(|custom| custom.name.as_str()).collect();
    if names.is_empty() {
        names.extend(scenario.plan.variants.iter().map(String::as_str));
    }
    match names[..] {
        [name] => Ok(name.to_owned()),
        _ => Err(Failure::Usage("--variant is missing; `reknit variants` lists all".to_owned())),
    }
}

/// One line for each sample of each flow; a cell is empty if there is no value.
fn csv(trajectory: &Trajectory) -> Result<String, Failure> {
    let series = serde_json::to_value(&trajectory.series).map_err(|error| Failure::Failed(error.to_string()))?;
    let columns: Vec<(&String, &Vec<Value>)> = series
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, column)| Some((name, column.as_array()?)))
        .collect();
    let cell = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows = 0..columns.first().map_or(0, |(_, column)| column.len());
    let rows = rows.map(|row| columns.iter().map(|(_, column)| cell(&column[row])).collect());
    Ok(output::csv(columns.iter().map(|(name, _)| name.as_str()), rows))
}

fn render_text(trajectory: &Trajectory, seed: u64, screen: Screen) -> String {
    let Trajectory { path, description, variant, duration_s, run, .. } = trajectory;
    let width = screen.text_width();
    let path = output::title(path, description);
    let title = format!("{variant} on {path}; seed {seed}, {} s", output::count(*duration_s));
    let more =
        format!("reknit {}. --json prints all numbers, --csv the sender's variables over time.", trajectory.reknit);
    format!(
        "{}\n\n{}\n{}\n",
        table::wrap(&title, width, 2),
        table::definitions(&facts(run), width),
        table::wrap(&more, width, 0)
    )
}

fn facts(run: &RunSummary) -> Vec<(String, String)> {
    let count = output::whole;
    let share = |part: u64, whole: u64| output::per_cent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 });
    let retransmitted = &run.retransmissions;
    let span = |ms: f64| output::milliseconds(Duration::from_secs_f64(ms / 1e3));
    let mut facts = vec![
        ("goodput", format!("{} Mbit/s", output::number(run.goodput_mbit_s))),
        ("segments sent", count(run.segments_sent)),
        (
            "retransmitted",
            format!(
                "{} ({}): {} by the loss detector, {} by timeout; {} of them spurious",
                count(retransmitted.total),
                share(retransmitted.total, run.segments_sent),
                count(retransmitted.fast_retransmit),
                count(retransmitted.timeout),
                share(run.spurious_retransmissions, retransmitted.total),
            ),
        ),
        (
            "window cuts",
            format!("{}, {} of them false; {} undone", run.window_cuts.total, run.false_window_cuts, run.undos),
        ),
        ("timeouts", count(run.timeouts)),
        ("packets lost", format!("{}, {} of them in queues", count(run.lost_packets), count(run.queue_drops))),
        ("wait at receiver", format!("median {}, 99 % {}", span(run.wait_p50_ms), span(run.wait_p99_ms))),
    ];
    if let Some(measured) = &run.measured
        && let (Some(mean), Some(p99)) = (measured.rtt_mean_ms, measured.rtt_p99_ms)
    {
        facts.push(("round trip", format!("mean {}, 99 % {}", span(mean), span(p99))));
    }
    if let Some(transactions) = &run.transactions {
        let (p50, p99) = (span(transactions.p50_ms), span(transactions.p99_ms));
        facts.push(("transactions", format!("{}, median {p50}, 99 % {p99}", count(transactions.completed))));
    }
    let facts = facts.into_iter().map(|(name, fact)| (name.to_owned(), fact));
    let shown = run.shown.iter().map(|(name, value)| (name.clone(), format!("{} at the end", output::number(*value))));
    facts.chain(shown).collect()
}
