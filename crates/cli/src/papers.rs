//! `reknit papers`: runs the Python package, which reruns the papers.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args as ClapArgs;

use crate::{Failure, output};

/// What the package prints for `--help`, for those who have not installed it.
const HELP: &str = include_str!("papers.txt");

#[derive(ClapArgs, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments for the Python package; see `reknit papers --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let beside = env::current_exe().ok().and_then(|program| venv(&program));
    let python = beside.into_iter().chain([PathBuf::from("python3")]).find(|python| has_package(python));
    let Some(python) = python else {
        if args.arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            return output::print(HELP);
        }
        let message = "papers needs reknit's Python package, which was not found: run `make python`";
        return Err(Failure::Failed(message.to_owned()));
    };
    // Replaces this process, so that Ctrl-C and the exit code are those of Python.
    let error = Command::new(&python).args(["-m", "reknit", "papers"]).args(&args.arguments).exec();
    Err(Failure::Failed(format!("{} could not be started: {error}", python.display())))
}

/// Where `make python` installs it: `target/venv` beside `target/release`.
fn venv(program: &Path) -> Option<PathBuf> {
    let python = program.parent()?.parent()?.join("venv/bin/python");
    python.is_file().then_some(python)
}

fn has_package(python: &Path) -> bool {
    let check = Command::new(python)
        .args(["-c", "import reknit_study.papers"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    check.is_ok_and(|status| status.success())
}
