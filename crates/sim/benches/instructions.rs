//! Instructions per data segment, counted by callgrind: both ends, the path and the simulator, on fixed cases. Times vary between
//! runs and machines; instructions do not, so a change of a few percent is seen anywhere.
//!
//! `cargo bench -p reknit-sim --bench instructions` compares them with `instructions.toml`, and fails if a case needs over 3 %
//! more. Words after `--` select cases: `-- clean sack`. `-- --record` writes the file, `-- --table` prints it as a page of the study.
//! Without valgrind, all cases are skipped. CI runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use reknit_path::Profile;
use reknit_sim::{Scenario, run};
use reknit_units::{Duration, Instant};

/// More than the recorded instructions by this share is a failure.
const TOLERANCE: f64 = 0.03;
/// The variants of most cases: the base of all, and the three with most code.
const VARIANTS: [&str; 4] = ["sack", "linux", "reknit", "bbr"];
/// The variants of cases that compare paths or numbers of flows.
const BASE: &[&str] = &["sack"];

/// Traffic over a path.
struct Case {
    name: &'static str,
    /// For readers of the table.
    description: &'static str,
    /// The name of a profile, or the content of one.
    path: &'static str,
    /// Changes of the profile.
    set: &'static [&'static str],
    variants: &'static [&'static str],
    flows: u32,
    /// Simulated time, in milliseconds.
    duration: u64,
}

const GIGABIT: &str = r#"
    forward = [{ kind = "link", rate = "1 Gbit/s", delay = "5 ms", queue = "1 MB" }]
    reverse = [{ kind = "link", rate = "1 Gbit/s", delay = "5 ms" }]
"#;
const LATE: &str = r#"
    reverse = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }]
    [[forward]]
    kind = "link"
    rate = "100 Mbit/s"
    [[forward]]
    kind = "multipath"
    choice = "random"
    paths = [{ delay = "5 ms", weight = 9 }, { delay = "10 ms", weight = 1 }]
"#;
const LOST: &str = r#"
    forward = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }, { kind = "loss", probability = 0.01 }]
    reverse = [{ kind = "link", rate = "100 Mbit/s", delay = "5 ms" }]
"#;

/// The path of RR-TCP without delays and with room for the window, as in the comparison with ns-2.
const IN_ORDER: &[&str] =
    &["forward.delays.probability=0", "forward.bottleneck.rate=3.9 Mbit/s", "reverse.bottleneck.rate=3.9 Mbit/s"];

/// One flow of all variants for a second.
const CASE: Case =
    Case { name: "", description: "", path: "", set: &[], variants: &VARIANTS, flows: 1, duration: 1000 };

const CASES: [Case; 8] = [
    Case {
        name: "base",
        description: "three hops in order, an ACK for each segment: the run that is compared with ns-2",
        path: "rr-tcp",
        set: IN_ORDER,
        variants: BASE,
        duration: 20_000,
        ..CASE
    },
    Case {
        name: "clean",
        description: "the path `clean`: the queue overflows from time to time",
        path: "clean",
        duration: 2000,
        ..CASE
    },
    Case { name: "one-flow", description: "one flow at 1 Gbit/s", path: GIGABIT, duration: 300, ..CASE },
    Case { name: "many-flows", description: "200 flows at 1 Gbit/s", path: GIGABIT, flows: 200, duration: 300, ..CASE },
    Case {
        name: "thousand-flows",
        description: "1000 flows at 1 Gbit/s",
        path: GIGABIT,
        variants: BASE,
        flows: 1000,
        duration: 300,
        ..CASE
    },
    Case { name: "late", description: "one segment of ten arrives 5 ms late", path: LATE, duration: 2000, ..CASE },
    Case { name: "lost", description: "one segment of a hundred is lost", path: LOST, duration: 3000, ..CASE },
    Case {
        name: "two-paths-50ms",
        description: "segments alternate between two paths",
        path: "two-paths-50ms",
        duration: 15_000,
        ..CASE
    },
];

impl Case {
    fn scenario(&self, variant: &str) -> Scenario {
        let set: Vec<String> = self.set.iter().map(ToString::to_string).collect();
        let profile =
            if self.path.contains('=') { Profile::parse(self.name, self.path) } else { Profile::load(self.path, &set) };
        let profile = Arc::new(profile.expect("a valid profile"));
        let tcp = reknit_sim::tcp_config(&profile).expect("the defaults are valid");
        let variant = (reknit_variants::find(variant).expect("a variant").compose)();
        let mut scenario = Scenario::bulk(profile, tcp, variant, Duration::from_millis(self.duration), 1);
        let first = scenario.flows[0].clone();
        scenario.flows = vec![first; self.flows as usize];
        for (i, flow) in (0..).zip(&mut scenario.flows) {
            flow.start = Instant::ZERO + Duration::from_millis(100).mul_f64(f64::from(i) / f64::from(self.flows));
        }
        scenario
    }
}

/// What callgrind counts: runs the scenario, and returns the number of data segments that were sent.
#[inline(never)]
fn counted(scenario: &Scenario) -> u64 {
    run(scenario).flows.iter().map(|flow| flow.send.sent.total()).sum()
}

/// Runs `case` under callgrind. Returns the instructions per data segment; an error is what callgrind has printed.
fn instructions(case: &str, variant: &str) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*instructions*counted*"])
        .arg(program)
        .args(["run", case, variant])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let [printed, report] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let counted = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
    match (counted, printed.trim().parse::<u64>()) {
        (Some(counted), Ok(segments)) if counted > 0 && segments > 0 => Ok(counted / segments),
        _ => Err(format!("{printed}{report}")),
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.toml")
}

/// The recorded instructions of each case, by the name of the case and of the variant.
type Recorded = BTreeMap<String, BTreeMap<String, u64>>;

fn recorded() -> Recorded {
    std::fs::read_to_string(file()).map(|text| toml::from_str(&text).expect("a valid file")).unwrap_or_default()
}

fn record(counts: &Recorded) -> std::io::Result<()> {
    let text = toml::to_string(counts).expect("a table of numbers");
    std::fs::write(
        file(),
        format!(
            "# Instructions per data segment. Written by `cargo bench -p reknit-sim --bench instructions -- --record`.\n\n{text}"
        ),
    )
}

/// The recorded instructions as a page of the study.
#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn print_table(counts: &Recorded) {
    println!(
        "# Instructions\n\nInstructions for each data segment with its ACK: both ends, the path and the simulator, counted by \
         callgrind in an optimised build.\nUnlike times, they are the same on every machine. CI counts them again, and fails if a \
         case needs over {:.0} % more.\n",
        TOLERANCE * 100.0
    );
    println!(
        "| case | {} |\n|---|{}",
        VARIANTS.map(|name| format!("`{name}`")).join(" | "),
        "---|".repeat(VARIANTS.len())
    );
    for case in &CASES {
        let count = |variant| {
            counts.get(case.name).and_then(|counts| counts.get(variant)).map_or("-".to_owned(), u64::to_string)
        };
        println!("| {} | {} |", case.description, VARIANTS.map(count).join(" | "));
    }
}

/// Counts a case, and prints its row. False if it needs too much more than `before`.
#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn compare(case: &str, variant: &str, counts: &mut Recorded) -> bool {
    let before = counts.get(case).and_then(|counts| counts.get(variant)).copied();
    let left = format!("{case:<16} {variant:<8} {:>9}", before.map_or("-".to_owned(), |before| before.to_string()));
    match instructions(case, variant) {
        Ok(now) => {
            let change = before.map_or(0.0, |before| now as f64 / before as f64 - 1.0);
            println!("{left} {now:>9} {:>+6.1} %", change * 100.0);
            counts.entry(case.to_owned()).or_default().insert(variant.to_owned(), now);
            change <= TOLERANCE
        }
        Err(error) if error.starts_with("valgrind: ") => {
            println!("{left} skipped: {error}");
            true
        }
        Err(error) => {
            println!("{left} {error}");
            false
        }
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]
fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [run, name, variant] = words.as_slice()
        && run == "run"
    {
        let case = CASES.iter().find(|case| case.name == name).expect("a case");
        println!("{}", counted(&case.scenario(variant)));
        return ExitCode::SUCCESS;
    }
    if words == ["--table"] {
        print_table(&recorded());
        return ExitCode::SUCCESS;
    }
    let records = words.iter().any(|word| word == "--record");
    words.retain(|word| word != "--record");
    let names = || CASES.iter().map(|case| case.name).chain(VARIANTS);
    if let Some(word) = words.iter().find(|word| names().all(|name| name != **word)) {
        eprintln!("error: {word}: no such case or variant; allowed are {}", names().collect::<Vec<_>>().join(", "));
        return ExitCode::FAILURE;
    }
    let mut counts = recorded();
    println!("{:<16} {:<8} {:>9} {:>9} {:>8}", "case", "variant", "recorded", "now", "change");
    let all = CASES.iter().flat_map(|case| case.variants.iter().map(|variant| (case.name, *variant)));
    let chosen = all.filter(|(case, variant)| words.iter().all(|word| word == case || word == variant));
    let failed = chosen.filter(|(case, variant)| !compare(case, variant, &mut counts));
    let failed: Vec<String> = failed.map(|(case, variant)| format!("{case} {variant}")).collect();
    if records {
        record(&counts).expect("the file can be written");
    } else if !failed.is_empty() {
        let limit = TOLERANCE * 100.0;
        eprintln!("error: {}: over {limit:.0} % more than recorded, or not counted", failed.join(", "));
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
