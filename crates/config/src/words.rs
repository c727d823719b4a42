//! Texts for errors: suggestions for unknown names, and errors of files.

use std::borrow::Cow;
use std::io;

/// The most names to suggest.
const MOST: usize = 3;
/// How similar suggested names must be (Jaro and Winkler; 1: equal).
const ALIKE: f64 = 0.8;

/// `; did you mean ...?` with the `known` names that are most similar to `name`; empty if none is similar.
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

/// `what` is wrong with `name`, the `known` names that are similar to it, and then all of them.
pub fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let near = did_you_mean(name, known.iter().copied());
    let allowed = if near.is_empty() { "; allowed are" } else { " Allowed are" };
    format!("{what}{near}{allowed} {}", known.join(", "))
}

/// `text` without the numbers of the operating system that Rust adds to its errors: they tell users nothing.
pub fn without_numbers(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(" (os error ") {
        let Some((number, after)) = after.split_once(')') else { break };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        kept.push_str(before);
        rest = after;
    }
    if kept.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(kept + rest) }
}

/// The text of a file error, without the number of the operating system.
pub fn file_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::IsADirectory => "is a directory, not a file".to_owned(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => "is a file, not a directory".to_owned(),
        io::ErrorKind::InvalidData => "is not a text file (UTF-8)".to_owned(),
        _ => without_numbers(&error.to_string()).into_owned(),
    }
}

/// `text` with an escape for each character that controls a terminal or changes the order of the text around it.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let escape = |c: char| if is_control(c) { c.escape_default().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(escape).collect())
}

/// True for control characters, and for what is invisible but changes how other characters are shown.
pub fn is_control(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    c.is_control() || is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_similar_names_are_suggested() {
        let meant = |name| did_you_mean(name, ["two-paths-50ms", "two-paths-200ms", "rack", "rr-ta"].into_iter());
        assert_eq!(meant("two-path-50ms"), "; did you mean `two-paths-50ms` or `two-paths-200ms`?");
        assert_eq!(meant("Rak"), "; did you mean `rack`?");
        assert_eq!(meant("moon"), "");
    }

    #[test]
    fn the_suggestion_comes_before_all_names() {
        assert_eq!(
            unknown("unknown key", "rat", &["rate", "delay"]),
            "unknown key; did you mean `rate`? Allowed are rate, delay"
        );
        assert_eq!(unknown("unknown key", "moon", &["rate", "delay"]), "unknown key; allowed are rate, delay");
    }

    #[test]
    fn numbers_of_the_operating_system_are_removed() {
        let text = "x: No such file or directory (os error 2); a: Device or resource busy (os error 16)";
        assert_eq!(without_numbers(text), "x: No such file or directory; a: Device or resource busy");
        assert_eq!(without_numbers("a (os error b)"), "a (os error b)");
        assert_eq!(without_numbers("plain"), "plain");
    }

    #[test]
    fn a_directory_is_not_a_file() {
        let error = std::fs::read_to_string("/").unwrap_err();
        assert_eq!(file_error(&error), "is a directory, not a file");
        let error = std::fs::read_to_string("/nowhere/at/all").unwrap_err();
        assert_eq!(file_error(&error), "No such file or directory");
    }
}
