//! Prints a comparison as text, as JSON or as CSV.

use reknit_compare::{Comparison, Completions, Estimate, Row, RunSummary, SeveralPaths, columns};
use reknit_config::visible;
use reknit_units::Duration;

use super::Args;
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

pub(super) fn show(args: &Args, comparisons: &[Comparison], started: std::time::Instant) -> Result<(), Failure> {
    if args.json {
        output::print(&(json(comparisons)? + "\n"))?;
    } else if args.csv {
        output::print(&csv(comparisons))?;
    } else {
        let (screen, took) = (Screen::stdout(), started.elapsed());
        let finished = comparisons.iter().filter(|comparison| !comparison.variants.is_empty());
        let changes = changes(args);
        let shown: Vec<String> = finished.map(|comparison| render_text(comparison, &changes, screen)).collect();
        output::print(&(shown.join("\n\n") + "\n" + &footer(comparisons, screen, took)))?;
    }
    if comparisons.iter().all(|comparison| comparison.complete) {
        return Ok(());
    }
    let sum = |count: fn(&Comparison) -> usize| comparisons.iter().map(count).sum::<usize>();
    let finished = sum(|comparison| comparison.variants.iter().map(|row| row.runs.len()).sum());
    let wanted = sum(|comparison| comparison.runs_asked);
    output::note(format_args!("interrupted: showing the {finished} of {wanted} runs that finished"));
    Err(Failure::Interrupted)
}

/// The JSON document for one path, or for several.
fn json(comparisons: &[Comparison]) -> Result<String, Failure> {
    let text = match comparisons {
        [comparison] => serde_json::to_string_pretty(comparison),
        _ => serde_json::to_string_pretty(&SeveralPaths::of(comparisons)),
    };
    text.map_err(|error| Failure::Failed(error.to_string()))
}

/// What the options change about the path, whose description does not know it.
fn changes(args: &Args) -> String {
    let mut changes = args.simulation.scenario.changes();
    if !args.path.is_empty() || args.scenario.is_some() {
        changes.extend(args.shaping.given()); // else they are the description
    }
    if changes.is_empty() { String::new() } else { format!("; changed: {}", visible(&changes.join(", "))) }
}

fn render_text(comparison: &Comparison, changes: &str, screen: Screen) -> String {
    let in_order = comparison.in_order_mbit_s.map_or("-".to_owned(), output::number);
    let path = output::title(&comparison.path, &comparison.description);
    let title = format!("{path}{changes}; in order {in_order} Mbit/s");
    format!("{}\n\n{}", table::wrap(&title, screen.text_width(), 2), table::render(&table_columns(comparison), screen))
}

/// The line below the tables.
fn footer(comparisons: &[Comparison], screen: Screen, took: std::time::Duration) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let rows = comparisons.iter().flat_map(|comparison| &comparison.variants);
    let simulated: f64 = rows.clone().map(|row| row.runs.len() as f64 * first.duration_s).sum();
    let seeds = comparisons.iter().all(|comparison| comparison.complete).then_some(first.seeds as usize);
    let footer = format!(
        "{} {} s each, {} s of traffic in {:.2} s. reknit {}. --json prints all fields; --pcap FILE writes the \
         packets.",
        output::legend(seeds, &mut rows.map(|row| &row.goodput_mbit_s)),
        output::count(first.duration_s),
        output::count(simulated),
        took.as_secs_f64(),
        first.reknit
    );
    table::wrap(&footer, screen.text_width(), 0) + "\n"
}

/// The columns of the table.
pub(crate) fn table_columns(comparison: &Comparison) -> Vec<Column> {
    let left = |title, cell: fn(&Row) -> String| Column::of(title, 0, Align::Left, &comparison.variants, cell);
    let right =
        |title, rank, cell: fn(&Row) -> String| Column::of(title, rank, Align::Right, &comparison.variants, cell);
    let ratio = |ratio: Option<f64>| ratio.map_or("-".to_owned(), output::per_cent);
    let mut columns = vec![left("variant", |row| row.variant.clone())];
    if !comparison.complete {
        let seeds = comparison.seeds;
        let runs = |row: &Row| format!("{} of {seeds}", row.runs.len());
        columns.push(Column::of("runs", 1, Align::Right, &comparison.variants, runs));
    }
    columns.push(right("Mbit/s", 0, |row| output::estimate(&row.goodput_mbit_s)));
    columns.push(Column::of("of in-order", 0, Align::Right, &comparison.variants, |row| ratio(row.of_in_order)));
    if comparison.variants.iter().any(|row| row.of_oracle.is_some()) {
        columns.push(Column::of("of oracle", 1, Align::Right, &comparison.variants, |row| ratio(row.of_oracle)));
    }
    columns.extend([
        right("retransmitted", 2, |row| output::per_cent(row.share(|r| r.retransmissions.total, |r| r.segments_sent))),
        right("spurious", 1, |row| {
            output::per_cent(row.share(|r| r.spurious_retransmissions, |r| r.retransmissions.total))
        }),
        right("window cuts (false)", 1, |row| {
            let cuts = output::count(row.mean(|r| r.window_cuts.total as f64));
            let shown = format!("{cuts} ({})", output::count(row.mean(|r| r.false_window_cuts as f64)));
            reported(row, "window_cuts", shown)
        }),
        right("undone", 3, |row| reported(row, "undos", output::count(row.mean(|r| r.undos as f64)))),
        right("RTOs", 1, |row| reported(row, "timeouts", output::count(row.mean(|r| r.timeouts as f64)))),
        right("wait p50", 4, |row| milliseconds(row.mean(|r| r.wait_p50_ms))),
        right("wait p99", 1, |row| milliseconds(row.mean(|r| r.wait_p99_ms))),
        right("packets", 3, |row| output::count(row.mean(|r| r.delivered_packets as f64))),
    ]);
    columns.extend(extra_columns(comparison));
    columns
}

/// `shown`, or a dash if the transport does not report the count with this name.
fn reported(row: &Row, count: &str, shown: String) -> String {
    if row.runs.iter().all(|run| run.reports(count)) { shown } else { "-".to_owned() }
}

/// Columns that only some comparisons have.
fn extra_columns(comparison: &Comparison) -> Vec<Column> {
    let right = |title, cell: fn(&Row) -> String| Column::of(title, 0, Align::Right, &comparison.variants, cell);
    let has = |what: fn(&RunSummary) -> bool| comparison.variants.iter().flat_map(|row| &row.runs).any(what);
    let mut columns = Vec::new();
    if has(|run| run.transactions.is_some()) {
        columns.push(right("transactions", |row| output::count(of_transactions(row, |t| t.completed as f64))));
        columns.push(right("completion p50", |row| milliseconds(of_transactions(row, |t| t.p50_ms))));
        columns.push(right("completion p99", |row| milliseconds(of_transactions(row, |t| t.p99_ms))));
    }
    if has(|run| run.groups.iter().any(|group| group.variant.is_some())) {
        columns.push(right("competing Mbit/s", |row| output::number(row.mean(competing_goodput))));
    }
    if comparison.flows > 1 {
        columns.push(right("Jain", |row| format!("{:.3}", row.mean(|run| run.jain))));
    }
    columns
}

fn milliseconds(ms: f64) -> String {
    output::milliseconds(Duration::from_secs_f64(ms / 1e3))
}

/// Mean over the runs with completed transactions: the others have no completion time.
fn of_transactions(row: &Row, value: fn(&Completions) -> f64) -> f64 {
    Estimate::of(row.runs.iter().filter_map(|run| run.transactions.as_ref()).map(value)).mean
}

/// Goodput of the competing flows: those with a variant of their own.
fn competing_goodput(run: &RunSummary) -> f64 {
    run.groups.iter().filter(|group| group.variant.is_some()).map(|group| group.goodput_mbit_s).sum()
}

fn csv(comparisons: &[Comparison]) -> String {
    let runs = comparisons.iter().flat_map(|comparison| &comparison.variants).flat_map(|row| &row.runs);
    let numbers = [columns::counts(), columns::shown(runs)].concat();
    let mut titles: Vec<&str> = vec!["path", "variant", "seed", "of_in_order", "of_oracle"];
    titles.extend(numbers.iter().map(|column| column.name.as_str()));
    let mut lines = Vec::new();
    let rows = comparisons.iter().flat_map(|comparison| comparison.variants.iter().map(move |row| (comparison, row)));
    for (comparison, row) in rows {
        for run in &row.runs {
            let share = |reference: Option<f64>| {
                let share = reknit_compare::share(run.goodput_mbit_s, reference);
                share.map_or(String::new(), |share| share.to_string())
            };
            let mut cells = vec![comparison.path.clone(), row.variant.clone(), run.seed.to_string()];
            cells.extend([share(comparison.in_order_mbit_s), share(row.oracle_mbit_s)]);
            cells.extend(columns::cells(&numbers, run));
            lines.push(cells);
        }
    }
    output::csv(titles, lines)
}
