//! The tasks of `cargo xtask`, which generate files from the code.

mod shell;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Write the generated part of the documentation: algorithms, causes, pictures and unsafe code; without a folder
    /// also rfcs, kernel, the tables of json, the columns of the Python package and the READMEs of the crates
    Docs {
        /// Folder to write to; by default `docs` of the repository
        folder: Option<PathBuf>,
    },
}

/// Starts a variant, and says what to do next.
#[expect(clippy::print_stdout, reason = "names the files that it wrote")]
fn new(family: &str, name: &str) -> Result<(), String> {
    let files = xtask::new::variant(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), family, name)?;
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

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::New { family, name } => new(&family, &name),
        Task::Shell { folder } => shell::write(&folder).map_err(|error| error.to_string()),
        Task::Security => xtask::security::write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")),
        Task::Docs { folder } => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            folder.map_or_else(
                || {
                    xtask::docs(&root.join("docs"))?;
                    xtask::results::write(&root)?;
                    xtask::rfcs::write(&root)?;
                    xtask::readme::write(&root)?;
                    xtask::kernel::write(&root)
                },
                |folder| xtask::docs(&folder),
            )
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
