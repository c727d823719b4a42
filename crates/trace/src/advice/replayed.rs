//! What a replay of the path shows about changes of the sender and of the network.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Advice, Gain};
use crate::DirectionReport;

/// Something that can be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The sender uses BBR.
    Bbr,
    /// The sender uses CUBIC.
    Cubic,
    /// The sender uses Reno.
    Reno,
    /// The sender detects losses by time (RACK) instead of by counting duplicate ACKs.
    Rack,
    /// Linux may learn a degree of reordering of this many segments.
    MaxReordering(u64),
    /// The network keeps the order.
    InOrder,
    /// The network loses nothing, apart from what the queue of the bottleneck drops.
    NoLoss,
}

impl Change {
    /// True if it is made at the sender.
    pub const fn is_setting(self) -> bool {
        !matches!(self, Change::InOrder | Change::NoLoss)
    }
}

/// A change, and what it gives on the measured path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Remedy {
    /// What is changed.
    pub change: Change,
    /// Goodput in the replay, Mbit/s: mean over all draws.
    pub goodput_mbit_s: f64,
    /// That of the worst draw.
    pub least_mbit_s: f64,
}

/// Changes that were tried on the measured path.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Replayed {
    /// The variant that stands for the sender.
    pub sender: String,
    /// Its goodput in the replay, Mbit/s.
    pub goodput_mbit_s: f64,
    /// The same in the capture, during the time that was replayed.
    pub captured_mbit_s: f64,
    /// The capture does not show the rate of the bottleneck, so a change may give more than the replay says.
    pub rate_is_least: bool,
    /// What was tried.
    pub remedies: Vec<Remedy>,
}

impl Replayed {
    /// The best change of the sender, or else of the network, that is worth it. One that may make things worse is not.
    fn best(&self, is_setting: bool) -> Option<(Change, Gain)> {
        let before = self.goodput_mbit_s.max(self.captured_mbit_s);
        let is_worth_it = |remedy: &&Remedy| {
            remedy.change.is_setting() == is_setting
                && remedy.goodput_mbit_s >= Gain::WORTH * before
                && remedy.least_mbit_s >= before
        };
        let worth = self.remedies.iter().filter(is_worth_it);
        let best = worth.max_by(|a, b| a.goodput_mbit_s.total_cmp(&b.goodput_mbit_s))?;
        Some((best.change, self.gain(best.goodput_mbit_s)))
    }

    fn gain(&self, with: f64) -> Gain {
        Gain { without: self.captured_mbit_s, with, is_least: self.rate_is_least }
    }
}

impl DirectionReport {
    /// True if a replay may show what makes this transfer faster: something happened to it that the ends do not explain, and
    /// the bottleneck is not known to be full.
    pub fn may_be_faster(&self) -> bool {
        const MAX_LIMITED: f64 = 0.3;
        const MIN_S: f64 = 1.0;
        const NEARLY_FULL: f64 = 0.95;
        let verdicts = &self.verdicts;
        let limited_s = self.limited_by_receiver_s + self.limited_by_sender_s;
        let has_failed = self.incidents.iter().any(|incident| incident.what.is_failure());
        verdicts.lost + verdicts.spurious > 0
            && verdicts.discarded == 0
            && !has_failed
            && self.duration_s >= MIN_S
            && limited_s <= MAX_LIMITED * self.duration_s
            && self.full().is_none_or(|share| share < NEARLY_FULL)
    }

    /// Replaces what the capture alone shows about the speed by what a replay has shown.
    pub fn advise(&mut self, replayed: Replayed) {
        let (setting, network) = (replayed.best(true), replayed.best(false));
        let set = setting.map(|(change, gain)| Advice::Set { change, gain });
        let mend = network.map(|(change, gain)| match change {
            Change::InOrder => Advice::KeepOrder { buffer: self.buffer(), gain: Some(gain) },
            _ => self.find_losses(Some(gain)),
        });
        let is_network_first = match (setting, network) {
            (Some((_, setting)), Some((_, network))) => network.with >= Gain::WORTH * setting.with,
            (setting, _) => setting.is_none(),
        };
        let mut speed: Vec<Advice> =
            if is_network_first { [mend, set] } else { [set, mend] }.into_iter().flatten().collect();
        if speed.is_empty() {
            let settings = replayed.remedies.iter().filter(|remedy| remedy.change.is_setting());
            let with = settings.map(|remedy| remedy.goodput_mbit_s).fold(0.0, f64::max);
            speed.push(Advice::NoSetting { gain: replayed.gain(with) });
        }
        self.advice = super::advice(self, Some(speed));
        self.replayed = Some(replayed);
    }
}
