//! The header of a variant's file, from which its page is made, and its entry in the code agree, and neither has a
//! placeholder of the template.

use std::path::{Path, PathBuf};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
/// What the template has where an author must write something.
const PLACEHOLDERS: [&str; 3] = ["Author", "Title. Journal", "year, §section"];

/// All files below `folder` with a variant, except the template.
fn files(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            files(&path, found);
        } else if !path.ends_with("template.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            if text.contains(": Variant = Variant {") {
                found.push((path, text));
            }
        }
    }
}

fn header(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The values of a field in the entries of a file, without quotes.
fn values<'a>(text: &'a str, field: &str) -> Vec<&'a str> {
    let start = format!("    {field}: ");
    let values = text.lines().filter_map(|line| line.strip_prefix(&start));
    values.map(|value| value.trim_end_matches(',').trim_matches('"')).collect()
}

/// Years, and numbers of RFCs, sections and reports.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.'));
    words.map(|word| word.trim_matches('.')).filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn there_are_no_placeholders() {
    let mut found = Vec::new();
    files(Path::new(SRC), &mut found);
    assert!(found.len() > 20);
    for (file, text) in found {
        for placeholder in PLACEHOLDERS {
            let entries = ["name", "summary", "source"].map(|field| values(&text, field).join(" ")).join(" ");
            let is_there = header(&text).contains(placeholder) || entries.contains(placeholder);
            assert!(!is_there, "{}: `{placeholder}` is a placeholder of the template", file.display());
        }
    }
}

#[test]
fn sources_and_status_are_those_of_the_header() {
    let mut found = Vec::new();
    files(Path::new(SRC), &mut found);
    for (file, text) in found {
        let (file, header) = (file.display(), header(&text));
        let known: Vec<&str> = numbers(&header).collect();
        for source in values(&text, "source") {
            for number in numbers(source) {
                assert!(known.contains(&number), "{file}: the header does not have {number} of the source `{source}`");
            }
        }
        let (_, status) = header.split_once("**Status.**").unwrap_or_else(|| panic!("{file}: no status in the header"));
        for given in values(&text, "status") {
            let word = given.trim_start_matches("Status::");
            assert!(status.to_lowercase().contains(&word.to_lowercase()), "{file}: its header is not {word}");
        }
    }
}
