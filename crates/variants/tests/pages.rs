//! What the build script makes of the comment at the head of a file.

#[expect(
    clippy::print_stdout,
    dead_code,
    reason = "the test needs only the parser; cargo reads what the script prints"
)]
#[path = "../build.rs"]
mod build;

#[test]
fn a_page_has_a_title_and_blocks() {
    let file = "//! # ABC\n//!\n//! Somebody: Paper.\n//! 2001.\n//!\n//! **What it changes.** Much\n//! indeed.\n//!\n\
                //! **Rules**, on an ACK. 1: go.\n//! - 2: stop\n//!   there.\n//!\n\
                //! | a | b |\n//! |---|---|\n\nuse x;\n//! not this";
    let (title, blocks) = build::page(file).unwrap();
    assert_eq!(title, "ABC");
    let expected = [
        "Somebody: Paper. 2001.",
        "**What it changes.** Much indeed.",
        "**Rules**, on an ACK. 1: go.\n- 2: stop there.",
        "| a | b |\n|---|---|",
    ];
    assert_eq!(blocks, expected);
}

#[test]
fn a_comment_without_a_title_is_not_for_users() {
    assert_eq!(build::page("//! One rule: always so. More.\n//! And more.\n"), None);
}
