//! Generates `docs/design/unsafe.md`, the list of all unsafe code with its reasons.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What introduces unsafe code: the lint `unsafe_code` is an error everywhere else.
const MARKS: [&str; 4] =
    ["#[expect(unsafe_code, ", "#![expect(unsafe_code, ", "#[allow(unsafe_code, ", "#![allow(unsafe_code, "];

/// The page for the sources in `root`.
///
/// # Errors
/// If a file cannot be read, or a place has no reason.
pub(crate) fn page(root: &Path, generated: &str) -> Result<String, String> {
    let mut files = Vec::new();
    collect(&root.join("crates"), &mut files)?;
    files.sort();
    let mut page = format!(
        "# Unsafe code\n\n{generated}\n\nAll of it, with its reasons. Elsewhere the compiler refuses it (`unsafe_code = \"deny\"`).\n\n\
         | file | reason |\n|---|---|\n"
    );
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        for reason in reasons(&text).map_err(|error| format!("{name}: {error}"))? {
            let _ = writeln!(page, "| `{name}` | {} |", reason.replace('|', "\\|"));
        }
    }
    Ok(page)
}

/// The reasons in one file.
fn reasons(text: &str) -> Result<Vec<String>, String> {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("expect( unsafe", "expect(unsafe");
    let mut found = Vec::new();
    for after in MARKS.iter().flat_map(|mark| joined.split(mark).skip(1)) {
        let quoted = after.strip_prefix("reason = \"").and_then(|rest| rest.split_once('"'));
        let (reason, _) = quoted.ok_or("unsafe code without a reason")?;
        found.push(reason.to_owned());
    }
    Ok(found)
}

/// All Rust files below `folder`, without this one.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("unsafe_code.rs") {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_its_reason() {
        let text = "#[expect(unsafe_code, reason = \"one\")]\nfn f() {}\n#[expect(\n    unsafe_code,\n    reason = \"two\"\n)]\n";
        assert_eq!(reasons(text), Ok(vec!["one".to_owned(), "two".to_owned()]));
        assert!(reasons("#[expect(unsafe_code, )]").is_err());
    }
}
