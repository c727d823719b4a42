//! What users read about algorithms and their parameters, from the JSON Schema that serde and schemars derive.

use std::fmt::Write;
use std::ops::RangeInclusive;

use reknit_config::KeyError;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::algorithm::SeamAlgorithm;

/// One of the algorithms that may fill a seam.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// Its name in files.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The JSON Schema of the table of its parameters.
    pub schema: Json,
}

/// The algorithms of a seam.
pub(crate) fn descriptions<C: SeamAlgorithm>() -> Vec<Description> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<C>().to_value();
    let branches = schema["oneOf"].as_array().into_iter().flatten();
    branches
        .filter_map(|branch| {
            let (name, schema) = branch["properties"].as_object()?.iter().next()?;
            Some(Description {
                name: name.clone(),
                about: text(&branch["description"]).trim_end_matches('.').to_owned(),
                parameters: parameters(schema),
                schema: schema.clone(),
            })
        })
        .collect()
}

fn parameters(schema: &Json) -> Vec<Parameter> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(|(name, _)| *name != "algorithm").map(|(name, schema)| Parameter::new(name, schema)).collect()
}

fn text(schema: &Json) -> String {
    schema.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One parameter of an algorithm.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// Its default value; texts that are quantities contain their unit.
    pub default: Option<String>,
    /// The unit of a bare number.
    pub unit: Option<&'static str>,
    /// What it means, with the paper's symbol and section.
    pub meaning: String,
    /// If only certain words are allowed: the words and their meanings.
    pub choices: Vec<(String, String)>,
    /// If it is a number: the smallest and the largest value allowed.
    pub range: Option<RangeInclusive<f64>>,
    /// If it is a table: the parameters in it.
    pub inner: Vec<Parameter>,
}

impl Parameter {
    fn new(name: &str, schema: &Json) -> Parameter {
        let choice = |choice: &Json| Some((choice["const"].as_str()?.to_owned(), text(&choice["description"])));
        let mut choices: Vec<_> = schema["oneOf"].as_array().into_iter().flatten().filter_map(choice).collect();
        let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        choices.extend(plain.map(|word| (word.to_owned(), String::new())));
        Parameter {
            name: name.to_owned(),
            default: schema.get("default").map(|value| match (value, Value::try_from(value)) {
                (Json::String(text), _) => text.clone(),
                (Json::Object(_), Ok(table)) => table.to_string(),
                (other, _) => other.to_string(),
            }),
            unit: (schema["format"] == "segments").then_some("segments"),
            meaning: text(&schema["description"]),
            choices,
            range: schema["minimum"].as_f64().zip(schema["maximum"].as_f64()).map(|(min, max)| min..=max),
            inner: parameters(schema),
        }
    }

    /// Rejects a number outside the range, including NaN, here and in tables below.
    pub(crate) fn check(&self, value: &Value) -> Result<(), KeyError> {
        let number = match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            Value::Table(table) => {
                return check(&self.inner, table).map_err(|error| error.inside(&self.name));
            }
            _ => return Ok(()),
        };
        match &self.range {
            Some(range) if !range.contains(&number) => {
                Err(KeyError::new(&self.name, format!("must be {}", self.allowed())).of_value(value))
            }
            _ => Ok(()),
        }
    }

    /// The range of allowed numbers, with their unit; empty if it is not a number.
    pub fn allowed(&self) -> String {
        match &self.range {
            Some(range) => self.show(&format!("from {} to {}", range.start(), range.end())),
            None => String::new(),
        }
    }

    /// Its meaning and its range; for a table, those of each of its keys.
    pub fn meaning_and_range(&self) -> String {
        let mut text = self.meaning.clone();
        if self.range.is_some() {
            let _ = write!(text, " Allowed: {}.", self.allowed());
        }
        for inner in &self.inner {
            let _ = write!(text, " `{}`: {}", inner.name, inner.meaning_and_range());
        }
        text
    }

    /// `value` as users write it, with its unit.
    pub fn show(&self, value: &str) -> String {
        match self.unit {
            Some(unit) => format!("{value} {}", if value == "1" { unit.trim_end_matches('s') } else { unit }),
            None => value.to_owned(),
        }
    }
}

/// Rejects a number in `table` that is outside the range of its parameter.
pub(crate) fn check(parameters: &[Parameter], table: &Table) -> Result<(), KeyError> {
    parameters
        .iter()
        .filter_map(|parameter| Some((parameter, table.get(&parameter.name)?)))
        .try_for_each(|(parameter, value)| parameter.check(value))
}

/// A value of a table as text, without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
