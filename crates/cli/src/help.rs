//! The list of commands, and help texts that list the variants and families of this build.

use std::fmt::Write;

use reknit_compare::named_variant::families;
use reknit_variants::VARIANTS;

use crate::table::{self, Screen};

/// Commands for one purpose: those that a new user needs, and the rest.
struct Group {
    title: &'static str,
    primary: &'static [&'static str],
    secondary: &'static [&'static str],
}

const GROUPS: [Group; 3] = [
    Group {
        title: "On your network",
        primary: &["analyze", "watch", "replay", "emulate", "proxy", "shield", "doctor"],
        secondary: &[],
    },
    Group {
        title: "Compare TCP variants",
        primary: &["compare", "simulate", "paths", "variants"],
        secondary: &["sweep", "matrix", "testbed"],
    },
    Group { title: "Check reknit itself", primary: &["papers"], secondary: &["attacks", "script", "schema"] },
];

/// The widest help text.
pub(crate) const MAX_WIDTH: usize = 100;

/// The template of `reknit --help`: the commands in groups.
pub(crate) fn template(command: &clap::Command) -> String {
    let screen = Screen::stdout();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for group in &GROUPS {
        let about = |name: &str| command.find_subcommand(name).and_then(clap::Command::get_about);
        let item = |name: &&str| (format!("  {name:<9}"), about(name).map(ToString::to_string).unwrap_or_default());
        let mut items: Vec<(String, String)> = group.primary.iter().map(item).collect();
        if !group.secondary.is_empty() {
            items.push(("  more".to_owned(), group.secondary.join(", ")));
        }
        let list = table::definitions(&items, screen.text_width().min(MAX_WIDTH));
        let _ = write!(text, "\n{}\n{list}", screen.heading(&format!("{}:", group.title)));
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// The help of an option that takes several variants. `verb` says what happens to them.
pub(crate) fn variants(verb: &str, default: &str) -> String {
    format!(
        "{verb}, separated by commas: names (`reknit variants` lists all {}), patterns such as `rr-*`, or families such as \
         `family:undo` ({}){default}",
        VARIANTS.len(),
        families()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group() {
        let command = crate::command();
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|group| [group.primary, group.secondary].concat()).collect();
        assert_eq!(GROUPS.iter().map(|group| group.primary.len()).sum::<usize>(), 12, "primary commands");
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }
}
