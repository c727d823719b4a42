//! The tasks of `cargo xtask`, which generate files from the code.
//!
//! `cargo xtask` is built without the feature `command`, so that most pages are generated without linking the whole
//! command. A task that needs it starts xtask again with the feature.

#[cfg(feature = "command")]
mod shell;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use xtask::pages::Page;

/// Generates files from reknit's code.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    /// Start a variant: copy the template and its test, and enter the copies in all lists
    New {
        /// The family: a folder of crates/variants/src
        family: String,
        /// The name, such as `rr-ta`
        name: String,
    },
    /// Write man pages and shell completions of the command
    Shell {
        /// Folder to write `man` and `completions` into
        folder: PathBuf,
    },
    /// Run the attacks of docs/design/security.md and write its tables; takes minutes
    Security,
    /// Write the generated part of the documentation, the columns of the Python package and the READMEs of the crates
    Docs {
        /// Pages to write; by default all
        pages: Vec<Page>,
    },
}

impl Task {
    fn needs_command(&self) -> bool {
        match self {
            Self::Shell { .. } | Self::Security => true,
            Self::Docs { pages } => chosen(pages).iter().any(|page| page.needs_command()),
            Self::New { .. } => false,
        }
    }
}

fn chosen(pages: &[Page]) -> &[Page] {
    if pages.is_empty() { Page::value_variants() } else { pages }
}

fn main() -> ExitCode {
    let task = Cli::parse().task;
    let result = if cfg!(feature = "command") || !task.needs_command() { run(&task) } else { run_with_command() };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<(), String> {
    let root = xtask::root();
    match task {
        Task::New { family, name } => new(family, name),
        Task::Docs { pages } => chosen(pages).iter().try_for_each(|page| page.write(&root, &root)),
        #[cfg(feature = "command")]
        Task::Shell { folder } => shell::write(folder).map_err(|error| error.to_string()),
        #[cfg(feature = "command")]
        Task::Security => xtask::security::write(&root),
        #[cfg(not(feature = "command"))]
        Task::Shell { .. } | Task::Security => unreachable!("needs the feature `command`"),
    }
}

/// Starts a variant, and says what to do next.
#[expect(clippy::print_stdout, reason = "names the files that it wrote")]
fn new(family: &str, name: &str) -> Result<(), String> {
    let files = xtask::new::variant(&xtask::root(), family, name)?;
    for file in &files {
        println!("{}", file.display());
    }
    println!(
        "\nWrite the header and the algorithm in {}, then its examples, then run `make docs`.",
        files[0].display()
    );
    println!(
        "CONTRIBUTING.md describes each part. `cargo test -p reknit-variants --test vectors {name}` runs the examples."
    );
    Ok(())
}

/// Starts xtask again, with the feature `command`.
fn run_with_command() -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let with_command = ["run", "--quiet", "--locked", "--package", "xtask", "--features", "command", "--"];
    let status = std::process::Command::new(cargo).args(with_command).args(std::env::args_os().skip(1)).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("xtask with the feature `command`: {status}")),
        Err(error) => Err(format!("cargo: {error}")),
    }
}
