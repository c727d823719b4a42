//! `reknit analyze SENDER RECEIVER`: two captures of the same packets.

use std::fmt::Write;
use std::path::Path;

use reknit_config::visible;
use reknit_trace::{BothEnds, BothEndsOptions, FlowReport, Matched};

use super::show::{MAX_ROWS, by_how_much};
use super::{Args, open};
use crate::capture::unreadable;
use crate::output::{how_many, number, per_cent, whole};
use crate::table::{self, Align, Column, Screen};
use crate::{Failure, output};

/// Compares the captures, if there are two that have packets in common. False if they are to be analysed one by one.
pub(super) fn run(args: &Args) -> Result<bool, Failure> {
    let [first, second] = match &args.files[..] {
        [first, second] if !args.separately => [first, second],
        _ if args.both_ends => return Err(Failure::Usage("--both-ends needs two captures".to_owned())),
        _ => return Ok(false),
    };
    let files = [first, second];
    if files.iter().any(|file| file.as_os_str() == "-") {
        let why = "--both-ends reads two files, and neither can be standard input; save it to a file first";
        return if args.both_ends { Err(Failure::Usage(why.to_owned())) } else { Ok(false) };
    }
    let readers = [open(first)?, open(second)?];
    let options = BothEndsOptions { filter: args.filter(), same_clock: args.same_clock, forced: args.both_ends };
    let matched =
        Matched::read(readers, &options).map_err(|(which, error)| Failure::Failed(unreadable(files[which], &error)))?;
    let Some(matched) = matched else {
        if args.both_ends || args.same_clock {
            let names = files.map(|file| file.display().to_string());
            let why = format!("{} and {} have no packet in common", names[0], names[1]);
            return Err(Failure::Failed(format!("{why}; --separately analyzes each on its own")));
        }
        return Ok(false);
    };
    for (name, is_given) in [("--at", args.at.is_some()), ("--stream", args.stream.is_some())] {
        if is_given {
            let why =
                "works on a single capture, but these two are compared; add --separately to analyze each on its own";
            return Err(Failure::Usage(format!("{name} {why}")));
        }
    }
    let report = matched.report(files.map(|file| file.display().to_string()));
    for warning in &report.warnings {
        output::note(format_args!("warning: {warning}"));
    }
    if let Some(to) = &args.path {
        write_path(&matched, to)?;
    }
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&text(&report, Screen::stdout()))?;
    }
    Ok(true)
}

fn write_path(matched: &Matched, to: &Path) -> Result<(), Failure> {
    let path = matched.path(None).map_err(|error| Failure::Failed(format!("--path: {error}")))?;
    output::write_file("--path", to, path.toml())
}

fn text(report: &BothEnds, screen: Screen) -> String {
    let [first, second] = report.captures.each_ref().map(|capture| visible(&capture.file));
    let flows = how_many(report.flows.len() as u64, "flow");
    let mut text = screen.heading(&format!("{first} and {second}: {flows} captured at both points")) + "\n\n";
    // The flow with the most bytes is what matters, unless nothing happened to it.
    let Some(worst) = report.flows.first() else { return text };
    let lines = [("what", what(worst)), ("path", path(worst)), ("clocks", clocks(report))];
    let lines = lines.map(|(name, line)| (name.to_owned(), line));
    text.push_str(&table::definitions(&lines, screen.text_width()));
    text.push('\n');
    text.push_str(&table::render(&columns(&report.flows), screen));
    if report.flows.len() > MAX_ROWS {
        let left_out = how_many((report.flows.len() - MAX_ROWS) as u64, "flow");
        let _ = writeln!(text, "Not shown: {left_out} with fewer bytes; --json lists all.");
    }
    let more = "--json prints all numbers; --separately analyzes each capture on its own; --path FILE.toml writes the path for `reknit \
                compare`.";
    text + &table::wrap(more, screen.text_width(), 0) + "\n"
}

fn what(flow: &FlowReport) -> String {
    let mut text = format!(
        "{} from {} to {}: of {}, {} arrived, {} lost ({}), {} late ({})",
        flow.protocol,
        flow.from,
        flow.to,
        how_many(flow.sent, "packet"),
        whole(flow.arrived),
        were(flow.lost),
        per_cent(flow.loss),
        were(flow.reordered),
        per_cent(flow.reordering.ratio),
    );
    if flow.duplicated > 0 {
        let _ = write!(text, "; the network duplicated {}", whole(flow.duplicated));
    }
    if flow.unknown > 0 {
        let _ = write!(text, "; {} could not be decided, because the other capture is shorter", whole(flow.unknown));
    }
    text
}

fn were(n: u64) -> String {
    format!("{} {}", whole(n), if n == 1 { "was" } else { "were" })
}

fn path(flow: &FlowReport) -> String {
    let delay = &flow.delay;
    let mut text = if delay.relative {
        format!(
            "one-way delay relative to the shortest: median {} ms, 99 % {} ms, largest {} ms",
            number(delay.p50_ms),
            number(delay.p99_ms),
            number(delay.most_ms)
        )
    } else {
        format!(
            "one-way delay: shortest {} ms, median {} ms, 99 % {} ms, largest {} ms",
            number(delay.least_ms),
            number(delay.p50_ms),
            number(delay.p99_ms),
            number(delay.most_ms)
        )
    };
    if let Some(extent) = by_how_much(&flow.reordering) {
        let _ = write!(text, "; late packets {extent}");
    }
    if let Some(mean) = flow.loss_runs.mean.filter(|_| flow.loss_runs.longest > 1) {
        let _ = write!(text, "; losses in runs of {} (at most {})", number(mean), whole(flow.loss_runs.longest));
    }
    text
}

fn clocks(report: &BothEnds) -> String {
    let clock = &report.clock;
    if clock.same_clock {
        return "the same for both captures, as given".to_owned();
    }
    let Some(accuracy) = clock.accuracy_ms else {
        let drift = if clock.skew_ppm == 0.0 {
            String::new()
        } else {
            format!("; the second one gains {} ppm", number(clock.skew_ppm))
        };
        return format!(
            "all packets passed one of the points first, so how far one clock is ahead is not known, and delays are relative to the \
             shortest one{drift} (--same-clock if one clock made both captures)"
        );
    };
    let side = if clock.offset_ms < 0.0 { "behind" } else { "ahead" };
    let mut text = format!("the clock of the second capture is {} ms {side}", number(clock.offset_ms.abs()));
    if clock.skew_ppm != 0.0 {
        let _ = write!(text, " in the middle of the capture, and gains {} ppm", number(clock.skew_ppm));
    }
    let _ = write!(
        text,
        "; the shortest delays of both directions are assumed to be equal, so one-way delays are accurate to {} ms (--same-clock if \
         one clock made both captures)",
        number(accuracy)
    );
    text
}

fn columns(flows: &[FlowReport]) -> Vec<Column> {
    let of = |title, rank, align, cell: fn(&FlowReport) -> String| {
        Column::of(title, rank, align, flows.iter().take(MAX_ROWS), cell)
    };
    let left = |title, rank, cell| of(title, rank, Align::Left, cell);
    let right = |title, rank, cell| of(title, rank, Align::Right, cell);
    vec![
        left("protocol", 1, |flow| flow.protocol.clone()),
        left("from", 0, |flow| flow.from.clone()),
        left("to", 0, |flow| flow.to.clone()),
        right("packets", 0, |flow| whole(flow.sent)),
        right("lost", 0, |flow| whole(flow.lost)),
        right("late", 0, |flow| whole(flow.reordered)),
        right("places p99", 2, |flow| flow.reordering.extent_p99.map_or(String::new(), whole)),
        right("late p99, ms", 2, |flow| flow.reordering.late_p99_ms.map_or(String::new(), number)),
        right("duplicated", 2, |flow| whole(flow.duplicated)),
        right("delay p50, ms", 1, |flow| number(flow.delay.p50_ms)),
        right("p99", 1, |flow| number(flow.delay.p99_ms)),
    ]
}
