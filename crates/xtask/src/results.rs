//! Generates the tables of `docs/reference/json.md` and the columns of the Python package from the types of the results.

use std::fmt::Write;

use reknit_compare::catalogue::Entry;
use reknit_compare::columns::{self, Kind};
use reknit_compare::path_report::{Listed, PathReport};
use reknit_compare::schema::{self, fields};
use reknit_compare::{
    Best, Comparison, Completions, Count, Cuts, Estimate, GroupSummary, Packets, Replay, ReplayCheck, ReplayedPath,
    Retransmissions, Row, RunMeasurements, RunSummary, Series,
};
use reknit_trace::qlog::{QlogAnalysis, QlogDirection, QlogFile, ReductionReport, ThresholdReport, WindowReport};
use reknit_trace::{
    Analysis, BothEnds, CaptureReport, ClockReport, Cost, DelayReport, DensityReport, DirectionReport, FlowReport,
    IncidentReport, Remedy, ReorderingReport, Replayed, Verdicts,
};
use serde_json::Value;

const PAGE: &str = "docs/reference/json.md";
const BEGIN: &str = "<!-- written by `make docs`: ";
const END: &str = "<!-- end -->";

/// The text of the page, `text`, with updated tables.
///
/// # Errors
/// If a mark has no end, or refers to an unknown type.
pub(crate) fn page(text: &str) -> Result<String, String> {
    let mut page = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->").ok_or_else(|| format!("{PAGE}: a mark without `-->`"))?;
        let (_, after) = after.split_once(END).ok_or_else(|| format!("{PAGE}: no end of {name}"))?;
        let schema = schema_of(name).ok_or_else(|| format!("{PAGE}: `{name}` is no result"))?;
        let _ = write!(page, "{before}{BEGIN}{name} -->\n{}{END}", table(&schema));
        rest = after;
    }
    Ok(page + rest)
}

fn schema_of(name: &str) -> Option<Value> {
    Some(match name {
        "Comparison" => schema::of::<Comparison>(),
        "Row" => schema::of::<Row>(),
        "Estimate" => schema::of::<Estimate>(),
        "RunSummary" => schema::of::<RunSummary>(),
        "Retransmissions" => schema::of::<Retransmissions>(),
        "Cuts" => schema::of::<Cuts>(),
        "GroupSummary" => schema::of::<GroupSummary>(),
        "Completions" => schema::of::<Completions>(),
        "RunMeasurements" => schema::of::<RunMeasurements>(),
        "Analysis" => schema::of::<Analysis>(),
        "DirectionReport" => schema::of::<DirectionReport>(),
        "Verdicts" => schema::of::<Verdicts>(),
        "IncidentReport" => schema::of::<IncidentReport>(),
        "ReorderingReport" => schema::of::<ReorderingReport>(),
        "DensityReport" => schema::of::<DensityReport>(),
        "Cost" => schema::of::<Cost>(),
        "Replayed" => schema::of::<Replayed>(),
        "Remedy" => schema::of::<Remedy>(),
        "BothEnds" => schema::of::<BothEnds>(),
        "CaptureReport" => schema::of::<CaptureReport>(),
        "ClockReport" => schema::of::<ClockReport>(),
        "FlowReport" => schema::of::<FlowReport>(),
        "DelayReport" => schema::of::<DelayReport>(),
        "QlogAnalysis" => schema::of::<QlogAnalysis>(),
        "QlogFile" => schema::of::<QlogFile>(),
        "QlogDirection" => schema::of::<QlogDirection>(),
        "ThresholdReport" => schema::of::<ThresholdReport>(),
        "WindowReport" => schema::of::<WindowReport>(),
        "ReductionReport" => schema::of::<ReductionReport>(),
        "Replay" => schema::of::<Replay>(),
        "ReplayCheck" => schema::of::<ReplayCheck>(),
        "Count" => schema::of::<Count>(),
        "Best" => schema::of::<Best>(),
        "ReplayedPath" => schema::of::<ReplayedPath>(),
        _ => return None,
    })
}

fn table(schema: &Value) -> String {
    let mut table = "| field | what |\n|---|---|\n".to_owned();
    for (name, field) in fields(schema) {
        let what = field["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(table, "| `{name}` | {} |", what.trim_end_matches('.').replace('|', "\\|"));
    }
    table
}

/// The Python module with the columns of the tables.
pub(crate) fn columns() -> String {
    let mut text =
        "\"\"\"Columns of tables and their types. Written by `make docs` from the types of the results.\"\"\"\n\n\
                    from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    \
                    from reknit._frames import Schema\n"
            .to_owned();
    for (name, columns) in [
        ("COMPLETIONS", columns::of_rows::<Completions>()),
        ("COUNTS", columns::counts()),
        ("MEASURED", columns::measured()),
        ("GROUP", columns::groups()),
        ("SERIES", columns::of_columns::<Series>()),
        ("PACKETS", columns::of_columns::<Packets>()),
        ("PATH", columns::of_rows::<PathReport>()),
        ("PATHS", columns::of_rows::<Listed>()),
        ("VARIANTS", columns::of_rows::<Entry>()),
    ] {
        let _ = write!(text, "\n{name}: Schema = {{\n");
        for column in columns {
            let _ = writeln!(text, "    \"{}\": \"{}\",", column.name, kind(column.kind));
        }
        text.push_str("}\n");
    }
    text
}

/// The name of a type in the Python package.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "int",
        Kind::Float => "float",
        Kind::Text => "str",
        Kind::Bool => "bool",
        Kind::List => "list",
    }
}
