//! The verdicts that count, once it is known where the capture was made.

use std::collections::BTreeMap;

use crate::{Analysis, CapturePoint, Event};

/// Verdicts that are kept.
const MOST: usize = 2_000_000;

/// Collects the verdicts of an analysis. Which of them count is known at the end: it depends on the place of the capture.
#[derive(Clone, Debug, Default)]
pub struct Events {
    all: Vec<Event>,
    left_out: u64,
}

impl Events {
    /// The observer for [`crate::Analyzer::read`] and similar functions.
    pub fn add(&mut self, event: &Event) {
        if self.all.len() < MOST {
            self.all.push(*event);
        } else {
            self.left_out += 1;
        }
    }

    /// The verdicts that count at the capture points of `analysis`, in the order of the packets, and how many were dropped
    /// because there were too many.
    pub fn counted(self, analysis: &Analysis) -> (Vec<Event>, u64) {
        let directions = analysis.directions.iter();
        let places: BTreeMap<(u32, u8), CapturePoint> =
            directions.map(|d| ((d.stream, d.end), d.captured_at)).collect();
        let mut all = self.all;
        all.retain(|event| places.get(&(event.stream, event.end)).is_some_and(|place| place.sees(event.side)));
        all.sort_by_key(|event| (event.frame, event.offset));
        (all, self.left_out)
    }
}
