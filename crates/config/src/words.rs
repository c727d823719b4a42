//! Words for errors: what was probably meant, and what is wrong with a file.

use std::io;

/// How many names are suggested at most.
const MOST: usize = 3;
/// How alike names are that are suggested (Jaro and Winkler; 1: equal).
const ALIKE: f64 = 0.8;

/// `; did you mean ...?` with the few of the `known` names that are most like `name`; empty if none is.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = name.trim().to_lowercase();
    let mut near: Vec<(f64, &str)> = known.map(|known| (strsim::jaro_winkler(&name, known), known)).collect();
    near.retain(|(alike, _)| *alike > ALIKE);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let near: Vec<String> = near.into_iter().take(MOST).map(|(_, known)| format!("`{known}`")).collect();
    match &near[..] {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [some @ .., last] => format!("; did you mean {} or {last}?", some.join(", ")),
    }
}

/// What is wrong with a file, without the number of the system's error.
pub fn file_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::IsADirectory => "is a directory; a file is needed".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "is a file; a directory is needed".to_owned(),
        io::ErrorKind::InvalidData => "is no text file (UTF-8)".to_owned(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_names_that_are_alike_are_suggested() {
        let meant = |name| did_you_mean(name, ["two-paths-50ms", "two-paths-200ms", "rack", "rr-ta"].into_iter());
        assert_eq!(meant("two-path-50ms"), "; did you mean `two-paths-50ms` or `two-paths-200ms`?");
        assert_eq!(meant("Rak"), "; did you mean `rack`?");
        assert_eq!(meant("moon"), "");
    }

    #[test]
    fn a_directory_is_no_file() {
        let error = std::fs::read_to_string("/").unwrap_err();
        assert_eq!(file_error(&error), "is a directory; a file is needed");
        let error = std::fs::read_to_string("/nowhere/at/all").unwrap_err();
        assert_eq!(file_error(&error), "No such file or directory");
    }
}
