//! Diagrams of states: the tests of a table of transitions compare it with the documentation.

use std::fmt::Debug;

/// The guide to the code, which has all diagrams.
pub(crate) const ARCHITECTURE: &str = include_str!("../../../docs/design/architecture.md");

/// Checks that each page has the diagram of the transitions `rows` from the `first` states on, in the syntax of Mermaid.
pub(crate) fn check<'a, S: Debug + 'a, E: Debug + 'a>(
    first: &[S],
    rows: impl Iterator<Item = (&'a S, &'a E, &'a S)>,
    pages: &[&str],
) {
    let mut diagram = "stateDiagram-v2\n".to_owned();
    for state in first {
        diagram += &format!("    [*] --> {state:?}\n");
    }
    for (from, event, to) in rows {
        diagram += &format!("    {from:?} --> {to:?}: {event:?}\n");
    }
    for page in pages {
        let text: Vec<&str> = page.lines().map(|line| line.strip_prefix("//! ").unwrap_or(line)).collect();
        assert!(text.join("\n").contains(diagram.trim_end()), "the diagram is missing or outdated:\n{diagram}");
    }
}
