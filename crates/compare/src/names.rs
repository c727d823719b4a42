//! Names of paths and variants as users write them: patterns, files, and suggestions for unknown names.

use std::path::Path;

use reknit_config::{InputError, file_error};
use reknit_path::{NAMES, Profile};

use crate::{Error, setup};

/// The built-in path `name`, or the path in that file, with these changes (each `KEY=VALUE`).
///
/// # Errors
/// Names the path, key or value, and what is allowed.
pub fn load_path(name: &str, set: &[String]) -> Result<Profile, Error> {
    let profile = Profile::load(name, set)?;
    setup::has_stages(&profile)?;
    setup::tcp_options(&profile, set)?;
    Ok(profile)
}

/// True if `text` is a pattern: `*` matches any characters, `?` a single one.
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?'])
}

/// True if `pattern` matches the whole of `name`.
pub fn matches(pattern: &str, name: &str) -> bool {
    fn match_from(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], rest) => rest.is_empty(),
            (['*', after @ ..], _) => (0..=name.len()).any(|skipped| match_from(after, &name[skipped..])),
            (['?', after @ ..], [_, rest @ ..]) => match_from(after, rest),
            ([wanted, after @ ..], [found, rest @ ..]) => wanted == found && match_from(after, rest),
            (_, []) => false,
        }
    }
    let [pattern, name] = [pattern, name].map(|text| text.chars().collect::<Vec<_>>());
    match_from(&pattern, &name)
}

/// The paths, with each pattern replaced by the built-in paths or files that it matches, without duplicates.
///
/// # Errors
/// If a pattern matches nothing.
pub fn expand_paths(paths: &[String]) -> Result<Vec<String>, Error> {
    let mut expanded: Vec<String> = Vec::new();
    for path in paths {
        let found = if is_pattern(path) { matching_paths(path)? } else { vec![path.clone()] };
        if found.is_empty() {
            return Err(Error::Input(InputError::of_argument(
                "path",
                path,
                "no path matches; `reknit paths` lists the built-in ones",
            )));
        }
        for path in found {
            if !expanded.contains(&path) {
                expanded.push(path);
            }
        }
    }
    Ok(expanded)
}

/// Built-in paths are matched by name, files by the last part of their path.
fn matching_paths(pattern: &str) -> Result<Vec<String>, Error> {
    if !reknit_path::is_file_name(pattern) {
        return Ok(NAMES.iter().filter(|name| matches(pattern, name)).map(|name| (*name).to_owned()).collect());
    }
    let file = Path::new(pattern);
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Ok(Vec::new()) };
    let told = |error: std::io::Error| {
        InputError::of_argument("path", pattern, format!("{}: {}", folder.display(), file_error(&error)))
    };
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(here).map_err(told)? {
        let entry = entry.map_err(told)?;
        if matches(&name.to_string_lossy(), &entry.file_name().to_string_lossy()) && entry.path().is_file() {
            found.push(folder.join(entry.file_name()).display().to_string());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name) in
            [("rr-*", "rr-taes"), ("*", ""), ("two-*-50ms", "two-paths-50ms"), ("r?ck", "rack"), ("a", "a")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("rr-*", "srr-ta"), ("r?ck", "rck"), ("*x", "xy"), ("", "a")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
        let expand = |paths: &[&str]| expand_paths(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
        assert_eq!(expand(&["two-paths-*", "clean", "clea?"]).unwrap(), ["two-paths-50ms", "two-paths-200ms", "clean"]);
        let profiles = concat!(env!("CARGO_MANIFEST_DIR"), "/../path/profiles/two-paths-*.toml");
        assert_eq!(expand(&[profiles]).unwrap().len(), 2);
        assert!(expand(&["moon-*"]).unwrap_err().to_string().contains("moon-*: no path matches"));
    }
}
