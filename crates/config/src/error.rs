//! What is wrong with an input, as data. Whoever shows it to people words it: the command with flags, Python with the names of
//! arguments.

use std::fmt;

/// What is wrong with a key of a table.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", At(key, value.as_deref(), message))]
pub struct KeyError {
    /// The key, dotted; empty if the error is about the table itself.
    pub key: String,
    /// The value that is refused, where the message does not quote it.
    pub value: Option<String>,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl KeyError {
    /// `message` says what is wrong and what is allowed.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> KeyError {
        KeyError { key: key.into(), value: None, message: message.into() }
    }

    /// The same, with the value that is refused.
    #[must_use]
    pub fn of_value(self, value: impl fmt::Display) -> KeyError {
        KeyError { value: Some(value.to_string()), ..self }
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

    /// The same, in the input at `location`.
    pub fn at(self, location: impl Into<Location>) -> InputError {
        InputError { location: location.into(), alternative: None, error: self }
    }
}

/// Where an input stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Location {
    /// A file, a built-in path, or what a table without a file is called.
    File(String),
    /// A line of a file.
    Line(String, usize),
    /// An argument of the command or of a function, and what was given; empty where the message quotes it.
    Argument(Argument, String),
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

impl From<Argument> for Location {
    fn from(argument: Argument) -> Location {
        Location::Argument(argument, String::new())
    }
}

/// What a caller can give: an option of the command, an argument of a Python function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Argument {
    /// The path.
    Path,
    /// Values of the path that are changed.
    Set,
    /// Loss of data packets.
    Loss,
    /// Length of a run.
    Duration,
    /// Where what is periodic begins.
    Phases,
    /// Connections that share the path.
    Flows,
    /// The variants to compare.
    Variants,
    /// The variant of a single run.
    Variant,
    /// Runs of each variant.
    Seeds,
    /// Interval of a time series.
    SampleEvery,
}

impl Argument {
    /// Its name in the library, which is also that of the Python argument.
    pub fn name(self) -> &'static str {
        match self {
            Argument::Path => "path",
            Argument::Set => "set",
            Argument::Loss => "loss",
            Argument::Duration => "duration",
            Argument::Phases => "phases",
            Argument::Flows => "flows",
            Argument::Variants => "variants",
            Argument::Variant => "variant",
            Argument::Seeds => "seeds",
            Argument::SampleEvery => "sample_every",
        }
    }

    /// `name = given`, or the name alone.
    pub fn assigned(self, given: &str) -> String {
        if given.is_empty() { self.name().to_owned() } else { format!("{} = {given}", self.name()) }
    }

    /// What is wrong with what was given for it; `message` says what is allowed.
    pub fn refused(self, given: impl fmt::Display, message: impl Into<String>) -> InputError {
        InputError::new(Location::Argument(self, given.to_string()), message)
    }
}

/// What is wrong with an input. It displays in the library's own names; [`InputError::worded`] takes those of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputError {
    /// Where the input stands.
    pub location: Location,
    /// An argument that can be given instead.
    pub alternative: Option<Argument>,
    /// The key, the value, and what is allowed.
    pub error: KeyError,
}

impl InputError {
    /// About the input as a whole; `message` says what is wrong and what is allowed.
    pub fn new(location: impl Into<Location>, message: impl Into<String>) -> InputError {
        KeyError::new("", message).at(location)
    }

    /// The same, with an argument that can be given instead.
    #[must_use]
    pub fn or_give(self, argument: Argument) -> InputError {
        InputError { alternative: Some(argument), ..self }
    }

    /// The same, with what `tell` makes of the message.
    #[must_use]
    pub fn told(self, tell: impl FnOnce(String) -> String) -> InputError {
        InputError { error: self.error.told(tell), ..self }
    }

    /// The same, seen from the file `outer` in which this input stands under `key`.
    #[must_use]
    pub fn inside(self, outer: &str, key: &str) -> InputError {
        match &self.location {
            Location::File(file) if file == outer => InputError { error: self.error.inside(key), ..self },
            _ => KeyError::new(key, self.to_string()).at(outer),
        }
    }

    /// One line: the location, the key and value, what is wrong and what is allowed. `name` writes an argument and what was
    /// given for it, which may be empty.
    pub fn worded(&self, name: impl Fn(Argument, &str) -> String) -> String {
        let alternative = self.alternative.map(|argument| format!(", or give {}", name(argument, "")));
        let message = format!("{}{}", self.error.message, alternative.unwrap_or_default());
        let KeyError { key, value, .. } = &self.error;
        let location = match &self.location {
            Location::File(file) if file.is_empty() => return At(key, value.as_deref(), &message).to_string(),
            Location::File(file) => file.clone(),
            Location::Line(file, line) => format!("{file}:{line}"),
            Location::Argument(argument, given) => name(*argument, given),
        };
        format!("{location}: {}", At(key, value.as_deref(), &message))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(Argument::assigned))
    }
}

impl std::error::Error for InputError {}

/// `key = value: message`, without what there is none of.
struct At<'a>(&'a str, Option<&'a str>, &'a str);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            At("", None, message) => f.write_str(message),
            At("", Some(value), message) => write!(f, "{value}: {message}"),
            At(key, None, message) => write!(f, "{key}: {message}"),
            At(key, Some(value), message) => write!(f, "{key} = {value}: {message}"),
        }
    }
}

/// `message` of a deserializer without the names of Rust's types.
pub(crate) fn in_words(message: &str) -> String {
    let mut words = message.to_owned();
    for (types, meaning) in [(&["u8", "u16", "u32", "u64", "usize"][..], "a whole number"), (&["f64"], "a number")] {
        for name in types {
            words = words.replace(&format!("expected {name}"), &format!("expected {meaning}"));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interface_words_an_error_in_its_names() {
        let flag = |argument: Argument, given: &str| format!("--{} {given}", argument.name()).trim_end().to_owned();
        let error = Argument::Duration.refused("0 s", "must be more than 0");
        assert_eq!(error.to_string(), "duration = 0 s: must be more than 0");
        assert_eq!(error.worded(flag), "--duration 0 s: must be more than 0");
        let error = KeyError::new("path", "missing; name one here").at("s.toml").or_give(Argument::Path);
        assert_eq!(error.worded(flag), "s.toml: path: missing; name one here, or give --path");
        assert_eq!(InputError::new(Location::Line("p.toml".to_owned(), 3), "broken").to_string(), "p.toml:3: broken");
    }

    #[test]
    fn keys_are_named_from_outside_in() {
        let error = KeyError::new("delay", "wrong").inside("link").inside("forward");
        assert_eq!(error.to_string(), "forward.link.delay: wrong");
        assert_eq!(KeyError::new("", "wrong").or_about(|| "rate".to_owned()).to_string(), "rate: wrong");
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
    fn numbers_have_no_types() {
        assert_eq!(
            in_words("invalid type: string \"y\", expected u16"),
            "invalid type: string \"y\", expected a whole number"
        );
    }
}
