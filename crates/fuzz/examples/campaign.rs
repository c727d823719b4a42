//! Runs targets with changed inputs for some minutes, without the cost of measuring coverage:
//!
//! `cargo run --profile campaign -p reknit-fuzz --example campaign -- MINUTES SEED [TARGET...]`
//!
//! The targets take turns, each for the same time; without names, all of them run. The inputs are those that are kept in
//! `fuzz/seeds` and, where fuzzers have run, in `fuzz/corpus`, changed at random. Prints for each target how many inputs
//! it took and how many segments connections got. Ends at the first defect.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use reknit_fuzz::{Changes, TARGETS, Target};

/// How long a turn takes.
const TURN: Duration = Duration::from_secs(5);
/// How many random bytes an input may get at its end.
const TAIL: u32 = 2000;

struct Run {
    target: &'static Target,
    changes: Changes,
    inputs: u64,
    segments: u64,
    took: Duration,
}

impl Run {
    fn new(target: &'static Target, seed: u64) -> Result<Run, String> {
        let corpus = format!("fuzz/corpus/{}", target.name);
        let more = if std::path::Path::new(&corpus).is_dir() { vec![corpus] } else { Vec::new() };
        let changes = Changes::new(target, &more, seed).map_err(|error| format!("{}: {error}", target.name))?;
        Ok(Run { target, changes, inputs: 0, segments: 0, took: Duration::ZERO })
    }

    #[expect(clippy::disallowed_methods, reason = "a campaign takes some time")]
    fn turn(&mut self) -> Result<(), String> {
        let (began, segments) = (Instant::now(), reknit_fuzz::segments());
        while began.elapsed() < TURN {
            let input = self.changes.next(TAIL);
            self.changes.run(&input)?;
            self.inputs += 1;
        }
        self.segments += reknit_fuzz::segments() - segments;
        self.took += began.elapsed();
        Ok(())
    }
}

#[expect(clippy::print_stdout, reason = "a campaign prints its counts")]
fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str| -> Result<u64, String> {
        let value = arguments.next().ok_or(format!("{what} is missing; usage: campaign MINUTES SEED [TARGET...]"))?;
        value.parse().map_err(|_| format!("{what} is {value:?}, but must be a whole number"))
    };
    let (minutes, seed) = (number("MINUTES")?, number("SEED")?);
    let names: Vec<String> = arguments.collect();
    let allowed: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    if let Some(name) = names.iter().find(|name| !allowed.contains(&name.as_str())) {
        return Err(format!("unknown target {name:?}; allowed are {}", allowed.join(", ")));
    }
    let chosen = TARGETS.iter().filter(|target| names.is_empty() || names.iter().any(|name| name == target.name));
    let mut runs = chosen.map(|target| Run::new(target, seed)).collect::<Result<Vec<Run>, String>>()?;
    let turns = minutes * 60 / (TURN.as_secs() * runs.len() as u64);
    let result = (0..turns.max(1)).try_for_each(|_| runs.iter_mut().try_for_each(Run::turn));
    for Run { target, inputs, segments, took, .. } in &runs {
        let each_second = *inputs as f64 / took.as_secs_f64();
        println!("{:10} {inputs} inputs, {each_second:.0} per second, {segments} segments", target.name);
    }
    result
}

#[expect(clippy::print_stderr, reason = "a program prints its errors")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
