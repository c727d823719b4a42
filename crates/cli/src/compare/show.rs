//! How a comparison is printed: for people, as JSON, as CSV.

use reknit_compare::{Comparison, Completions, Estimate, Row, RunSummary, SeveralPaths};
use reknit_units::Duration;

use super::{Args, lines};
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

pub(super) fn show(args: &Args, comparisons: &[Comparison], began: std::time::Instant) -> Result<(), Failure> {
    if args.json {
        output::print(&(json(comparisons)? + "\n"))?;
    } else if args.csv {
        output::print(&csv(comparisons))?;
    } else {
        let (screen, took) = (Screen::stdout(), began.elapsed());
        let shown: Vec<String> = comparisons.iter().map(|comparison| people(comparison, screen)).collect();
        output::print(&(shown.join("\n\n") + "\n" + &foot(comparisons, screen, took)))?;
    }
    if comparisons.iter().all(|comparison| comparison.complete) {
        return Ok(());
    }
    let sum = |count: fn(&Comparison) -> usize| comparisons.iter().map(count).sum::<usize>();
    let finished = sum(|comparison| comparison.variants.iter().map(|row| row.runs.len()).sum());
    let wanted = sum(|comparison| comparison.runs_asked);
    eprintln!("interrupted: {finished} of {wanted} runs were finished and are shown");
    Err(Failure::Interrupted)
}

/// The document of one path, or of several.
fn json(comparisons: &[Comparison]) -> Result<String, Failure> {
    let text = match comparisons {
        [comparison] => serde_json::to_string_pretty(comparison),
        _ => serde_json::to_string_pretty(&SeveralPaths::of(comparisons)),
    };
    text.map_err(|error| Failure::Failed(error.to_string()))
}

fn people(comparison: &Comparison, screen: Screen) -> String {
    let title = format!(
        "{}: {}; in order {} Mbit/s",
        comparison.path,
        comparison.description,
        comparison.in_order_mbit_s.map_or("-".to_owned(), output::number)
    );
    format!("{}\n\n{}", table::wrap(&title, screen.text_width(), 2), table::render(&columns(comparison), screen))
}

/// What stands below the tables.
fn foot(comparisons: &[Comparison], screen: Screen, took: std::time::Duration) -> String {
    let Some(first) = comparisons.first() else { return String::new() };
    let rows = comparisons.iter().flat_map(|comparison| &comparison.variants);
    let simulated: f64 = rows.clone().map(|row| row.runs.len() as f64 * first.duration_s).sum();
    let foot = format!(
        "{} {} s each, {} s of traffic in {:.2} s. reknit {}. All fields: --json. Look inside: --pcap FILE.",
        output::legend(first.seeds as usize, &mut rows.map(|row| &row.goodput_mbit_s)),
        output::count(first.duration_s),
        output::count(simulated),
        took.as_secs_f64(),
        first.reknit
    );
    table::wrap(&foot, screen.text_width(), 0) + "\n"
}

fn columns(comparison: &Comparison) -> Vec<Column> {
    let mut columns = vec![
        Column::new("variant", 0, Align::Left),
        Column::new("Mbit/s", 0, Align::Right),
        Column::new("of in-order", 0, Align::Right),
        Column::new("retransmitted", 2, Align::Right),
        Column::new("spuriously", 1, Align::Right),
        Column::new("window cuts (false)", 1, Align::Right),
        Column::new("undone", 3, Align::Right),
        Column::new("RTOs", 1, Align::Right),
        Column::new("wait p50", 4, Align::Right),
        Column::new("wait p99", 1, Align::Right),
        Column::new("packets", 3, Align::Right),
    ];
    let shown = Extras::of(comparison);
    columns.extend(shown.columns());
    for row in &comparison.variants {
        let span = |ms: fn(&RunSummary) -> f64| output::milliseconds(Duration::from_secs_f64(row.mean(ms) / 1e3));
        let mut cells = vec![
            row.variant.clone(),
            output::estimate(&row.goodput_mbit_s),
            row.of_in_order.map_or("-".to_owned(), output::per_cent),
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
        cells.extend(shown.cells(row));
        for (column, cell) in columns.iter_mut().zip(cells) {
            column.cells.push(cell);
        }
    }
    columns
}

/// Columns that only some comparisons have.
struct Extras {
    transactions: bool,
    others: bool,
    shares: bool,
}

impl Extras {
    fn of(comparison: &Comparison) -> Extras {
        let mut runs = comparison.variants.iter().flat_map(|row| &row.runs);
        Extras {
            transactions: runs.clone().any(|run| run.transactions.is_some()),
            others: runs.any(|run| run.groups.iter().any(|group| group.variant.is_some())),
            shares: comparison.flows > 1,
        }
    }

    fn columns(&self) -> Vec<Column> {
        let titles = [
            (self.transactions, ["transactions", "completion p50", "completion p99"].as_slice()),
            (self.others, &["others' Mbit/s"]),
            (self.shares, &["Jain"]),
        ];
        let shown = titles.into_iter().filter(|(is_shown, _)| *is_shown);
        shown.flat_map(|(_, titles)| titles).map(|title| Column::new(*title, 0, Align::Right)).collect()
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let mut cells = Vec::new();
        if self.transactions {
            // A run in which nothing was completed has no completion time.
            let of_all = |value: fn(&Completions) -> f64| {
                Estimate::of(row.runs.iter().filter_map(|run| run.transactions.as_ref()).map(value)).mean
            };
            let span = |ms: f64| output::milliseconds(Duration::from_secs_f64(ms / 1e3));
            cells.push(output::count(of_all(|t| t.completed as f64)));
            cells.push(span(of_all(|t| t.p50_ms)));
            cells.push(span(of_all(|t| t.p99_ms)));
        }
        if self.others {
            let others = |run: &RunSummary| {
                let fixed = run.groups.iter().filter(|group| group.variant.is_some());
                fixed.map(|group| group.goodput_mbit_s).sum::<f64>()
            };
            cells.push(output::number(row.mean(others)));
        }
        if self.shares {
            cells.push(format!("{:.3}", row.mean(|run| run.jain)));
        }
        cells
    }
}

fn csv(comparisons: &[Comparison]) -> String {
    let mut titles = vec!["path", "variant", "seed"];
    titles.extend(lines::TITLES);
    titles.insert(4, "of_in_order");
    let mut text = titles.join(",") + "\n";
    let rows = comparisons.iter().flat_map(|comparison| comparison.variants.iter().map(move |row| (comparison, row)));
    for (comparison, row) in rows {
        for run in &row.runs {
            let mut fields = vec![comparison.path.clone(), row.variant.clone(), run.seed.to_string()];
            fields.extend(lines::cells(run));
            let reference = comparison.in_order_mbit_s.filter(|reference| *reference > 0.0);
            let share = reference.map(|reference| (run.goodput_mbit_s / reference).to_string());
            fields.insert(4, share.unwrap_or_default());
            text.push_str(&fields.join(","));
            text.push('\n');
        }
    }
    text
}
