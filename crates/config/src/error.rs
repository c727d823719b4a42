//! Errors in input, as data. Each interface words them with its own names: the command with options, Python with
//! arguments.

use std::fmt;

/// An error in a key of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", At(key, value.as_deref(), message))]
pub struct KeyError {
    /// The key, with dots; empty if the error concerns the table itself.
    pub key: String,
    /// The value that is refused, if the message does not quote it.
    pub value: Option<Box<str>>,
    /// What is wrong, or what is allowed.
    pub message: String,
}

impl KeyError {
    /// An error in `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> KeyError {
        KeyError { key: key.into(), value: None, message: message.into() }
    }

    /// Adds the value that is refused.
    #[must_use]
    pub fn of_value(self, value: impl fmt::Display) -> KeyError {
        KeyError { value: Some(value.to_string().into()), ..self }
    }

    /// Adds the key `outer` of the enclosing table.
    #[must_use]
    pub fn inside(self, outer: &str) -> KeyError {
        let key = if self.key.is_empty() { outer.to_owned() } else { format!("{outer}.{}", self.key) };
        KeyError { key, ..self }
    }

    /// Replaces the message by what `tell` makes of it.
    #[must_use]
    pub fn map_message(self, tell: impl FnOnce(String) -> String) -> KeyError {
        KeyError { message: tell(self.message), ..self }
    }

    /// Sets the key if there is none.
    #[must_use]
    pub fn with_default_key(self, key: impl FnOnce() -> String) -> KeyError {
        if self.key.is_empty() { KeyError { key: key(), ..self } } else { self }
    }

    /// Adds the location of the input.
    pub fn at(self, location: impl Into<Location>) -> InputError {
        InputError { location: location.into(), alternative: None, error: self }
    }
}

/// The location of an input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// A file, a built-in path, or the name of a table that is not in a file.
    File(String),
    /// A line of a file.
    Line(String, usize),
    /// An argument of a function of the library, which may be an option of a command, and the given value; empty if the message
    /// quotes it.
    Argument(&'static str, String),
}

impl From<&str> for Location {
    fn from(file: &str) -> Location {
        Location::File(file.to_owned())
    }
}

impl From<&String> for Location {
    fn from(file: &String) -> Location {
        Location::File(file.clone())
    }
}

impl Location {
    /// An argument without its value.
    pub fn argument(name: &'static str) -> Location {
        Location::Argument(name, String::new())
    }
}

/// An error in an input. `Display` uses the library's own names; [`InputError::worded`] uses those of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError {
    /// The location of the input.
    pub location: Location,
    /// An argument that can be given instead.
    pub alternative: Option<&'static str>,
    /// The key, the value, and what is allowed.
    pub error: KeyError,
}

impl InputError {
    /// An error in the input as a whole; `message` states what is wrong and what is allowed.
    pub fn new(location: impl Into<Location>, message: impl Into<String>) -> InputError {
        KeyError::new("", message).at(location)
    }

    /// An error in the value `given` for an argument; `message` states what is allowed.
    pub fn of_argument(name: &'static str, given: impl fmt::Display, message: impl Into<String>) -> InputError {
        InputError::new(Location::Argument(name, given.to_string()), message)
    }

    /// Adds an argument that can be given instead.
    #[must_use]
    pub fn with_alternative(self, argument: &'static str) -> InputError {
        InputError { alternative: Some(argument), ..self }
    }

    /// Replaces the message by what `tell` makes of it.
    #[must_use]
    pub fn map_message(self, tell: impl FnOnce(String) -> String) -> InputError {
        InputError { error: self.error.map_message(tell), ..self }
    }

    /// Changes the location to the file `outer`, which contains this input under `key`.
    #[must_use]
    pub fn inside(self, outer: &str, key: &str) -> InputError {
        match &self.location {
            Location::File(file) if file == outer => InputError { error: self.error.inside(key), ..self },
            _ => KeyError::new(key, self.to_string()).at(outer),
        }
    }

    /// Formats the error as one line: the location, the key and value, what is wrong and what is allowed. `name`
    /// formats an argument and its value, which may be empty.
    pub fn worded(&self, name: impl Fn(&str, &str) -> String) -> String {
        let alternative = self.alternative.map(|argument| format!(", or give {}", name(argument, "")));
        let message = format!("{}{}", self.error.message, alternative.unwrap_or_default());
        let KeyError { key, value, .. } = &self.error;
        let at = At(key, value.as_deref(), &message);
        let location = match &self.location {
            Location::File(file) if file.is_empty() => return at.to_string(),
            Location::File(file) => file.clone(),
            Location::Line(file, line) => format!("{file}:{line}"),
            Location::Argument(argument, given) => name(argument, given),
        };
        format!("{}: {at}", Printable(&location))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let assigned =
            |name: &str, given: &str| if given.is_empty() { name.to_owned() } else { format!("{name} = {given}") };
        f.write_str(&self.worded(assigned))
    }
}

impl std::error::Error for InputError {}

/// `key = value: message`, without the parts that are empty.
struct At<'a>(&'a str, Option<&'a str>, &'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let At(key, value, message) = *self;
        if !key.is_empty() {
            write!(f, "{}", Printable(key))?;
        }
        if let Some(value) = value {
            write!(f, "{}{}", if key.is_empty() { "" } else { " = " }, Printable(value))?;
        }
        let colon = if key.is_empty() && value.is_none() { "" } else { ": " };
        write!(f, "{colon}{}", Printable(message))
    }
}

/// Text that may quote a name from a file: control characters, which would break the line, are escaped.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(char::is_control) {
            let control = part.chars().next_back().filter(|last| last.is_control());
            f.write_str(&part[..part.len() - control.map_or(0, char::len_utf8)])?;
            if let Some(control) = control {
                write!(f, "{}", control.escape_default())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_uses_its_own_names() {
        let flag = |name: &str, given: &str| format!("--{name} {given}").trim_end().to_owned();
        let error = InputError::of_argument("duration", "0 s", "must be more than 0");
        assert_eq!(error.to_string(), "duration = 0 s: must be more than 0");
        assert_eq!(error.worded(flag), "--duration 0 s: must be more than 0");
        let error = KeyError::new("path", "missing; name one here").at("s.toml").with_alternative("path");
        assert_eq!(error.worded(flag), "s.toml: path: missing; name one here, or give --path");
        assert_eq!(InputError::new(Location::Line("p.toml".to_owned(), 3), "broken").to_string(), "p.toml:3: broken");
    }

    #[test]
    fn keys_are_named_from_the_outermost_in() {
        let error = KeyError::new("delay", "wrong").inside("link").inside("forward");
        assert_eq!(error.to_string(), "forward.link.delay: wrong");
        assert_eq!(KeyError::new("", "wrong").with_default_key(|| "rate".to_owned()).to_string(), "rate: wrong");
        assert_eq!(KeyError::new("mss", "too small").of_value(7).inside("tcp").to_string(), "tcp.mss = 7: too small");
    }

    #[test]
    fn a_path_inside_a_scenario_keeps_its_key() {
        let error = KeyError::new("forward[0].rate", "wrong").at("s.toml");
        assert_eq!(error.inside("s.toml", "path").to_string(), "s.toml: path.forward[0].rate: wrong");
        let error = KeyError::new("forward[0].rate", "wrong").at("p.toml");
        assert_eq!(error.inside("s.toml", "path").to_string(), "s.toml: path: p.toml: forward[0].rate: wrong");
    }

    #[test]
    fn an_error_is_one_line_whatever_a_file_calls_things() {
        let error = KeyError::new("set.a\nb", "a\nb: no such \u{1b}[31mentry").of_value("\r");
        assert_eq!(error.to_string(), r"set.a\nb = \r: a\nb: no such \u{1b}[31mentry");
        assert_eq!(error.at("two\nlines.toml").to_string().lines().count(), 1);
        assert_eq!(KeyError::new("", "größer als 5 µs").to_string(), "größer als 5 µs");
    }
}
