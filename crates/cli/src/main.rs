//! The command `reknit`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(reknit_cli::run(std::env::args_os()))
}
