//! The measured path as it would be if the network did not reorder or lose packets.

use reknit_units::Duration;

use super::{DelayAfterBottleneck, MeasuredPath};

impl MeasuredPath {
    /// The same path if the network kept the order of packets.
    #[must_use]
    pub fn in_order(&self) -> MeasuredPath {
        self.with(|fate| DelayAfterBottleneck { late: fate.late.map(|_| Duration::ZERO), ..fate })
    }

    /// The same path if only the queue of the bottleneck dropped packets.
    #[must_use]
    pub fn without_losses(&self) -> MeasuredPath {
        let path = self.with(|fate| DelayAfterBottleneck { late: Some(fate.late.unwrap_or_default()), ..fate });
        MeasuredPath { lost: 0, outages: Vec::new(), ..path }
    }

    fn with(&self, change: impl Fn(DelayAfterBottleneck) -> DelayAfterBottleneck) -> MeasuredPath {
        MeasuredPath { fates: self.fates.iter().copied().map(change).collect(), ..self.clone() }
    }
}
