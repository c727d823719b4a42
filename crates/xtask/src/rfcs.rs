//! `docs/design/rfcs.md`: the requirements of the RFCs, what fulfils each, and the test that shows it.
//!
//! `rfcs/*.toml` has one file for each RFC, `rfcs/files.toml` short names of files. A requirement has code and tests, or
//! the reason why it is not met here.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

const FOLDER: &str = "crates/xtask/rfcs";
const FILES: &str = "files.toml";

const HEAD: &str = "\
Each table has the requirements of one RFC that concern a TCP engine: one connection, its sender and its receiver, without
sockets, routes and ICMP. *Where* is the code, *shown by* the tests: functions, or [scripts](../reference/scripts.md). A
requirement that is not met, or only in part, has the reason instead. `rule` marks what the RFC prescribes without a keyword.
Paths are relative to `crates`. Tests fail if a requirement has neither a test nor a reason, or names code or a test that does
not exist. `crates/xtask/rfcs` has the list.

| RFC | title | requirements | met | not met, or in part |
|---|---|---|---|---|
";

/// The RFCs in the order of the page.
const ORDER: [u32; 18] =
    [9293, 1122, 5681, 5961, 6298, 6582, 6675, 2018, 2883, 3042, 3168, 6191, 6528, 7323, 8985, 9406, 9438, 9937];

/// The requirements of one RFC.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Rfc {
    /// The number of the RFC.
    pub rfc: u32,
    /// Its title.
    pub title: String,
    /// What applies to all of its requirements, if anything.
    #[serde(default)]
    pub about: String,
    /// The requirements in the order of the sections.
    pub requirement: Vec<Requirement>,
}

/// One requirement.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The section.
    pub section: String,
    /// The number in appendix B of RFC 9293, such as `MUST-1`.
    #[serde(default)]
    pub number: String,
    /// The keyword of RFC 2119, or `text` for a rule of the RFC without one.
    pub keyword: Keyword,
    /// The requirement in our words.
    pub what: String,
    /// Where the code does it: `FILE: ITEM`.
    #[serde(default)]
    pub code: Vec<String>,
    /// The tests that show it: `FILE: FUNCTION`, or only a script's file.
    #[serde(default)]
    pub tests: Vec<String>,
    /// Why it is not met, or only in part.
    #[serde(default)]
    pub not: String,
    /// A choice within what the RFC allows.
    #[serde(default)]
    pub note: String,
}

/// The keyword of a requirement.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keyword {
    /// An absolute requirement.
    #[serde(rename = "MUST")]
    Must,
    /// An absolute prohibition.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// A recommendation.
    #[serde(rename = "SHOULD")]
    Should,
    /// Something to avoid.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Permitted.
    #[serde(rename = "MAY")]
    May,
    /// A rule without a keyword.
    #[serde(rename = "text")]
    Text,
}

impl Keyword {
    fn name(self) -> &'static str {
        match self {
            Keyword::Must => "MUST",
            Keyword::MustNot => "MUST NOT",
            Keyword::Should => "SHOULD",
            Keyword::ShouldNot => "SHOULD NOT",
            Keyword::May => "MAY",
            Keyword::Text => "rule",
        }
    }
}

/// Reads the requirements in the repository at `root`, in the order of the page.
///
/// # Errors
/// One line that names the file and what is wrong.
pub fn read(root: &Path) -> Result<Vec<Rfc>, String> {
    let mut rfcs = Vec::new();
    for number in ORDER {
        let file = root.join(FOLDER).join(format!("{number}.toml"));
        let rfc: Rfc = parse(&file)?;
        if rfc.rfc != number {
            return Err(format!("{}: rfc = {}: must be {number}", file.display(), rfc.rfc));
        }
        rfcs.push(rfc);
    }
    Ok(rfcs)
}

fn parse<T: serde::de::DeserializeOwned>(file: &Path) -> Result<T, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
        format!("{}:{line}: {}", file.display(), error.message().replace('\n', "; "))
    })
}
/// The files that requirements name.
#[derive(Debug)]
pub struct Files {
    root: PathBuf,
    short: BTreeMap<String, String>,
}

/// A file with one of its items.
struct Place<'a> {
    /// Relative to `crates`.
    path: String,
    item: Option<&'a str>,
}

impl Files {
    /// Reads the short names in the repository at `root`.
    ///
    /// # Errors
    /// One line that names the file and what is wrong.
    pub fn read(root: &Path) -> Result<Files, String> {
        Ok(Files { root: root.to_owned(), short: parse(&root.join(FOLDER).join(FILES))? })
    }

    fn place<'a>(&self, reference: &'a str) -> Result<Place<'a>, String> {
        let (file, item) = match reference.split_once(": ") {
            Some((file, item)) => (file, Some(item)),
            None => (reference, None),
        };
        let path = match self.short.get(file) {
            Some(path) => path.clone(),
            None if file.contains('/') => file.to_owned(),
            None => return Err(format!("`{file}` is no file: {FILES} has the short names")),
        };
        Ok(Place { path, item })
    }

    fn text(&self, place: &Place<'_>) -> Result<String, String> {
        let file = self.root.join("crates").join(&place.path);
        fs::read_to_string(&file).map_err(|error| format!("crates/{}: {error}", place.path))
    }

    /// What is wrong with the requirement's references and its explanation.
    ///
    /// # Errors
    /// One line that names the requirement's flaw.
    pub fn check(&self, requirement: &Requirement) -> Result<(), String> {
        let Requirement { code, tests, not, .. } = requirement;
        if not.is_empty() && (code.is_empty() || tests.is_empty()) {
            return Err("has neither code with a test nor a reason (`not`)".to_owned());
        }
        for reference in code {
            let place = self.place(reference)?;
            let Some(item) = place.item else { return Err(format!("`{reference}`: write FILE: ITEM")) };
            if !defines(&self.text(&place)?, item) {
                return Err(format!("crates/{} has no item `{item}`", place.path));
            }
        }
        for reference in tests {
            let place = self.place(reference)?;
            let text = self.text(&place)?;
            if let Some(item) = place.item.filter(|item| !is_test(&text, item)) {
                return Err(format!("crates/{} has no test `{item}`", place.path));
            }
        }
        Ok(())
    }

    fn link(&self, reference: &str) -> Result<String, String> {
        let place = self.place(reference)?;
        let name = Path::new(&place.path).file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        // `mod.rs` says nothing without its folder.
        let folder = Path::new(&place.path).parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let name = if name == "mod.rs" { format!("{folder}/{name}") } else { name };
        let item = place.item.map_or_else(String::new, |item| format!(" `{item}`"));
        Ok(format!("[{name}](../../crates/{}){item}", place.path))
    }
}

/// True if `text` defines `item`: a function, a type, a constant, a field or a variant; `Type::item` also names the type.
fn defines(text: &str, item: &str) -> bool {
    let (owner, name) = item.rsplit_once("::").map_or((None, item), |(owner, name)| (Some(owner), name));
    let has_word = |line: &str, word: &str| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        line.split(|c| !is_part(c)).any(|part| part == word)
    };
    let introduces = |line: &str, name: &str| {
        let code = line.trim_start();
        let visible = ["pub(crate) ", "pub(super) ", "pub "].iter().find_map(|p| code.strip_prefix(p)).unwrap_or(code);
        let after = ["fn ", "const fn ", "struct ", "enum ", "trait ", "const ", "static ", "type ", "mod "]
            .iter()
            .find_map(|keyword| visible.strip_prefix(keyword));
        let begins = |rest: &str, ends: &[char]| {
            rest.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with(ends))
        };
        after.map_or_else(|| begins(visible, &[':', ',', '{', '(']), |rest| begins(rest, &['(', '<', ' ', ':', ';']))
    };
    let owner_is_there = owner.is_none_or(|owner| {
        text.lines().any(|line| line.contains("impl") && has_word(line, owner) || introduces(line, owner))
    });
    owner_is_there && text.lines().any(|line| introduces(line, name))
}

/// True if `text` has a test function `name`, or a worked example with that name.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(i, line)| {
        let function =
            line.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(name)).is_some_and(|t| t.starts_with('('));
        let attributed = lines[..i].iter().rev().take_while(|l| l.starts_with('#') || l.starts_with("//"));
        let example = line.strip_prefix("vector!(").and_then(|rest| rest.strip_prefix(name));
        (function && attributed.into_iter().any(|l| *l == "#[test]")) || example.is_some_and(|t| t.starts_with(','))
    })
}

/// The page. `generated` is the line below its title.
///
/// # Errors
/// Names the requirement and what is wrong with it.
pub fn page(rfcs: &[Rfc], files: &Files, generated: &str) -> Result<String, String> {
    let mut text = format!("# Requirements of the RFCs\n\n{generated}\n\n{HEAD}");
    for rfc in rfcs {
        let open = rfc.requirement.iter().filter(|requirement| !requirement.not.is_empty()).count();
        let Rfc { rfc: number, title, requirement, .. } = rfc;
        let all = requirement.len();
        let _ = writeln!(text, "| [{number}](#rfc-{number}) | {title} | {all} | {} | {open} |", all - open);
    }
    for rfc in rfcs {
        let _ = write!(text, "\n## RFC {}\n\n{}.", rfc.rfc, rfc.title);
        if !rfc.about.is_empty() {
            let _ = write!(text, " {}", rfc.about);
        }
        text.push_str("\n\n| § | keyword | requirement | where | shown by |\n|---|---|---|---|---|\n");
        for requirement in &rfc.requirement {
            let wrong = |error: String| {
                format!("RFC {} section {}, {:?}: {error}", rfc.rfc, requirement.section, requirement.what)
            };
            files.check(requirement).map_err(wrong)?;
            let row = row(requirement, files).map_err(wrong)?;
            let _ = writeln!(text, "{row}");
        }
    }
    Ok(text)
}

fn row(requirement: &Requirement, files: &Files) -> Result<String, String> {
    let Requirement { section, number, keyword, what, code, tests, not, note } = requirement;
    let number = if number.is_empty() { String::new() } else { format!(" ({number})") };
    let list = |references: &[String]| -> Result<String, String> {
        let links: Result<Vec<String>, String> = references.iter().map(|reference| files.link(reference)).collect();
        Ok(links?.join(", "))
    };
    let mut shown = list(tests)?;
    if !not.is_empty() {
        let label = if tests.is_empty() { "not met" } else { "in part" };
        let _ = write!(shown, "{}**{label}:** {not}", if shown.is_empty() { "" } else { ". " });
    }
    let note = if note.is_empty() { String::new() } else { format!(" *{note}*") };
    Ok(format!("| {section} | {}{number} | {what}{note} | {} | {shown} |", keyword.name(), list(code)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_their_definition() {
        let text = "pub struct Config {\n    pub min_rto: Duration,\n}\nimpl Config {\n    pub fn check(&self) {\n";
        for item in ["Config", "Config::min_rto", "check", "Config::check"] {
            assert!(defines(text, item), "{item}");
        }
        for item in ["Other", "Config::max_rto", "min", "Other::check"] {
            assert!(!defines(text, item), "{item}");
        }
    }

    #[test]
    fn only_tests_count_as_tests() {
        let text = "#[test]\nfn one() {\nfn helper() {\nvector!(two, |isn| {\n#[test]\n#[ignore]\nfn three() {\n";
        for (name, expected) in [("one", true), ("two", true), ("three", true), ("helper", false), ("tw", false)] {
            assert_eq!(is_test(text, name), expected, "{name}");
        }
    }

    #[test]
    fn a_requirement_needs_a_test_or_a_reason() {
        let files = Files { root: PathBuf::new(), short: BTreeMap::new() };
        let parse = |more: &str| -> Requirement {
            toml::from_str(&format!("section = '1'\nkeyword = 'MUST'\nwhat = 'x'\n{more}")).unwrap()
        };
        assert!(files.check(&parse("")).is_err());
        assert!(files.check(&parse("not = 'the stack does it'")).is_ok());
        assert_eq!(
            files.check(&parse("not = 'later'\ntests = ['unknown: x']")).unwrap_err(),
            "`unknown` is no file: files.toml has the short names"
        );
    }
}
