//! Counts of verdicts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::spread::Spread;
use crate::{Event, Reason, Verdict, Why};

/// The verdicts on one direction's packets on one side of the point of capture.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) duplicated: u64,
    pub(crate) spurious: BTreeMap<Why, u64>,
    pub(crate) unknown: BTreeMap<Reason, u64>,
    /// Packets by which reordered packets were late, and microseconds.
    pub(crate) extents: Spread,
    pub(crate) late_us: Spread,
    /// Lengths of runs of lost packets, without the last.
    pub(crate) loss_runs: Spread,
    run: u64,
    run_end: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, event: &Event) {
        match event.verdict {
            Verdict::Lost => self.on_lost(event),
            Verdict::Reordered { packets, late } => {
                self.reordered += 1;
                self.extents.add(packets.into());
                self.late_us.add(late.as_nanos() / 1_000);
            }
            Verdict::Duplicated => self.duplicated += 1,
            Verdict::Spurious(why) => *self.spurious.entry(why).or_default() += 1,
            Verdict::Unknown(reason) => *self.unknown.entry(reason).or_default() += 1,
        }
    }

    /// Losses are reported in the order of their bytes.
    fn on_lost(&mut self, event: &Event) {
        self.lost += 1;
        if event.offset != self.run_end {
            self.end_run();
        }
        self.run += 1;
        self.run_end = event.offset + u64::from(event.len);
    }

    pub(crate) fn end_run(&mut self) {
        if self.run > 0 {
            self.loss_runs.add(std::mem::take(&mut self.run));
        }
    }

    /// Verdicts of all kinds.
    pub(crate) fn all(&self) -> u64 {
        self.lost + self.reordered + self.duplicated + self.spurious() + self.unknown.values().sum::<u64>()
    }

    pub(crate) fn spurious(&self) -> u64 {
        self.spurious.values().sum()
    }
}
