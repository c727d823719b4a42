//! What is generated from the types of the results is up to date.

#[test]
fn the_generated_descriptions_of_results_are_up_to_date() {
    let page = include_str!("../../../docs/reference/json.md");
    assert!(page == xtask::results::page(page).unwrap(), "docs/reference/json.md is stale: run `make docs`");
    assert_eq!(page.matches("written by `make docs`").count(), 18);
    let columns = include_str!("../../../python/reknit/_columns.py");
    assert!(columns == xtask::results::columns(), "python/reknit/_columns.py is stale: run `make docs`");
}
