//! `reknit analyze --html`: the analysis of a capture as one page with plots.

mod page;
mod sketch;

use std::collections::BTreeMap;
use std::path::Path;

use reknit_trace::{Analysis, Analyzer, DirectionReport, Event, Events, Options};

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
    let mut analyzer = Analyzer::new(Options { marks: true, journeys: false, ..*options });
    let mut events = Events::default();
    let mut observer = |event: &Event| {
        if wanted.contains_key(&(event.stream, event.end)) {
            events.add(event);
        }
    };
    let mut started = None;
    super::frames(capture, &mut |frame| {
        started = started.or(frame.at);
        analyzer.on_frame(frame, &mut observer);
        for mark in analyzer.marks() {
            let key = (mark.stream, mark.end);
            if let Some(direction) = wanted.get(&key) {
                let starts_s = mark.at.as_nanos().saturating_sub(started.unwrap_or(0)) as f64 / 1e9;
                sketches.entry(key).or_insert_with(|| Sketch::new(direction, mark.at, starts_s, steps)).mark(mark);
            }
        }
    })?;
    analyzer.finish(&mut observer);
    for event in events.counted(analysis).0 {
        if let Some(sketch) = sketches.get_mut(&(event.stream, event.end)) {
            sketch.verdict(&event);
        }
    }
    Ok(drawn.iter().filter_map(|d| Some(sketches.remove(&(d.stream, d.end))?.finish())).collect())
}
