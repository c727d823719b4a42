//! Prints a matrix as text, as JSON or as CSV.

use reknit_compare::{Difference, MatrixReport, MatrixRun, Shares, SummaryStats};

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
        text =
            text + &format!("{paths} {sort}\n") + &table::render(&columns(&rows, &report.differences), screen) + "\n";
    }
    let foot = format!(
        "Goodput relative to `sack` without reordering (of in-order), and to the oracle whose window grows in the same \
         way (of oracle): mean with its 95 % interval, median and minimum over the paths; each path counts with the mean of \
         its runs. Of link: the mean share of the rate of the slowest link. The oracle bounds only senders that grow and \
         reduce the window as it does; others may be faster. The differences, in percentage points, pair the paths: with \
         their 95 % interval, and on how many paths \
         the variant is better and worse. {} of {} s per variant and path. reknit {}. --json has the differences of all \
         pairs; --csv and --json print all runs.",
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

fn columns(rows: &[&Shares], differences: &[Difference]) -> Vec<Column> {
    let mut columns = vec![Column::of("variant", 0, Align::Left, rows, |row| row.variant.clone())];
    if rows.iter().any(|row| row.live) {
        let how = |row: &&Shares| if row.live { "live" } else { "simulated" }.to_owned();
        columns.push(Column::of("run", 0, Align::Left, rows, how));
    }
    columns.extend(spread(rows, ["of in-order", "median", "min"], 0, |row| row.of_in_order));
    if rows.iter().any(|row| row.of_oracle.is_some()) {
        columns.extend(spread(rows, ["of oracle", "median", "min"], 2, |row| row.of_oracle));
    }
    if rows.iter().any(|row| row.of_link.is_some()) {
        let of_link = |row: &&Shares| row.of_link.map_or("-".to_owned(), |s| output::per_cent(s.mean));
        columns.push(Column::of("of link", 3, Align::Right, rows, of_link));
    }
    // All are compared with the first.
    if let [first, _, ..] = rows {
        let found = |row: &&Shares| {
            let is_this = |difference: &&Difference| {
                let Difference { variant, than, live, lossy, .. } = difference;
                (variant, than, *live, *lossy) == (&row.variant, &first.variant, row.live, row.lossy)
            };
            differences.iter().find(is_this)
        };
        let than = format!("minus {}", first.variant);
        columns.push(Column::of(than, 0, Align::Right, rows, |row| found(row).map_or("-".to_owned(), points)));
        let counts = |row: &&Shares| {
            found(row).map_or("-".to_owned(), |difference| format!("{}, {}", difference.better, difference.worse))
        };
        columns.push(Column::of("better, worse", 1, Align::Right, rows, counts));
    }
    columns
}

/// `+12 ± 5`, in percentage points.
fn points(difference: &Difference) -> String {
    let interval = difference.ci95.map_or(String::new(), |ci| format!(" ± {:.1}", 100.0 * ci));
    format!("{:+.1}{interval}", 100.0 * difference.mean)
}

fn spread(
    rows: &[&Shares],
    titles: [&'static str; 3],
    rank: u8,
    of: impl Fn(&Shares) -> Option<SummaryStats>,
) -> [Column; 3] {
    let column = |title: &'static str, value: fn(SummaryStats) -> String| {
        Column::of(title, rank, Align::Right, rows, |row| of(row).map_or("-".to_owned(), value))
    };
    let mean = |s: SummaryStats| {
        let interval = s.ci95.map_or(String::new(), |ci| format!(" ± {:.0}", 100.0 * ci));
        output::per_cent(s.mean).replace(" %", &format!("{interval} %"))
    };
    [
        column(titles[0], mean),
        column(titles[1], |s| output::per_cent(s.median)),
        column(titles[2], |s| output::per_cent(s.min)),
    ]
}

fn csv(report: &MatrixReport) -> String {
    let titles = ["path", "lossy", "variant", "live", "seed", "goodput_mbit_s", "of_in_order", "of_oracle", "of_link"];
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
            share(run.of_link),
        ]
    };
    output::csv(titles, report.runs.iter().map(row))
}
