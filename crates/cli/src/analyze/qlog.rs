//! `reknit analyze` on the logs of QUIC stacks (qlog): which packets were declared lost although they were only late.

use std::fmt::Write;
use std::io::{self, BufRead};
use std::path::Path;

use reknit_config::visible;
use reknit_trace::how_often;
use reknit_trace::qlog::{QlogAnalysis, QlogDirection, Qlogs, WindowReport};

use super::show::{IN_ORDER, MAX_ROWS, MOSTLY, MUCH, QUIET, answer, goodput, packets_were, reordered};
use super::{Args, open};
use crate::capture::unreadable;
use crate::output::{how_many, number, per_cent, whole};
use crate::table::{Align, Column, Screen};
use crate::{Failure, output};

/// Characters of a connection's identifier in the table.
const MAX_ID: usize = 16;

/// Analyzes the files, if they are qlogs. False if they are captures.
pub(super) fn run(args: &Args) -> Result<bool, Failure> {
    let are: Vec<bool> = args.files.iter().map(|file| is_qlog(file)).collect::<Result<_, _>>()?;
    let Some(first) = are.iter().position(|is| *is) else { return Ok(false) };
    if let Some(capture) = are.iter().position(|is| !is) {
        let [qlog, capture] = [first, capture].map(|i| args.files[i].display());
        return Err(Failure::Usage(format!("{qlog} is a qlog and {capture} is none: give either qlogs or captures")));
    }
    refuse_options(args)?;
    let groups: Vec<_> = if args.separately { args.files.chunks(1).collect() } else { vec![&args.files[..]] };
    let mut analyses = Vec::new();
    for files in groups {
        analyses.push(read(files, args.stream)?);
    }
    if args.json {
        match &analyses[..] {
            [only] => output::print_json(only)?,
            several => output::print_json(&several)?,
        }
    } else {
        let texts: Vec<String> = analyses.iter().map(|analysis| text(analysis, Screen::stdout())).collect();
        output::print(&texts.join("\n"))?;
    }
    Ok(true)
}

/// True if the file begins like a qlog. What is read of standard input or of a pipe is not there any more, so only files and
/// what standard input has buffered are looked at.
fn is_qlog(file: &Path) -> Result<bool, Failure> {
    if file.as_os_str() == "-" {
        let mut input = io::stdin().lock();
        let start = input.fill_buf().map_err(|error| Failure::Failed(format!("standard input: {error}")))?;
        return Ok(Qlogs::is_qlog(start));
    }
    if !std::fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return Ok(false);
    }
    // Not read ahead: only its first bytes matter.
    let opened = reknit_config::open(file).map_err(|error| Failure::Failed(format!("{}: {error}", file.display())))?;
    Ok(Qlogs::is_qlog(opened))
}

fn refuse_options(args: &Args) -> Result<(), Failure> {
    let given = [
        ("--at", args.at.is_some()),
        ("--host", args.host.is_some()),
        ("--port", args.port.is_some()),
        ("--from", args.from.is_some()),
        ("--to", args.to.is_some()),
        ("--both-ends", args.both_ends),
        ("--same-clock", args.same_clock),
        ("--path", args.path.is_some()),
        ("--html", args.html.is_some()),
        ("--annotate", args.annotate.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            let allowed = "--stream, --separately and --json";
            Err(Failure::Usage(format!("{name} works on captures, and this is a qlog; allowed are {allowed}")))
        }
        None => Ok(()),
    }
}

fn read(files: &[std::path::PathBuf], stream: Option<u32>) -> Result<QlogAnalysis, Failure> {
    let mut qlogs = Qlogs::default();
    for file in files {
        let name = file.display().to_string();
        let read = qlogs.read(open(file)?, &name);
        read.map_err(|error| Failure::Failed(unreadable(file, &error)))?;
    }
    let mut analysis = qlogs.report();
    for warning in &analysis.warnings {
        output::note(format_args!("warning: {warning}"));
    }
    if let Some(number) = stream {
        analysis.directions.retain(|direction| direction.connection == number);
        if analysis.directions.is_empty() {
            let last = analysis.connections.saturating_sub(1);
            return Err(Failure::Usage(format!(
                "--stream {number}: there is no connection {number} with data; they are 0 to {last}"
            )));
        }
    }
    Ok(analysis)
}

fn text(analysis: &QlogAnalysis, screen: Screen) -> String {
    let mut text = screen.heading(&title(analysis)) + "\n\n";
    let Some(worst) = analysis.directions.first() else {
        return text + "No connection carried data.\n";
    };
    let columns = columns(&analysis.directions);
    text.push_str(&answer(&first_screen(worst), &worst.advice, (&columns, analysis.directions.len()), screen));
    text + "--json prints all numbers.\n"
}

fn title(analysis: &QlogAnalysis) -> String {
    let names = match &analysis.files[..] {
        [one] => visible(&one.file).into_owned(),
        [first, second] => format!("{} and {}", visible(&first.file), visible(&second.file)),
        several => how_many(several.len() as u64, "qlog"),
    };
    let events = analysis.files.iter().map(|file| file.events).sum();
    let longest = analysis.files.iter().map(|file| file.duration_s).fold(0.0, f64::max);
    format!(
        "{names}: {} in {} s, {}",
        how_many(events, "event"),
        number(longest),
        how_many(analysis.connections, "connection")
    )
}

/// The answer, with the lines that a capture has.
fn first_screen(worst: &QlogDirection) -> Vec<(String, String)> {
    let otherwise = if worst.is_quiet() { QUIET } else { "nothing: no packet that was late was declared lost" };
    let do_this = worst.advice.first().map_or(otherwise.to_owned(), ToString::to_string);
    let lines =
        [("what", what(worst)), ("path", path(worst)), ("cost", cost(worst)), ("do", do_this), ("sure", sure(worst))];
    lines.map(|(name, line)| (name.to_owned(), line)).to_vec()
}

fn what(worst: &QlogDirection) -> String {
    let QlogDirection { connection, from, to, .. } = worst;
    let mut text = format!("connection {connection}, {from} to {to}: {}", happened(worst));
    if let Some(discarded) = worst.discarded.filter(|discarded| *discarded > 0) {
        let _ = write!(text, "; the receiver did not keep {} that arrived late", how_many(discarded, "packet"));
    }
    if worst.probe_timeouts > 0 {
        let _ = write!(text, "; {}", how_many(worst.probe_timeouts, "probe timeout"));
    }
    text
}

fn happened(worst: &QlogDirection) -> String {
    let QlogDirection { declared_lost: declared, late, .. } = *worst;
    let lost = worst.lost_or_not_acknowledged();
    let is_reordered = worst.reordering.ratio > 0.0;
    let of_declared = || {
        let share = per_cent(late as f64 / declared.max(1) as f64);
        format!("{} of {} declared lost ({share}) arrived late", whole(late), how_many(declared, "packet"))
    };
    let proof = if worst.lost.is_some() { "lost" } else { "never acknowledged" };
    match (declared, late) {
        _ if worst.is_quiet() => IN_ORDER.to_owned(),
        _ if !worst.sender_logged => "packets were reordered".to_owned(),
        (0, _) if worst.lost_without_numbers > 0 => {
            format!("{} declared lost, the log does not say which", packets_were(worst.lost_without_numbers))
        }
        (0, _) if worst.passed_over > 0 => format!("{} never acknowledged", packets_were(worst.passed_over)),
        (0, _) if is_reordered => "packets were reordered, and nothing was lost".to_owned(),
        (0, _) => "no packet was declared lost".to_owned(),
        _ if !worst.acks_logged && !worst.receiver_logged => {
            format!("{} declared lost; whether they were late is not known", packets_were(declared))
        }
        (_, 0) => format!("{} {proof}, and none that was declared lost was late", packets_were(lost)),
        _ if lost * MOSTLY <= declared => format!("packets were late, not lost: {}", of_declared()),
        _ => format!("{} {proof}; {}", packets_were(lost), of_declared()),
    }
}

fn path(worst: &QlogDirection) -> String {
    let mut text = reordered(&worst.reordering, false);
    if !worst.receiver_logged && worst.reordering.ratio > 0.0 {
        text.push_str(", by the order of acknowledgments");
    }
    if let Some(needed) = &worst.thresholds {
        let _ = write!(
            text,
            "; late packets were acknowledged {} numbers behind (99 %: {}; all: {}), {} round trips after they were sent (99 %: {}; \
             all: {})",
            whole(needed.behind_p50),
            whole(needed.behind_p99),
            whole(needed.behind_max),
            number(needed.round_trips_p50),
            number(needed.round_trips_p99),
            number(needed.round_trips_max),
        );
    }
    if worst.sender_logged && (worst.acks_logged || worst.receiver_logged) {
        let lost = per_cent(worst.lost_or_not_acknowledged() as f64 / worst.packets.max(1) as f64);
        let were = if worst.lost.is_some() { "lost" } else { "lost or never acknowledged" };
        let _ = write!(text, "; {lost} were {were}");
    } else if let Some(missing) = worst.missing_numbers.filter(|missing| *missing > 0) {
        let _ = write!(text, "; {} never arrived: lost, or skipped by the sender", how_many(missing, "packet number"));
    }
    if worst.duplicated > 0 {
        let _ = write!(text, "; the network duplicated {}", whole(worst.duplicated));
    }
    if let Some(round_trip) = &worst.round_trip {
        let _ = write!(text, "; the round trip is {} ms", number(round_trip.least_ms));
    }
    text
}

fn cost(worst: &QlogDirection) -> String {
    let mut text = goodput(worst.bytes_of_data, worst.duration_s, worst.goodput_mbit_s);
    let window = &worst.window;
    let after_losses = window.reductions.saturating_sub(window.false_reductions + window.without_loss);
    let losses = if worst.lost == Some(0) { "packets that the receiver did not keep" } else { "real losses" };
    let reduced: Vec<String> = [
        (window.false_reductions, "although nothing was lost".to_owned()),
        (after_losses, format!("after {losses}")),
        (window.without_loss, "without a declared loss".to_owned()),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, when)| format!("{} {when}", how_often(count)))
    .collect();
    if let Some((last, others)) = reduced.split_last() {
        let others = if others.is_empty() { String::new() } else { format!("{}, and ", others.join(", ")) };
        let _ = write!(text, "; the sender reduced its window {others}{last}");
    }
    if let Some([before, after]) = typical(window) {
        let _ = write!(text, ", typically from {} to {} kB", number(before / 1e3), number(after / 1e3));
    }
    let share = window.smaller_s / worst.duration_s.max(1e-9);
    if share >= MUCH {
        let _ =
            write!(text, "; the window was smaller than before a reduction {} of the time", per_cent(share.min(1.0)));
    }
    text
}

/// The median of the windows before reductions, and of those after them.
fn typical(window: &WindowReport) -> Option<[f64; 2]> {
    let mut sizes: Vec<(u64, u64)> = window.list.iter().filter_map(|one| one.before.zip(one.after)).collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).map(|(before, after)| [*before as f64, *after as f64])
}

fn sure(worst: &QlogDirection) -> String {
    let text = match (worst.sender_logged, worst.receiver_logged) {
        (true, false) if !worst.acks_logged => "the sender's log, without ACK frames",
        (true, false) if worst.not_acknowledged == 0 => {
            "the sender's log: what it declared lost, and what was acknowledged later"
        }
        (true, true) => "logs of both ends: what was declared lost and is not in the log of the receiver was lost",
        (true, false) => {
            "the sender's log: a packet that was never acknowledged was lost, or its acknowledgment was; the receiver's log decides"
        }
        _ => "the receiver's log: the order of arrival is exact, but not what the sender declared lost",
    };
    text.to_owned()
}

fn columns(directions: &[QlogDirection]) -> Vec<Column> {
    let of = |title, rank, align, cell: fn(&QlogDirection) -> String| {
        Column::of(title, rank, align, directions.iter().take(MAX_ROWS), cell)
    };
    let left = |title, rank, cell| of(title, rank, Align::Left, cell);
    let column = |title, rank, cell| of(title, rank, Align::Right, cell);
    vec![
        column("connection", 0, |d| d.connection.to_string()),
        left("id", 3, |d| d.group.iter().flat_map(|id| visible(id).chars().take(MAX_ID).collect::<Vec<_>>()).collect()),
        left("from", 0, |d| d.from.to_owned()),
        left("to", 2, |d| d.to.to_owned()),
        column("Mbit/s", 0, |d| number(d.goodput_mbit_s)),
        column("packets", 1, |d| whole(d.packets)),
        column("declared lost", 0, |d| maybe(d.declared_lost, d)),
        column("late", 0, |d| maybe(d.late, d)),
        column("lost", 0, |d| maybe(d.lost_or_not_acknowledged(), d)),
        column("reordered", 1, |d| whole(d.reordered())),
        column("late p99, ms", 2, |d| d.reordering.late_p99_ms.map_or(String::new(), number)),
        column("false reductions", 1, |d| maybe(d.window.false_reductions, d)),
        column("reductions", 2, |d| maybe(d.window.reductions, d)),
        column("PTOs", 2, |d| maybe(d.probe_timeouts, d)),
    ]
}

/// A count that only the sender's log has.
fn maybe(count: u64, direction: &QlogDirection) -> String {
    if direction.sender_logged { whole(count) } else { String::new() }
}
