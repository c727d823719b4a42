//! A line for each event, in the format logfmt, on standard error.

use std::fmt::{Display, Write as _};
use std::io::Write as _;

use super::clock;

/// A line.
#[derive(Debug)]
pub struct Line(String);

impl Line {
    /// A line about an event, with the time in seconds since 1970.
    pub fn new(event: &str) -> Line {
        let since = clock::since_1970();
        Line(format!("time={}.{:03} event={event}", since.as_secs(), since.subsec_millis()))
    }

    /// Adds a field. A value with spaces or quotes is quoted.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Display) -> Line {
        let value = value.to_string();
        let is_plain = !value.is_empty() && value.chars().all(|c| c.is_ascii_graphic() && !"\"=\\".contains(c));
        let _ = if is_plain { write!(self.0, " {key}={value}") } else { write!(self.0, " {key}={value:?}") };
        self
    }

    /// Writes it.
    pub fn write(self) {
        let _ = writeln!(std::io::stderr(), "{}", self.0); // nobody may read it any more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_spaces_are_quoted() {
        let line =
            Line::new("closed").with("client", "192.0.2.1:5").with("error", "reset by \"peer\"").with("none", "");
        let (_, rest) = line.0.split_once(' ').unwrap();
        assert_eq!(rest, r#"event=closed client=192.0.2.1:5 error="reset by \"peer\"" none="""#);
    }
}
