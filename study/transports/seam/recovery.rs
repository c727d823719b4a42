//! The loss detector of a path.

use std::ops::RangeInclusive;

use reknit_recovery::{Config, Decision, Nanos, Recovery, Rtt};

use crate::config::LossDetection;
use crate::{Duration, Instant};

/// The detector, with times as quinn has them.
#[derive(Clone)]
pub(super) struct Seam {
    recovery: Recovery,
    epoch: Instant,
}

impl Seam {
    pub(super) fn new(now: Instant, detection: LossDetection) -> Self {
        let max_wait = match detection {
            LossDetection::Rfc9002 => Config::DEFAULT.max_wait,
            LossDetection::Recovery { max_wait } => max_wait,
        };
        // Some packets may have been sent before the path was known.
        let epoch = now.checked_sub(Duration::from_secs(60)).unwrap_or(now);
        Self { recovery: Recovery::with(Config { max_wait, ..Config::DEFAULT }), epoch }
    }

    pub(super) fn on_new_path(&self) -> Self {
        Self { recovery: self.recovery.on_new_path(), epoch: self.epoch }
    }

    fn nanos(&self, at: Instant) -> Nanos {
        at.saturating_duration_since(self.epoch).into()
    }

    /// None if it never comes.
    pub(super) fn time(&self, at: Nanos) -> Option<Instant> {
        (at < Nanos::NEVER).then(|| self.epoch + Duration::from(at))
    }

    pub(super) fn on_sent(&mut self, number: u64) {
        self.recovery.on_sent(number);
    }

    pub(super) fn on_acked_range(&mut self, now: Instant, range: RangeInclusive<u64>) {
        self.recovery.on_acked_range(self.nanos(now), *range.start(), *range.end());
    }

    pub(super) fn on_acked(&mut self, now: Instant, number: u64) {
        self.recovery.on_acked(self.nanos(now), number);
    }

    pub(super) fn on_rtt(&mut self, smoothed: Duration, latest: Duration) {
        self.recovery.on_rtt(Rtt { smoothed: smoothed.into(), latest: latest.into() });
    }

    pub(super) fn on_marked(&mut self, largest: u64) -> bool {
        self.recovery.on_marked(largest)
    }

    pub(super) fn loss_time(&self, number: u64, sent: Instant) -> Option<Instant> {
        self.time(self.recovery.loss_time(number, self.nanos(sent)))
    }

    pub(super) fn on_lost(&mut self, now: Instant, number: u64) {
        self.recovery.on_lost(self.nanos(now), number);
    }

    pub(super) fn settle(&mut self) {
        self.recovery.settle();
    }

    pub(super) fn decide(&mut self, now: Instant) -> Decision {
        self.recovery.decide(self.nanos(now))
    }

    pub(super) fn is_undecided(&self) -> bool {
        self.recovery.is_undecided()
    }
}
