//! The descriptions at the head of the files of algorithms, as users read them. The build script collects them.

/// The description of an algorithm: what it changes, its rules, how it departs from its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// The file, below `crates/variants/src`.
    pub file: &'static str,
    /// The title, without markup.
    pub title: &'static str,
    /// The other blocks: each paragraph on one line, tables and lists line by line.
    pub blocks: &'static [&'static str],
}

include!(concat!(env!("OUT_DIR"), "/pages.rs"));
