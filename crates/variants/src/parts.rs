//! What people see of a part: what its algorithm is called, its parameters, and how a table of them becomes a part.
//!
//! The parts that a file may name are those of the registered variants: an algorithm is known as soon as a variant uses
//! it, without a list of its own.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use reknit_config::KeyError;
use schemars::generate::SchemaSettings;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::composition::{Algorithm, Composition, Part, Shared};
use crate::header::Header;
use crate::rules::Rule;

/// A question that parts answer. In a variant file each is a table of that name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Seam {
    /// Which segments are lost.
    LossDetector,
    /// How many duplicates mean loss.
    DupThresh,
    /// How much longer to wait.
    Postponements,
    /// Whether the last reduction was spurious.
    SpuriousDetectors,
    /// The window after such news.
    SpuriousResponse,
    /// The window after a loss.
    LossResponse,
    /// How fast recovery spends the window.
    FastRecovery,
    /// What to send after a timeout.
    TimeoutRecovery,
    /// The retransmission timeout.
    RtoEstimator,
    /// New data during disorder.
    LimitedTransmit,
    /// Growth and reduction of the window.
    CongestionControl,
    /// When the receiver acknowledges.
    AckPolicy,
    /// What travels beyond the standard options.
    HeaderSupport,
}

impl Seam {
    /// All of them, the sender's first.
    pub const ALL: [Seam; 13] = [
        Seam::LossDetector,
        Seam::DupThresh,
        Seam::Postponements,
        Seam::SpuriousDetectors,
        Seam::SpuriousResponse,
        Seam::LossResponse,
        Seam::FastRecovery,
        Seam::TimeoutRecovery,
        Seam::RtoEstimator,
        Seam::LimitedTransmit,
        Seam::CongestionControl,
        Seam::AckPolicy,
        Seam::HeaderSupport,
    ];

    /// Its name in files.
    pub const fn key(self) -> &'static str {
        match self {
            Seam::LossDetector => "loss_detector",
            Seam::DupThresh => "dup_thresh",
            Seam::Postponements => "postponements",
            Seam::SpuriousDetectors => "spurious_detectors",
            Seam::SpuriousResponse => "spurious_response",
            Seam::LossResponse => "loss_response",
            Seam::FastRecovery => "fast_recovery",
            Seam::TimeoutRecovery => "timeout_recovery",
            Seam::RtoEstimator => "rto_estimator",
            Seam::LimitedTransmit => "limited_transmit",
            Seam::CongestionControl => "congestion_control",
            Seam::AckPolicy => "ack_policy",
            Seam::HeaderSupport => "header_support",
        }
    }

    /// What it decides.
    pub const fn question(self) -> &'static str {
        match self {
            Seam::LossDetector => "which segments are lost",
            Seam::DupThresh => "how many duplicates mean loss",
            Seam::Postponements => "how much longer to wait",
            Seam::SpuriousDetectors => "whether the last reduction was spurious",
            Seam::SpuriousResponse => "the window after such news",
            Seam::LossResponse => "the window after a loss",
            Seam::FastRecovery => "how fast recovery spends the window",
            Seam::TimeoutRecovery => "what to send after a timeout",
            Seam::RtoEstimator => "the retransmission timeout",
            Seam::LimitedTransmit => "new data during disorder",
            Seam::CongestionControl => "growth and reduction of the window",
            Seam::AckPolicy => "when the receiver acknowledges",
            Seam::HeaderSupport => "what travels beyond the standard options",
        }
    }

    /// True if any number of parts may fill it, none included.
    pub const fn takes_many(self) -> bool {
        matches!(self, Seam::Postponements | Seam::SpuriousDetectors | Seam::HeaderSupport)
    }
}

impl fmt::Display for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// Makes a part of a table of parameters.
pub type Parser<S> = fn(Table) -> Result<Shared<S>, KeyError>;

/// What lists and files need of a part. Every [`Algorithm`] has it; a part of a test's own says
/// `impl Described<dyn Seam> for Mine {}` and stays without a name.
pub trait Described<S: ?Sized> {
    /// Its algorithm and parameters.
    fn face(&self) -> Option<Face> {
        None
    }

    /// How others of its kind are made.
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
    // The members of a family are read from a copy, which loses the path.
    let part: T = reknit_config::read(table).map_err(|error| error.or_about(|| only_key))?;
    Ok(Arc::new(part))
}

/// A part as people see it.
#[derive(Clone, Debug)]
pub struct Face {
    /// What its algorithm is called.
    pub algorithm: String,
    /// Its parameters, all of them.
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

/// What parts of one type have in common: one algorithm, or a family that shares a file.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The algorithm's name, or the family's.
    pub name: &'static str,
    /// The text of its file.
    pub source: &'static str,
    /// What does not go with it.
    pub rules: &'static [Rule],
    /// The type, to tell two algorithms apart that took the same name.
    pub type_name: &'static str,
    schema: fn() -> Json,
}

impl Kind {
    fn of<T: Algorithm>() -> Kind {
        Kind {
            name: T::NAME,
            source: T::SOURCE,
            rules: T::RULES,
            type_name: std::any::type_name::<T>(),
            schema: || {
                let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
                settings.into_generator().into_root_schema_for::<T>().to_value()
            },
        }
    }

    /// True if several algorithms share the type; each is a member with a tag.
    fn is_family(&self) -> bool {
        members(&(self.schema)()).next().is_some()
    }

    /// Its algorithms.
    pub fn forms(&self) -> Vec<Form> {
        let schema = (self.schema)();
        let family: Vec<Form> = members(&schema)
            .map(|(name, member)| Form {
                name: name.to_owned(),
                about: text(&member["description"]),
                parameters: parameters(member),
            })
            .collect();
        if !family.is_empty() {
            return family;
        }
        let about = Header::parse(self.source).title;
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

/// One algorithm that may fill a seam.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form {
    /// What it is called.
    pub name: String,
    /// What it is, in a line.
    pub about: String,
    /// What can be set.
    pub parameters: Vec<Parameter>,
}

/// One parameter of an algorithm.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its key.
    pub name: String,
    /// What it is without being set; texts that are quantities contain their unit.
    pub default: Option<String>,
    /// The unit of a bare number.
    pub unit: Option<&'static str>,
    /// What it means, with the paper's symbol and section.
    pub meaning: String,
    /// If only certain words are allowed: these, and what each means.
    pub choices: Vec<(String, String)>,
}

impl Parameter {
    fn new(name: &str, schema: &Json) -> Parameter {
        let choice = |choice: &Json| Some((choice["const"].as_str()?.to_owned(), text(&choice["description"])));
        let mut choices: Vec<_> = schema["oneOf"].as_array().into_iter().flatten().filter_map(choice).collect();
        let plain = schema["enum"].as_array().into_iter().flatten().filter_map(Json::as_str);
        choices.extend(plain.map(|word| (word.to_owned(), String::new())));
        Parameter {
            name: name.to_owned(),
            default: schema.get("default").map(|value| match value {
                Json::String(text) => text.clone(),
                other => other.to_string(),
            }),
            unit: (schema["format"] == "segments").then_some("segments"),
            meaning: text(&schema["description"]),
            choices,
        }
    }

    /// `value` as people write it, with its unit.
    pub fn show(&self, value: &str) -> String {
        match self.unit {
            Some(unit) => format!("{value} {unit}"),
            None => value.to_owned(),
        }
    }
}

/// A value of a table as text, without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What fills one seam of a composition.
pub trait Slot: Any {
    /// The parts that have a name.
    fn faces(&self) -> Vec<Face>;

    /// Replaces what is there by what `value` describes; `library` holds the parts that may be named.
    ///
    /// # Errors
    /// Names the key and what is allowed.
    fn fill(&mut self, seam: Seam, value: Value, library: &Library) -> Result<(), KeyError>;
}

impl<S: ?Sized + 'static> Slot for Shared<S> {
    fn faces(&self) -> Vec<Face> {
        self.face().into_iter().collect()
    }

    fn fill(&mut self, seam: Seam, value: Value, library: &Library) -> Result<(), KeyError> {
        let refuse = |message: String| KeyError::new(seam.key(), message);
        let table = match value {
            Value::Table(table) => table,
            Value::Array(_) => {
                return Err(refuse(format!("exactly one algorithm fills this seam; write one table [{seam}]")));
            }
            other => return Err(refuse(format!("expected a table [{seam}], not {}", other.type_str()))),
        };
        let known = library.known(seam, |slot: &Shared<S>| vec![slot.clone()]);
        *self = read(table, std::slice::from_ref(self), &known).map_err(|error| error.inside(seam.key()))?;
        Ok(())
    }
}

impl<S: ?Sized + 'static> Slot for Vec<Shared<S>> {
    fn faces(&self) -> Vec<Face> {
        self.iter().filter_map(|part| part.face()).collect()
    }

    fn fill(&mut self, seam: Seam, value: Value, library: &Library) -> Result<(), KeyError> {
        let Value::Array(values) = value else {
            return Err(KeyError::new(seam.key(), format!("write each algorithm as a table [[{seam}]]")));
        };
        let known = library.known(seam, Vec::clone);
        let read_one = |(i, value)| {
            let outer = format!("{seam}[{i}]");
            match value {
                Value::Table(table) => read(table, self, &known).map_err(|error| error.inside(&outer)),
                _ => Err(KeyError::new(outer, format!("write each algorithm as a table [[{seam}]]"))),
            }
        };
        *self = values.into_iter().enumerate().map(read_one).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// The parts of all registered variants.
#[derive(Debug)]
pub struct Library(Vec<Composition>);

impl Library {
    /// What there is.
    pub fn new() -> Library {
        Library(crate::registry::VARIANTS.iter().map(|variant| (variant.compose)()).collect())
    }

    /// Each kind of part that fills `seam` somewhere, once.
    fn known<T: Slot, S: ?Sized>(&self, seam: Seam, parts: impl Fn(&T) -> Vec<Shared<S>>) -> Vec<(Kind, Parser<S>)> {
        let mut known: Vec<(Kind, Parser<S>)> = Vec::new();
        for composition in &self.0 {
            let slot: &dyn Any = composition.slots()[seam as usize].1;
            for part in slot.downcast_ref().map(&parts).unwrap_or_default() {
                if let (Some(face), Some(parser)) = (part.face(), part.parser())
                    && known.iter().all(|(kind, _)| kind.type_name != face.kind.type_name)
                {
                    known.push((face.kind, parser));
                }
            }
        }
        known
    }

    /// Each kind of part that fills `seam` somewhere, once.
    pub fn kinds(&self, seam: Seam) -> Vec<Kind> {
        let mut kinds: Vec<Kind> = Vec::new();
        for face in self.0.iter().flat_map(|composition| composition.faces(seam)) {
            if kinds.iter().all(|kind| kind.type_name != face.kind.type_name) {
                kinds.push(face.kind);
            }
        }
        kinds
    }
}

impl Default for Library {
    fn default() -> Library {
        Library::new()
    }
}

/// Reads a whole number that something is divided by.
pub(crate) fn at_least_one<'de, D, N>(deserializer: D) -> Result<N, D::Error>
where
    D: Deserializer<'de>,
    N: Deserialize<'de> + Default + PartialEq,
{
    let number = N::deserialize(deserializer)?;
    if number == N::default() { Err(D::Error::custom("must be at least 1")) } else { Ok(number) }
}

/// The part that `table` describes. What it leaves open is taken from the part in `current` with the same algorithm, if
/// there is one.
fn read<S: ?Sized>(
    mut table: Table,
    current: &[Shared<S>],
    known: &[(Kind, Parser<S>)],
) -> Result<Shared<S>, KeyError> {
    let current: Vec<Face> = current.iter().filter_map(|part| part.face()).collect();
    let forms: Vec<(Form, Parser<S>)> =
        known.iter().flat_map(|(kind, parser)| kind.forms().into_iter().map(|form| (form, *parser))).collect();
    let names = || forms.iter().map(|(form, _)| form.name.as_str()).collect::<Vec<_>>().join(", ");
    let algorithm = match (table.remove("algorithm"), current.as_slice()) {
        (Some(Value::String(name)), _) => name,
        (Some(other), _) => {
            return Err(KeyError::new("algorithm", format!("expected a name, not {}", other.type_str())));
        }
        (None, [only]) => only.algorithm.clone(),
        (None, _) => return Err(KeyError::new("algorithm", format!("missing; allowed are {}", names()))),
    };
    let Some((form, parser)) = forms.iter().find(|(form, _)| form.name == algorithm) else {
        let message = format!("`{algorithm}` is no algorithm for this; allowed are {}", names());
        return Err(KeyError::new("algorithm", message));
    };
    if let Some(key) = table.keys().find(|key| form.parameters.iter().all(|parameter| parameter.name != **key)) {
        let allowed: Vec<_> = form.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
        let allowed = if allowed.is_empty() { "no parameters".to_owned() } else { allowed.join(", ") };
        return Err(KeyError::new(key, format!("unknown key; `{algorithm}` has {allowed}")));
    }
    let start = current.into_iter().find(|face| face.algorithm == algorithm);
    let mut parameters = start.map(|face| face.parameters).unwrap_or_default();
    parameters.extend(table);
    parameters.insert("algorithm".to_owned(), Value::String(algorithm));
    parser(parameters)
}
