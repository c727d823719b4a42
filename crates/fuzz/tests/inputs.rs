//! Runs every target with the inputs that are kept, and with thousands of changed ones, which are the same in every run.
//! `FUZZ_CHANGES` sets their number for each target. The fuzzers of `fuzz/` and the example `campaign` search further.

use std::fs;
use std::path::Path;

use reknit_fuzz::{Changes, TARGETS};

fn check(name: &str, usual_changes: u32) {
    let changes = std::env::var("FUZZ_CHANGES").map_or(usual_changes, |n| n.parse().expect("FUZZ_CHANGES is a number"));
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let mut inputs = Changes::new(target, &[], 1).unwrap();
    for (i, input) in inputs.kept().iter().enumerate() {
        inputs.run(input).unwrap_or_else(|error| panic!("input {i}: {error}"));
    }
    for i in 0..changes {
        let input = inputs.next(0);
        inputs.run(&input).unwrap_or_else(|error| panic!("change {i}: {error}"));
    }
}

macro_rules! targets {
    ($($name:ident: $changes:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), $changes);
            }
        )+

        #[test]
        fn every_target_is_here_and_in_the_fuzzer() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),+]);
            let fuzzers = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/Cargo.toml")).unwrap();
            for name in names {
                assert!(fuzzers.contains(&format!("name = \"{name}\"")), "{name}");
            }
        }
    };
}

targets! {
    packets: 20_000,
    engine: 1500,
    stack: 1000,
    forwarding: 1000,
    paths: 2000,
    variants: 1000,
    scenarios: 2000,
    scripts: 2000,
    captures: 1000,
    qlogs: 2000,
    recovery: 4000,
}
