//! A line for each event, in the format logfmt or as an object of JSON, on standard error.

use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clock;

/// How lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `event=closed client=192.0.2.1:5`
    Logfmt,
    /// `{"event":"closed","client":"192.0.2.1:5"}`; all values but the time are strings
    Json,
}

static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on, all lines of this process are written like this.
pub fn set_format(format: Format) {
    IS_JSON.store(format == Format::Json, Ordering::Relaxed);
}

/// A line.
#[derive(Debug)]
pub struct Line {
    text: String,
    format: Format,
}

impl Line {
    /// A line about an event, with the time in seconds since 1970.
    pub fn new(event: &str) -> Line {
        Line::in_format(event, if IS_JSON.load(Ordering::Relaxed) { Format::Json } else { Format::Logfmt })
    }

    fn in_format(event: &str, format: Format) -> Line {
        let since = clock::since_1970();
        let (seconds, millis) = (since.as_secs(), since.subsec_millis());
        let text = match format {
            Format::Logfmt => format!("time={seconds}.{millis:03}"),
            Format::Json => format!("{{\"time\":{seconds}.{millis:03}"),
        };
        Line { text, format }.with("event", event)
    }

    /// Adds a field. In logfmt, a value with spaces or quotes is quoted.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Display) -> Line {
        let value = value.to_string();
        let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && !"\"=\\".contains(c));
        let _ = match self.format {
            Format::Logfmt if is_plain => write!(self.text, " {key}={value}"),
            Format::Logfmt => write!(self.text, " {key}={value:?}"),
            Format::Json => write!(self.text, ",\"{key}\":{}", in_json(&value)),
        };
        self
    }

    fn finish(mut self) -> String {
        self.text.push_str(if self.format == Format::Json { "}\n" } else { "\n" });
        self.text
    }

    /// Writes it.
    pub fn write(self) {
        let _ = std::io::stderr().write_all(self.finish().as_bytes()); // nobody may read it any more
    }
}

/// A string of JSON.
fn in_json(value: &str) -> String {
    let mut text = "\"".to_owned();
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => drop(write!(text, "\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: Format) -> String {
        let line = Line::in_format("closed", format).with("client", "192.0.2.1:5");
        line.with("error", "reset by \"peer\"\n").with("none", "").finish()
    }

    #[test]
    fn values_with_spaces_are_quoted() {
        let text = line(Format::Logfmt);
        let (_, rest) = text.split_once(' ').unwrap();
        assert_eq!(rest, "event=closed client=192.0.2.1:5 error=\"reset by \\\"peer\\\"\\n\" none=\"\"\n");
    }

    #[test]
    fn a_line_of_json_is_an_object() {
        let text = line(Format::Json);
        let (_, rest) = text.split_once(',').unwrap();
        let expected = r#""event":"closed","client":"192.0.2.1:5","error":"reset by \"peer\"\u000a","none":""}"#;
        assert_eq!(rest.trim_end(), expected);
        assert!(text.starts_with("{\"time\":"), "{text}");
    }
}
