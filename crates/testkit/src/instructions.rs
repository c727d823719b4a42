//! Benchmarks that count instructions with callgrind. Times vary between runs and machines; instructions do not, so a change of a
//! few percent is seen anywhere.
//!
//! Each of a benchmark's cases is compared with its `instructions.toml`, and the program fails if one needs over 3 % more. Words
//! after `--` select cases: `-- clean sack`. `-- --record` writes the file, `-- --table` prints it as a part of a page of the study.
//! Without valgrind, all cases are skipped. CI runs them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// More than the recorded instructions by this share is a failure.
const TOLERANCE: f64 = 0.03;

/// What is counted. Returns how many segments or packets it was, by which the instructions are divided.
pub type Work = Box<dyn FnOnce() -> u64>;

/// A row of the table.
pub struct Case {
    /// What selects it on the command line.
    pub name: &'static str,
    /// For readers of the table.
    pub description: &'static str,
    /// Those of the benchmark's columns that it has.
    pub columns: &'static [&'static str],
    /// Prepares the work of a column; this is not counted.
    pub prepare: Box<dyn Fn(&str) -> Work>,
}

/// Cases that share a table.
pub struct Benchmark {
    /// Stands above the table: a heading, and what is divided by what.
    pub introduction: &'static str,
    /// All columns of the table.
    pub columns: &'static [&'static str],
    /// The rows.
    pub cases: Vec<Case>,
    /// Where the instructions are recorded.
    pub file: PathBuf,
}

/// The recorded instructions, by the name of the case and of the column.
type Recorded = BTreeMap<String, BTreeMap<String, u64>>;

/// What callgrind counts.
#[inline(never)]
fn counted(work: Work) -> u64 {
    work()
}

/// Runs a case of this program under callgrind. Returns the instructions per segment; an error is what callgrind has printed.
fn instructions(case: &str, column: &str) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*instructions*counted*"])
        .arg(program)
        .args(["run", case, column])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let [printed, report] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let counted = report.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
    match (counted, printed.trim().parse::<u64>()) {
        (Some(counted), Ok(segments)) if counted > 0 && segments > 0 => Ok(counted / segments),
        _ => Err(format!("{printed}{report}")),
    }
}

#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints")]
impl Benchmark {
    /// Does what the command line says.
    ///
    /// # Panics
    ///
    /// If the file cannot be read or written, or if a case does not exist.
    #[must_use]
    pub fn main(&self) -> ExitCode {
        let mut words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
        if let [run, name, column] = words.as_slice()
            && run == "run"
        {
            let case = self.cases.iter().find(|case| case.name == name).expect("a case");
            println!("{}", counted((case.prepare)(column)));
            return ExitCode::SUCCESS;
        }
        if words == ["--table"] {
            self.print_table(&self.recorded());
            return ExitCode::SUCCESS;
        }
        let records = words.iter().any(|word| word == "--record");
        words.retain(|word| word != "--record");
        let names = || self.cases.iter().map(|case| case.name).chain(self.columns.iter().copied());
        if let Some(word) = words.iter().find(|word| names().all(|name| name != **word)) {
            eprintln!("error: {word}: no such case or column; allowed are {}", names().collect::<Vec<_>>().join(", "));
            return ExitCode::FAILURE;
        }
        let mut counts = self.recorded();
        println!("{:<18} {:<8} {:>9} {:>9} {:>8}", "case", "column", "recorded", "now", "change");
        let all = self.cases.iter().flat_map(|case| case.columns.iter().map(|column| (case.name, *column)));
        let chosen = all.filter(|(case, column)| words.iter().all(|word| word == case || word == column));
        let failed = chosen.filter(|(case, column)| !compare(case, column, &mut counts));
        let failed: Vec<String> = failed.map(|(case, column)| format!("{case} {column}")).collect();
        if records {
            self.record(&counts);
        } else if !failed.is_empty() {
            let limit = TOLERANCE * 100.0;
            eprintln!("error: {}: over {limit:.0} % more than recorded, or not counted", failed.join(", "));
            return ExitCode::FAILURE;
        }
        ExitCode::SUCCESS
    }

    fn recorded(&self) -> Recorded {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", self.file.display()))
    }

    fn record(&self, counts: &Recorded) {
        let text = toml::to_string(counts).expect("a table of numbers");
        let comment =
            "# Instructions per segment or packet. Written by `cargo bench --bench instructions -- --record`.";
        std::fs::write(&self.file, format!("{comment}\n\n{text}"))
            .unwrap_or_else(|error| panic!("{}: {error}", self.file.display()));
    }

    fn print_table(&self, counts: &Recorded) {
        println!("{}\n", self.introduction);
        let columns: Vec<String> = self.columns.iter().map(|name| format!("`{name}`")).collect();
        println!("| case | {} |\n|---|{}", columns.join(" | "), "---|".repeat(columns.len()));
        for case in &self.cases {
            let recorded = counts.get(case.name);
            let count =
                |column: &&str| recorded.and_then(|counts| counts.get(*column)).map_or("-".to_owned(), u64::to_string);
            let counts: Vec<String> = self.columns.iter().map(count).collect();
            println!("| {} | {} |", case.description, counts.join(" | "));
        }
        println!();
    }
}

/// Counts a case, and prints its row. False if it needs too much more than recorded.
#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn compare(case: &str, column: &str, counts: &mut Recorded) -> bool {
    let before = counts.get(case).and_then(|counts| counts.get(column)).copied();
    let left = format!("{case:<18} {column:<8} {:>9}", before.map_or("-".to_owned(), |before| before.to_string()));
    match instructions(case, column) {
        Ok(now) => {
            let change = before.map_or(0.0, |before| now as f64 / before as f64 - 1.0);
            println!("{left} {now:>9} {:>+6.1} %", change * 100.0);
            counts.entry(case.to_owned()).or_default().insert(column.to_owned(), now);
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
