//! A digest of all sources on which results depend, so that a store does not mix results of different engines.
//!
//! In the workspace these are the crates beside this one. A published crate has no such folders; there the version is
//! enough, because it depends on exactly the same version of each crate.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// The folders beside this crate in the workspace.
const SOURCES: [&str; 8] = [
    "src",
    "../config/src",
    "../units/src",
    "../tcp/src",
    "../variants/src",
    "../path/src",
    "../sim/src",
    "../path/profiles",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut digest = Sha256::new();
    for folder in SOURCES {
        println!("cargo::rerun-if-changed={folder}");
        let mut files = Vec::new();
        collect(&here.join(folder), &mut files)?;
        files.sort();
        for file in files {
            digest.update(file.strip_prefix(&here).unwrap_or(&file).to_string_lossy().as_bytes());
            digest.update(fs::read(&file)?);
        }
    }
    let text = digest.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    println!("cargo::rustc-env=REKNIT_SOURCES={text}");
    Ok(())
}

/// Files in `folder` and below; none if there is no such folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}
