//! Instructions per segment of a host with sockets, sent and received, with few connections and with many.
//!
//! `cargo bench -p reknit-stack --bench instructions`; [`reknit_testkit::instructions`] says what may follow.

#[path = "scale/pair.rs"]
#[expect(dead_code, reason = "the other benchmark needs more of it")]
mod pair;

use std::path::Path;
use std::process::ExitCode;

use pair::{BATCH, Pair};
use reknit_testkit::instructions::{Benchmark, Case, Work};
use reknit_units::Duration;

const VARIANTS: [&str; 4] = ["sack", "rack", "linux", "reknit"];
const FEW: usize = 10;
/// Under callgrind, opening more would take minutes.
const MANY: usize = 10_000;
const MESSAGES: usize = 4000;

/// `at_once` connections exchange messages at the same time, then the next ones do. Each does so once a second.
fn messages(connections: usize, at_once: usize, variant: &str) -> Work {
    let mut pair = Pair::new(connections, variant);
    let step = Duration::from_secs(1) * at_once as u64 / connections as u64;
    Box::new(move || {
        let mut segments = 0;
        for n in 0..MESSAGES / at_once {
            let chosen: Vec<usize> = (0..at_once).map(|i| (n * at_once + i) % connections).collect();
            pair.now = pair.now + step;
            segments += pair.run_timers();
            segments += pair.exchange_messages(&chosen);
        }
        segments as u64
    })
}

/// Each of ten connections transfers 60,000 bytes, ten times.
fn transfers(variant: &str) -> Work {
    let mut pair = Pair::new(FEW, variant);
    Box::new(move || (0..10).map(|_| pair.transfer(60_000)).sum::<usize>() as u64)
}

fn main() -> ExitCode {
    let case = |name, description, prepare: fn(&str) -> Work| Case {
        name,
        description,
        columns: &VARIANTS,
        prepare: Box::new(prepare),
    };
    let benchmark = Benchmark {
        introduction: "## Sockets\n\nFor each segment between two hosts of `reknit-stack`: both ends, with reading and writing the \
                       packets. Messages of 100 bytes are answered.",
        columns: &VARIANTS,
        cases: vec![
            case("few", "messages of 10 connections, one at a time", |variant| messages(FEW, 1, variant)),
            case("many", "messages of 10,000 connections, 32 at a time", |variant| messages(MANY, BATCH, variant)),
            case("transfers", "transfers of 60,000 bytes", transfers),
        ],
        file: Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.toml"),
    };
    benchmark.main()
}
