//! When each packet was overtaken, without a record per packet.

use crate::Nanos;
use crate::list::List;

/// The number of advances that are kept.
const MAX_ADVANCES: usize = 20;

/// The largest acknowledged number grew. Times and numbers are relative to the `Base`.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
struct Advance {
    /// When, in microseconds.
    at: u32,
    /// The largest acknowledged number since.
    largest: u32,
    /// The next number to be sent at that time, counted from the largest acknowledged.
    ahead: u16,
}

impl Advance {
    const UNUSED: Advance = Advance { at: 0, largest: 0, ahead: 0 };
}

#[derive(Clone, Copy, Debug)]
struct Base {
    number: u64,
    time: Nanos,
}

/// The last times at which the largest acknowledged number grew, oldest first. When there are too many, two become one, so
/// the times are coarser the older they are.
#[derive(Clone, Debug)]
pub(crate) struct Advances {
    base: Base,
    list: List<Advance, MAX_ADVANCES>,
}

impl Advances {
    pub(crate) const fn new() -> Advances {
        Advances { base: Base { number: 0, time: Nanos::ZERO }, list: List::new(Advance::UNUSED) }
    }

    /// The largest acknowledged number is `largest` from `now` on; `next` is sent next. What was overtaken longer ago than
    /// `horizon` matters no more.
    pub(crate) fn on_largest(&mut self, now: Nanos, largest: u64, next: u64, horizon: Nanos) {
        let ahead = u16::try_from(next.saturating_sub(largest)).unwrap_or(u16::MAX);
        let Some((at, number)) = self.relative(now, largest) else {
            // After 71 minutes or four billion packets: what is missing from before counts as overtaken now.
            self.base = Base { number: largest, time: now };
            self.list.clear();
            self.list.push(Advance { ahead, ..Advance::UNUSED });
            return;
        };
        let advance = Advance { at, largest: number, ahead };
        if let Some(last) = self.list.as_mut_slice().last_mut().filter(|last| last.at == at) {
            *last = advance;
            return;
        }
        if self.list.is_full() {
            self.make_room(at, horizon);
        }
        self.list.push(advance);
    }

    fn relative(&self, now: Nanos, largest: u64) -> Option<(u32, u32)> {
        let micros = u32::try_from((now - self.base.time).0 / 1000).ok()?;
        Some((micros, u32::try_from(largest.checked_sub(self.base.number)?).ok()?))
    }

    /// Drops the oldest advance if the next is beyond the horizon, or else the one whose neighbors are closest to each other
    /// in proportion to its age.
    fn make_room(&mut self, now: u32, horizon: Nanos) {
        let advances = self.list.as_slice();
        let age = |advance: &Advance| u64::from(now.saturating_sub(advance.at)).max(1);
        if age(&advances[1]) > horizon.0 / 1000 {
            self.list.remove(0);
            return;
        }
        let mut closest = (0, u64::MAX, 1);
        for (i, three) in advances.windows(3).enumerate() {
            let (gap, age) = (u64::from(three[2].at.saturating_sub(three[0].at)), age(&three[1]));
            if gap * closest.2 < closest.1.saturating_mul(age) {
                closest = (i + 1, gap, age);
            }
        }
        self.list.remove(closest.0);
    }

    /// When a packet above `number` was first acknowledged, or a little later.
    pub(crate) fn overtaken(&self, number: u64) -> Option<Nanos> {
        let advances = self.list.as_slice();
        let after = match number.checked_sub(self.base.number) {
            Some(relative) => advances.partition_point(|advance| u64::from(advance.largest) <= relative),
            None => 0,
        };
        advances.get(after).map(|advance| self.time(advance))
    }

    /// The number that was sent next at `time`, or a little later.
    pub(crate) fn next_at(&self, time: Nanos) -> Option<u64> {
        let advances = self.list.as_slice();
        let found = advances.get(advances.partition_point(|advance| self.time(advance) < time))?;
        Some(self.base.number.saturating_add(u64::from(found.largest) + u64::from(found.ahead)))
    }

    fn time(&self, advance: &Advance) -> Nanos {
        self.base.time + Nanos::from_micros(u64::from(advance.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: Nanos = Nanos::from_millis(400);

    #[test]
    fn old_times_are_coarser_in_proportion_to_their_age() {
        let mut advances = Advances::new();
        for now in 1..=2000 {
            advances.on_largest(Nanos::from_millis(now), now, now + 50, HORIZON);
            for missing in [1, 5, 10, 30, 100, 300].into_iter().filter(|missing| *missing < now) {
                let exact = Nanos::from_millis(now - missing);
                let found = advances.overtaken(now - missing - 1).unwrap();
                assert!(found >= exact && (found - exact).0 <= missing * 400_000, "{missing} ms: {found:?}");
            }
        }
        assert_eq!(advances.overtaken(2000), None);
        assert_eq!(advances.next_at(Nanos::from_millis(2000)), Some(2050));
    }

    #[test]
    fn time_and_numbers_have_no_end() {
        let mut advances = Advances::new();
        for (hours, largest) in [(0, 5), (1, 9), (10, 12), (11, 10_000_000_000)] {
            let now = Nanos::from_millis(hours * 3_600_000);
            advances.on_largest(now, largest, largest + 1, HORIZON);
            assert_eq!(advances.overtaken(largest - 1), Some(now));
            assert_eq!(advances.next_at(now), Some(largest + 1));
        }
        advances.on_largest(Nanos::NEVER, u64::MAX - 1, u64::MAX, HORIZON);
        assert!(advances.overtaken(0).is_some());
    }
}
