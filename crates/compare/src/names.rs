//! Names that people type: what they mean, and what was probably meant if nothing is called so.

use reknit_path::{NAMES, Profile};

use crate::Error;

/// The path called `name`, or the one in that file, with these changes (`KEY=VALUE` each).
///
/// # Errors
/// Names the path, key or value, and what is allowed.
pub fn load_path(name: &str, set: &[String]) -> Result<Profile, Error> {
    Profile::load(name, set).map_err(|error| {
        let near = if NAMES.contains(&name) { None } else { nearest(name, NAMES.iter().copied()) };
        Error::Input(error.told(|message| with_guess(message, near)))
    })
}

/// The known name that `name` was probably meant to be.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let close = |known: &'a str| (strsim::jaro_winkler(name, known), known);
    let best = known.map(close).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > 0.8).then_some(best.1)
}

/// `message`, with the guess if there is one.
pub fn with_guess(message: String, near: Option<&str>) -> String {
    match near {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        assert_eq!(nearest("two-path-50ms", NAMES.iter().copied()), Some("two-paths-50ms"));
        assert_eq!(nearest("moon", NAMES.iter().copied()), None);
    }
}
