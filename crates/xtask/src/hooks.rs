//! `docs/design/hooks.md`: the hooks of each seam and the algorithms that implement them, read from the sources.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use reknit_tcp::seams::Seam;
use reknit_variants::slot::Part;

/// What follows the name of the only algorithm that implements a hook, in its documentation.
const NEEDS_IT: &str = "` needs it";

/// A function of the trait of a seam.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hook {
    /// The trait.
    pub seam: String,
    /// The function.
    pub name: String,
    /// What its documentation, or that of the trait, says about the only algorithm that implements it: the name of the
    /// algorithm, and the sentence.
    pub only: Option<(String, String)>,
    /// That is said of the whole seam: no other algorithm fills it.
    pub fills: bool,
    /// The plug-ins that implement it: the file below `crates/variants/src`, and the type.
    pub users: BTreeSet<(String, String)>,
}

impl Hook {
    /// True if only this algorithm, which fills `seam`, implements it.
    pub(crate) fn is_only_for(&self, seam: &str, part: &Part) -> bool {
        (self.seam == "Plugin" || self.seam == seam) && self.reason_for(&part.algorithm).is_some()
    }

    fn reason_for(&self, algorithm: &str) -> Option<&str> {
        self.only.as_ref().filter(|(only, _)| only == algorithm && self.users.len() == 1).map(|(_, why)| why.as_str())
    }
}

/// All hooks, in the order of the sources. `traits`, which returns values, is none.
///
/// # Errors
/// If a file cannot be read, or if a hook that one algorithm implements does not say why.
pub fn read(root: &Path) -> Result<Vec<Hook>, String> {
    let mut hooks = Vec::new();
    for (_, text) in sources(&root.join("crates/tcp/src/seams"))? {
        hooks.extend(declared(&text));
    }
    for (file, text) in sources(&root.join("crates/variants/src"))? {
        if file != "template.rs" {
            for (seam, plugin, name) in implemented(&text) {
                let users = hooks.iter_mut().filter(|hook| hook.seam == seam && hook.name == name);
                users.for_each(|hook| hook.users.extend([(file.clone(), plugin.clone())]));
            }
        }
    }
    match hooks.iter().find(|hook| hook.users.len() <= 1 && hook.only.is_none()) {
        Some(Hook { seam, name, .. }) => Err(format!(
            "{seam}::{name}: fewer than two algorithms implement it; \"Only `NAME{NEEDS_IT}: ...\" in its documentation must say why"
        )),
        None => Ok(hooks),
    }
}

/// The files below `folder` by their path in it, in order, with their text without unit tests.
fn sources(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            files.extend(sources(&path)?.into_iter().map(|(inner, text)| (format!("{name}/{inner}"), text)));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            files.push((name, code.to_owned()));
        }
    }
    files.sort();
    Ok(files)
}

/// The blocks of a file that begin with `head` and end with a line `}`, each with what follows `head` in its first line and
/// the comment above it.
fn blocks<'a>(text: &'a str, head: &'a str) -> impl Iterator<Item = (&'a str, &'a str, String)> {
    text.match_indices(head).filter_map(move |(at, _)| {
        let starts_a_line = at == 0 || text[..at].ends_with('\n');
        let (first, body) = text[at + head.len()..].split_once('\n')?;
        let body = if first.ends_with("{}") { "" } else { body.split("\n}").next()? };
        starts_a_line.then(|| (first, body, comment_above(&text[..at])))
    })
}

/// The comment at the end of `text`, on one line.
fn comment_above(text: &str) -> String {
    let lines: Vec<&str> = text.lines().rev().map_while(|line| line.trim_start().strip_prefix("///")).collect();
    lines.into_iter().rev().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// The hooks that a file declares.
fn declared(text: &str) -> Vec<Hook> {
    let traits = blocks(text, "pub trait ").filter(|(head, ..)| !head.contains('<'));
    let hooks = traits.flat_map(|(head, body, comment)| {
        let seam = head.split(':').next().unwrap_or_default();
        let names = functions(body).filter(|(name, _)| *name != "traits");
        let of_seam = only(&comment);
        let hooks = names.map(move |(name, own)| Hook {
            seam: seam.to_owned(),
            name: name.to_owned(),
            only: only(&own).or_else(|| of_seam.clone()),
            fills: of_seam.is_some(),
            users: BTreeSet::new(),
        });
        hooks.collect::<Vec<_>>()
    });
    hooks.filter(|hook| !["PluginSet", "Filled"].contains(&hook.seam.as_str())).collect()
}

/// The hooks that a file implements: the trait, the type and the function.
fn implemented(text: &str) -> Vec<(String, String, String)> {
    let implementations = blocks(text, "impl ").filter_map(|(head, body, _)| {
        let (seam, rest) = head.split_once(" for ")?;
        Some((seam, rest.trim_end_matches([' ', '{', '}']), body))
    });
    let names = implementations.flat_map(|(seam, plugin, body)| {
        functions(body).map(move |(name, _)| (seam.to_owned(), plugin.to_owned(), name.to_owned()))
    });
    names.collect()
}

/// The functions in the block of a trait or of an implementation, with their comments.
fn functions(body: &str) -> impl Iterator<Item = (&str, String)> {
    body.match_indices("    fn ").filter_map(|(at, start)| {
        let is_outermost = at == 0 || body[..at].ends_with('\n');
        let name = body[at + start.len()..].split(['(', '<']).next()?;
        is_outermost.then(|| (name, comment_above(&body[..at])))
    })
}

/// The algorithm that a comment names as the only one, and the sentence that says why.
fn only(comment: &str) -> Option<(String, String)> {
    let (name, why) = comment.split_once("Only `")?.1.split_once(NEEDS_IT)?;
    let why = why.trim_start_matches([':', ',', ' ']).split(". ").next()?;
    Some((name.to_owned(), why.trim_end_matches('.').to_owned()))
}

/// The lines about the hooks that only the algorithms in `parts` implement, for the page of a variant.
pub(crate) fn lines(hooks: &[Hook], parts: &[(String, Part)]) -> String {
    let mut lines = Vec::new();
    for (seam, part) in parts {
        for hook in hooks.iter().filter(|hook| hook.is_only_for(seam, part)) {
            let why = hook.reason_for(&part.algorithm).unwrap_or_default();
            let what =
                if hook.fills { format!("fills `{seam}`") } else { format!("needs `{}::{}`", hook.seam, hook.name) };
            lines.push(format!("- `{}` alone {what}: {why}.\n", part.algorithm));
        }
    }
    lines.dedup();
    lines.concat()
}

/// The page.
pub(crate) fn page(hooks: &[Hook], generated: &str) -> String {
    let mut text = format!(
        "# Hooks\n\n{generated}\n\nThe functions that plug-ins may implement, and the files below `crates/variants/src` that do. What \
         never changes during a connection is no hook, but a field of the seam's `Traits`. A hook that a single algorithm needs \
         says why.\n"
    );
    let seams = Seam::ALL.iter().map(|seam| format!("{seam:?}"));
    for seam in ["Plugin".to_owned()].into_iter().chain(seams) {
        let hooks = || hooks.iter().filter(|hook| hook.seam == seam);
        let _ = write!(text, "\n## `{seam}`\n\n");
        if let Some((only, why)) = hooks().find(|hook| hook.fills).and_then(|hook| hook.only.as_ref()) {
            let _ = write!(text, "Only `{only}` fills it: {why}.\n\n");
        }
        text.push_str("| hook | plug-ins | where |\n|---|---|---|\n");
        for hook in hooks() {
            let place = match &hook.only {
                Some((only, why)) if !hook.fills => format!("only `{only}`: {why}"),
                _ => {
                    let files: BTreeSet<&str> = hook.users.iter().map(|(file, _)| file.as_str()).collect();
                    files.into_iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ")
                }
            };
            let _ = writeln!(text, "| `{}` | {} | {} |", hook.name, hook.users.len(), place.replace('|', "\\|"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_and_their_users_are_found() {
        let seam = "/// A seam.\npub trait Wait: Plugin {\n    /// Values.\n    fn traits(&self) -> T {\n        T\n    }\n\n    \
                    /// Called. Only `slow` needs it: it\n    /// waits. More.\n    fn on_ack(&mut self) {}\n}\n";
        let [hook] = <[Hook; 1]>::try_from(declared(seam)).unwrap();
        assert_eq!((hook.seam.as_str(), hook.name.as_str()), ("Wait", "on_ack"));
        assert_eq!(hook.only, Some(("slow".to_owned(), "it waits".to_owned())));
        let plugin = "impl Plugin for Slow {}\n\nimpl Wait for Slow {\n    fn on_ack(&mut self) {\n        fn inner() {}\n    }\n}\n";
        assert_eq!(implemented(plugin), [("Wait".to_owned(), "Slow".to_owned(), "on_ack".to_owned())]);
    }
}
