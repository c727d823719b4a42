//! Paths, variants and scenarios are TOML files. This is how all of them are read, and how all of them say what is wrong:
//! one line that names the file, the line or the key, and what is allowed.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// What is wrong in a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{location}: {message}")]
pub struct ConfigError {
    location: String,
    message: String,
}

impl ConfigError {
    /// `location` is the file, or the file and the line; `message` says what is wrong and what is allowed.
    pub fn new(location: impl Into<String>, message: impl Into<String>) -> ConfigError {
        ConfigError { location: location.into(), message: message.into() }
    }
}

/// What is wrong with a key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}{}{message}", if key.is_empty() { "" } else { ": " })]
pub struct KeyError {
    key: String,
    message: String,
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

    /// The same, with what `tell` makes of the message.
    #[must_use]
    pub fn told(self, tell: impl FnOnce(String) -> String) -> KeyError {
        KeyError { message: tell(self.message), ..self }
    }

    /// The same, about `key` if it names none.
    #[must_use]
    pub fn or_about(self, key: impl FnOnce() -> String) -> KeyError {
        if self.key.is_empty() { KeyError { key: key(), ..self } } else { self }
    }
}

/// The table that `text` is; `location` is the file's name.
///
/// # Errors
/// If it is not TOML: names the line.
pub fn parse(location: &str, text: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        ConfigError::new(format!("{location}:{line}"), error.message().trim().replace('\n', ", "))
    })
}

/// What `table` describes.
///
/// # Errors
/// Names the key, and what is allowed.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        let key = if path == "." { String::new() } else { path };
        KeyError::new(key, error.into_inner().message().trim().replace('\n', " "))
    })
}

/// Takes a text out of `table`, on one line.
///
/// # Errors
/// If it is something else.
pub fn text(table: &mut Table, key: &str) -> Result<Option<String>, KeyError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" "))),
        Some(other) => Err(KeyError::new(key, format!("expected text, not {}", other.type_str()))),
    }
}

/// Takes a yes or no out of `table`.
///
/// # Errors
/// If it is something else.
pub fn switch(table: &mut Table, key: &str) -> Result<Option<bool>, KeyError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::Boolean(on)) => Ok(Some(on)),
        Some(other) => Err(KeyError::new(key, format!("expected true or false, not {}", other.type_str()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_toml_names_the_line() {
        let error = parse("p.toml", "a = 1\nb = = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("p.toml:2: ") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn keys_are_named_from_outside_in() {
        #[derive(Debug, serde::Deserialize)]
        struct Inner {
            #[expect(dead_code, reason = "only whether it can be read counts")]
            delay: u32,
        }
        let table = parse("p.toml", "delay = \"soon\"").unwrap();
        let error = read::<Inner>(table).unwrap_err().inside("link").inside("forward");
        assert!(error.to_string().starts_with("forward.link.delay: invalid type"), "{error}");
        assert_eq!(KeyError::new("", "wrong").or_about(|| "rate".to_owned()).to_string(), "rate: wrong");
    }

    #[test]
    fn texts_and_switches_are_taken_out() {
        let mut table = parse("p.toml", "name = \"x\"\non = true\n").unwrap();
        assert_eq!(text(&mut table, "name"), Ok(Some("x".to_owned())));
        assert_eq!(text(&mut table, "on").unwrap_err().to_string(), "on: expected text, not boolean");
        let mut table = parse("p.toml", "on = true\noff = 0\n").unwrap();
        assert_eq!((switch(&mut table, "on"), switch(&mut table, "none")), (Ok(Some(true)), Ok(None)));
        assert_eq!(switch(&mut table, "off").unwrap_err().to_string(), "off: expected true or false, not integer");
        assert!(table.is_empty());
    }
}
