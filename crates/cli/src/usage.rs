//! Errors in the arguments, in one line: the option, its value, what is wrong, what is allowed, and what may have been meant.

use std::error::Error as _;
use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use reknit_config::did_you_mean;

use crate::{Cli, output};

/// Prints help and version unchanged, and errors as one line. `command` is the first argument. Returns the exit code.
pub(crate) fn refuse(error: &clap::Error, command: Option<&OsString>) -> u8 {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let printed = error.print();
        if error.use_stderr() {
            return 2;
        }
        return crate::finish(output::unless_closed(printed).map(|_| 0));
    }
    let mut message = in_words(error).unwrap_or_else(|| one_line(error));
    if error.kind() == ErrorKind::UnknownArgument && command.is_some_and(|command| command == "emulate") {
        message.push_str("; write `--` before the command that is to run");
    }
    let known = Cli::command()
        .get_subcommands()
        .map(|known| known.get_name().to_owned())
        .find(|name| command == Some(&name.into()));
    let help = known.map_or("reknit --help".to_owned(), |name| format!("reknit {name} --help"));
    output::note(format_args!("error: {message} (see `{help}`)"));
    2
}

/// What is wrong; none if there are no words of ours for it.
fn in_words(error: &clap::Error) -> Option<String> {
    let all = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    let first = |kind| all(kind).into_iter().next();
    let option = || first(ContextKind::InvalidArg).map(|argument| name(&argument));
    match error.kind() {
        ErrorKind::InvalidValue => {
            let (option, value) = (option()?, first(ContextKind::InvalidValue)?);
            let allowed = all(ContextKind::ValidValue);
            let near = did_you_mean(&value, allowed.iter().map(String::as_str));
            Some(match (&*value, allowed.is_empty()) {
                ("", true) => format!("{option} needs a value"),
                ("", false) => format!("{option} needs a value: {}", one_of(&allowed)),
                (_, true) => return None,
                (value, false) => format!("{option} {value}: must be {}{near}", one_of(&allowed)),
            })
        }
        ErrorKind::ValueValidation => {
            let (option, value) = (option()?, first(ContextKind::InvalidValue)?);
            let why = error.source()?.to_string();
            let is_quoted = why.contains(&format!("`{value}`"));
            Some(if is_quoted { format!("{option}: {why}") } else { format!("{option} {value}: {why}") })
        }
        ErrorKind::UnknownArgument => {
            let given = first(ContextKind::InvalidArg)?;
            let near = first(ContextKind::SuggestedArg).map(|near| format!("; did you mean `{}`?", name(&near)));
            let what = if given.starts_with('-') { "unknown option" } else { "unexpected argument" };
            Some(format!("{given}: {what}{}", near.unwrap_or_default()))
        }
        ErrorKind::InvalidSubcommand => {
            let given = first(ContextKind::InvalidSubcommand)?;
            let command = Cli::command();
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            Some(format!("{given}: unknown command{}", did_you_mean(&given, known.into_iter())))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<String> = all(ContextKind::InvalidArg).iter().map(|argument| name(argument)).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            let hint = if missing == ["--path"] { "; `reknit paths` lists the built-in ones" } else { "" };
            (!missing.is_empty()).then(|| format!("{} {are} missing{hint}", missing.join(" and ")))
        }
        ErrorKind::ArgumentConflict => {
            let (option, others) = (option()?, all(ContextKind::PriorArg));
            let others: Vec<String> = others.iter().map(|other| name(other)).collect();
            Some(if others.is_empty() || others == [&*option] {
                format!("{option} is given more than once")
            } else {
                format!("{option} cannot be used with {}", others.join(" and "))
            })
        }
        _ => None,
    }
}

/// `--at` for `--at <PLACE>`, and `FILE` for `<FILE>...`.
fn name(argument: &str) -> String {
    let first = argument.split(' ').next().unwrap_or(argument);
    first.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned()
}

/// `a, b or c`.
fn one_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [some @ .., last] => format!("{} or {last}", some.join(", ")),
    }
}

/// The lines of the error, without the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("error: wrong arguments");
    let mut message = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    for line in lines.take_while(|line| !line.starts_with("Usage:")) {
        if !line.starts_with("For more information") {
            message.push_str(if message.ends_with(':') { " " } else { "; " });
            message.push_str(line);
        }
    }
    message
}
