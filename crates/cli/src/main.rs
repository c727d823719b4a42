//! The command `reknit`.

mod capture;
mod causes;
mod compare;
mod contestants;
mod doctor;
mod input;
mod output;
mod paths;
mod plot;
mod reference;
mod statistics;
mod table;
mod testbed;
mod variants;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Keeps TCP fast when the network reorders, delays or stalls packets: see it, compare cures.
#[derive(Parser, Debug)]
#[command(name = "reknit", version, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Compare variants on a path, in simulation
    Compare(compare::Args),
    /// List the variants, or explain one
    Variants(variants::Args),
    /// List the paths, or describe one
    Paths(paths::Args),
    /// Transfer data between our engine and this machine's kernel, live, over an emulated path (needs root)
    Testbed(testbed::Args),
    /// Say what this machine can run, and what to do about the rest
    Doctor,
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
enum Failure {
    /// The question was wrong.
    Usage(String),
    /// The answer could not be found.
    Failed(String),
    /// Interrupted; what was finished has been shown.
    Interrupted,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let result = match cli.command {
        Command::Compare(args) => compare::run(&args),
        Command::Variants(args) => variants::run(&args),
        Command::Paths(args) => paths::run(&args),
        Command::Testbed(args) => testbed::run(&args),
        Command::Doctor => doctor::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Usage(message)) => {
            eprintln!("error: {}", input::in_words(&message));
            ExitCode::from(2)
        }
        Err(Failure::Failed(message)) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
        Err(Failure::Interrupted) => ExitCode::FAILURE,
    }
}

/// Help and version as they are; what is wrong with the arguments in one line.
fn refuse(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let _ = error.print(); // nobody reads: nothing to be done
        return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut message = lines.next().unwrap_or("error: wrong arguments").to_owned();
    let more: Vec<&str> = lines.take_while(|line| !line.starts_with("Usage:")).collect();
    for line in more {
        if !line.starts_with("For more information") {
            message.push_str(if message.ends_with(':') { " " } else { "; " });
            message.push_str(line);
        }
    }
    eprintln!("{message} (see `reknit --help`)");
    ExitCode::from(2)
}
