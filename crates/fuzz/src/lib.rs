//! What the fuzzers in `fuzz/` run: one function for each kind of input. It panics if the input violates a property that
//! must hold for any input. `cargo test` runs the same functions on the inputs that are kept (`tests/inputs.rs`).

mod captures;
mod checksums;
mod engine;
mod files;
mod forwarding;
mod input;
mod inputs;
mod packets;
mod qlogs;
mod recovery;
mod scripts;
mod segments;
mod stack;

pub use inputs::Changes;

use std::sync::atomic::{AtomicU64, Ordering};

/// A kind of input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: that of the program in `fuzz/fuzz_targets`, and of the directory in `fuzz/seeds`.
    pub name: &'static str,
    /// Takes an input. Panics if it finds a defect.
    pub run: fn(&[u8]),
    /// A directory with further inputs, from the root of the repository.
    pub also: Option<&'static str>,
}

/// All kinds of input.
pub const TARGETS: [Target; 11] = [
    Target { name: "packets", run: packets::run, also: None },
    Target { name: "engine", run: engine::run, also: None },
    Target { name: "stack", run: stack::run, also: None },
    Target { name: "forwarding", run: forwarding::run, also: None },
    Target { name: "paths", run: files::paths, also: Some("crates/path/profiles") },
    Target { name: "variants", run: files::variants, also: None },
    Target { name: "scenarios", run: files::scenarios, also: None },
    Target { name: "scripts", run: scripts::run_text, also: Some("crates/script/scripts") },
    Target { name: "captures", run: captures::run, also: None },
    Target { name: "qlogs", run: qlogs::run, also: None },
    Target { name: "recovery", run: recovery::run, also: None },
];

/// Runs the target `name`.
///
/// # Panics
/// If there is none, or if it finds a defect.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of TARGETS").run)(data);
}

/// Segments that connections have got from targets so far.
static SEGMENTS: AtomicU64 = AtomicU64::new(0);

/// The segments that connections have got from targets so far.
#[must_use]
pub fn segments() -> u64 {
    SEGMENTS.load(Ordering::Relaxed)
}

/// Prints this number when it has passed the next million.
pub fn report_segments() {
    static NEXT: AtomicU64 = AtomicU64::new(1_000_000);
    let segments = segments();
    if segments >= NEXT.load(Ordering::Relaxed) {
        NEXT.store(segments + 1_000_000, Ordering::Relaxed);
        eprintln!("segments so far: {segments}");
    }
}

fn count_segments(n: u64) {
    SEGMENTS.fetch_add(n, Ordering::Relaxed);
}
