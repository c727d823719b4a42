//! The READMEs of the crates are up to date, and what is published says what it is.

use std::path::Path;

#[test]
fn the_readmes_are_up_to_date() {
    let pages = xtask::readme::pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    assert!(pages.len() > 10);
    for (file, text) in pages {
        let committed = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(committed == text, "{} is stale: run `cargo xtask docs`", file.display());
        assert!(text.lines().count() >= 6, "{}: too short", file.display());
        let manifest = std::fs::read_to_string(file.with_file_name("Cargo.toml")).unwrap();
        for key in ["description", "keywords", "categories"] {
            assert!(manifest.contains(&format!("\n{key} = ")), "{}: no {key}", file.display());
        }
    }
}
