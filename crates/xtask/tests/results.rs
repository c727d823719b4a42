//! What is generated from the types of results is what they say now.

#[test]
fn the_fields_of_results_are_described_as_they_are() {
    let page = include_str!("../../../docs/json.md");
    assert!(page == xtask::results::page(page).unwrap(), "docs/json.md is stale: run `make docs`");
    assert_eq!(page.matches("written by `make docs`").count(), 9);
    let columns = include_str!("../../../python/reknit/_columns.py");
    assert!(columns == xtask::results::columns(), "python/reknit/_columns.py is stale: run `make docs`");
}
