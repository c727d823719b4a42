//! The command `reknit` with other transports, which it simulates beside the variants: on the same paths, with the same seeds
//! and the same results.

mod clock;
mod configured;
mod noq;
#[cfg(test)]
#[path = "../seam/numbers.rs"]
mod numbers;
mod quic;
mod quinn;
mod smoltcp;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use reknit_sim::Transports;

/// All transports. To add one, add a file and a line.
fn transports() -> Transports {
    Transports::new([quinn::all(), noq::all(), smoltcp::all()].concat())
}

fn main() -> ExitCode {
    ExitCode::from(reknit_cli::run_with(std::env::args_os(), &transports()))
}
