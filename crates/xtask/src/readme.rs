//! Generates the README of each published crate from the head of its `lib.rs`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use toml::Table;

/// The `README.md` of each published crate, with its text. The command has that of the repository.
///
/// # Errors
/// If a file cannot be read, or a crate has no description.
pub fn pages(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut folders: Vec<PathBuf> = entries.map_while(Result::ok).map(|entry| entry.path()).collect();
    folders.sort();
    let mut pages = Vec::new();
    for folder in folders {
        let manifest: Table =
            read(&folder.join("Cargo.toml"))?.parse().map_err(|error| format!("{}: {error}", folder.display()))?;
        let package = |key: &str| manifest.get("package").and_then(|package| package.get(key));
        if package("publish").is_some() || package("readme").is_some() {
            continue;
        }
        let name =
            package("name").and_then(toml::Value::as_str).ok_or_else(|| format!("{}: no name", folder.display()))?;
        pages.push((folder.join("README.md"), page(name, &read(&folder.join("src/lib.rs"))?)));
    }
    Ok(pages)
}

/// Writes them.
///
/// # Errors
/// One line that names the file and what is wrong.
pub fn write(root: &Path) -> Result<(), String> {
    for (file, text) in pages(root)? {
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn page(name: &str, source: &str) -> String {
    let mut text = format!("# {name}\n\n");
    let mut is_code = false;
    for line in source.lines().map_while(|line| line.strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        let line = match line.strip_prefix("```") {
            Some(language) => {
                is_code = !is_code;
                // In rustdoc, a block is Rust unless it says otherwise.
                let language = if is_code && language != "text" { "rust" } else { language };
                format!("```{language}")
            }
            None if is_code && (line == "#" || line.starts_with("# ")) => continue, // hidden
            None if is_code => line.to_owned(),
            None if line.starts_with("# ") => format!("#{line}"),
            None => without_links(line),
        };
        text = text + &line + "\n";
    }
    text + "\nPart of [reknit](https://github.com/reknit/reknit), which keeps TCP fast when the network reorders, delays or stalls\n\
            packets. Licensed under MIT or Apache-2.0, at your option.\n"
}

/// A line without its links to items, which work only in rustdoc.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, item)) = rest.split_once("[`") {
        let Some((item, after)) = item.split_once("`]") else { break };
        let _ = write!(text, "{before}`{item}`");
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_becomes_a_page() {
        let source = "//! Has [`Pipe`]s and [`seams`](mod@seams) in `stages/`.\n//!\n//! # Layout\n//!\n//! ```\n//! # use x;\n\
                      //! #[test]\n//! ```\n\nmod x;\n//! no";
        let text = page("reknit-path", source);
        let expected =
            "# reknit-path\n\nHas `Pipe`s and `seams` in `stages/`.\n\n## Layout\n\n```rust\n#[test]\n```\n\nPart of ";
        assert!(text.starts_with(expected), "{text}");
    }
}
