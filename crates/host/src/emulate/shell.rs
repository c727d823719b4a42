//! The environment of the command, and an interactive shell whose prompt shows the path.

use std::ffi::OsString;

use super::leftovers::{Instance, MARK};

/// The environment variable with the path; in nested emulations the paths from the outermost to the innermost.
const PATHS: &str = "REKNIT_EMULATE";
/// What bash runs before its first prompt: the user's own prompt stays.
const BEFORE_PROMPT: &str = r#"PS1="[\$REKNIT_EMULATE] $PS1"; unset PROMPT_COMMAND"#;
/// The prompt of shells that take it from the environment.
const PROMPT: &str = "[$REKNIT_EMULATE] $ ";

/// The user's shell.
pub(super) fn program() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

/// Variables for the command. `label` is the path.
pub(super) fn environment(label: &str) -> Vec<(String, String)> {
    let paths = match std::env::var(PATHS) {
        Ok(around) if !around.is_empty() => format!("{around} > {label}"),
        _ => label.to_owned(),
    };
    [(PATHS, paths), (MARK, Instance::current().to_string())]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// Variables that show the path in the prompt of the user's shell.
pub(super) fn prompt() -> Vec<(String, String)> {
    vec![("PROMPT_COMMAND".to_owned(), BEFORE_PROMPT.to_owned()), ("PS1".to_owned(), PROMPT.to_owned())]
}
