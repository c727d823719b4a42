//! What is generated from the sources is up to date.

use std::collections::BTreeMap;
use std::path::Path;

use clap::ValueEnum;
use xtask::pages::Page;

/// The files at `place`, by name: a file, or those of a folder.
fn files(place: &Path) -> BTreeMap<String, String> {
    let read = |path: &Path| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
    };
    if place.is_file() {
        return BTreeMap::from([read(place)]);
    }
    std::fs::read_dir(place).unwrap().map(|entry| read(&entry.unwrap().path())).collect()
}

/// Generates pages of a kind, which must equal the committed ones. Returns the files of each place.
#[track_caller]
fn generated(page: Page) -> Vec<BTreeMap<String, String>> {
    let fresh = tempfile::tempdir().unwrap();
    page.write(&xtask::root(), fresh.path()).unwrap();
    let places: Vec<_> = page.places().iter().map(|place| (place, files(&fresh.path().join(place)))).collect();
    for (place, fresh) in &places {
        let committed = files(&xtask::root().join(place));
        assert_eq!(
            committed.keys().collect::<Vec<_>>(),
            fresh.keys().collect::<Vec<_>>(),
            "{place} is stale: run `make docs`"
        );
        for (name, text) in fresh {
            assert!(committed[name] == *text, "{place}: {name} is stale: run `make docs`");
        }
    }
    places.into_iter().map(|(_, files)| files).collect()
}

#[test]
fn every_page_that_needs_no_command_is_up_to_date() {
    let has_places = |page: &&Page| !page.places().is_empty() && !page.needs_command();
    for page in Page::value_variants().iter().filter(has_places) {
        generated(*page);
    }
}

#[test]
fn each_variant_has_a_page_and_each_json_document_its_tables() {
    let pages = files(&xtask::root().join("docs/reference/algorithms"));
    assert!(pages.contains_key("rack.md") && pages.contains_key("README.md"));
    let json = &files(&xtask::root().join("docs/reference/json.md"))["json.md"];
    assert_eq!(json.matches("written by `make docs`").count(), 34);
}

#[test]
#[cfg(feature = "command")]
fn each_cause_is_shown_and_the_pictures_are_small() {
    let [page, pictures] = <[_; 2]>::try_from(generated(Page::Causes)).unwrap();
    let page = &page["causes.md"];
    for name in pictures.keys() {
        assert!(page.contains(&format!("](pictures/{name})")), "{name} is not shown");
    }
    for cause in 1..=20 {
        assert!(page.contains(&format!("\n## C{cause}: ")), "C{cause} is missing");
    }
    let sizes: Vec<usize> = pictures.values().map(String::len).collect();
    assert!(sizes.iter().all(|size| *size < 40_000) && sizes.iter().sum::<usize>() < 600_000, "{sizes:?}");
}
