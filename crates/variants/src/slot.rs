//! The content of a seam, one algorithm or a list of them: how it is shown to users, and how it is read from a file.

use reknit_config::KeyError;
use toml::{Table, Value};

use crate::algorithm::SeamAlgorithm;
use crate::parameter::{self, Description};
use crate::requirement::Requirement;
use reknit_tcp::seams::Seam;

/// An algorithm of a composition, as users see it.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Its name in files.
    pub algorithm: String,
    /// All of its parameters.
    pub parameters: Table,
    /// What it cannot be combined with, and what it needs from the peer.
    pub requirements: &'static [Requirement],
}

impl Part {
    /// The table that describes it in a variant file.
    pub fn table(&self) -> Table {
        let mut table = self.parameters.clone();
        table.insert("algorithm".to_owned(), Value::String(self.algorithm.clone()));
        table
    }
}

/// The content of one seam of a composition.
pub trait Slot {
    /// Its algorithms.
    fn parts(&self) -> Vec<Part>;

    /// The algorithms that may fill it.
    fn descriptions(&self) -> Vec<Description>;

    /// Replaces the content by what `value` describes.
    ///
    /// # Errors
    /// If `value` is invalid; the error names the key and what is allowed.
    fn fill(&mut self, seam: Seam, value: Value) -> Result<(), KeyError>;
}

impl<C: SeamAlgorithm> Slot for C {
    fn parts(&self) -> Vec<Part> {
        vec![part(self)]
    }

    fn descriptions(&self) -> Vec<Description> {
        parameter::descriptions::<C>()
    }

    fn fill(&mut self, seam: Seam, value: Value) -> Result<(), KeyError> {
        let refuse = |message: String| KeyError::new(seam.key(), message);
        let table = match value {
            Value::Table(table) => table,
            Value::Array(_) => {
                return Err(refuse(format!("exactly one algorithm fills this seam; write one table [{seam}]")));
            }
            other => return Err(refuse(format!("must be a table [{seam}], not {}", reknit_config::shown(&other)))),
        };
        *self = read(table, &self.parts()).map_err(|error| error.inside(seam.key()))?;
        Ok(())
    }
}

impl<C: SeamAlgorithm> Slot for Vec<C> {
    fn parts(&self) -> Vec<Part> {
        self.iter().map(part).collect()
    }

    fn descriptions(&self) -> Vec<Description> {
        parameter::descriptions::<C>()
    }

    fn fill(&mut self, seam: Seam, value: Value) -> Result<(), KeyError> {
        let Value::Array(values) = value else {
            return Err(KeyError::new(seam.key(), format!("write each algorithm as a table [[{seam}]]")));
        };
        let current = self.parts();
        let read_one = |(i, value)| {
            let outer = format!("{seam}[{i}]");
            match value {
                Value::Table(table) => read(table, &current).map_err(|error| error.inside(&outer)),
                _ => Err(KeyError::new(outer, format!("write each algorithm as a table [[{seam}]]"))),
            }
        };
        *self = values.into_iter().enumerate().map(read_one).collect::<Result<_, _>>()?;
        Ok(())
    }
}

/// An algorithm as users see it. As a value, it is a table of one entry: its name, and the table of its parameters.
fn part<C: SeamAlgorithm>(choice: &C) -> Part {
    let value = Value::try_from(choice).ok();
    let named = value.and_then(|value| value.as_table()?.clone().into_iter().next());
    let (algorithm, parameters) = match named {
        Some((name, Value::Table(parameters))) => (name, parameters),
        _ => (choice.unlisted_name().unwrap_or_default().to_owned(), Table::new()),
    };
    Part { algorithm, parameters, requirements: choice.requirements() }
}

/// The algorithm that `table` describes. Parameters that are not given are taken from the one in `current` with the same
/// name, if there is one.
fn read<C: SeamAlgorithm>(mut table: Table, current: &[Part]) -> Result<C, KeyError> {
    let known = parameter::descriptions::<C>();
    let names = || known.iter().map(|known| known.name.as_str()).collect::<Vec<_>>();
    let algorithm = match (table.remove("algorithm"), current) {
        (Some(Value::String(name)), _) => name,
        (Some(other), _) => {
            return Err(KeyError::new("algorithm", format!("must be a name, not {}", reknit_config::shown(&other))));
        }
        (None, [only]) => only.algorithm.clone(),
        (None, _) => return Err(KeyError::new("algorithm", format!("missing; allowed are {}", names().join(", ")))),
    };
    let Some(description) = known.iter().find(|known| known.name == algorithm) else {
        let what = format!("unknown algorithm `{algorithm}`");
        return Err(KeyError::new("algorithm", reknit_config::unknown(&what, &algorithm, &names())));
    };
    let allowed: Vec<&str> = description.parameters.iter().map(|parameter| parameter.name.as_str()).collect();
    if let Some(key) = table.keys().find(|key| !allowed.contains(&key.as_str())) {
        let message = if allowed.is_empty() {
            format!("unknown key; `{algorithm}` has no parameters")
        } else {
            reknit_config::unknown(&format!("`{algorithm}` has no such parameter"), key, &allowed)
        };
        return Err(KeyError::new(key, message));
    }
    parameter::check(&description.parameters, &table)?;
    let start = current.iter().find(|part| part.algorithm == algorithm);
    let mut parameters = start.map(|part| part.parameters.clone()).unwrap_or_default();
    parameters.extend(table);
    let entry = Table::from_iter([(algorithm.clone(), Value::Table(parameters))]);
    reknit_config::read(entry).map_err(|mut error| {
        error.key = error.key.trim_start_matches(&algorithm).trim_start_matches('.').to_owned();
        error
    })
}
