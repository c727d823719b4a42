//! Prints results, and formats numbers.

use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use reknit_compare::Estimate;
use reknit_config::{file_error, is_control, visible, without_numbers};
use reknit_units::{Duration, grouped};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};

use crate::{Failure, input};

/// Prints to standard output. It is no error if the reader closes it.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_unless_closed(text).map(drop)
}

/// The same. False if the reader has closed the output.
pub(crate) fn print_unless_closed(text: &str) -> Result<bool, Failure> {
    unless_closed(io::stdout().write_all(text.as_bytes()))
}

/// False if the reader has closed the output.
pub(crate) fn unless_closed(written: io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Failed(format!("standard output: {error}"))),
    }
}

/// Writes the file that the option `flag` names.
pub(crate) fn write_file(flag: &str, file: &Path, content: impl AsRef<[u8]>) -> Result<(), Failure> {
    std::fs::write(file, content).map_err(|error| Failure::of_option(flag, file, &error))
}

/// Refuses files, each preceded by the option that names it, that cannot be written, before anything else is done: the folder
/// does not exist, or the file is a folder itself, one of those that are `read`, or named by two options.
pub(crate) fn check_writable(files: &[(&str, &Option<PathBuf>)], read: &[impl AsRef<Path>]) -> Result<(), Failure> {
    let named: Vec<(&str, &Path)> = files.iter().filter_map(|(flag, file)| Some((*flag, file.as_deref()?))).collect();
    for (i, (flag, file)) in named.iter().enumerate() {
        check_one(flag, file)?;
        let refuse = |why: &str| Err(Failure::Usage(format!("{flag} {}: {why}; name another file", file.display())));
        if read.iter().any(|read| is_same(read.as_ref(), file)) {
            return refuse("this file is read");
        }
        if let Some((other, _)) = named[..i].iter().find(|(_, other)| is_same(other, file)) {
            return refuse(&format!("{other} writes this file"));
        }
    }
    Ok(())
}

/// True if both are the same file, which may not exist yet. A device or a pipe can be written by several.
fn is_same(one: &Path, other: &Path) -> bool {
    match (input::identity(one), input::identity(other)) {
        (Some(first), Some(second)) => first == second && one.is_file(),
        _ => one == other,
    }
}

fn check_one(flag: &str, file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_folder = std::fs::metadata(folder).map(|found| found.is_dir());
    let problem = match is_folder {
        Err(error) => error,
        Ok(false) => io::ErrorKind::NotADirectory.into(),
        Ok(true) if file.is_dir() => io::ErrorKind::IsADirectory.into(),
        Ok(true) => return Ok(()),
    };
    Err(Failure::Usage(format!("{flag} {}: {}", file.display(), file_error(&problem))))
}

/// Prints a line to standard error. It is no error if the reader has closed it. Lines contain names of files and what files
/// contain, which must not control the terminal.
pub(crate) fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{}", visible(&without_numbers(&line.to_string())));
}

/// Notes that a variant fell back because the peer lacks an option.
pub(crate) fn warn_fallbacks(name: &str, fallbacks: &[String]) {
    if !fallbacks.is_empty() {
        note(format_args!("note: {name} fell back: {}", fallbacks.join("; ")));
    }
}

/// Becomes true when the user presses Ctrl-C. A second Ctrl-C ends the program.
pub(crate) fn on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = stop.clone();
    // If the handler cannot be installed, Ctrl-C ends the program as usual.
    let _ = ctrlc::set_handler(move || {
        if theirs.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    });
    stop
}

/// A progress bar if standard error is a terminal, else nothing.
pub(crate) fn progress(steps: u64, what: &str, quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar
}

/// A number, rounded for reading.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v >= 100.0 => thousands(value.round()),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A count: without decimals if it is whole or large, else with one.
pub(crate) fn count(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 100.0 { thousands(value.round()) } else { format!("{value:.1}") }
}

/// `1 packet`, `2 packets`.
pub(crate) fn how_many(n: u64, name: &str) -> String {
    format!("{} {name}{}", whole(n), if n == 1 { "" } else { "s" })
}

/// A whole number.
pub(crate) fn whole(n: u64) -> String {
    grouped(n)
}

fn thousands(value: f64) -> String {
    let text = grouped(format!("{:.0}", value.abs()).parse().unwrap_or(u64::MAX));
    if value < 0.0 { format!("-{text}") } else { text }
}

/// `3.21 ± 0.05`; `3.21 or 7.48` if the runs fall into two groups; `0.90 to 7.48`, the smallest and the largest, if the
/// interval would begin below zero; `3.21` if all runs are equal, or there is only one.
pub(crate) fn estimate(estimate: &Estimate) -> String {
    if let Some([lower, upper]) = estimate.two_groups {
        return format!("{} or {}", number(lower.mean), number(upper.mean));
    }
    match estimate.ci95 {
        Some(ci) if !estimate.is_constant() && is_too_wide(estimate, ci) => {
            format!("{} to {}", number(estimate.min), number(estimate.max))
        }
        Some(ci) if !estimate.is_constant() => {
            let decimals = match estimate.mean.abs() {
                v if v >= 100.0 => 0,
                v if v >= 10.0 => 1,
                _ => 2,
            };
            // Rounded up, so that a small interval does not become zero.
            let unit = 10f64.powi(-decimals);
            let decimals = decimals.unsigned_abs() as usize;
            format!("{:.decimals$} ± {:.decimals$}", estimate.mean, (ci / unit).ceil() * unit)
        }
        _ => number(estimate.mean),
    }
}

/// True if the interval of values that are never negative would have negative ones.
fn is_too_wide(estimate: &Estimate, ci: f64) -> bool {
    estimate.min >= 0.0 && ci > estimate.mean
}

/// Explains, in the line below a table, the numbers that [`estimate`] has formatted. `seeds` is none if the runs were
/// interrupted.
pub(crate) fn legend(seeds: Option<usize>, estimates: &mut dyn Iterator<Item = &Estimate>) -> String {
    let mut text = match seeds {
        Some(1) => return "One run each; use more --seeds to see the spread.".to_owned(),
        Some(seeds) => format!("Means of {seeds} seeds with 95 % intervals"),
        None => "Means of the finished runs with 95 % intervals".to_owned(),
    };
    let (grouped, single): (Vec<&Estimate>, Vec<&Estimate>) =
        estimates.partition(|estimate| estimate.two_groups.is_some());
    if single.iter().any(|estimate| estimate.is_constant()) {
        text.push_str(" (none if all runs were equal)");
    }
    if single
        .iter()
        .any(|estimate| estimate.ci95.is_some_and(|ci| is_too_wide(estimate, ci) && !estimate.is_constant()))
    {
        text.push_str("; `a to b`: the smallest and the largest, where the runs differ too much for an interval");
    }
    if !grouped.is_empty() {
        text.push_str("; `a or b`: the runs fall into two groups with these means");
    }
    text + "."
}

/// The name and, if there is one, the description of a path.
pub(crate) fn title(name: &str, description: &str) -> String {
    if description.is_empty() {
        visible(name).into_owned()
    } else {
        visible(&format!("{name}: {description}")).into_owned()
    }
}

/// A share in per cent.
pub(crate) fn per_cent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A duration in milliseconds, without decimals from 10 ms.
pub(crate) fn milliseconds(span: Duration) -> String {
    let ms = span.as_secs_f64() * 1e3;
    if ms >= 10.0 { format!("{ms:.0} ms") } else { format!("{ms:.1} ms") }
}

/// A table as comma-separated values. The last column says what made it.
pub(crate) fn csv<'a>(
    titles: impl IntoIterator<Item = &'a str>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let mut text = csv_line(titles.into_iter().chain(["reknit"]));
    for row in rows {
        text.push_str(&csv_line(row.into_iter().chain([reknit_compare::VERSION.to_owned()])));
    }
    text
}

/// A line of comma-separated values; a value that needs them has quotes (RFC 4180).
fn csv_line<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let quoted = |cell: T| {
        let text = cell.as_ref();
        if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    cells.into_iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// Prints `value` as JSON, piece by piece: the text of a large analysis needs more memory than the analysis.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Escaping::default());
    let written = value.serialize(&mut serializer).map_err(io::Error::from);
    unless_closed(written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush())).map(drop)
}

/// JSON with line breaks, and escapes for characters that control a terminal.
#[derive(Default)]
struct Escaping(PrettyFormatter<'static>);

impl Formatter for Escaping {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_control) {
            let (before, after) = rest.split_at(at);
            writer.write_all(before.as_bytes())?;
            let mut after = after.chars();
            let mut units = [0; 2];
            for unit in after.next().unwrap_or_default().encode_utf16(&mut units) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = after.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_control_the_terminal() {
        let name = "a\u{1b}[2Jb\u{202e}c\u{9b}d\ne\u{2066}\u{feff}é日";
        let shown = "a\\u{1b}[2Jb\\u{202e}c\\u{9b}d\\ne\\u{2066}\\u{feff}é日";
        assert_eq!(visible(name), shown);
        assert!(matches!(visible("plain é"), std::borrow::Cow::Borrowed(_)));
        let mut json = Vec::new();
        name.serialize(&mut serde_json::Serializer::with_formatter(&mut json, Escaping::default())).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(!json.contains(is_control), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(0.123_4), "0.12");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(1_234_567.0), "1,234,567");
        assert_eq!(count(3.0), "3");
        assert_eq!(count(3.4), "3.4");
        assert_eq!(per_cent(0.031), "3.1 %");
        assert_eq!(per_cent(0.998), "100 %");
    }

    #[test]
    fn values_with_commas_have_quotes() {
        assert_eq!(csv_line(["a", "b,c", "d\"e"]), "a,\"b,c\",\"d\"\"e\"\n");
    }

    #[test]
    fn intervals_do_not_look_more_certain_than_they_are() {
        let shown = |values: &[f64]| estimate(&Estimate::of(values.iter().copied()));
        assert_eq!(shown(&[9.4, 9.5, 9.6]), "9.50 ± 0.25");
        assert_eq!(shown(&[9.500, 9.501, 9.502]), "9.50 ± 0.01");
        assert_eq!(shown(&[9.5, 9.5, 9.5]), "9.50");
        assert_eq!(shown(&[9.5]), "9.50");
        assert_eq!(shown(&[3.5, 7.5, 3.5, 7.5]), "3.50 or 7.50");
        assert_eq!(shown(&[350.0, 356.0]), "353 ± 39");
        assert_eq!(shown(&[15.6, 73.0]), "15.6 to 73.0");
        assert_eq!(shown(&[0.0, 0.0, 1.0]), "0 to 1.00");
        assert!(
            legend(Some(2), &mut [Estimate::of([15.6, 73.0])].iter())
                .contains("`a to b`: the smallest and the largest")
        );
        let all = [&[3.5, 7.5, 3.5, 7.5][..], &[9.5; 4]].map(|values| Estimate::of(values.iter().copied()));
        assert_eq!(
            legend(Some(4), &mut all.iter()),
            "Means of 4 seeds with 95 % intervals (none if all runs were equal); `a or b`: the runs fall into two groups \
             with these means."
        );
        assert!(legend(Some(1), &mut all.iter()).starts_with("One run each"));
        assert!(legend(None, &mut all.iter()).starts_with("Means of the finished runs with"));
    }
}
