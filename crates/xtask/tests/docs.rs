//! The generated files in `docs` are up to date.

use std::collections::BTreeMap;
use std::path::Path;

/// The files of `folder`, by name.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let page = |entry: std::fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read_to_string(entry.path()).unwrap())
    };
    entries.map(page).collect()
}

/// The committed files in `folder` equal the generated ones, which are returned.
#[track_caller]
fn assert_up_to_date(folder: &str, fresh: &Path) -> BTreeMap<String, String> {
    let (fresh, committed) = (files(fresh), files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)));
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(&fresh), "{folder} is stale: run `make docs`");
    for (name, page) in &fresh {
        assert!(committed[name] == *page, "{folder}/{name} is stale: run `make docs`");
    }
    fresh
}

#[test]
fn the_generated_pages_are_up_to_date_and_the_pictures_small() {
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path();
    xtask::docs(fresh).unwrap();
    let pages = assert_up_to_date("docs/reference/algorithms", &fresh.join("reference/algorithms"));
    assert!(pages.contains_key("rack.md") && pages.contains_key("README.md"));
    let pictures = assert_up_to_date("docs/reference/pictures", &fresh.join("reference/pictures"));
    let page = std::fs::read_to_string(fresh.join("reference/causes.md")).unwrap();
    let of_unsafe = std::fs::read_to_string(fresh.join("design/unsafe.md")).unwrap();
    assert!(
        include_str!("../../../docs/design/unsafe.md") == of_unsafe,
        "docs/design/unsafe.md is stale: run `make docs`"
    );
    assert!(
        include_str!("../../../docs/reference/causes.md") == page,
        "docs/reference/causes.md is stale: run `make docs`"
    );
    for name in pictures.keys() {
        assert!(page.contains(&format!("](pictures/{name})")), "{name} is not shown");
    }
    for cause in 1..=20 {
        assert!(page.contains(&format!("\n## C{cause}: ")), "C{cause} is missing");
    }
    let sizes: Vec<usize> = pictures.values().map(String::len).collect();
    assert!(sizes.iter().all(|size| *size < 40_000) && sizes.iter().sum::<usize>() < 600_000, "{sizes:?}");
}
