//! Incidents of a connection, as they are reported.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Incident;
use crate::tally::{Occurrences, VerdictCounts};

/// Incidents of one kind of a connection, rather than of single packets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct IncidentReport {
    /// What happened.
    pub what: Incident,
    /// How often.
    pub times: u64,
    /// The packets involved, in total; each kind says which are counted.
    pub packets: u64,
    /// The bytes of data that it was about.
    pub bytes: u64,
    /// How long it lasted in total, seconds.
    pub lasted_s: f64,
    /// The longest, seconds.
    pub longest_s: f64,
}

impl IncidentReport {
    /// In words.
    pub fn text(&self) -> String {
        // Holes that are never filled exist at the same time, so their durations are not summed.
        let lasted_s = if self.what == Incident::NeverRepaired { self.longest_s } else { self.lasted_s };
        self.what.text(self.times, self.packets, self.bytes, lasted_s)
    }

    pub(crate) fn all(tallies: &[&VerdictCounts]) -> Vec<IncidentReport> {
        let mut sums: BTreeMap<Incident, Occurrences> = BTreeMap::new();
        for (what, added) in tallies.iter().flat_map(|tally| &tally.incidents) {
            let sum = sums.entry(*what).or_default();
            sum.times += added.times;
            sum.packets += added.packets;
            sum.bytes += added.bytes;
            sum.lasted += added.lasted;
            sum.longest = sum.longest.max(added.longest);
        }
        let report = |(what, sum): (Incident, Occurrences)| IncidentReport {
            what,
            times: sum.times,
            packets: sum.packets,
            bytes: sum.bytes,
            lasted_s: sum.lasted.as_secs_f64(),
            longest_s: sum.longest.as_secs_f64(),
        };
        sums.into_iter().map(report).collect()
    }
}
