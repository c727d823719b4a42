//! `reknit paths`, `reknit doctor`: what there is.

use std::fmt::Write;

use reknit_host::doctor::{self, State};
use reknit_path::{Direction, NAMES, Profile};

use crate::{Failure, output, table};

/// List the paths, or describe one.
#[derive(clap::Args, Debug)]
pub(crate) struct PathsArgs {
    /// Describe this one: a built-in path or a TOML file
    name: Option<String>,
}

pub(crate) fn paths(args: &PathsArgs) -> Result<(), Failure> {
    let width = table::terminal_width();
    match &args.name {
        Some(name) => {
            let profile = Profile::load(name, &[]).map_err(|error| Failure::Usage(error.to_string()))?;
            output::print(&describe_path(&profile, width))
        }
        None => output::print(&list_paths(width)?),
    }
}

fn list_paths(width: usize) -> Result<String, Failure> {
    let mut items = Vec::new();
    for name in NAMES {
        let profile = Profile::load(name, &[]).map_err(|error| Failure::Failed(error.to_string()))?;
        items.push(((*name).to_owned(), profile.description));
    }
    let more = "More about one: reknit paths NAME. Your own: a TOML file (docs/paths.md).";
    Ok(format!("{}\n{}\n", table::definitions(&items, width), table::wrap(more, width, 0)))
}

fn describe_path(profile: &Profile, width: usize) -> String {
    let mut text = table::wrap(&format!("{}: {}", profile.name, profile.description), width, 2);
    let _ = write!(text, "\n{}\n", table::wrap(&format!("source: {}", profile.source), width, 2));
    for (title, direction) in [("forward", Direction::Forward), ("reverse", Direction::Reverse)] {
        let _ = write!(text, "\n{title}\n");
        for stage in profile.stages(direction) {
            let line = format!("  {}: {}", stage.name, stage.spec);
            let _ = writeln!(text, "{}", wrap_indented(&line, width));
        }
    }
    if profile.drop_notices {
        let _ = write!(text, "\nstages that drop packets tell the receivers\n");
    }
    if !profile.tcp.is_empty() {
        let _ = write!(text, "\ntcp\n");
        for (key, value) in &profile.tcp {
            let _ = writeln!(text, "  {key} = {value}");
        }
    }
    let _ = write!(text, "\nCompare variants on it: reknit compare --path {}\n", profile.name);
    text
}

fn wrap_indented(line: &str, width: usize) -> String {
    format!("  {}", table::wrap(line, width.saturating_sub(2), 6))
}

pub(crate) fn doctor() -> Result<(), Failure> {
    let checks = doctor::examine();
    let describe = |check: &doctor::Check| {
        let state = match check.state {
            State::Ok => "ok",
            State::Missing => "missing",
            State::Optional => "not here",
        };
        (check.name.to_owned(), format!("{state}: {}", check.note))
    };
    let items: Vec<_> = checks.iter().map(describe).collect();
    output::print(&table::definitions(&items, table::terminal_width()))?;
    if checks.iter().any(|check| check.state == State::Missing) {
        return Err(Failure::Failed("something is missing; simulation works all the same".to_owned()));
    }
    Ok(())
}
