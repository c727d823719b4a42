//! The text of the page. It refers to nothing outside, and without scripts it has everything but the plots.

use std::collections::BTreeMap;
use std::fmt::Write;

use reknit_trace::{Analysis, DirectionReport, N};

use super::sketch::Drawing;
use crate::Failure;
use crate::analyze::show;
use crate::output::{number, per_cent, whole};
use crate::table::Column;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Rows of the table of connections.
const MAX_ROWS: usize = 200;
/// Displacements that are listed one by one.
const MAX_DISPLACEMENTS: usize = 24;

pub(super) fn page(
    analysis: &Analysis,
    drawn: &[Box<DirectionReport>],
    drawings: &[Drawing],
) -> Result<String, Failure> {
    let failed = |error: serde_json::Error| Failure::Failed(error.to_string());
    let mut body = format!("<h1>{}</h1>\n", escaped(&show::title(analysis)));
    match drawn.first() {
        Some(worst) => body.push_str(&answer(worst)),
        None => body.push_str("<p>No connection carried data.</p>\n"),
    }
    for warning in &analysis.warnings {
        let _ = writeln!(body, "<p class=\"warning\">Warning: {}</p>", escaped(warning));
    }
    if !drawn.is_empty() {
        body.push_str(&plots(drawn));
        body.push_str(&connections(analysis));
        body.extend(drawn.iter().map(|direction| details(direction)));
    }
    // `<` would end the script.
    let data = serde_json::to_string(drawings).map_err(failed)?.replace('<', "\\u003c");
    let title = escaped(&analysis.file);
    let version = escaped(analysis.reknit);
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}: reknit analyze</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{CSS}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         <footer>reknit {version}</footer>\n\
         <script type=\"application/json\" id=\"data\">{data}</script>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    ))
}

/// The five lines, and further advice.
fn answer(direction: &DirectionReport) -> String {
    let mut text = "<dl class=\"answer\">\n".to_owned();
    for (name, line) in show::first_screen(direction) {
        let _ = writeln!(text, "<dt>{name}</dt><dd>{}</dd>", prose(&line));
    }
    text.push_str("</dl>\n");
    if direction.advice.len() > 1 {
        text.push_str("<ul>\n");
        for more in direction.advice.iter().skip(1) {
            let _ = writeln!(text, "<li>Also: {}</li>", prose(&more.to_string()));
        }
        text.push_str("</ul>\n");
    }
    text
}

/// The frame of the plots; the script fills it.
fn plots(drawn: &[Box<DirectionReport>]) -> String {
    let mut text =
        "<section id=\"plots\" hidden>\n<h2>Plots</h2>\n<p><label>Connection: <select id=\"which\">\n".to_owned();
    for (i, direction) in drawn.iter().enumerate() {
        let _ = writeln!(text, "<option value=\"{i}\">{}</option>", escaped(&name(direction)));
    }
    text.push_str(
        "</select></label></p>\n<p class=\"buttons\"><button id=\"in\">Zoom in</button> <button id=\"out\">Zoom out</button> \
         <button id=\"left\" aria-label=\"Earlier\">←</button> <button id=\"right\" aria-label=\"Later\">→</button> \
         <button id=\"all\">Show all</button></p>\n\
         <p class=\"hint\">Zoom: two fingers; or click the plot, then mouse wheel, or + and −. Move: drag, or arrow keys. Show all: 0. Point at or \
         tap a packet to see its number in Wireshark.</p>\n<div id=\"legend\"></div>\n",
    );
    for (id, label) in [
        ("sequence", "Sequence numbers over time"),
        ("throughput", "Throughput over time, Mbit/s of acknowledged data"),
        ("flight", "Data in flight and window over time"),
        ("lateness", "Lateness of reordered packets over time"),
    ] {
        let _ = writeln!(
            text,
            "<figure><figcaption>{label}</figcaption><canvas id=\"{id}\" tabindex=\"0\" role=\"img\" aria-label=\"{label}. \
             The counts are in the tables below.\"></canvas></figure>"
        );
    }
    text.push_str("<p id=\"note\" role=\"status\"></p>\n<p id=\"thinned\" class=\"hint\"></p>\n</section>\n");
    text
}

fn name(direction: &DirectionReport) -> String {
    format!("stream {}, {} to {}", direction.stream, direction.from, direction.to)
}

/// The table of the terminal, with more rows.
fn connections(analysis: &Analysis) -> String {
    let left_out = analysis.directions.len().saturating_sub(MAX_ROWS);
    let more = if left_out > 0 { format!("<p>{left_out} more: <code>--json</code>.</p>\n") } else { String::new() };
    format!("<h2>Connections, the worst first</h2>\n{}{more}", table(&show::columns(&analysis.directions, MAX_ROWS)))
}

fn table(columns: &[Column]) -> String {
    let mut text = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>".to_owned();
    for column in columns {
        let _ = write!(text, "<th scope=\"col\"{}>{}</th>", class(column), escaped(column.title()));
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for row in 0..columns.first().map_or(0, |column| column.cells.len()) {
        text.push_str("<tr>");
        for column in columns {
            let _ = write!(text, "<td{}>{}</td>", class(column), escaped(&column.cells[row]));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

fn class(column: &Column) -> &'static str {
    match (column.is_text(), column.is_minor()) {
        (true, true) => " class=\"text minor\"",
        (true, false) => " class=\"text\"",
        (false, true) => " class=\"minor\"",
        (false, false) => "",
    }
}

/// All numbers of one direction.
fn details(direction: &DirectionReport) -> String {
    let mut text = format!("<details><summary>{}</summary>\n{}", escaped(&name(direction)), answer(direction));
    let tables = [
        ("Verdicts", verdicts(direction)),
        ("Reordering (RFC 4737)", reordering(direction)),
        ("Reordering (RFC 5236)", density(direction)),
    ];
    for (title, rows) in tables {
        let _ = writeln!(text, "<h3>{title}</h3>\n<div class=\"scroll\"><table><tbody>");
        for (what, value) in rows {
            let _ = writeln!(text, "<tr><th scope=\"row\">{}</th><td>{}</td></tr>", escaped(&what), escaped(&value));
        }
        text.push_str("</tbody></table></div>\n");
    }
    text + "</details>\n"
}

type Rows = Vec<(String, String)>;

fn verdicts(direction: &DirectionReport) -> Rows {
    let v = &direction.verdicts;
    let mut rows: Rows = [
        ("lost", v.lost),
        ("late", v.reordered),
        ("duplicated by the network", v.duplicated),
        ("retransmitted spuriously", v.spurious),
        ("of these, after duplicate ACKs or SACK blocks", v.spurious_fast_retransmit),
        ("of these, after a timeout", v.spurious_timeout),
        ("of these, as a probe", v.spurious_probe),
        ("arrived, but not kept by the receiver", v.discarded),
        ("cannot tell", v.cannot_tell),
    ]
    .map(|(what, packets)| (what.to_owned(), whole(packets)))
    .to_vec();
    let reasons = v.reasons.iter().map(|(reason, count)| (format!("because {}", reason.text()), whole(*count)));
    rows.extend(reasons);
    rows.extend(direction.incidents.iter().map(|incident| (incident.text(), whole(incident.times))));
    rows
}

fn reordering(direction: &DirectionReport) -> Rows {
    let r = &direction.reordering;
    let three = |values: [Option<f64>; 3]| {
        let values = values.map(|value| value.map_or_else(|| "-".to_owned(), number));
        values.join(" / ")
    };
    let extents = [r.extent_p50, r.extent_p99, r.extent_max].map(|extent| extent.map(|extent| extent as f64));
    let mut rows = vec![
        ("packets that arrived".to_owned(), whole(r.arrived)),
        ("reordered".to_owned(), per_cent(r.ratio)),
        ("extent, packets: median / 99 % / largest".to_owned(), three(extents)),
        ("late, ms: median / 99 % / largest".to_owned(), three([r.late_p50_ms, r.late_p99_ms, r.late_max_ms])),
        ("runs without reordering: number".to_owned(), whole(r.free_runs)),
        ("mean length, packets".to_owned(), three([r.free_run_mean, None, None]).replace(" / -", "")),
    ];
    let degrees = N.iter().zip(r.n_reordered).map(|(n, packets)| (format!("{n}-reordered"), whole(packets)));
    rows.extend(degrees);
    rows
}

fn density(direction: &DirectionReport) -> Rows {
    let d = &direction.density;
    let maybe = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let mut rows = vec![
        ("displaced".to_owned(), per_cent(d.displaced)),
        ("mean displacement of late packets".to_owned(), maybe(d.late_mean)),
        ("buffer that restores the order, packets: mean".to_owned(), maybe(d.buffer_mean)),
        ("99 %".to_owned(), maybe(d.buffer_p99.map(|packets| packets as f64))),
    ];
    rows.extend(displacements(&d.displacements));
    rows
}

/// The share of packets by their displacement; if there are many, in intervals that double in width.
fn displacements(counts: &[(i64, u64)]) -> Rows {
    let all: u64 = counts.iter().map(|(_, packets)| packets).sum();
    let interval = |by: i64| {
        let size = by.unsigned_abs();
        if counts.len() <= MAX_DISPLACEMENTS || size <= 2 {
            return (by, by);
        }
        let upper = size.next_power_of_two().cast_signed();
        let (near, far) = (upper / 2 + 1, upper);
        if by < 0 { (-far, -near) } else { (near, far) }
    };
    let mut grouped: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    for (by, packets) in counts {
        *grouped.entry(interval(*by)).or_default() += packets;
    }
    let name = |(from, to): (i64, i64)| if from == to { from.to_string() } else { format!("{from} to {to}") };
    let row = |(interval, packets)| {
        (format!("displacement {}", name(interval)), per_cent(packets as f64 / all.max(1) as f64))
    };
    grouped.into_iter().map(row).collect()
}

/// `text` as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text as HTML, in which commands are between back quotes.
fn prose(text: &str) -> String {
    let escaped = escaped(text);
    let parts = escaped.split('`').enumerate();
    parts.map(|(i, part)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_set_as_code() {
        assert_eq!(prose("see `nstat -a` & more"), "see <code>nstat -a</code> &amp; more");
    }

    #[test]
    fn many_displacements_are_grouped() {
        assert_eq!(
            displacements(&[(-1, 1), (0, 3)]),
            [("displacement -1".to_owned(), "25 %".to_owned()), ("displacement 0".to_owned(), "75 %".to_owned())]
        );
        let many: Vec<(i64, u64)> = (-20..20).map(|by| (by, 1)).collect();
        let names: Vec<String> =
            displacements(&many).into_iter().map(|(name, _)| name.replace("displacement ", "")).collect();
        let all = ["-32 to -17", "-16 to -9", "-8 to -5", "-4 to -3", "-2", "-1", "0", "1", "2", "3 to 4", "5 to 8"];
        assert_eq!(names, [&all[..], &["9 to 16", "17 to 32"]].concat());
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped("<b> & \"c\""), "&lt;b&gt; &amp; &quot;c&quot;");
    }
}
