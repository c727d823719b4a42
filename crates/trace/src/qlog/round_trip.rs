//! The round trips that the sender measures (RFC 9002 §5).

use reknit_units::{Duration, Instant};

use crate::spread::LogHistogram;

#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    pub(super) least: Option<Duration>,
    latest: Duration,
    /// By our own samples, with the delay of acknowledgments.
    smoothed: Duration,
    /// What the log says, and milliseconds of its unit: stacks log milliseconds, microseconds or seconds.
    logged: Option<Duration>,
    unit_ms: Option<f64>,
    pub(super) samples_us: LogHistogram,
}

impl RoundTrip {
    /// The largest number of an ACK is newly acknowledged.
    pub(super) fn on_sample(&mut self, sent: Instant, now: Instant) {
        let sample = now.since(sent);
        self.smoothed = if self.least.is_none() { sample } else { (self.smoothed * 7 + sample) / 8 };
        self.least = Some(self.least.map_or(sample, |least| least.min(sample)));
        self.latest = sample;
        self.samples_us.add(sample.as_nanos() / 1_000);
    }

    pub(super) fn on_metrics(&mut self, smoothed: Option<f64>, latest: Option<f64>) {
        let own_ms = self.latest.as_secs_f64() * 1e3;
        if let (None, Some(latest)) = (self.unit_ms, latest.filter(|latest| *latest > 0.0 && own_ms > 0.0)) {
            self.unit_ms = Some(1e3f64.powf(((own_ms / latest).log10() / 3.0).round()));
        }
        let smoothed = smoothed.zip(self.unit_ms).map(|(smoothed, unit_ms)| smoothed * unit_ms / 1e3);
        self.logged = smoothed.filter(|seconds| *seconds > 0.0).map(Duration::from_secs_f64).or(self.logged);
    }

    /// The larger of the smoothed and the latest: the unit of the time threshold (§6.1.2).
    pub(super) fn base(&self) -> Option<Duration> {
        self.least?;
        Some(self.logged.unwrap_or(self.smoothed).max(self.latest)).filter(|base| !base.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_logged_round_trips_are_found() {
        for (logged, unit) in [(44.0, "ms"), (44_000.0, "us"), (0.044, "s")] {
            let mut round_trip = RoundTrip::default();
            assert_eq!(round_trip.base(), None);
            round_trip.on_sample(Instant::ZERO, Instant::ZERO + Duration::from_millis(40));
            assert_eq!(round_trip.base(), Some(Duration::from_millis(40)));
            round_trip.on_metrics(Some(logged), Some(logged));
            assert_eq!(round_trip.base(), Some(Duration::from_millis(44)), "{unit}");
        }
    }
}
