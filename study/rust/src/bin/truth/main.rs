//! Are the verdicts of `reknit analyze` right? Compares them with what really happened to the packets of simulated
//! transfers, and of transfers between two Linux kernels, captured at the sender, at the receiver and between them, and
//! writes study/results/truth.md:
//!
//! ```sh
//! sudo study/benches/truth.py captures                              # transfers of the kernel, in real time
//! cargo run --release -p reknit-study --bin truth -- --live captures study/results/truth.md
//! ```
//!
//! `--write DIR` also writes the simulated captures and what happened to each packet (`study/benches/tshark_verdicts.py`).
//! `--only PATH` and `--variant V` take only these, and `--show N` prints wrong
//! verdicts.

mod found;
mod live;
mod page;
#[path = "../../../../../crates/trace/tests/records/mod.rs"]
mod records;
#[path = "../../../../../crates/trace/tests/truth/mod.rs"]
mod truth;
#[path = "../../../../../crates/trace/tests/wrapping/mod.rs"]
mod wrapping;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use found::Random;
use page::{Page, Row};
use reknit_trace::{Analyzer, Options};
use truth::log::{Log, MIDDLE, RECEIVER, SENDER, Sent};
use truth::world::{Transfer, run};
use truth::{Claim, PLACES, Told, judge};

/// Paths that lose, delay, reorder and copy packets, alone and together.
const PATHS: [&str; 24] = [
    "bursty-loss",
    "diffserv",
    "displaced",
    "drop-bursts",
    "duplicates",
    "fiber-lte",
    "gcp-vm",
    "gvisor-30ms",
    "late-duplicates",
    "leo",
    "lossy",
    "mqvpn-jit-5",
    "quicgo-home",
    "random-delay",
    "reordered-and-lossy",
    "route-flap",
    "rr-tcp",
    "satellite-arq",
    "striping",
    "sudden-delays",
    "switch-planes",
    "two-paths-200ms",
    "two-paths-50ms",
    "wireless-arq",
];
const VARIANTS: [&str; 6] = ["sack", "rack", "pr", "linux", "bbr", "reknit"];
/// A capture in the middle is between one of the paths and the one that is this many further in the list.
const FURTHER: usize = 7;
/// A transfer ends when so many segments are acknowledged, or after this time.
const SEGMENTS: u64 = 12_000;
const SECONDS: u64 = 180;

struct Args {
    page: Option<PathBuf>,
    live: Option<PathBuf>,
    write: Option<PathBuf>,
    only: Vec<String>,
    variants: Vec<String>,
    show: usize,
    seed: u64,
}

/// True if all are taken, or `name` is among those that are.
fn takes(only: &[String], name: &str) -> bool {
    only.is_empty() || only.iter().any(|only| only == name)
}

impl Args {
    fn read() -> Result<Args, String> {
        let mut args =
            Args { page: None, live: None, write: None, only: Vec::new(), variants: Vec::new(), show: 0, seed: 1 };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--live" => args.live = Some(value()?.into()),
                "--write" => args.write = Some(value()?.into()),
                "--only" => args.only.push(value()?),
                "--variant" => args.variants.push(value()?),
                "--show" => args.show = number(&value()?)? as usize,
                "--seed" => args.seed = number(&value()?)?,
                page if !page.starts_with('-') => args.page = Some(page.into()),
                other => {
                    return Err(format!(
                        "{other} is no option; allowed are --live, --write, --only, --variant, --show, --seed"
                    ));
                }
            }
        }
        Ok(args)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

fn main() -> ExitCode {
    match Args::read().and_then(|args| compare(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &Args) -> Result<(), String> {
    let mut page = Page::default();
    let mut random = Random(args.seed);
    for (i, path) in PATHS.iter().enumerate().filter(|(_, path)| takes(&args.only, path)) {
        let mut row = Row::new(path);
        for variant in VARIANTS.into_iter().filter(|variant| takes(&args.variants, variant)) {
            let further = PATHS[(i + FURTHER) % PATHS.len()];
            let runs: [(&[&str], &[usize]); 2] = [(&[path], &[SENDER, RECEIVER]), (&[path, further], &[MIDDLE])];
            for (parts, taps) in runs {
                let transfer = Transfer {
                    parts,
                    variant,
                    segments: SEGMENTS,
                    seconds: SECONDS,
                    seed: args.seed,
                    has_ip_ids: true,
                };
                let captured = run(&transfer);
                for tap in taps {
                    let name = format!("{path}-{variant}");
                    check(args, &name, &captured.files[*tap], &captured.log, *tap, &mut row)?;
                    found::judge_all(&captured.files[*tap], &captured.log, *tap, &mut random, &mut page.found);
                }
            }
        }
        page.add_simulated(row);
    }
    if let Some(folder) = &args.live {
        for live in live::all(folder)? {
            let mut row = Row::new(&live.name);
            for tap in [SENDER, MIDDLE, RECEIVER] {
                check(args, &live.name, &live.files[tap], &live.log, tap, &mut row)?;
            }
            page.add_live(row);
        }
    }
    let text = page.text(&VARIANTS);
    match &args.page {
        Some(file) => page::write(file, &text),
        None => std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string()),
    }
}

/// Judges one capture.
fn check(args: &Args, name: &str, file: &[u8], log: &Log, tap: usize, row: &mut Row) -> Result<(), String> {
    let judged = judge(file, log, tap);
    let place = PLACES[tap];
    for told in judged.packets.iter().filter(|told| told.is_wrong()).take(args.show) {
        let sent = sent(log, tap, told.frame);
        eprintln!("{name}, {place:?}, frame {}: {:?}, said {:?}", told.frame, told.truth, told.said);
        for other in log.sent.iter().filter(|other| other.segment == sent.segment) {
            eprintln!("    {other:?}");
        }
    }
    let mut analyzer = Analyzer::new(Options::default());
    analyzer.read(file, &mut |_| {}).map_err(|error| format!("{name}: {error}"))?;
    let inferred = analyzer.finish(&mut |_| {});
    let is_found = inferred.directions.first().is_some_and(|direction| direction.captured_at == place);
    row.add(tap, &judged.confusion, is_found);
    match &args.write {
        Some(folder) => write(&folder.join(format!("{name}-{}", page::PLACES[tap])), file, log, tap, &judged.packets),
        None => Ok(()),
    }
}

/// The packet with data in a frame.
fn sent(log: &Log, tap: usize, frame: u64) -> &Sent {
    &log.sent[log.frames[tap][frame as usize - 1].expect("a packet with data").serial]
}

/// Writes a capture, and beside it what happened to each packet with data, and what is said about it.
fn write(file: &Path, capture: &[u8], log: &Log, tap: usize, packets: &[Told]) -> Result<(), String> {
    let names = |claims: BTreeSet<Claim>| {
        let name = |claim: &Claim| format!("{:?}{}", claim.label, if claim.is_after { " after" } else { "" });
        claims.iter().map(name).collect::<Vec<_>>().join(";").to_lowercase()
    };
    let mut text = String::from("frame,segment,transmission,happened,said\n");
    for told in packets {
        let Sent { segment, number, .. } = sent(log, tap, told.frame);
        let (happened, said) = (names(told.truth.clone()), names(told.claims()));
        writeln!(text, "{},{segment},{number},{happened},{said}", told.frame).map_err(|error| error.to_string())?;
    }
    page::write_bytes(&file.with_extension("pcap"), capture)?;
    page::write(&file.with_extension("csv"), &text)
}
