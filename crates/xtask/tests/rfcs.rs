//! The list of requirements of the RFCs is complete.

use std::collections::BTreeSet;

use xtask::rfcs::{Keyword, read};

#[test]
fn the_numbers_of_rfc_9293_are_complete() {
    let rfcs = read(&xtask::root()).unwrap();
    let numbered: Vec<&str> = rfcs[0].requirement.iter().map(|r| r.number.as_str()).filter(|n| !n.is_empty()).collect();
    let unique: BTreeSet<&str> = numbered.iter().copied().collect();
    assert_eq!(unique.len(), numbered.len(), "a number appears twice");
    let all = (1..=69).map(|n| format!("MUST-{n}")).chain((1..=31).map(|n| format!("SHLD-{n}")));
    let missing: Vec<String> = all.filter(|number| !unique.contains(number.as_str())).collect();
    assert_eq!(missing, Vec::<String>::new());
    assert!(rfcs[0].requirement.iter().all(|r| r.number.is_empty() || r.keyword != Keyword::Text));
}
