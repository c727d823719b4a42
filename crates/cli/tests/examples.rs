//! Every command in a help text, in README.md, CONTRIBUTING.md and the pages of docs/ works.
//!
//! What only simulates or reads files runs, with short simulations, in a folder with the files that the command names.
//! What needs root, a network or minutes is only parsed.

mod common;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ArgMatches;

use common::Temporary;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Commands, and options of other commands, that are only parsed.
const PARSED: [&str; 8] = ["emulate", "papers", "proxy", "shield", "testbed", "watch", "--live", "--kernel"];
/// Options that make a run short: they replace those of the example, or are added.
const SHORT: [(&str, &str); 4] = [("duration", "1s"), ("seeds", "1"), ("paths", "1"), ("draws", "1")];

/// What selects the connection of the generated capture: replaces the values of an example.
const SELECTED: [(&str, &str); 4] = [("stream", "0"), ("host", "0.0.0.0/0"), ("port", "5001"), ("from", "0 s")];

const VARIANT: &str = "name = \"mine\"\nbase = \"rack\"\n";
const SCENARIO: &str = "path = \"two-paths-50ms\"\nvariants = [\"sack\", \"rack\"]\nseeds = 1\nduration = \"1 s\"\n";
const AXES: &str = "[axes]\nloss = [0, \"1 %\"]\n";

/// A command in a text.
struct Example {
    /// Where it is.
    place: String,
    /// Its arguments, without `reknit`.
    words: Vec<String>,
    is_fed: bool,
}

/// Splits a command into words, as a shell does.
fn split(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The example in a line; none if the line is no command, or has placeholders such as `FILE`.
fn example(place: &str, line: &str) -> Option<Example> {
    let line = line.trim().trim_start_matches("$ ");
    let line = line.split_once("   # ").map_or(line, |(command, _)| command);
    // A pipe into the command feeds it.
    let (is_fed, line) = match line.split_once(" | ") {
        Some((_, ours)) if ours.starts_with("reknit ") => (true, ours),
        _ => (false, line),
    };
    let words = split(line);
    let first = usize::from(words.first().is_some_and(|word| word == "sudo"));
    let is_ours = Path::new(words.get(first)?).file_name() == Some(OsStr::new("reknit"));
    let words: Vec<String> = words.into_iter().skip(first + 1).take_while(|word| word != ">").collect();
    let name = words.first()?;
    let known = reknit_cli::command().find_subcommand(name).is_some();
    let is_placeholder = |word: &String| word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
    let wanted = is_ours && known && !words.iter().any(is_placeholder);
    wanted.then(|| Example { place: place.to_owned(), words, is_fed })
}

/// The examples in these lines; a line that ends with `\` continues.
fn examples<'a>(place: &str, lines: impl Iterator<Item = &'a str>) -> Vec<Example> {
    let text: Vec<&str> = lines.collect();
    text.join("\n").replace("\\\n", " ").lines().filter_map(|line| example(place, line)).collect()
}

/// The examples in the code blocks of a page.
fn of_page(file: &Path) -> Vec<Example> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        is_code ^= line.trim_start().starts_with("```");
        is_code
    });
    examples(&file.display().to_string(), lines)
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].map(|name| Path::new(ROOT).join(name)).into();
    let mut folders = vec![Path::new(ROOT).join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension() == Some(OsStr::new("md")) {
                pages.push(entry);
            }
        }
    }
    pages.sort();
    pages
}

/// Writes the files that the command reads into `folder`.
fn write_inputs(folder: &Path, command: &str, matches: &ArgMatches, capture: &Path) {
    let given = |id: &str| matches.try_get_raw(id).ok().flatten().into_iter().flatten().map(|word| folder.join(word));
    let write = |file: PathBuf, content: &[u8]| {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, content).unwrap();
    };
    let profile = std::fs::read(Path::new(ROOT).join("crates/path/profiles/two-paths-50ms.toml")).unwrap();
    let script = || std::fs::read(Path::new(ROOT).join("crates/script/scripts/opening/active-open.script")).unwrap();
    let is_toml = |file: &PathBuf| file.extension() == Some(OsStr::new("toml"));
    // The path of `analyze` is a file that it writes.
    let paths = given("path").filter(|_| command != "analyze").chain(given("name")).filter(is_toml);
    paths.for_each(|file| write(file, &profile));
    given("variant_file").for_each(|file| write(file, VARIANT.as_bytes()));
    given("scenario").for_each(|file| write(file, SCENARIO.as_bytes()));
    for file in given("file").chain(given("files")) {
        match command {
            "sweep" => write(file, format!("{SCENARIO}{AXES}").as_bytes()),
            "script" => write(file, &script()),
            _ => write(file, &std::fs::read(capture).unwrap()),
        }
    }
}

/// The words with short simulations, and only the connection that a generated capture has.
fn shortened(words: &[String]) -> Vec<String> {
    let command = reknit_cli::command();
    let ours = command.find_subcommand(&words[0]).unwrap();
    let has = |name: &str| ours.get_arguments().any(|argument| argument.get_long() == Some(name));
    let mut changed: Vec<String> = words.to_vec();
    for (name, value) in SHORT.into_iter().filter(|(name, _)| has(name)) {
        let at = changed.iter().position(|word| *word == format!("--{name}"));
        match at {
            Some(at) => value.clone_into(&mut changed[at + 1]),
            None => changed.extend([format!("--{name}"), value.to_owned()]),
        }
    }
    for (name, value) in SELECTED {
        if let Some(at) = changed.iter().position(|word| *word == format!("--{name}")) {
            value.clone_into(&mut changed[at + 1]);
        }
    }
    changed
}

fn run(example: &Example, capture: &Path) {
    let all = |words: &[String]| [&["reknit".to_owned()], words].concat();
    let parsed = reknit_cli::command().try_get_matches_from(all(&example.words));
    let parsed = parsed.unwrap_or_else(|error| panic!("{}: {:?}: {error}", example.place, example.words));
    if example.words.iter().any(|word| PARSED.contains(&word.as_str())) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (name, matches) = parsed.subcommand().unwrap();
    write_inputs(folder.path(), name, matches, capture);
    let mut command = Command::new(env!("CARGO_BIN_EXE_reknit"));
    command.args(shortened(&example.words)).current_dir(folder.path());
    command.stdin(if example.is_fed { std::fs::File::open(capture).unwrap().into() } else { Stdio::null() });
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    // A second of a transfer is too short for a replay that reproduces it.
    let is_refused = name == "replay" && output.status.code() == Some(3);
    assert!(output.status.success() || is_refused, "{}: {:?}: {error}", example.place, example.words);
}

#[test]
fn examples_in_help_work() {
    let capture = Temporary::capture("two-paths-50ms", "linux", "sender", "4 s");
    for command in reknit_cli::command().get_subcommands() {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let Some((_, list)) = text.split_once("Examples:\n") else { continue };
        let place = format!("reknit {} --help", command.get_name());
        let found = examples(&place, list.lines());
        assert!(!found.is_empty(), "{place} has no example");
        for example in &found {
            run(example, &capture.0);
        }
    }
}

#[test]
fn commands_in_pages_work() {
    let capture = Temporary::capture("two-paths-50ms", "linux", "sender", "4 s");
    let found: Vec<Example> = pages().iter().flat_map(|page| of_page(page)).collect();
    assert!(found.len() > 30, "only {} commands were found", found.len());
    for example in &found {
        run(example, &capture.0);
    }
}

/// In prose, a command may lack arguments; but it exists, and so do its options.
#[test]
fn commands_in_prose_exist() {
    let reknit = reknit_cli::command();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let spans = text.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("reknit "));
        for span in spans.filter(|span| !span.contains('\n')) {
            let words = split(span);
            let name = words.first().map_or("", String::as_str);
            if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
                continue;
            }
            let command = reknit.find_subcommand(name);
            let command = command.unwrap_or_else(|| panic!("{}: `reknit {span}`: no such command", page.display()));
            // The options of `papers` are those of the Python package.
            let ours = words.iter().take_while(|word| *word != "--" && name != "papers");
            for option in ours.filter_map(|word| word.strip_prefix("--")) {
                let has = command.get_arguments().any(|argument| argument.get_long() == Some(option));
                assert!(has, "{}: `reknit {span}`: no option --{option}", page.display());
            }
        }
    }
}

#[test]
fn numbers_in_pages_are_those_of_the_code() {
    let counts = [(" variants", reknit_variants::VARIANTS.len()), (" built-in paths", reknit_path::NAMES.len())];
    for page in ["README.md", "CHANGELOG.md"] {
        let text = std::fs::read_to_string(Path::new(ROOT).join(page)).unwrap().replace('\n', " ");
        for (what, count) in counts {
            for (at, _) in text.match_indices(what) {
                let word = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap();
                assert!(word.is_empty() || word == count.to_string(), "{page}: {word}{what}: there are {count}");
            }
        }
    }
}
