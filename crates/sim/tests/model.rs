//! Random networks, options and variants: the receiver reads exactly the bytes that were written, or the connection
//! ends with an error.
//!
//! Two engines exchange real packets over a network that loses, delays, reorders, duplicates and corrupts them at
//! random. After every event the packet accounting must be correct, no window may vanish, and a timer must run while
//! data is outstanding. `PROPTEST_CASES` sets the number of cases for each variant; by default there are more than
//! 10,000 in total.

use std::cell::Cell;

use proptest::test_runner::{Config as Runner, FileFailurePersistence, TestCaseError, TestRunner};
use reknit_testkit::network::{Case, Model, Polling, case};
use reknit_variants::Variant;

/// Seeds of cases that have failed before; they are tried first.
const KNOWN_CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/model.regressions");

/// Plays a case. True if the streams arrived complete.
fn play(case: &Case, variant: &Variant) -> Result<bool, String> {
    let composition = (variant.compose)();
    let mut model = Model::new(case, [&composition; 2], Polling::Merged, ());
    model.play()?;
    model.verify()
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(350)
}

#[test]
fn the_stream_arrives_or_the_connection_ends_with_an_error() {
    reknit_tcp::proof::begin(20); // some segments that take a fast path also take the slow path
    // In the network of these cases no sender is told what was lost.
    let live = reknit_variants::VARIANTS.iter().filter(|variant| !variant.is_simulated_only());
    let variants: &Vec<&Variant> = &live.collect();
    assert!(cases() as usize * variants.len() >= 10_000 || std::env::var_os("PROPTEST_CASES").is_some());
    // Two threads share the variants; the cases of a variant are run separately.
    std::thread::scope(|scope| {
        for half in [0, 1] {
            scope.spawn(move || {
                for variant in variants.iter().skip(half).step_by(2) {
                    let mut runner = TestRunner::new(Runner {
                        cases: cases(),
                        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(KNOWN_CASES))),
                        ..Runner::default()
                    });
                    let whole = Cell::new(0);
                    let result = runner.run(&case(), |case| {
                        let arrived = play(&case, variant).map_err(TestCaseError::fail)?;
                        whole.set(whole.get() + u32::from(arrived));
                        Ok(())
                    });
                    if let Err(error) = result {
                        panic!("{}: {error}", variant.name);
                    }
                    // An error is justified only if the network lets almost nothing through.
                    assert!(whole.get() >= cases() * 95 / 100, "{}: {} whole", variant.name, whole.get());
                }
            });
        }
    });
}
