//! The command `reknit` as a library, for the binary and for the console script of the Python package.

mod analyze;
mod attacks;
mod capture;
mod compare;
mod doctor;
mod emulate;
mod help;
mod input;
mod matrix;
mod output;
mod papers;
mod paths;
mod plot;
mod proxy;
mod replay;
mod scenario_args;
mod schema;
mod script;
mod shaping;
mod shield;
mod simulate;
mod style;
mod sweep;
mod table;
mod testbed;
mod usage;
mod variants;
mod watch;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use reknit_compare::InputError;
use reknit_sim::Transports;
pub use style::STYLE;

pub use attacks::tables as attack_tables;
pub use paths::draw;

/// Compare TCP algorithms on networks that reorder, delay or stall packets, in simulation and live
#[derive(Parser, Debug)]
#[command(name = "reknit", version = reknit_compare::VERSION, arg_required_else_help = true, max_term_width = help::MAX_WIDTH)]
#[command(after_help = "Start with:
  reknit analyze slow.pcap                       find lost and late packets in a capture
  reknit replay slow.pcap                        find out which variant would have done better
  reknit compare --path two-paths-50ms           compare all variants on a path that reorders
  reknit emulate --path lossy -- ping server     run any program over a path
`reknit COMMAND --help` describes the options of a command and gives examples.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The commands, in the order of [`help`]. Each describes itself, beside its options.
#[derive(Subcommand, Debug)]
#[command(disable_help_subcommand = true)]
enum Command {
    Analyze(analyze::Args),
    Watch(watch::Args),
    Replay(replay::Args),
    Emulate(emulate::Args),
    Proxy(proxy::Args),
    Shield(shield::Args),
    /// Check what this machine can run, and explain how to enable the rest
    Doctor,
    Compare(compare::Args),
    Simulate(simulate::Args),
    Paths(paths::Args),
    Variants(variants::Args),
    Sweep(sweep::Args),
    Matrix(matrix::Args),
    Testbed(testbed::Args),
    /// Rerun five papers on reordering, check their claims and write a report (needs the Python package)
    Papers(papers::Args),
    Attacks(attacks::Args),
    Script(script::Args),
    Schema(schema::Args),
}

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// The input was invalid.
    Usage(String),
    /// The command could not do its work.
    Failed(String),
    /// The user interrupted it; the results so far have been printed.
    Interrupted,
}

impl Failure {
    /// A file could not be read or written.
    fn of_file(file: impl std::fmt::Display, error: &std::io::Error) -> Failure {
        Failure::Failed(format!("{file}: {}", reknit_config::file_error(error)))
    }
}

impl Failure {
    /// The file that the option `flag` names could not be written.
    fn of_option(flag: &str, file: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::of_file(format_args!("{flag} {}", file.display()), error)
    }
}

impl From<reknit_compare::Error> for Failure {
    fn from(error: reknit_compare::Error) -> Failure {
        match error {
            reknit_compare::Error::Input(error) => error.into(),
            reknit_compare::Error::Failed(message) => Failure::Failed(message),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Failure {
        Failure::Usage(error.worded(flag))
    }
}

/// The option for an argument of the library, followed by the given value.
fn flag(argument: &str, given: &str) -> String {
    let flag = format!("--{}", argument.replace('_', "-"));
    if given.is_empty() { flag } else { format!("{flag} {given}") }
}

/// The command with all its options, for man pages and shell completions.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let template = help::template(&command);
    command.help_template(template)
}

/// Runs the command with these arguments, beginning with the program's name. Exit codes: 0 success, 1 failure, 2 wrong
/// usage, 3 no comparison of a replay; or that of the emulated command.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    run_with(arguments, &Transports::default())
}

/// The same command with further transports, which it simulates beside the variants.
pub fn run_with(arguments: impl IntoIterator<Item = OsString>, transports: &Transports) -> u8 {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    // `reknit help COMMAND`, as with git and cargo.
    if arguments.get(1).is_some_and(|word| word == "help") {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    let parsed = command().try_get_matches_from(&arguments).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage::refuse(&error, arguments.get(1)),
    };
    let result = match cli.command {
        Command::Analyze(args) => analyze::run(&args),
        Command::Replay(args) => return finish(replay::run(&args)),
        Command::Watch(args) => watch::run(&args),
        Command::Compare(args) => compare::run(&args, transports),
        Command::Simulate(args) => simulate::run(&args, transports),
        Command::Sweep(args) => sweep::run(&args, transports),
        Command::Matrix(args) => matrix::run(&args, transports),
        Command::Attacks(args) => attacks::run(&args),
        Command::Variants(args) => variants::run(&args, transports),
        Command::Paths(args) => paths::run(&args),
        Command::Papers(args) => papers::run(&args),
        Command::Testbed(args) => testbed::run(&args),
        Command::Script(args) => script::run_scripts(&args),
        Command::Emulate(args) => return finish(emulate::run(&args)),
        Command::Proxy(args) => proxy::run(&args),
        Command::Shield(args) => shield::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Doctor => doctor::run(),
    };
    finish(result.map(|()| 0))
}

/// The exit code; prints the error.
fn finish(result: Result<u8, Failure>) -> u8 {
    match result {
        Ok(code) => code,
        Err(Failure::Usage(message)) => {
            output::note(format_args!("error: {message}"));
            2
        }
        Err(Failure::Failed(message)) => {
            output::note(format_args!("error: {message}"));
            1
        }
        Err(Failure::Interrupted) => 1,
    }
}
