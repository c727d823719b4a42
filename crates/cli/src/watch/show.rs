//! The table of a terminal, and the lines of everything else.

use std::collections::BTreeMap;
use std::fmt::Write;

use reknit_trace::{DirectionReport, Incident, MAX_FLOWS, Totals};
use reknit_units::Duration;

use super::State;
use crate::analyze::estimated;
use crate::output::{how_many, number, per_cent, whole};
use crate::table::{self, Align, Column, Screen};

/// Connections in the table and in the lines of one second.
const MAX_ROWS: usize = 20;
/// Moves to the upper left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What is shown, second by second.
pub(super) struct WatchView {
    name: String,
    is_terminal: bool,
    seconds: u64,
    /// Seconds without packets.
    quiet: u64,
    last: Totals,
    drops: u64,
    /// Counts of the connections at the last tick, by their number and end.
    before: BTreeMap<(u32, u8), Counts>,
}

/// What is compared with the last second.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Counts {
    acknowledged: u64,
    events: u64,
}

impl WatchView {
    pub(super) fn new(name: String, is_terminal: bool) -> WatchView {
        let (last, before) = (Totals::default(), BTreeMap::new());
        WatchView { name, is_terminal, seconds: 0, quiet: 0, last, drops: 0, before }
    }

    /// A second has passed: what to print.
    pub(super) fn tick(&mut self, state: &mut State) -> String {
        self.seconds += 1;
        self.quiet = if std::mem::take(&mut state.has_new_packets) { 0 } else { self.quiet + 1 };
        // While no packets come, the time passes too.
        let now = state.watcher.now() + Duration::from_secs(u64::from(self.quiet > 1));
        state.watcher.on_tick(now);
        let worst = state.watcher.worst(MAX_FLOWS);
        let text = if self.is_terminal {
            format!(
                "{CLEAR}{}\n\n{}",
                self.head(state),
                Self::table(&worst, &|direction| self.rate(direction), Screen::stdout())
            )
        } else {
            self.lines(&worst, state)
        };
        self.before = worst.iter().map(|direction| ((direction.stream, direction.end), counts(direction))).collect();
        (self.last, self.drops) = (state.watcher.totals(), state.drops);
        text
    }

    /// The watch is over: the last table, and what is missing.
    pub(super) fn end(&self, state: &State) -> String {
        let worst = state.watcher.worst(MAX_ROWS);
        let totals = state.watcher.totals();
        let mut text = format!(
            "\n{}: {} TCP packets of {} in {} s; {} lost, {} late, {} duplicated, {} retransmitted spuriously, {} \
             without a verdict\n",
            self.name,
            whole(totals.tcp_packets),
            connections(totals.flows),
            self.seconds,
            whole(totals.lost),
            whole(totals.reordered),
            whole(totals.duplicated),
            whole(totals.spurious),
            whole(totals.cannot_tell),
        );
        if let Some(incidents) = incidents(&totals) {
            let _ = writeln!(text, "What happened to connections: {incidents}.");
        }
        if state.drops > 0 {
            let _ = writeln!(
                text,
                "The kernel dropped {} because this program was too slow; verdicts on their connections may be missing or wrong.",
                how_many(state.drops, "packet")
            );
        }
        if totals.copies > 0 {
            let _ = writeln!(text, "{} left out: copies, captured before.", how_many(totals.copies, "packet"));
        }
        if totals.forgotten > 0 {
            let _ = writeln!(
                text,
                "{} dropped from the table, because there were more than {}.",
                connections(totals.forgotten),
                whole(MAX_FLOWS as u64)
            );
        }
        if !self.is_terminal && !worst.is_empty() {
            let _ = write!(text, "\n{}", Self::table(&worst, &|direction| direction.goodput_mbit_s, Screen::stdout()));
        }
        text
    }

    fn head(&self, state: &State) -> String {
        let totals = state.watcher.totals();
        let mut text = format!(
            "{}: {}, {}/s, {} Mbit/s",
            self.name,
            connections(state.watcher.len() as u64),
            how_many(totals.tcp_packets - self.last.tcp_packets, "packet"),
            number((totals.bytes - self.last.bytes) as f64 * 8e-6),
        );
        if state.drops > 0 {
            let _ = write!(text, "; the kernel dropped {}", how_many(state.drops, "packet"));
        }
        if totals.forgotten > 0 {
            let _ = write!(text, "; {} dropped from the table", connections(totals.forgotten));
        }
        text
    }

    /// `rate`: of a connection, Mbit/s.
    fn table(worst: &[DirectionReport], rate: &dyn Fn(&DirectionReport) -> f64, screen: Screen) -> String {
        if worst.is_empty() {
            return "No packet was lost, late or retransmitted spuriously.\n".to_owned();
        }
        let of = |title, rank, align, cell: &dyn Fn(&DirectionReport) -> String| {
            Column::of(title, rank, align, worst.iter().take(MAX_ROWS), cell)
        };
        let left = |title, rank, cell: &dyn Fn(&DirectionReport) -> String| of(title, rank, Align::Left, cell);
        let right = |title, rank, cell: &dyn Fn(&DirectionReport) -> String| of(title, rank, Align::Right, cell);
        let columns = [
            left("from", 0, &|d| d.from.clone()),
            left("to", 1, &|d| d.to.clone()),
            right("Mbit/s", 0, &|d| number(rate(d))),
            right("lost", 0, &|d| whole(d.verdicts.lost)),
            right("late", 0, &|d| whole(d.verdicts.reordered)),
            right("places p99", 2, &|d| d.reordering.extent_p99.map_or(String::new(), whole)),
            right("ms p99", 1, &|d| d.reordering.late_p99_ms.map_or(String::new(), number)),
            right("spurious", 0, &|d| whole(d.verdicts.spurious)),
            right("cannot tell", 3, &|d| whole(d.verdicts.cannot_tell)),
            right("false reductions", 1, &|d| whole(d.cost.false_reductions)),
            right("cost, Mbit/s", 1, &|d| cost(d)),
            right("incidents", 2, &|d| whole(d.incidents.iter().map(|incident| incident.times).sum())),
            right("waited", 2, &|d| per_cent((d.waited_s / d.duration_s.max(1e-9)).min(1.0))),
        ];
        table::render(&columns, screen)
    }

    /// Mbit/s acknowledged during the last second; on average so far, if nothing had happened to the connection before.
    fn rate(&self, direction: &DirectionReport) -> f64 {
        let before = self.before.get(&(direction.stream, direction.end));
        before.map_or(direction.goodput_mbit_s, |before| {
            direction.acknowledged_bytes.saturating_sub(before.acknowledged) as f64 * 8e-6
        })
    }

    /// A line for each connection to which something has happened in the last second.
    fn lines(&self, worst: &[DirectionReport], state: &State) -> String {
        let mut text = String::new();
        let news = worst.iter().filter(|direction| {
            let before = self.before.get(&(direction.stream, direction.end)).map_or(0, |before| before.events);
            events(direction) > before
        });
        for (i, direction) in news.enumerate() {
            if i == MAX_ROWS {
                let _ = writeln!(
                    text,
                    "{} s: more connections are affected than are shown; --metrics counts all of them",
                    self.seconds
                );
                break;
            }
            let _ = writeln!(text, "{} s: {}", self.seconds, self.line(direction));
        }
        if state.drops > self.drops {
            let dropped = how_many(state.drops - self.drops, "packet");
            let _ = writeln!(text, "{} s: the kernel dropped {dropped}", self.seconds);
        }
        let forgotten = state.watcher.totals().forgotten;
        if forgotten > self.last.forgotten {
            let now = connections(forgotten - self.last.forgotten);
            let most = whole(MAX_FLOWS as u64);
            let _ =
                writeln!(text, "{} s: {now} dropped from the table, because there are more than {most}", self.seconds);
        }
        text
    }

    fn line(&self, direction: &DirectionReport) -> String {
        let verdicts = &direction.verdicts;
        let mut text = format!(
            "{} to {}: {} Mbit/s, {} lost, {} late",
            direction.from,
            direction.to,
            number(self.rate(direction)),
            whole(verdicts.lost),
            whole(verdicts.reordered),
        );
        let reordering = &direction.reordering;
        if let (Some(places), Some(late)) = (reordering.extent_p99, reordering.late_p99_ms) {
            let _ = write!(text, " (99 %: {}, {} ms)", how_many(places, "place"), number(late));
        }
        let _ = write!(text, ", {} retransmitted spuriously", whole(verdicts.spurious));
        if direction.cost.false_reductions > 0 {
            let reductions = how_many(direction.cost.false_reductions, "false reduction");
            let _ = write!(text, ", {reductions} (cost {} Mbit/s)", cost(direction));
        }
        for incident in &direction.incidents {
            let _ = write!(text, "; {}", incident.text());
        }
        text
    }
}

fn counts(direction: &DirectionReport) -> Counts {
    Counts { acknowledged: direction.acknowledged_bytes, events: events(direction) }
}

fn events(direction: &DirectionReport) -> u64 {
    direction.verdicts.all() + direction.incidents.iter().map(|incident| incident.times).sum::<u64>()
}

/// The kinds of incidents, and how often each happened; none if none did.
fn incidents(totals: &Totals) -> Option<String> {
    let counted = Incident::ALL.into_iter().zip(totals.incidents).filter(|(_, times)| *times > 0);
    let kinds: Vec<String> =
        counted.map(|(what, times)| format!("{} ({})", what.name().replace('_', " "), whole(times))).collect();
    (!kinds.is_empty()).then(|| kinds.join(", "))
}

fn cost(direction: &DirectionReport) -> String {
    let cost = &direction.cost;
    if cost.false_reductions == 0 && cost.lost_least_mbit_s == 0.0 { String::new() } else { estimated(cost) }
}

fn connections(n: u64) -> String {
    how_many(n, "connection")
}
