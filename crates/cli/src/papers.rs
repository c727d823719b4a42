//! `reknit papers`: runs the Python package reknit-study, which reruns the papers.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args as ClapArgs;

use crate::{Failure, output};

/// How to install what is missing.
const INSTALL: &str = "`make python` or `pip install . ./study` in reknit's repository installs it";

#[derive(ClapArgs, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Arguments for the package reknit-study; see `reknit papers --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let beside = env::current_exe().ok().and_then(|program| venv(&program));
    let python = beside.into_iter().chain([PathBuf::from("python3")]).find(|python| has_study(python));
    let Some(python) = python else {
        if args.arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            return output::print(&format!(
                "usage: reknit papers [ARGUMENTS]\n\nRerun the experiments of five papers on reordering, and check their claims. This \
                 needs the Python package reknit-study:\n{INSTALL}.\n"
            ));
        }
        return Err(Failure::Failed(format!(
            "papers needs the Python package reknit-study, which was not found: {INSTALL}"
        )));
    };
    // Replaces this process, so that Ctrl-C and the exit code are those of Python.
    let error = Command::new(&python).args(["-m", "reknit", "papers"]).args(&args.arguments).exec();
    Err(Failure::Failed(format!("{} could not be started: {error}", python.display())))
}

/// Where `make python` installs the packages: `target/venv` beside `target/release`.
fn venv(program: &Path) -> Option<PathBuf> {
    let python = program.parent()?.parent()?.join("venv/bin/python");
    python.is_file().then_some(python)
}

/// Whether it can import the study. Nothing else in reknit refers to it.
fn has_study(python: &Path) -> bool {
    let check = Command::new(python)
        .args(["-c", "import reknit_study.papers"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    check.is_ok_and(|status| status.success())
}
