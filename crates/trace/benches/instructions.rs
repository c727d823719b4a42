//! Instructions per packet of a capture, read from the file and analyzed.
//!
//! `cargo bench -p reknit-trace --bench instructions`; [`reknit_testkit::instructions`] says what may follow.

#[path = "../tests/truth/mod.rs"]
#[expect(dead_code, reason = "it also compares verdicts with what happened")]
mod truth;

use std::path::Path;
use std::process::ExitCode;

use reknit_testkit::instructions::{Benchmark, Case, Work};
use reknit_trace::{Analyzer, Options};
use truth::world::{Transfer, run};

/// Where the capture is made.
const PLACES: [&str; 3] = ["sender", "middle", "receiver"];

/// A transfer of 5,000 segments, captured at `place`.
fn capture(parts: [&str; 2], place: &str) -> Work {
    let transfer = Transfer { parts: &parts, variant: "linux", segments: 5000, seconds: 60, seed: 1, has_ip_ids: true };
    let place = PLACES.iter().position(|name| *name == place).expect("a place");
    let file = run(&transfer).files[place].clone();
    Box::new(move || {
        let mut analyzer = Analyzer::new(Options::default());
        analyzer.read(file.as_slice(), &mut |_| {}).expect("a capture");
        analyzer.finish(&mut |_| {}).packets
    })
}

fn main() -> ExitCode {
    let case = |name, description, parts: [&'static str; 2]| Case {
        name,
        description,
        columns: &PLACES,
        prepare: Box::new(move |place| capture(parts, place)),
    };
    let benchmark = Benchmark {
        introduction: "## Captures\n\nFor each packet that `reknit analyze` reads: a transfer of `linux`, as raw IP in a pcap file \
                       in memory, captured\nat the sender, between the two parts of its path, or at the receiver.",
        columns: &PLACES,
        cases: vec![
            case("in-order", "in order: `clean`", ["clean", "clean"]),
            case("late", "much reordering: `two-paths-50ms`", ["two-paths-50ms", "clean"]),
            case("lost", "1 % of the packets are lost: `lossy`", ["lossy", "clean"]),
        ],
        file: Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.toml"),
    };
    benchmark.main()
}
