//! The difference between the clocks of two captures.
//!
//! No packet arrives before it is sent. So the fastest packets bound the difference between the clocks, those of one direction
//! from above and those of the other from below. Midway between both bounds, the shortest delays of both directions are equal. If
//! one clock is faster, both bounds are lines; their slope is the one with the longest shortest round trip, because any other
//! slope makes some packet look faster than it was (Moon, Skelly and Towsley 1999).

use schemars::JsonSchema;
use serde::Serialize;

/// The time is divided into this many intervals, of which the fastest packet is kept.
const INTERVALS: usize = 2048;
/// The largest skew: bad quartz clocks have a tenth of it.
const MAX_SKEW: f64 = 1e-3;
/// The largest skew that packets of one direction show: a queue that grows, or empties, looks like a skew too.
const MAX_SKEW_OF_ONE_DIRECTION: f64 = 2e-4;
/// Steps of the search for the slope: each narrows it down to two thirds.
const STEPS: usize = 80;
/// An improvement below this, nanoseconds, does not show a skew: clocks have a resolution of microseconds.
const MIN_GAIN: f64 = 5e3;

/// A packet that passed both points.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// When it passed the first, nanoseconds.
    pub(super) at: u64,
    /// When it passed the second, minus that.
    pub(super) difference: i64,
    /// The point that it passed first: 0 or 1.
    pub(super) near: usize,
}

/// The clock of the second capture, seen from the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// How far it is ahead at `middle`, nanoseconds.
    offset: f64,
    middle: u64,
    /// Nanoseconds that it gains in each nanosecond.
    skew: f64,
    /// The shortest round trip between the points, nanoseconds; none if packets passed in one direction only.
    round_trip: Option<f64>,
    /// The median delay of packets that passed the first or the second point first.
    usual: [i64; 2],
    is_same: bool,
}

/// How the clocks of both captures were aligned.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ClockReport {
    /// The user says that both captures were made with the same clock.
    pub same_clock: bool,
    /// How far the clock of the second capture is ahead of that of the first, in the middle of the capture, ms.
    pub offset_ms: f64,
    /// Its skew, parts per million.
    pub skew_ppm: f64,
    /// One-way delays are right to this, ms: half the shortest round trip between the capture points. Null if packets passed in
    /// one direction only: delays are then those beyond the shortest one.
    pub accuracy_ms: Option<f64>,
    /// The shortest round trip between the capture points, ms.
    pub round_trip_ms: Option<f64>,
}

/// A lower limit: points of time, and of the difference.
type Limit = Vec<(f64, f64)>;

impl Clock {
    /// The clocks are the same.
    pub(super) fn same(samples: impl Iterator<Item = Sample>) -> Clock {
        let samples: Vec<Sample> = samples.collect();
        let same = Clock { offset: 0.0, middle: 0, skew: 0.0, round_trip: None, usual: [0; 2], is_same: true };
        let least = |near| {
            let delays = samples.iter().filter(|sample| sample.near == near).map(|sample| sample.delay(&same));
            delays.min().map(|least| least as f64)
        };
        let round_trip = least(0).zip(least(1)).map(|(there, back)| there + back);
        Clock { round_trip, ..same }.with_usual(&samples)
    }

    /// Aligns the clocks. There must be a sample.
    pub(super) fn estimate(samples: impl Iterator<Item = Sample>) -> Clock {
        let samples: Vec<Sample> = samples.collect();
        let first = samples.iter().map(|sample| sample.at).min().unwrap_or_default();
        let last = samples.iter().map(|sample| sample.at).max().unwrap_or_default();
        let middle = first + (last - first) / 2;
        let limits = [0, 1].map(|near| limit(&samples, near, (first, last), middle));
        let height = |limit: &Limit, skew: f64| {
            limit.iter().map(|(at, difference)| difference - skew * at).fold(f64::INFINITY, f64::min)
        };
        // The second limit has the other sign, and so does the slope.
        let both = |skew: f64| match limits.each_ref().map(Vec::is_empty) {
            [false, false] => height(&limits[0], skew) + height(&limits[1], -skew),
            [false, true] => height(&limits[0], skew),
            _ => height(&limits[1], -skew),
        };
        let directions = limits.iter().filter(|limit| !limit.is_empty()).count() as f64;
        let skew = highest(&both, directions * (last - first) as f64 / 2.0);
        let skew = if directions < 2.0 && skew.abs() > MAX_SKEW_OF_ONE_DIRECTION { 0.0 } else { skew };
        let [there, back] = [height(&limits[0], skew), height(&limits[1], -skew)];
        let (offset, round_trip) = match (there.is_finite(), back.is_finite()) {
            (true, true) => ((there - back) / 2.0, Some((there + back).max(0.0))),
            (true, false) => (there, None),
            _ => (-back, None),
        };
        Clock { offset, middle, skew, round_trip, usual: [0; 2], is_same: false }.with_usual(&samples)
    }

    fn with_usual(self, samples: &[Sample]) -> Clock {
        let usual = [0, 1].map(|near| {
            let of = samples.iter().filter(|sample| sample.near == near);
            let mut delays: Vec<i64> = of.map(|sample| sample.delay(&self)).collect();
            let middle = delays.len() / 2;
            if delays.is_empty() { 0 } else { *delays.select_nth_unstable(middle).1 }
        });
        Clock { usual, ..self }
    }

    /// How far the second clock is ahead when the first shows `at`.
    fn ahead(&self, at: u64) -> i64 {
        let since = (i128::from(at) - i128::from(self.middle)) as f64;
        (self.offset + self.skew * since).round() as i64
    }

    /// The delay of a packet between the points, nanoseconds. `near`: the point that it passed first, at `sent`.
    pub(super) fn delay(&self, sent: u64, arrived: u64, near: usize) -> i64 {
        let [first, second] = if near == 0 { [sent, arrived] } else { [arrived, sent] };
        let difference = second.wrapping_sub(first).cast_signed().saturating_sub(self.ahead(first));
        if near == 0 { difference } else { difference.saturating_neg() }
    }

    /// The time `at` of the clock of capture `from`, on the clock of the other one.
    pub(super) fn on_other(&self, at: u64, from: usize) -> u64 {
        let ahead = self.ahead(at);
        at.saturating_add_signed(if from == 0 { ahead } else { ahead.saturating_neg() })
    }

    /// The median delay of the packets that passed the point `near` first, nanoseconds.
    pub(super) fn usual(&self, near: usize) -> i64 {
        self.usual[near]
    }

    /// The shortest round trip between the points, nanoseconds.
    pub(super) fn round_trip(&self) -> Option<f64> {
        self.round_trip
    }

    /// True if delays are those beyond the shortest one.
    pub(super) fn is_relative(&self) -> bool {
        !self.is_same && self.round_trip.is_none()
    }

    pub(super) fn report(&self) -> ClockReport {
        let ms = |nanos: f64| nanos / 1e6;
        ClockReport {
            same_clock: self.is_same,
            offset_ms: ms(self.offset),
            skew_ppm: self.skew * 1e6,
            accuracy_ms: if self.is_same { Some(0.0) } else { self.round_trip.map(|round_trip| ms(round_trip / 2.0)) },
            round_trip_ms: self.round_trip.map(ms),
        }
    }
}

impl Sample {
    fn delay(&self, clock: &Clock) -> i64 {
        let difference = self.difference.saturating_sub(clock.ahead(self.at));
        if self.near == 0 { difference } else { difference.saturating_neg() }
    }
}

/// The fastest packets of one direction, one for each interval: the time from the middle, and the difference, with the sign of
/// the delay.
fn limit(samples: &[Sample], near: usize, (first, last): (u64, u64), middle: u64) -> Limit {
    let mut lowest: Vec<Option<(f64, f64)>> = vec![None; INTERVALS];
    let span = (last - first).max(1) as f64;
    for sample in samples.iter().filter(|sample| sample.near == near) {
        let at = (i128::from(sample.at) - i128::from(middle)) as f64;
        let difference = if near == 0 { sample.difference } else { -sample.difference } as f64;
        #[expect(clippy::cast_sign_loss, reason = "no sample is before the first")]
        let interval = ((sample.at - first) as f64 / span * (INTERVALS - 1) as f64) as usize;
        let known = &mut lowest[interval];
        if known.is_none_or(|(_, known)| difference < known) {
            *known = Some((at, difference));
        }
    }
    lowest.into_iter().flatten().collect()
}

/// The slope at which a concave function is highest. A clock that is faster lowers the function at zero by the slope times
/// `reach`; if it is hardly lower there, the clocks do not differ in speed, but the fastest packets in delay.
fn highest(of: &impl Fn(f64) -> f64, reach: f64) -> f64 {
    let (mut low, mut high) = (-MAX_SKEW, MAX_SKEW);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        if of(low + third) < of(high - third) {
            low += third;
        } else {
            high -= third;
        }
    }
    let best = f64::midpoint(low, high);
    let gain = of(best) - of(0.0);
    if gain < MIN_GAIN || gain < best.abs() * reach / 2.0 { 0.0 } else { best }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Packets in both directions with varying delays, captured with different clocks.
    fn samples(ahead: i64, ppm: i64, delays: [i64; 2]) -> Vec<Sample> {
        let packets = (0..20_000_i64).map(|i| {
            let near = usize::from(i % 2 == 1);
            let sent = 1_700_000_000_000 * MS + i * MS;
            let delay = delays[near] * MS + (i * 7919 % 97) * MS / 10;
            let second = |at: i64| at + ahead + (at - 1_700_000_000_000 * MS) / 1_000_000 * ppm;
            let (first, second) = if near == 0 { (sent, second(sent + delay)) } else { (sent + delay, second(sent)) };
            Sample { at: first.cast_unsigned(), difference: second - first, near }
        });
        packets.collect()
    }

    #[test]
    fn clocks_are_aligned() {
        for (ahead, ppm) in [(0, 0), (123_456_789, 0), (-5_000_000_000, 40), (77, -100)] {
            let clock = Clock::estimate(samples(ahead, ppm, [10, 10]).into_iter());
            let report = clock.report();
            let at_middle = (ahead + ppm * 10_000_000 / 1000 * 1000 / 1000) as f64;
            assert!((clock.offset - at_middle).abs() < 2e5, "{ahead} {ppm}: {clock:?}");
            assert!((report.skew_ppm - ppm as f64).abs() < 2.0, "{ahead} {ppm}: {report:?}");
            assert!((report.round_trip_ms.unwrap() - 20.0).abs() < 0.2, "{report:?}");
            assert!((report.accuracy_ms.unwrap() - 10.0).abs() < 0.1, "{report:?}");
        }
    }

    #[test]
    fn in_one_direction_delays_are_relative() {
        let one_way = samples(55, 0, [10, 10]).into_iter().filter(|sample| sample.near == 0);
        let clock = Clock::estimate(one_way.clone());
        assert!(clock.is_relative() && clock.report().accuracy_ms.is_none());
        let least = one_way.map(|sample| sample.delay(&clock)).min();
        assert!(least.unwrap().abs() < 1000, "{least:?}");
    }
}
