//! Counts of verdicts.

use std::collections::BTreeMap;

use reknit_units::Duration;
use serde::{Deserialize, Serialize};

use crate::spread::LogHistogram;
use crate::{Event, Incident, RetransmitReason, UnknownReason, Verdict};

/// How often something happened to a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Occurrences {
    pub(crate) times: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// How long it lasted in total, and the longest time.
    pub(crate) lasted: Duration,
    pub(crate) longest: Duration,
}

/// The verdicts on one direction's packets on one side of the capture point.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct VerdictCounts {
    pub(crate) lost: u64,
    pub(crate) reordered: u64,
    pub(crate) duplicated: u64,
    /// Packets that the receiver did not keep.
    pub(crate) discarded: u64,
    pub(crate) spurious: BTreeMap<RetransmitReason, u64>,
    pub(crate) unknown: BTreeMap<UnknownReason, u64>,
    pub(crate) incidents: BTreeMap<Incident, Occurrences>,
    /// How late reordered packets were, in packets and in microseconds.
    pub(crate) extents: LogHistogram,
    pub(crate) late_us: LogHistogram,
    /// Lengths of runs of lost packets, without the last.
    pub(crate) loss_runs: LogHistogram,
    run: u64,
    run_end: u64,
}

impl VerdictCounts {
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
            Verdict::Discarded => self.discarded += 1,
            Verdict::Unknown(reason) => *self.unknown.entry(reason).or_default() += 1,
            Verdict::Incident { what, count, lasted } => {
                let sum = self.incidents.entry(what).or_default();
                sum.times += 1;
                sum.packets += u64::from(count);
                sum.bytes += u64::from(event.len);
                sum.lasted += lasted;
                sum.longest = sum.longest.max(lasted);
            }
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
        let unknown = self.unknown.values().sum::<u64>();
        let incidents = self.incidents.values().map(|sum| sum.times).sum::<u64>();
        self.lost + self.reordered + self.duplicated + self.discarded + self.spurious() + unknown + incidents
    }

    pub(crate) fn spurious(&self) -> u64 {
        self.spurious.values().sum()
    }
}
