//! Nothing in the product refers to the study, except where `reknit papers` looks for it.

use std::path::{Path, PathBuf};

/// Where `reknit papers` looks for the study, and a test of what it says if it is not there.
const ALLOWED: [&str; 3] = ["crates/cli/src/papers.rs", "crates/cli/tests/wrong_input.rs", "python/reknit/__main__.py"];
/// The tasks and checks of the repository.
const NOT_PRODUCT: &str = "crates/xtask";
const NAMES: [&str; 3] = ["reknit_study", "reknit-study", "study/"];

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| ["rs", "py", "pyi", "toml", "c", "h"].iter().any(|e| extension == *e))
        {
            files.push(path);
        }
    }
}

#[test]
fn the_product_does_not_refer_to_the_study() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    collect(&root.join("crates"), &mut files);
    collect(&root.join("python"), &mut files);
    let mut allowed = 0;
    for file in files {
        let name = file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        if name.starts_with(NOT_PRODUCT) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        if let Some(found) = NAMES.iter().find(|found| text.contains(**found)) {
            assert!(ALLOWED.contains(&&*name), "{name} refers to the study: {found}");
            allowed += 1;
        }
    }
    assert_eq!(allowed, ALLOWED.len());
}

#[test]
fn no_crate_depends_on_the_study() {
    let lock = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).unwrap();
    assert_eq!(lock.matches("\"reknit-study\"").count(), 1, "only its own name");
}
