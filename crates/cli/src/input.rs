//! What people type: numbers, names, and what is wrong with them in words.

use reknit_path::{NAMES, Profile};
use reknit_units::Duration;

use crate::Failure;

/// A whole number from `LEAST` to `MOST`.
pub(crate) fn whole<const LEAST: u32, const MOST: u32>(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (LEAST..=MOST).contains(number));
    number.ok_or_else(|| format!("write a whole number from {LEAST} to {MOST}"))
}

/// A seed.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("write a whole number from 0 to {}", u64::MAX))
}

/// A time that is not zero.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration: Duration = text.parse().map_err(|error: reknit_units::UnitError| error.to_string())?;
    if duration.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(duration) }
}

/// The path called `name`, or the one in that file, with these changes.
pub(crate) fn path(name: &str, set: &[String]) -> Result<Profile, Failure> {
    Profile::load(name, set).map_err(|error| {
        let near = if NAMES.contains(&name) { None } else { nearest(name, NAMES.iter().copied()) };
        Failure::Usage(with_guess(error.to_string(), near))
    })
}

/// The known name that `name` was probably meant to be.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let close = |known: &'a str| (strsim::jaro_winkler(name, known), known);
    let best = known.map(close).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

pub(crate) fn with_guess(message: String, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

/// `message` without the names of Rust's numbers.
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
    fn numbers_are_told_their_bounds() {
        assert_eq!(whole::<1, 10>("10"), Ok(10));
        for text in ["0", "11", "-3", "1e1", ""] {
            assert_eq!(whole::<1, 10>(text).unwrap_err(), "write a whole number from 1 to 10", "{text}");
        }
        assert!(seed("0").is_ok() && seed("-1").is_err());
        assert_eq!(duration("0 s").unwrap_err(), "must be more than 0");
    }

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        assert_eq!(nearest("two-path-50ms", NAMES.iter().copied()), Some("two-paths-50ms"));
        assert_eq!(nearest("moon", NAMES.iter().copied()), None);
    }

    #[test]
    fn numbers_have_no_types() {
        assert_eq!(
            in_words("x: invalid type: string \"y\", expected u16"),
            "x: invalid type: string \"y\", expected a whole number"
        );
    }
}
