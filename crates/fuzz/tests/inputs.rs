//! Runs every target with the inputs that are kept, and with thousands of changed ones, which are the same in every run.
//! `FUZZ_CHANGES` sets their number for each target. The fuzzers of `fuzz/` search further.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use reknit_fuzz::{TARGETS, Target};
use reknit_path::{Phases, Stream, StreamId};

/// The longest file that is changed.
const LONGEST: usize = 20_000;

/// The files of a directory of the repository, by name.
fn files(directory: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(directory);
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

fn inputs(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = files(&format!("fuzz/seeds/{}", target.name));
    inputs.extend(target.also.iter().flat_map(|directory| files(directory)));
    assert!(!inputs.is_empty(), "{} has no inputs", target.name);
    inputs
}

/// `input` with some bytes changed, removed, repeated or taken from `other`.
fn changed(input: &[u8], other: &[u8], random: &mut Stream) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u32 + 1) as usize;
        let len = (random.below(9) as usize).min(bytes.len() - at);
        match random.below(7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..at + len)),
            2 => bytes.splice(at..at, bytes[at..at + len].to_vec()).for_each(drop),
            3 if !other.is_empty() => {
                let from = random.below(other.len() as u32) as usize;
                let to = (from + random.below(60) as usize).min(other.len());
                bytes.splice(at..at + len, other[from..to].iter().copied()).for_each(drop);
            }
            4 => bytes.insert(at, random.bits() as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = match random.below(3) {
                        0 => *byte ^ 1 << random.below(8),
                        1 => [0, 1, 0x7f, 0x80, 0xff, b'9', b'-', b'"'][random.below(8) as usize],
                        _ => random.bits() as u8,
                    };
                }
            }
        }
    }
    bytes
}

fn holds(target: &Target, input: &[u8], what: &str) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let file = std::env::temp_dir().join(format!("reknit-fuzz-{}", target.name));
        fs::write(&file, input).unwrap();
        panic!("{}: {what} fails; the input is in {}", target.name, file.display());
    }
}

fn check(name: &str, usual_changes: u32) {
    let changes = std::env::var("FUZZ_CHANGES").map_or(usual_changes, |n| n.parse().expect("FUZZ_CHANGES is a number"));
    let number = TARGETS.iter().position(|target| target.name == name).unwrap();
    let target = &TARGETS[number];
    let inputs = inputs(target);
    for (i, input) in inputs.iter().enumerate() {
        holds(target, input, &format!("input {i}"));
    }
    let short: Vec<&Vec<u8>> = inputs.iter().filter(|input| input.len() <= LONGEST).collect();
    let mut random = StreamId { seed: 1, stage: number as u32, phases: Phases::Fixed }.stream(0);
    for i in 0..changes {
        let [input, other] = [(); 2].map(|()| short[random.below(short.len() as u32) as usize]);
        holds(target, &changed(input, other, &mut random), &format!("change {i}"));
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
    paths: 2000,
    variants: 1000,
    scenarios: 2000,
    scripts: 2000,
    captures: 1000,
}
