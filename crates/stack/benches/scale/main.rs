//! What a socket costs when there are many: memory of idle connections, time per segment, and a flood of SYNs. Prints the
//! tables of `docs/design/stack.md`.
//!
//! Each measurement runs in a new process, so that memory freed by one does not make the next look smaller.

mod pair;

use std::hint::black_box;
use std::process::Command;
use std::time::Duration as Time;

use nix::time::{ClockId, clock_gettime};
use pair::{BATCH, Pair};
use reknit_units::Duration;

const MANY: usize = 100_000;
const FEW: usize = 10;
/// Messages in each round of the measurement of time.
const MESSAGES: usize = 200_000;
const ROUNDS: usize = 5;
/// Each active connection sends a message this often, however many there are: they all have the same timers to wait for.
const PERIOD: Duration = Duration::from_secs(1);
const VARIANTS: [&str; 4] = ["linux", "reknit", "sack", "rack"];
/// SYNs of the flood.
const SYNS: u32 = 1_000_000;
/// Accesses to the array that time is compared with.
const ACCESSES: u32 = 2_000_000;

/// The processor time of this process so far, in seconds.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("POSIX has this clock");
    Time::from(time).as_secs_f64()
}

/// The memory of this process, in bytes.
fn memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<usize>().ok());
    kib.expect("a number") * 1024
}

/// Nanoseconds per segment, sent and received: `at_once` of the `active` connections, in no order, exchange messages at the
/// same time.
fn time_per_segment(pair: &mut Pair, active: usize, at_once: usize) -> f64 {
    let mut state = 1u64;
    let step = PERIOD * at_once as u64 / active as u64;
    let (mut packets, began) = (0, processor_time());
    let mut chosen = Vec::with_capacity(at_once);
    for _ in 0..MESSAGES / at_once {
        chosen.clear();
        while chosen.len() < at_once {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = (state >> 33) as usize % active;
            if !chosen.contains(&n) {
                chosen.push(n);
            }
        }
        pair.now = pair.now + step;
        packets += pair.run_timers();
        packets += pair.exchange_messages(&chosen);
    }
    (processor_time() - began) * 1e9 / packets as f64
}

/// Nanoseconds of one access to an array of `bytes`, where each depends on the one before.
fn time_of_access(bytes: usize) -> f64 {
    let lines = (bytes / 64).max(1);
    let array = vec![black_box(1u64); lines * 8]; // zeros would not be written
    let (mut best, mut at) = (f64::MAX, 1u64);
    for _ in 0..ROUNDS {
        let began = processor_time();
        for _ in 0..ACCESSES {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            at ^= array[((at >> 33) as usize % lines) * 8];
        }
        best = best.min((processor_time() - began) * 1e9 / f64::from(ACCESSES));
    }
    black_box(at);
    best
}

/// How many connections are active, of how many, and how many of them exchange messages at the same time.
const CASES: [(usize, usize, usize); 5] =
    [(FEW, FEW, 1), (FEW, MANY, 1), (MANY, MANY, BATCH), (MANY, MANY, 1), (FEW, FEW, FEW)];

/// The best of some rounds, in nanoseconds per segment, of each case; then an access to an array of as many bytes as many
/// connections take.
fn times(variant: &str) -> Vec<f64> {
    let before = memory();
    let mut many = Pair::new(MANY, variant);
    let bytes = memory() - before;
    let mut few = Pair::new(FEW, variant);
    let mut best = vec![f64::MAX; CASES.len()];
    for _ in 0..ROUNDS {
        for (best, (active, of, at_once)) in best.iter_mut().zip(CASES) {
            let pair = if of == MANY { &mut many } else { &mut few };
            *best = best.min(time_per_segment(pair, active, at_once));
        }
    }
    drop(many);
    best.push(time_of_access(bytes));
    best
}

/// Bytes per end: just opened, then idle, and idle again after 20,000 bytes.
fn memory_per_end(variant: &str) -> [f64; 3] {
    let before = memory();
    let mut pair = Pair::new(MANY, variant);
    let per_end = |now: usize| (now - before) as f64 / (2 * MANY) as f64;
    let fresh = per_end(memory());
    pair.idle(Duration::from_secs(10));
    let idle = per_end(memory());
    pair.transfer(20_000);
    pair.idle(Duration::from_secs(10));
    [fresh, idle, per_end(memory())]
}

/// A million SYNs from as many addresses, a microsecond apart, and a hundred honest clients among them, each of which
/// exchanges a message: bytes of memory after the first tenth, nanoseconds per SYN, and the number of honest clients that got
/// an answer.
fn flood() -> [f64; 3] {
    let mut pair = Pair::new(0, "reknit");
    let (mut before, mut began, mut honest) = (0, 0.0, 0);
    for n in 0..SYNS {
        if n == SYNS / 10 {
            (before, began) = (memory(), processor_time());
        }
        pair.take_syn(n);
        if n % (SYNS / 100) == 0 {
            honest += u32::from(pair.visit());
        }
    }
    let counted = f64::from(SYNS - SYNS / 10);
    [memory().saturating_sub(before) as f64, (processor_time() - began) * 1e9 / counted, f64::from(honest)]
}

/// Runs this program with `arguments`; the numbers that it prints.
fn separately(arguments: [&str; 2]) -> Vec<f64> {
    let program = std::env::current_exe().expect("the program has a path");
    let output = Command::new(program).args(arguments).output().expect("the program can run");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().map(|word| word.parse().expect("a number")).collect()
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let numbers = match arguments[..] {
        ["memory", variant] => memory_per_end(variant).to_vec(),
        ["time", variant] => times(variant),
        ["flood", _] => flood().to_vec(),
        _ => return tables(),
    };
    println!("{}", numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
}

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn tables() {
    let row = |name: &str, cells: Vec<String>| println!("| {name} | {} |", cells.join(" | "));
    row("", VARIANTS.map(|variant| format!("`{variant}`")).to_vec());
    println!("|---|{}", "---|".repeat(VARIANTS.len()));
    let sizes = VARIANTS.map(|variant| separately(["memory", variant]));
    let bytes = |i: usize| sizes.iter().map(|size| format!("{:.0} B", size[i])).collect();
    row("memory of an end, just opened", bytes(0));
    row("the same, idle", bytes(1));
    row("idle again after 20,000 bytes", bytes(2));
    let times = VARIANTS.map(|variant| separately(["time", variant]));
    let cell = |i: usize| times.iter().map(|time| format!("{:.0} ns ({:.2})", time[i], time[i] / time[0])).collect();
    for (i, (active, of, at_once)) in CASES.into_iter().enumerate() {
        row(&format!("time per segment: {active} of {of} connections active, {at_once} at a time"), cell(i));
    }
    row(
        "a random access to an array of the same size",
        times.iter().map(|time| format!("{:.0} ns", time[CASES.len()])).collect(),
    );
    let syns = separately(["flood", ""]);
    println!("\n| {SYNS} SYNs from as many addresses | |\n|---|---|");
    println!("| more memory than after the first tenth | {:.0} KiB |", syns[0] / 1024.0);
    println!("| time per SYN, with the answer | {:.0} ns |", syns[1]);
    println!("| of 100 honest clients meanwhile got an answer | {:.0} |", syns[2]);
}
