//! What is known of the fields of results, from the types that hold them: the tables of `docs/json.md`, and the columns of the
//! Python package.

use std::fmt::Write;
use std::path::Path;

use reknit_compare::path_report::PathReport;
use reknit_compare::{
    Comparison, Completions, Cuts, Estimate, GroupSummary, Measured, Packets, Retransmissions, Row, RunSummary, Series,
    schema,
};
use serde_json::Value;

const PAGE: &str = "docs/json.md";
const COLUMNS: &str = "python/reknit/_columns.py";
const BEGIN: &str = "<!-- written by `make docs`: ";
const END: &str = "<!-- end -->";

/// Writes both into the repository at `root`.
///
/// # Errors
/// One line that names the file and what was wrong.
pub fn write(root: &Path) -> Result<(), String> {
    let page = root.join(PAGE);
    let failed = |file: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(&page).map_err(|error| failed(&page, &error))?;
    std::fs::write(&page, self::page(&text)?).map_err(|error| failed(&page, &error))?;
    let columns = root.join(COLUMNS);
    std::fs::write(&columns, self::columns()).map_err(|error| failed(&columns, &error))
}

/// `text` with its tables written anew.
///
/// # Errors
/// If a mark has no end, or names no type.
pub fn page(text: &str) -> Result<String, String> {
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
        "Measured" => schema::of::<Measured>(),
        _ => return None,
    })
}

/// The fields in their order, each with its schema.
fn fields(schema: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| (name, &schema["properties"][name]))
}

fn table(schema: &Value) -> String {
    let mut table = "| field | what |\n|---|---|\n".to_owned();
    for (name, field) in fields(schema) {
        let what = field["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(table, "| `{name}` | {} |", what.trim_end_matches('.').replace('|', "\\|"));
    }
    table
}

/// The Python module with the columns of tables.
pub fn columns() -> String {
    let run = schema::of::<RunSummary>();
    let completions = schema::of::<Completions>();
    let prefixed = |prefix: &str, schema: &Value| -> Vec<(String, &'static str)> {
        scalars(schema).into_iter().map(|(name, kind)| (format!("{prefix}_{name}"), kind)).collect()
    };
    let mut counts = Vec::new();
    for (name, field) in fields(&run) {
        match (name, kind(field)) {
            ("seed" | "run_length_mean_packets", _) => {}
            ("transactions", _) => counts.extend(prefixed("transactions", &completions)),
            (_, Some(kind)) => counts.push((name.to_owned(), kind)),
            ("retransmissions", None) => counts.extend(by_cause(name, &schema::of::<Retransmissions>())),
            ("window_cuts", None) => counts.extend(by_cause(name, &schema::of::<Cuts>())),
            _ => {}
        }
    }
    let mut measured = scalars(&schema::of::<Measured>());
    measured.push(("run_length_mean_packets".to_owned(), "float"));
    let group = schema::of::<GroupSummary>();
    let mut groups = scalars(&group);
    groups.iter_mut().filter(|(name, _)| name == "variant").for_each(|(name, _)| "group_variant".clone_into(name));
    groups.extend(prefixed("transactions", &completions));
    let mut text =
        "\"\"\"Columns of tables and their types. Written by `make docs` from the types of the results.\"\"\"\n\n\
                    from __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    \
                    from reknit._frames import Schema\n"
            .to_owned();
    for (name, columns) in [
        ("COMPLETIONS", scalars(&completions)),
        ("COUNTS", counts),
        ("MEASURED", measured),
        ("GROUP", groups),
        ("SERIES", of_columns(&schema::of::<Series>())),
        ("PACKETS", of_columns(&schema::of::<Packets>())),
        ("PATH", scalars(&schema::of::<PathReport>())),
    ] {
        let _ = write!(text, "\n{name}: Schema = {{\n");
        for (column, kind) in columns {
            let _ = writeln!(text, "    \"{column}\": \"{kind}\",");
        }
        text.push_str("}\n");
    }
    text
}

/// The fields that are single values.
fn scalars(schema: &Value) -> Vec<(String, &'static str)> {
    fields(schema).filter_map(|(name, field)| Some((name.to_owned(), kind(field)?))).collect()
}

/// A total, and what is split by cause.
fn by_cause(name: &str, schema: &Value) -> Vec<(String, &'static str)> {
    let column = |cause: String| if cause == "total" { name.to_owned() } else { format!("{name}_{cause}") };
    scalars(schema).into_iter().map(|(cause, kind)| (column(cause), kind)).collect()
}

/// Fields that are columns already: lists of single values, or of lists of text.
fn of_columns(schema: &Value) -> Vec<(String, &'static str)> {
    let one = |(name, field): (&str, &Value)| {
        let items = &field["items"];
        Some((name.to_owned(), if items["type"] == "array" { "list" } else { kind(items)? }))
    };
    fields(schema).filter_map(one).collect()
}

/// The type of a single value.
fn kind(field: &Value) -> Option<&'static str> {
    let is = |wanted: &str| match &field["type"] {
        Value::String(name) => name == wanted,
        Value::Array(names) => names.iter().any(|name| name == wanted),
        _ => false,
    };
    [("integer", "int"), ("number", "float"), ("string", "str"), ("boolean", "bool")]
        .into_iter()
        .find_map(|(json, kind)| is(json).then_some(kind))
}
