//! Runs all scripts of `scripts/` against the engine, and reports each by name.
//!
//! `cargo test -p reknit-script --test scripts NAME` runs those whose name contains NAME.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use reknit_script::{Engine, parse, run};

/// The scripts of `folder` and its folders, in order.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if path.extension().is_some_and(|extension| extension == "script") {
            found.push(path);
        }
    }
    found
}

/// Why the script fails, if it does.
fn failure(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let script = match parse(&path.display().to_string(), &text) {
        Ok(script) => script,
        Err(error) => return Some(error.to_string()),
    };
    if script.about.first().is_none_or(String::is_empty) {
        return Some(format!("{}:1: begin with a comment: what the script shows", path.display()));
    }
    let ran = run(&script, &mut Engine::new(&script).unwrap());
    ran.failure.map(|failure| format!("{}\n{failure}\n{}", path.display(), ran.transcript.join("\n")))
}

fn main() -> ExitCode {
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let (mut passed, mut filtered, mut failures) = (0, 0, Vec::new());
    for path in scripts(&root) {
        let name = path.strip_prefix(&root).unwrap().with_extension("").display().to_string();
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            filtered += 1;
            continue;
        }
        let failed = failure(&path);
        eprintln!("test {name} ... {}", if failed.is_some() { "FAILED" } else { "ok" });
        passed += u32::from(failed.is_none());
        failures.extend(failed);
    }
    for failure in &failures {
        eprintln!("\n{failure}");
    }
    let result = if failures.is_empty() { "ok" } else { "FAILED" };
    // The line that test runners count.
    eprintln!(
        "\ntest result: {result}. {passed} passed; {} failed; 0 ignored; 0 measured; {filtered} filtered out",
        failures.len()
    );
    if failures.is_empty() && passed + filtered > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
