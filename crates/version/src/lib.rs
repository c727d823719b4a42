//! What identifies a build of reknit in its results: the version, the commit, and a digest of the sources that the results
//! depend on. For build scripts.
//!
//! The digest does not change if only comments, documentation, blanks or tests change. A published crate has no other crates
//! beside it, and so no digest: there the version is enough, because it depends on exactly the same version of each crate. Debug
//! builds do not name the commit, so that a commit alone compiles nothing again.

mod tokens;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use sha2::{Digest, Sha256};

/// Sets `REKNIT_VERSION` for the crate that is built, such as `0.1.0 (commit 751ed8af3b2c, sources 8c1d3f0a7e5b6942)`. `folders`
/// are relative to it.
///
/// # Panics
/// If a file cannot be read.
#[expect(clippy::print_stdout, reason = "instructions for cargo")]
pub fn emit(folders: &[&str]) {
    let found = [("commit", commit()), ("sources", digest(folders))];
    let parts: Vec<String> =
        found.into_iter().filter_map(|(name, value)| value.map(|value| format!("{name} {value}"))).collect();
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let details = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    println!("cargo::rustc-env=REKNIT_VERSION={version}{details}");
}

/// A digest of the files in these folders, relative to the crate that is built. None if a folder is missing.
///
/// # Panics
/// If a file cannot be read.
#[expect(clippy::print_stdout, reason = "instructions for cargo")]
pub fn digest(folders: &[&str]) -> Option<String> {
    let here = here();
    let mut digest = Sha256::new();
    for folder in folders {
        println!("cargo::rerun-if-changed={folder}");
        if !here.join(folder).is_dir() {
            return None;
        }
        let mut files = Vec::new();
        collect(&here.join(folder), &mut files);
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            digest.update(file.strip_prefix(&here).unwrap_or(&file).to_string_lossy().as_bytes());
            if file.extension().is_some_and(|extension| extension == "rs") {
                tokens::feed(&text, &mut |piece| digest.update(piece));
            } else {
                without_comments(&text).for_each(|line| digest.update(line));
            }
        }
    }
    Some(digest.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

fn here() -> PathBuf {
    PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default())
}

/// The lines of a TOML file that are not comments.
fn without_comments(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Files in `folder` and below, except those that have only tests.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map_while(Result::ok).map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else if !path.ends_with("tests.rs") {
            files.push(path);
        }
    }
}

/// The commit: of the repository whose workspace this is, or from which cargo has made the package.
#[expect(clippy::print_stdout, reason = "instructions for cargo")]
fn commit() -> Option<String> {
    if env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    let here = here();
    let packaged = fs::read_to_string(here.join(".cargo_vcs_info.json")).ok();
    let hash = packaged.and_then(|text| Some(text.split_once("\"sha1\": \"")?.1.split_once('"')?.0.to_owned()));
    let hash = hash.or_else(|| {
        let root = here.join("../..");
        // Not that of a repository around it.
        if !root.join(".git").exists() {
            return None;
        }
        println!(
            "cargo::rerun-if-changed={}",
            root.join(git(&root, &["rev-parse", "--git-path", "logs/HEAD"])?).display()
        );
        git(&root, &["rev-parse", "HEAD"])
    })?;
    hash.get(..12).map(str::to_owned)
}

/// What `git` prints; none if it is not installed, or fails.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_a_path_do_not_count() {
        let lines: Vec<&str> = without_comments("# a\n\n  rate = 1 # b\n #c").collect();
        assert_eq!(lines, ["rate = 1 # b"]);
    }
}
