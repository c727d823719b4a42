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
    let mut lines = vec!["stateDiagram-v2".to_owned()];
    lines.extend(first.iter().map(|state| format!("    [*] --> {state:?}")));
    lines.extend(rows.map(|(from, event, to)| format!("    {from:?} --> {to:?}: {event:?}")));
    let end = "```".to_owned();
    let diagram = lines.into_iter().chain([end]).collect::<Vec<_>>().join("\n");
    for page in pages {
        let text: Vec<&str> = page.lines().map(|line| line.strip_prefix("//! ").unwrap_or(line)).collect();
        assert!(text.join("\n").contains(&diagram), "the diagram is missing or outdated:\n{diagram}");
    }
}
