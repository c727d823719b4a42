//! What is wrong in a file: which key, and what is allowed.

use std::fmt;

use reknit_units::Rate;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// What is wrong with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyError {
    pub(crate) key: String,
    pub(crate) message: String,
}

impl KeyError {
    /// `message` says what is wrong and what is allowed.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> KeyError {
        KeyError { key: key.into(), message: message.into() }
    }

    /// The same, seen from the table that has this one under the key `outer`.
    #[must_use]
    pub fn inside(self, outer: &str) -> KeyError {
        let key = if self.key.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.key) };
        KeyError { key, ..self }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { write!(f, "{}", self.message) } else { write!(f, "{}: {}", self.key, self.message) }
    }
}

/// Refuses a rate of zero, which would hold packets for ever.
pub(crate) fn positive(rate: impl Into<Option<Rate>>, key: &str) -> Result<(), KeyError> {
    match rate.into() {
        Some(rate) if rate.bits_per_second() == 0 => Err(KeyError::new(key, "must be more than 0")),
        _ => Ok(()),
    }
}

/// Reads a table.
///
/// # Errors
/// Names the key.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        let key = if path == "." { String::new() } else { path };
        KeyError::new(key, error.into_inner().message().trim().replace('\n', " "))
    })
}
