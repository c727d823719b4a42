//! Runs a target with one input:
//!
//! `cargo run -p reknit-fuzz --example input -- TARGET FILE`

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "a program prints its errors")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [target, file] = arguments.as_slice() else {
        eprintln!("usage: input TARGET FILE");
        return ExitCode::FAILURE;
    };
    match std::fs::read(file) {
        Ok(input) => {
            reknit_fuzz::run(target, &input);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{file}: {error}");
            ExitCode::FAILURE
        }
    }
}
