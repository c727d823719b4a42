//! The page with the results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::truth::{Confusion, Label};

pub(crate) const PLACES: [&str; 3] = ["sender", "middle", "receiver"];
const LABELS: [(Option<Label>, &str); 5] = [
    (Some(Label::Lost), "lost"),
    (Some(Label::Reordered), "reordered"),
    (Some(Label::Duplicated), "duplicated"),
    (Some(Label::Spurious), "spurious retransmission"),
    (None, "nothing"),
];

/// All captures of one path.
#[derive(Debug, Default)]
pub(crate) struct Row {
    name: String,
    places: [Confusion; 3],
    /// Captures, and those whose place is inferred rightly.
    captures: [u64; 3],
    found: [u64; 3],
}

impl Row {
    pub(crate) fn new(name: &str) -> Row {
        Row { name: name.to_owned(), ..Row::default() }
    }

    pub(crate) fn add(&mut self, tap: usize, confusion: &Confusion, is_found: bool) {
        add(&mut self.places[tap], confusion);
        self.captures[tap] += 1;
        self.found[tap] += u64::from(is_found);
    }
}

fn add(sum: &mut Confusion, other: &Confusion) {
    for (cell, count) in &other.cells {
        *sum.cells.entry(*cell).or_default() += count;
    }
    for (truth, count) in &other.unknown {
        *sum.unknown.entry(*truth).or_default() += count;
    }
    for (sum, count) in sum.why.iter_mut().zip(other.why) {
        *sum += count;
    }
    sum.other_side += other.other_side;
}

/// All results.
#[derive(Debug, Default)]
pub(crate) struct Page {
    simulated: Vec<Row>,
    live: Vec<Row>,
}

impl Page {
    pub(crate) fn add_simulated(&mut self, row: Row) {
        self.simulated.push(row);
    }

    pub(crate) fn add_live(&mut self, row: Row) {
        self.live.push(row);
    }

    pub(crate) fn text(&self, variants: &[&str]) -> String {
        let all: u64 =
            self.simulated.iter().chain(&self.live).flat_map(|row| &row.places).map(Confusion::happened).sum();
        let variants: Vec<String> = variants.iter().map(|variant| format!("`{variant}`")).collect();
        let mut text = format!(
            "# Are the verdicts right?\n\nVerdicts of `reknit analyze`, compared with what really happened to {all} packets that were \
             lost, late, duplicated\nor retransmitted spuriously. `study/rust/src/main.rs` says how to regenerate this page.\n\n\
             * {} simulated paths with the variants {}. Each\n  transfer has {} segments, or takes {} s. The captures \
             between the ends are between the path and another one of the list.\n  IP identifications count packets, as those of \
             Linux do.\n\
             * {} transfers between two Linux kernels, with CUBIC and BBR, over two emulated paths one after the other, captured \
             before,\n  between and behind them. What happened to a packet is where it was seen.\n\n\
             The place of the capture is given; the last line of each part says how often it is inferred correctly. Before the \
             receiver, a\npacket that its TCP discards for an old timestamp (PAWS) counts as lost, because it looks the same as \
             a lost one.\n",
            self.simulated.len(),
            variants.join(", "),
            crate::SEGMENTS,
            crate::SECONDS,
            self.live.len(),
        );
        Page::section(&mut text, "Simulated transfers", &self.simulated);
        if !self.live.is_empty() {
            Page::section(&mut text, "Transfers between two Linux kernels", &self.live);
        }
        text
    }

    fn section(text: &mut String, title: &str, rows: &[Row]) {
        let _ = writeln!(text, "\n## {title}");
        for (tap, place) in PLACES.iter().enumerate() {
            let mut sum = Confusion::default();
            for row in rows {
                add(&mut sum, &row.places[tap]);
            }
            let at = if tap == 1 { "Between the ends".to_owned() } else { format!("At the {place}") };
            let _ = write!(text, "\n### {at}\n\n{}", table(&sum));
        }
        let _ = write!(
            text,
            "\n### By path\n\nEvents, the share of verdicts that are right, and the share of events with a verdict, %:\n\n| path | \
             sender: events | right | decided | middle: events | right | decided | receiver: events | right | decided |\n\
             |---|---|---|---|---|---|---|---|---|---|\n"
        );
        for row in rows {
            let cells = row
                .places
                .each_ref()
                .map(|c| format!("{} | {} | {}", c.happened(), percent(c.right()), percent(c.committed())));
            let _ = writeln!(text, "| `{}` | {} |", row.name, cells.join(" | "));
        }
        let _ = write!(text, "\nThe place of the capture is inferred correctly in ");
        let found = [0, 1, 2].map(|tap| {
            let sum = |of: fn(&Row) -> &[u64; 3]| rows.iter().map(|row| of(row)[tap]).sum::<u64>();
            format!("{} of {} captures ({})", sum(|row| &row.found), sum(|row| &row.captures), PLACES[tap])
        });
        let _ = writeln!(text, "{}.", found.join(", "));
    }
}

/// Per cent, not rounded up to 100.
fn percent(share: f64) -> String {
    format!("{:.2}", (share * 1e4).floor() / 100.0)
}

/// What happened and what was said.
fn table(confusion: &Confusion) -> String {
    let names = LABELS.map(|(_, name)| name).join(" | ");
    let mut text = format!("| happened, said | {names} | cannot tell |\n|---|---|---|---|---|---|---|\n");
    let none = BTreeMap::new();
    let unknown = if confusion.unknown.is_empty() { &none } else { &confusion.unknown };
    for (truth, name) in LABELS {
        let _ = write!(text, "| {name} |");
        for (said, _) in LABELS {
            let count = confusion.cells.get(&(truth, said)).copied().unwrap_or_default();
            let _ = if truth.is_none() && said.is_none() { write!(text, " |") } else { write!(text, " {count} |") };
        }
        let _ = writeln!(text, " {} |", unknown.get(&truth).copied().unwrap_or_default());
    }
    let _ = write!(
        text,
        "\nOf {} events, {} % have a verdict; of the verdicts, {} % are right.",
        confusion.happened(),
        percent(confusion.committed()),
        percent(confusion.right()),
    );
    if confusion.other_side > 0 {
        let _ = write!(text, " {} are wrong only about the side of the capture.", confusion.other_side);
    }
    let [right, wrong, untold] = confusion.why;
    if right + wrong + untold > 0 {
        let _ = write!(
            text,
            " The cause of a spurious\nretransmission is right {right} times, wrong {wrong} times, and unknown {untold} times."
        );
    }
    text.push('\n');
    text
}

pub(crate) fn write(file: &Path, text: &str) -> Result<(), String> {
    write_bytes(file, text.as_bytes())
}

pub(crate) fn write_bytes(file: &Path, bytes: &[u8]) -> Result<(), String> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::write(file, bytes).map_err(|error| format!("{}: {error}", file.display()))
}
