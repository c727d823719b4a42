//! Inputs for the targets: those that are kept, changed at random.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use reknit_path::{Phases, Stream, StreamId};

use crate::{TARGETS, Target};

/// The longest file that is changed.
const LONGEST: usize = 20_000;

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a directory of the repository, by name.
fn files(directory: &str) -> io::Result<Vec<Vec<u8>>> {
    let entries: io::Result<Vec<_>> = fs::read_dir(root().join(directory))?.collect();
    let mut paths: Vec<PathBuf> = entries?.iter().map(fs::DirEntry::path).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(fs::read).collect()
}

/// Changed inputs of a target, the same for the same seed.
pub struct Changes {
    target: &'static Target,
    /// The inputs that are kept.
    inputs: Vec<Vec<u8>>,
    random: Stream,
}

impl Changes {
    /// Reads the inputs of `target` from `fuzz/seeds`, the target's further directory, and the directories `more`.
    ///
    /// # Errors
    /// A directory or a file cannot be read.
    ///
    /// # Panics
    /// If `target` is none of [`TARGETS`], or has no inputs.
    pub fn new(target: &'static Target, more: &[String], seed: u64) -> io::Result<Changes> {
        let seeds = format!("fuzz/seeds/{}", target.name);
        let mut inputs = Vec::new();
        for directory in [seeds.as_str()].into_iter().chain(target.also).chain(more.iter().map(String::as_str)) {
            inputs.extend(files(directory)?);
        }
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        let stage = TARGETS.iter().position(|one| one.name == target.name).expect("a target of TARGETS") as u32;
        Ok(Changes { target, inputs, random: StreamId { seed, stage, phases: Phases::Fixed }.stream(0) })
    }

    /// The inputs that are kept.
    #[must_use]
    pub fn kept(&self) -> &[Vec<u8>] {
        &self.inputs
    }

    fn one(&mut self) -> usize {
        loop {
            let number = self.random.below(self.inputs.len() as u32) as usize;
            if self.inputs[number].len() <= LONGEST {
                return number;
            }
        }
    }

    /// The next input. Every eighth gets up to `tail` random bytes at its end.
    pub fn next(&mut self, tail: u32) -> Vec<u8> {
        let [input, other] = [(); 2].map(|()| self.one());
        let mut bytes = changed(&self.inputs[input], &self.inputs[other], &mut self.random);
        if tail > 0 && self.random.below(8) == 0 {
            bytes.extend((0..self.random.below(tail)).map(|_| self.random.bits() as u8));
        }
        bytes
    }

    /// Runs the target with `input`.
    ///
    /// # Errors
    /// It finds a defect. The input is kept in the file that the message names.
    pub fn run(&self, input: &[u8]) -> Result<(), String> {
        if catch_unwind(AssertUnwindSafe(|| (self.target.run)(input))).is_ok() {
            return Ok(());
        }
        let file = std::env::temp_dir().join(format!("reknit-fuzz-{}", self.target.name));
        match fs::write(&file, input) {
            Ok(()) => Err(format!("{}: a defect; the input is in {}", self.target.name, file.display())),
            Err(error) => Err(format!("{}: a defect; {}: {error}", self.target.name, file.display())),
        }
    }
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
