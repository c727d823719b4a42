//! The columns of tables, derived from the types of the results: CSV and the tables of the Python package have the same
//! columns.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::schema::{self, fields};
use crate::{GroupSummary, OverTime, RunSummary};

/// Fields that only measured runs have.
const OF_MEASURED_RUNS: [&str; 2] = ["measured", "run_length_mean_packets"];

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Numbers.
    Float,
    /// Text.
    Text,
    /// True or false.
    Bool,
    /// Lists of text.
    List,
}

/// One column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub kind: Kind,
    /// The position of its value in the JSON document of a row (RFC 6901).
    pointer: String,
}

/// The counts of a run.
pub fn counts() -> Vec<Column> {
    let run = schema::of::<RunSummary>();
    let is_count = |name: &str| name != "seed" && !OF_MEASURED_RUNS.contains(&name);
    columns(&run, fields(&run).filter(|(name, _)| is_count(name)))
}

/// The additional columns of a measured run.
pub fn measured() -> Vec<Column> {
    let run = schema::of::<RunSummary>();
    columns(&run, fields(&run).filter(|(name, _)| OF_MEASURED_RUNS.contains(name)))
}

/// A column for each number that algorithms show in any of `runs`, and for measured runs also for its values over time.
pub fn shown<'a>(runs: impl IntoIterator<Item = &'a RunSummary>) -> Vec<Column> {
    let (mut at_end, mut over_time) = (BTreeSet::new(), BTreeSet::new());
    for run in runs {
        at_end.extend(run.shown.keys());
        over_time.extend(run.measured.iter().flat_map(|measured| measured.shown.keys()));
    }
    let of_end = at_end.into_iter().map(|name| Column {
        name: name.clone(),
        kind: Kind::Float,
        pointer: format!("/shown/{name}"),
    });
    let statistics = of_rows::<OverTime>();
    let of_time = over_time.into_iter().flat_map(|name| {
        statistics.iter().map(move |statistic| Column {
            name: joined(name, &statistic.name),
            pointer: format!("/measured/shown/{name}{}", statistic.pointer),
            kind: statistic.kind,
        })
    });
    of_end.chain(of_time).collect()
}

/// The counts of a set of flows in a run.
pub fn groups() -> Vec<Column> {
    let group = schema::of::<GroupSummary>();
    let mut columns = columns(&group, fields(&group).filter(|(name, _)| !OF_MEASURED_RUNS.contains(name)));
    // `variant` is the compared one.
    for column in columns.iter_mut().filter(|column| column.name == "variant") {
        "group_variant".clone_into(&mut column.name);
    }
    columns
}

/// The columns of a table whose rows are of this type.
pub fn of_rows<T: JsonSchema>() -> Vec<Column> {
    let root = schema::of::<T>();
    columns(&root, fields(&root))
}

/// The columns of a table whose columns are the fields of this type.
pub fn of_columns<T: JsonSchema>() -> Vec<Column> {
    let root = schema::of::<T>();
    let items: Vec<(&str, &Value)> = fields(&root).map(|(name, field)| (name, &field["items"])).collect();
    columns(&root, items.into_iter())
}

/// The cells of a row in these columns, empty where there is no value.
pub fn cells(columns: &[Column], row: &impl Serialize) -> Vec<String> {
    let row = serde_json::to_value(row).unwrap_or_default(); // a result can always be written
    let cell = |column: &Column| match row.pointer(&column.pointer) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    columns.iter().map(cell).collect()
}

/// The columns of some fields: a column for a single value, and the columns of the fields within a structured one.
fn columns<'a>(root: &Value, fields: impl Iterator<Item = (&'a str, &'a Value)>) -> Vec<Column> {
    let of_field = |(name, field): (&str, &Value)| match (kind(field), schema::definition(root, field)) {
        (Some(kind), _) => vec![Column { name: name.to_owned(), kind, pointer: format!("/{name}") }],
        (None, Some(inner)) => {
            let below = |column: Column| Column {
                name: joined(name, &column.name),
                pointer: format!("/{name}{}", column.pointer),
                ..column
            };
            columns(root, self::fields(inner)).into_iter().map(below).collect()
        }
        (None, None) => Vec::new(),
    };
    fields.flat_map(of_field).collect()
}

/// The name of a field within a field.
fn joined(outer: &str, inner: &str) -> String {
    match (outer, inner) {
        ("measured", _) => inner.to_owned(),
        (_, "total") => outer.to_owned(),
        _ => format!("{outer}_{inner}"),
    }
}

/// The type of a field with a single value, or with a list of texts.
fn kind(field: &Value) -> Option<Kind> {
    let is = |field: &Value, wanted: &str| match &field["type"] {
        Value::String(name) => name == wanted,
        Value::Array(names) => names.iter().any(|name| name == wanted),
        _ => false,
    };
    if is(field, "array") {
        return is(&field["items"], "string").then_some(Kind::List);
    }
    [("integer", Kind::Int), ("number", Kind::Float), ("string", Kind::Text), ("boolean", Kind::Bool)]
        .into_iter()
        .find_map(|(name, kind)| is(field, name).then_some(kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_stand_where_the_columns_say() {
        let counts = counts();
        let row = json!({
            "seed": 3, "goodput_mbit_s": 1.5, "window_cuts": { "total": 4, "ecn": 1 }, "transactions": null,
        });
        let cells = cells(&counts, &row);
        let of = |name: &str| {
            let position = counts.iter().position(|column| column.name == name).unwrap();
            (counts[position].kind, cells[position].as_str())
        };
        assert_eq!(of("goodput_mbit_s"), (Kind::Float, "1.5"));
        assert_eq!((of("window_cuts"), of("window_cuts_ecn")), ((Kind::Int, "4"), (Kind::Int, "1")));
        assert_eq!(of("transactions_p50_ms"), (Kind::Float, ""));
        assert!(counts.iter().all(|column| column.name != "seed" && column.name != "groups"));
    }

    #[test]
    fn a_number_that_any_run_shows_is_a_column() {
        let run = |shown: &[(&str, f64)], over_time: &[(&str, OverTime)]| {
            let plan = reknit_sim::Plan::bulk(1);
            let nothing = reknit_sim::RunResult {
                flows: Vec::new(),
                transactions: Vec::new(),
                connections: 0,
                packets: 0,
                delayed: 0,
                run_lengths: reknit_path::RunLengths::default(),
                events: 0,
            };
            let mut run = RunSummary::new(1, &plan, &nothing);
            run.shown = shown.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let mut measured = crate::RunMeasurements::of(&reknit_sim::Measures::default());
            measured.shown = over_time.iter().map(|(name, values)| ((*name).to_owned(), *values)).collect();
            run.measured = Some(measured);
            run
        };
        let runs = [
            run(&[], &[]),
            run(&[("dup_thresh.b", 2.0)], &[("dup_thresh.b", OverTime { mean: 1.5, std: 0.5 })]),
            run(&[("dup_thresh.a", 3.0)], &[]),
        ];
        let columns = shown(&runs);
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["dup_thresh.a", "dup_thresh.b", "dup_thresh.b_mean", "dup_thresh.b_std"]);
        let rows = runs.map(|run| cells(&columns, &run).join(","));
        assert_eq!(rows, [",,,", ",2.0,1.5,0.5", "3.0,,,"]);
    }

    #[test]
    fn measurements_and_groups_have_columns_of_their_own() {
        let names = |columns: Vec<Column>| columns.into_iter().map(|column| column.name).collect::<Vec<_>>();
        let (counts, measured, groups) = (names(counts()), names(measured()), names(groups()));
        assert!(measured.contains(&"rtt_p99_ms".to_owned()) && !counts.contains(&"rtt_p99_ms".to_owned()));
        assert_eq!(groups[..3], ["group", "group_variant", "flows"]);
        assert!(!groups.iter().any(|name| measured.contains(name)));
    }
}
