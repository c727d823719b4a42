//! `reknit attacks`: what receivers that lie gain against each variant.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use reknit_compare::{Attack, AttackOptions, AttackReport, Location, NamedVariant, attack, attack_runs, named_variant};
use reknit_sim::Misbehavior;
use reknit_units::Duration;

use crate::table::{self, Align, Column, Screen};
use crate::{Failure, help, input, output};

/// The default variants: one or two of each family.
const VARIANTS: [&str; 12] =
    ["newreno", "sack", "dsack-r", "eifel", "frto-sack", "rr-taes", "pr", "rack", "bbr", "bbr1", "linux", "reknit"];

/// Measure what receivers that lie gain against each variant, in simulation
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Two transfers with the same variant share a bottleneck, and the receiver of the first lies. Prints \
what the liar gains, what is left for the other transfer, and how much the queue drops (docs/design/security.md). Scenario \
files can use the same lies: `lie = \"dsack\"` in [[flows]].

Examples:
  reknit attacks --variants rack,linux
  reknit attacks --variant-file mine.toml --lies dsack,optimistic --json"
)]
pub(crate) struct Args {
    #[arg(long, value_name = "A,B,C", value_delimiter = ',',
          help = help::variants("Attack these variants", &format!(" [default: {} variants from most families]", VARIANTS.len())))]
    variants: Vec<String>,
    /// Add your own variant from a TOML file (docs/reference/variants.md); may be repeated
    #[arg(long, value_name = "FILE.toml")]
    variant_file: Vec<PathBuf>,
    /// Try these lies, separated by commas (docs/design/security.md) [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', value_parser = lie)]
    lies: Vec<Misbehavior>,
    /// Run each simulation for this long, for example `10s`
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = input::duration)]
    duration: Duration,
    /// Run each attack this many times, with the seeds 1, 2, 3, ...
    #[arg(long, value_name = "N", default_value = "3", value_parser = input::whole::<1, 10_000>,
          allow_negative_numbers = true)]
    seeds: u32,
    /// Print the results as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print Markdown tables, as in docs/design/security.md
    #[arg(long)]
    markdown: bool,
    /// Hide the progress bar
    #[arg(long)]
    quiet: bool,
}

fn lie(text: &str) -> Result<Misbehavior, String> {
    let names = || Misbehavior::ALL.map(Misbehavior::name).join(", ");
    Misbehavior::ALL
        .into_iter()
        .find(|lie| lie.name() == text.trim())
        .ok_or_else(|| format!("must be one of {}", names()))
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let options = AttackOptions {
        variants: variants(args)?,
        lies: if args.lies.is_empty() { Misbehavior::ALL.to_vec() } else { args.lies.clone() },
        duration: args.duration,
        seeds: args.seeds,
    };
    let stop = output::on_interrupt();
    let bar = output::progress(attack_runs(&options), "attacking", args.quiet);
    let report = attack(&options, &stop, || bar.inc(1))?;
    bar.finish_and_clear();
    let Some(report) = report else { return Err(Failure::Interrupted) };
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::Failed(error.to_string()))?;
        output::print(&format!("{text}\n"))
    } else if args.markdown {
        output::print(&markdown(&report))
    } else {
        output::print(&render_text(&report))
    }
}

/// The tables of `docs/design/security.md`, with the default options.
///
/// # Errors
/// One line.
pub fn tables() -> Result<String, String> {
    let built_in = VARIANTS.iter().map(|name| named_variant::find(name, &[]));
    let options = AttackOptions {
        variants: built_in.collect::<Result<_, _>>().map_err(|error| error.to_string())?,
        lies: Misbehavior::ALL.to_vec(),
        duration: Duration::from_secs(60),
        seeds: 3,
    };
    let report = attack(&options, &AtomicBool::new(false), || {}).map_err(|error| error.to_string())?;
    Ok(report.map_or(String::new(), |report| markdown(&report)))
}

fn variants(args: &Args) -> Result<Vec<NamedVariant>, Failure> {
    let customs = named_variant::load(&args.variant_file)?;
    for warning in customs.iter().flat_map(|custom| &custom.warnings) {
        output::note(format_args!("warning: {warning}"));
    }
    let mut names = args.variants.clone();
    if names.is_empty() && customs.is_empty() {
        names.extend(VARIANTS.map(str::to_owned));
    }
    if names.is_empty() {
        return Ok(customs.iter().map(NamedVariant::custom).collect());
    }
    let refuse = |error: reknit_compare::KeyError| error.at(Location::argument("variants"));
    Ok(named_variant::choose(refuse, &names, |name| named_variant::expand(name, &customs), &customs)?)
}

fn render_text(report: &AttackReport) -> String {
    let screen = Screen::stdout();
    let rows: Vec<&Attack> = report.attacks.iter().collect();
    let rows = &rows[..];
    let columns = [
        Column::of("variant", 0, Align::Left, rows, |row| row.variant.clone()),
        Column::of("lie", 0, Align::Left, rows, |row| row.lie.name().to_owned()),
        Column::of("gain", 0, Align::Right, rows, |row| gain(row)),
        Column::of("share", 0, Align::Right, rows, |row| output::per_cent(row.share)),
        Column::of("rival", 0, Align::Right, rows, |row| output::per_cent(row.rival)),
        Column::of("drops", 0, Align::Right, rows, |row| output::per_cent(row.drops)),
        Column::of("drops if honest", 1, Align::Right, rows, |row| output::per_cent(row.honest_drops)),
    ];
    let foot = format!(
        "gain: goodput of the liar relative to its goodput when it is honest; share: the liar's part of the goodput of \
         both; rival: goodput of the other transfer relative to its goodput beside an honest receiver; drops: share of \
         data packets that the queue drops. {} of {} s. reknit {}. --json prints all numbers.",
        output::how_many(u64::from(report.seeds), "run"),
        output::count(report.duration_s),
        report.reknit
    );
    table::render(&columns, screen) + "\n" + &table::wrap(&foot, screen.text_width(), 0) + "\n"
}

fn gain(attack: &Attack) -> String {
    format!("{:.2}", attack.gain)
}

/// Two tables, with a row for each lie and a column for each variant: gains, and drops.
fn markdown(report: &AttackReport) -> String {
    let mut variants: Vec<&str> = report.attacks.iter().map(|attack| attack.variant.as_str()).collect();
    variants.dedup();
    let cells = |lie: Misbehavior, cell: &dyn Fn(&Attack) -> String| {
        let of_lie = report.attacks.iter().filter(|attack| attack.lie == lie);
        format!("| `{}` | {} |\n", lie.name(), of_lie.map(cell).collect::<Vec<_>>().join(" | "))
    };
    let head = |title: &str| {
        let names: Vec<String> = variants.iter().map(|name| format!("`{name}`")).collect();
        format!("| {title} | {} |\n|---{}|\n", names.join(" | "), "|--:".repeat(variants.len()))
    };
    let lies = || Misbehavior::ALL.into_iter().filter(|lie| report.attacks.iter().any(|attack| attack.lie == *lie));
    let mut text = head("gain of the liar");
    for lie in lies() {
        text += &cells(lie, &gain);
    }
    text = text + "\n" + &head("drops, %");
    let per_cent = |share: f64| format!("{:.1}", share * 100.0);
    let honest = variants.iter().filter_map(|name| report.attacks.iter().find(|attack| attack.variant == *name));
    let honest: Vec<String> = honest.map(|attack| per_cent(attack.honest_drops)).collect();
    text = text + "| honest | " + &honest.join(" | ") + " |\n";
    for lie in lies() {
        text += &cells(lie, &|attack| per_cent(attack.drops));
    }
    text
}
