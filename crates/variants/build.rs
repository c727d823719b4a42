//! Turns the `//!` comments at the head of the files of algorithms into constants, which the command and the generated
//! documentation show: one description for readers of the code and for users.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    collect(Path::new("src"), "", &mut files)?;
    files.sort();
    let mut code = String::new();
    for (file, text) in &files {
        if let Some((title, blocks)) = page(text) {
            let name = file.trim_end_matches(".rs").replace('/', "_").to_uppercase();
            let _ = write!(code, "#[doc = {title:?}]\npub const {name}: Page = ");
            let _ = writeln!(code, "Page {{ file: {file:?}, title: {title:?}, blocks: &{blocks:?} }};");
        }
    }
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&folder).join("pages.rs"), code)
}

/// All source files below `folder`, by their path below `src`, with their text.
fn collect(folder: &Path, path: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.push((path, fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}

/// The title and the other blocks of the comment at the head of a file: each paragraph on one line, tables and lists line by
/// line. None if the comment has no title `# ...`.
pub(crate) fn page(text: &str) -> Option<(String, Vec<String>)> {
    let lines =
        text.lines().map_while(|line| line.strip_prefix("//!")).map(|line| line.strip_prefix(' ').unwrap_or(line));
    let mut blocks: Vec<String> = Vec::new();
    let mut block = String::new();
    for line in lines.chain([""]) {
        if line.trim().is_empty() {
            blocks.extend(Some(std::mem::take(&mut block)).filter(|block| !block.is_empty()));
            continue;
        }
        let starts = starts_a_line(line);
        if !block.is_empty() {
            block.push(if starts { '\n' } else { ' ' });
        }
        block.push_str(if starts { line.trim_end() } else { line.trim() });
    }
    let title = blocks.first()?.strip_prefix("# ")?.to_owned();
    Some((title, blocks.split_off(1)))
}

/// True for table rows, list items, and lines indented by four spaces.
fn starts_a_line(line: &str) -> bool {
    ["|", "* ", "- ", "    "].iter().any(|mark| line.starts_with(mark))
}
