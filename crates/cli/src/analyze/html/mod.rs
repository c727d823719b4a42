//! `reknit analyze --html`: the analysis of a capture as one page with plots.

mod page;
mod sketch;

use std::collections::BTreeMap;
use std::path::Path;

use reknit_trace::{Analysis, Analyzer, DirectionReport, Event, Events, Options};
use reknit_units::Instant;

use crate::{Failure, output};
use sketch::{Drawing, Sketch};

/// Directions that are drawn, the worst ones.
const MAX_DRAWN: usize = 8;
/// Time steps of all plots together.
const STEPS: u64 = 16_000;
/// Fewest and most time steps of one direction.
const MIN_STEPS: u64 = 2_000;
const MAX_STEPS: u64 = 8_000;

/// Writes the page. The capture is read once more, for the points of the plots.
pub(super) fn write(to: &Path, capture: &Path, analysis: &Analysis, options: &Options) -> Result<(), Failure> {
    let drawn = &analysis.directions[..analysis.directions.len().min(MAX_DRAWN)];
    let drawings = draw(capture, analysis, drawn, options)?;
    let text = page::page(analysis, drawn, &drawings)?;
    output::write_file("--html", to, text)
}

/// The plots of these directions.
fn draw(
    capture: &Path,
    analysis: &Analysis,
    drawn: &[Box<DirectionReport>],
    options: &Options,
) -> Result<Vec<Drawing>, Failure> {
    let steps = (STEPS / drawn.len().max(1) as u64).clamp(MIN_STEPS, MAX_STEPS);
    let wanted: BTreeMap<(u32, u8), &DirectionReport> = drawn.iter().map(|d| ((d.stream, d.end), &**d)).collect();
    let mut sketches: BTreeMap<(u32, u8), Sketch> = BTreeMap::new();
    let mut analyzer = Analyzer::new(Options { marks: true, transits: false, ..*options });
    let mut events = Events::default();
    let mut observer = |event: &Event| {
        if wanted.contains_key(&(event.stream, event.end)) {
            events.add(event);
        }
    };
    let mut started = None;
    let new = |direction: &DirectionReport, at: Instant, started: Option<u64>| {
        let starts_s = at.as_nanos().saturating_sub(started.unwrap_or(0)) as f64 / 1e9;
        Sketch::new(direction, at, starts_s, steps)
    };
    super::frames(capture, &mut |frame| {
        started = started.or(frame.at);
        analyzer.on_frame(frame, &mut observer);
        for mark in analyzer.marks() {
            let key = (mark.stream, mark.end);
            if let Some(direction) = wanted.get(&key) {
                sketches.entry(key).or_insert_with(|| new(direction, mark.at, started)).mark(mark);
            }
        }
    })?;
    analyzer.finish(&mut observer);
    // A connection that does not open has incidents, but nothing else to draw.
    for event in events.counted(analysis).0 {
        let key = (event.stream, event.end);
        if let Some(direction) = wanted.get(&key) {
            sketches.entry(key).or_insert_with(|| new(direction, event.at, started)).verdict(&event);
        }
    }
    let begins = Instant::from_nanos(started.unwrap_or(0));
    let sketch = |d: &DirectionReport| sketches.remove(&(d.stream, d.end)).unwrap_or_else(|| new(d, begins, started));
    Ok(drawn.iter().map(|direction| &**direction).map(sketch).map(Sketch::finish).collect())
}
