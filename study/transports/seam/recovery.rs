//! The loss detector of a path.

use std::ops::RangeInclusive;

use reknit_recovery::{Decision, Nanos, Recovery, Rtt};

use crate::{Duration, Instant};

/// The detector, with times as quinn has them.
pub(super) struct Seam {
    recovery: Recovery,
    epoch: Instant,
}

impl Seam {
    pub(super) fn new(now: Instant) -> Self {
        // Some packets may have been sent before the path was known.
        let epoch = now.checked_sub(Duration::from_secs(60)).unwrap_or(now);
        Self { recovery: Recovery::new(), epoch }
    }

    fn nanos(&self, at: Instant) -> Nanos {
        at.saturating_duration_since(self.epoch).into()
    }

    /// None if it never comes.
    pub(super) fn time(&self, at: Nanos) -> Option<Instant> {
        (at < Nanos::NEVER).then(|| self.epoch + Duration::from(at))
    }

    pub(super) fn on_acked_range(&mut self, now: Instant, range: RangeInclusive<u64>) {
        self.recovery.on_acked_range(self.nanos(now), *range.start(), *range.end());
    }

    pub(super) fn on_acked(&mut self, now: Instant, number: u64) {
        self.recovery.on_acked(self.nanos(now), number);
    }

    pub(super) fn on_rtt(&mut self, smoothed: Duration, latest: Duration, next: u64) {
        self.recovery.on_sent(next.saturating_sub(1));
        self.recovery.on_rtt(Rtt { smoothed: smoothed.into(), latest: latest.into() });
    }

    pub(super) fn loss_time(&self, number: u64, sent: Instant) -> Option<Instant> {
        self.time(self.recovery.loss_time(number, self.nanos(sent)))
    }

    pub(super) fn on_lost(&mut self, now: Instant, number: u64) {
        self.recovery.on_lost(self.nanos(now), number);
    }

    pub(super) fn decide(&mut self, now: Instant) -> Decision {
        self.recovery.decide(self.nanos(now))
    }
}
