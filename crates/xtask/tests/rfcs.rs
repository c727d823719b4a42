//! Every requirement of the RFCs has a test or a reason.

use std::collections::BTreeSet;
use std::path::Path;

use xtask::rfcs::{Files, Keyword, page, read};

#[test]
fn every_requirement_is_shown_or_explained_and_the_page_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = page(&read(&root).unwrap(), &Files::read(&root).unwrap()).unwrap();
    assert!(
        std::fs::read_to_string(root.join("docs/design/rfcs.md")).unwrap() == page,
        "docs/design/rfcs.md is stale: run `make docs`"
    );
}

#[test]
fn the_numbers_of_rfc_9293_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rfcs = read(&root).unwrap();
    let numbered: Vec<&str> = rfcs[0].requirement.iter().map(|r| r.number.as_str()).filter(|n| !n.is_empty()).collect();
    let unique: BTreeSet<&str> = numbered.iter().copied().collect();
    assert_eq!(unique.len(), numbered.len(), "a number appears twice");
    let all = (1..=69).map(|n| format!("MUST-{n}")).chain((1..=31).map(|n| format!("SHLD-{n}")));
    let missing: Vec<String> = all.filter(|number| !unique.contains(number.as_str())).collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(rfcs[0].requirement.iter().all(|r| r.number.is_empty() || r.keyword != Keyword::Text));
}

#[test]
fn the_page_of_differences_from_the_kernel_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = xtask::kernel::page(&root).unwrap();
    assert!(
        std::fs::read_to_string(root.join("study/results/kernel.md")).unwrap() == page,
        "study/results/kernel.md is stale: run `make docs`"
    );
}
