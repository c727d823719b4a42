//! Prints a matrix as text, as JSON or as CSV.

use reknit_compare::{MatrixReport, MatrixRun, Shares, SummaryStats};

use super::Args;
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

pub(super) fn show(args: &Args, report: &MatrixReport) -> Result<(), Failure> {
    if args.json {
        let text = serde_json::to_string_pretty(report).map_err(|error| Failure::Failed(error.to_string()))?;
        output::print(&format!("{text}\n"))
    } else if args.csv {
        output::print(&csv(report))
    } else {
        output::print(&render_text(report))
    }
}

fn render_text(report: &MatrixReport) -> String {
    let screen = Screen::stdout();
    let width = screen.text_width();
    let mut text = String::new();
    for lossy in [false, true] {
        let rows: Vec<&Shares> = report.summary.iter().filter(|shares| shares.lossy == lossy).collect();
        if rows.is_empty() {
            continue;
        }
        let paths = report.paths.iter().filter(|path| path.lossy == lossy).count();
        let sort = if lossy { "with loss" } else { "without loss" };
        let paths = output::how_many(paths as u64, "path");
        text = text + &format!("{paths} {sort}\n") + &table::render(&columns(&rows), screen) + "\n";
    }
    let foot = format!(
        "Goodput relative to `sack` without reordering (of in-order), and to the oracle whose window grows in the same \
         way (of oracle): mean, median and minimum over the paths; each path counts with the mean of its runs. {} of {} s \
         per variant and path. reknit {}. --csv and --json print all runs.",
        output::how_many(u64::from(report.seeds), "run"),
        output::count(report.duration_s),
        report.reknit
    );
    text = text + &table::wrap(&foot, width, 0) + "\n";
    let live = report.runs.iter().filter(|run| run.live).count();
    let doubts = report.runs.iter().filter(|run| run.doubt.is_some()).count();
    if doubts > 0 {
        let note = format!(
            "{doubts} of {live} live runs are unreliable because the machine was busy (--json has details); repeat when it \
             is idle."
        );
        text = text + &table::wrap(&note, width, 0) + "\n";
    }
    text
}

fn columns(rows: &[&Shares]) -> Vec<Column> {
    let mut columns = vec![Column::of("variant", 0, Align::Left, rows, |row| row.variant.clone())];
    if rows.iter().any(|row| row.live) {
        let how = |row: &&Shares| if row.live { "live" } else { "simulated" }.to_owned();
        columns.push(Column::of("run", 0, Align::Left, rows, how));
    }
    columns.extend(spread(rows, ["of in-order", "median", "min"], 0, |row| row.of_in_order));
    if rows.iter().any(|row| row.of_oracle.is_some()) {
        columns.extend(spread(rows, ["of oracle", "median", "min"], 1, |row| row.of_oracle));
    }
    columns
}

fn spread(
    rows: &[&Shares],
    titles: [&'static str; 3],
    rank: u8,
    of: impl Fn(&Shares) -> Option<SummaryStats>,
) -> [Column; 3] {
    let values: [fn(SummaryStats) -> f64; 3] = [|s| s.mean, |s| s.median, |s| s.min];
    let column = |title: &'static str, value: fn(SummaryStats) -> f64| {
        let cell = |row: &&Shares| of(row).map_or("-".to_owned(), |s| output::per_cent(value(s)));
        Column::of(title, rank, Align::Right, rows, cell)
    };
    [column(titles[0], values[0]), column(titles[1], values[1]), column(titles[2], values[2])]
}

fn csv(report: &MatrixReport) -> String {
    let titles = ["path", "lossy", "variant", "live", "seed", "goodput_mbit_s", "of_in_order", "of_oracle"];
    let row = |run: &MatrixRun| {
        let lossy = report.paths.iter().any(|path| path.path == run.path && path.lossy);
        let share = |share: Option<f64>| share.map_or(String::new(), |share| share.to_string());
        vec![
            run.path.clone(),
            lossy.to_string(),
            run.variant.clone(),
            run.live.to_string(),
            run.seed.to_string(),
            run.goodput_mbit_s.to_string(),
            share(run.of_in_order),
            share(run.of_oracle),
        ]
    };
    output::csv(titles, report.runs.iter().map(row))
}
