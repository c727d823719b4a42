//! A part: an algorithm with its parameters, which builds the plug-in of each connection; and its description for
//! users.

use std::fmt::{Debug, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;

use reknit_config::KeyError;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::header::Header;
use crate::rule::Rule;

/// The parameters of an algorithm as users see and set them.
pub trait Algorithm: Serialize + DeserializeOwned + JsonSchema {
    /// Its name in variant files.
    const NAME: &'static str;
    /// The file that implements it; the header describes it.
    const SOURCE: &'static str;
    /// A one-line description. Empty: the title of the header, which describes a file with a single part.
    const ABOUT: &'static str = "";
    /// What it cannot be combined with, and what it needs from the peer.
    const RULES: &'static [Rule] = &[];
}

/// The parameters of a plug-in. Each connection builds its own instance from them.
pub trait Part<Seam: ?Sized>: Described<Seam> + Debug + Send + Sync {
    /// A fresh instance.
    fn build(&self) -> Box<Seam>;
}

/// A part, shared by all connections of a variant.
pub type Shared<Seam> = Arc<dyn Part<Seam>>;

/// Creates a part from a table of parameters.
pub type Parser<S> = fn(Table) -> Result<Shared<S>, KeyError>;

/// What lists and files need from a part. Every [`Algorithm`] implements it; a part that only a test uses is declared
/// with `impl Described<dyn Seam> for Mine {}` and has no name.
pub trait Described<S: ?Sized> {
    /// Its algorithm and parameters.
    fn face(&self) -> Option<Face> {
        None
    }

    /// How to create another part of its kind.
    fn parser(&self) -> Option<Parser<S>> {
        None
    }
}

impl<S: ?Sized, T: Algorithm + Part<S> + 'static> Described<S> for T {
    fn face(&self) -> Option<Face> {
        let mut parameters = Table::try_from(self).ok()?;
        let algorithm = match parameters.remove("algorithm") {
            Some(Value::String(name)) => name,
            _ => T::NAME.to_owned(),
        };
        Some(Face { algorithm, parameters, kind: Kind::of::<T>() })
    }

    fn parser(&self) -> Option<Parser<S>> {
        Some(parse::<S, T>)
    }
}

fn parse<S: ?Sized, T: Algorithm + Part<S> + 'static>(mut table: Table) -> Result<Shared<S>, KeyError> {
    if !Kind::of::<T>().is_family() {
        table.remove("algorithm");
    }
    let only_key = table.keys().find(|key| *key != "algorithm").cloned().unwrap_or_default();
    // The members of a family are read from a copy, which loses the path of the key.
    let part: T = reknit_config::read(table).map_err(|error| error.or_about(|| only_key))?;
    Ok(Arc::new(part))
}

/// A part as users see it.
#[derive(Clone, Debug)]
pub struct Face {
    /// The name of its algorithm.
    pub algorithm: String,
    /// All of its parameters.
    pub parameters: Table,
    /// What else is known about it.
    pub kind: Kind,
}

impl Face {
    /// What is known about its algorithm.
    pub fn form(&self) -> Form {
        let known = self.kind.forms().into_iter().find(|form| form.name == self.algorithm);
        known.unwrap_or_else(|| Form { name: self.algorithm.clone(), about: String::new(), parameters: Vec::new() })
    }
}

impl PartialEq for Face {
    /// The same algorithm with the same parameters.
    fn eq(&self, other: &Face) -> bool {
        self.algorithm == other.algorithm && self.parameters == other.parameters
    }
}

/// What all parts of one type have in common: one algorithm, or a family in one file.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The algorithm's name, or the family's.
    pub name: &'static str,
    /// The text of its file.
    pub source: &'static str,
    /// A one-line description, if the title of the file is not one.
    pub about: &'static str,
    /// What it cannot be combined with.
    pub rules: &'static [Rule],
    /// The type, to distinguish two algorithms with the same name.
    pub type_name: &'static str,
    schema: fn() -> Json,
}

impl Kind {
    fn of<T: Algorithm>() -> Kind {
        Kind {
            name: T::NAME,
            source: T::SOURCE,
            about: T::ABOUT,
            rules: T::RULES,
            type_name: std::any::type_name::<T>(),
            schema: || {
                let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
                settings.into_generator().into_root_schema_for::<T>().to_value()
            },
        }
    }

    /// The JSON Schema of its parameters.
    pub fn schema(&self) -> Json {
        (self.schema)()
    }

    /// True if several algorithms share the type; each is a tagged member.
    fn is_family(&self) -> bool {
        members(&(self.schema)()).next().is_some()
    }

    /// Its algorithms.
    pub fn forms(&self) -> Vec<Form> {
        let schema = (self.schema)();
        let family: Vec<Form> = members(&schema)
            .map(|(name, member)| Form {
                name: name.to_owned(),
                about: text(&member["description"]).trim_end_matches('.').to_owned(),
                parameters: parameters(member),
            })
            .collect();
        if !family.is_empty() {
            return family;
        }
        let about = if self.about.is_empty() { Header::parse(self.source).title } else { self.about.to_owned() };
        vec![Form { name: self.name.to_owned(), about, parameters: parameters(&schema) }]
    }
}

/// The members of a family by their tags.
fn members(schema: &Json) -> impl Iterator<Item = (&str, &Json)> {
    let branches = schema["oneOf"].as_array().into_iter().flatten();
    branches.filter_map(|branch| Some((branch["properties"]["algorithm"]["const"].as_str()?, branch)))
}

fn parameters(schema: &Json) -> Vec<Parameter> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(|(name, _)| *name != "algorithm").map(|(name, schema)| Parameter::new(name, schema)).collect()
}

fn text(schema: &Json) -> String {
    schema.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One of the algorithms that may fill a seam.
#[derive(Clone, PartialEq, Debug)]
pub struct Form {
    /// Its name.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
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
