//! Reads the TOML files for paths, variants and scenarios. An error in any input is an [`InputError`]: its location,
//! the key, the value, and what is allowed.

mod error;
pub mod schema;
mod serde_words;
mod words;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

pub use error::{InputError, KeyError, Location};
pub use words::{did_you_mean, file_error, is_control, unknown, visible, without_numbers};

/// Parses `text`; `location` is the name of the file.
///
/// # Errors
/// If it is not TOML. Names the line.
pub fn parse(location: &str, text: &str) -> Result<Table, InputError> {
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        InputError::new(Location::Line(location.to_owned(), line), error.message().trim().replace('\n', ", "))
    })
}

/// The largest file of a path, a variant or a scenario.
pub const LARGEST_FILE: u64 = 16 << 20;

/// Reads a file whose size is limited: `/dev/zero` would fill the memory.
///
/// # Errors
/// What is wrong with the file, without its name.
pub fn read_file(file: &Path, largest: u64) -> Result<String, String> {
    let refuse = |error: std::io::Error| file_error(&error);
    let mut text = Vec::new();
    File::open(file).map_err(refuse)?.take(largest + 1).read_to_end(&mut text).map_err(refuse)?;
    if text.len() as u64 > largest {
        return Err(format!("is larger than {} MiB", largest >> 20));
    }
    String::from_utf8(text).map_err(|_| file_error(&ErrorKind::InvalidData.into()))
}

/// Opens a file to read it. A directory is refused at once, not by the first read.
///
/// # Errors
/// What is wrong with the file, without its name.
pub fn open(file: &Path) -> Result<File, String> {
    let refuse = |error: std::io::Error| file_error(&error);
    let opened = File::open(file).map_err(refuse)?;
    if opened.metadata().map_err(refuse)?.is_dir() {
        return Err(file_error(&ErrorKind::IsADirectory.into()));
    }
    Ok(opened)
}

/// Reads an address and a port.
///
/// # Errors
/// What is allowed, without the text.
pub fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.trim().parse().map_err(|_| "must be an IP address and a port, for example `127.0.0.1:9435`")
}

/// Deserializes `table`.
///
/// # Errors
/// Names the key, and what is allowed.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, KeyError> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(|error| {
        let path = error.path().to_string();
        let key = if path == "." { String::new() } else { path };
        KeyError::new(key, serde_words::humanize_serde(&error.into_inner().message().trim().replace('\n', " ")))
    })
}

/// Removes a string from `table`, and joins its lines.
///
/// # Errors
/// If the value is not a string.
pub fn text(table: &mut Table, key: &str) -> Result<Option<String>, KeyError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" "))),
        Some(other) => Err(KeyError::new(key, format!("must be a string, not {}", shown(&other)))),
    }
}

/// Removes a boolean from `table`.
///
/// # Errors
/// If the value is not a boolean.
pub fn switch(table: &mut Table, key: &str) -> Result<Option<bool>, KeyError> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::Boolean(on)) => Ok(Some(on)),
        Some(other) => Err(KeyError::new(key, format!("must be true or false, not {}", shown(&other)))),
    }
}

/// A value of the wrong type, for an error.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Table(_) => "a table".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_toml_names_the_line() {
        let error = parse("p.toml", "a = 1\nb = = 2\n").unwrap_err().to_string();
        assert!(error.starts_with("p.toml:2: ") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let zeros = Path::new("/dev/zero");
        if zeros.exists() {
            assert_eq!(read_file(zeros, 1 << 20).unwrap_err(), "is larger than 1 MiB");
        }
        assert_eq!(read_file(Path::new("/"), 1).unwrap_err(), "is a directory, not a file");
        assert_eq!(open(Path::new("/")).unwrap_err(), "is a directory, not a file");
    }

    #[test]
    fn strings_and_booleans_are_removed_from_the_table() {
        let mut table = parse("p.toml", "name = \"x\"\non = true\n").unwrap();
        assert_eq!(text(&mut table, "name"), Ok(Some("x".to_owned())));
        assert_eq!(text(&mut table, "on").unwrap_err().to_string(), "on: must be a string, not true");
        let mut table = parse("p.toml", "on = true\noff = 0\n").unwrap();
        assert_eq!((switch(&mut table, "on"), switch(&mut table, "none")), (Ok(Some(true)), Ok(None)));
        assert_eq!(switch(&mut table, "off").unwrap_err().to_string(), "off: must be true or false, not 0");
        assert!(table.is_empty());
    }
}
