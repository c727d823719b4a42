//! The reordering histogram of RR-TCP (Zhang, Karp, Floyd, Peterson: ICSI TR-02-006, 2002, §4.1.2 and §4.1.3).
//!
//! It holds at most 1000 events; each is a length and the time when it was measured. A length that no threshold could
//! cover counts as the longest that one can; in the paper lengths have 6 bits, which is 63 for a threshold of 64. A count
//! for each length makes the cost of a percentile independent of the number of events. Events are dropped in the order
//! in which they came.

use std::collections::VecDeque;

use reknit_units::{Duration, Instant, Segments};

/// The maximum number of events (§4.1.3).
const MAX_EVENTS: usize = 1000;

/// The time since the first event in microseconds, in 54 bits, which last 570 years, and the length in segments, in 10
/// bits. Packing them halves the state of a connection.
#[derive(Clone, Copy, Debug)]
struct Event(u64);

impl Event {
    const LENGTH_BITS: u32 = 10;
    /// The longest length that can be stored.
    const MAX_LENGTH: u64 = (1 << Event::LENGTH_BITS) - 1;

    fn new(age: Duration, length: usize) -> Event {
        let latest = u64::MAX >> Event::LENGTH_BITS;
        Event((age.as_nanos() / 1000).min(latest) << Event::LENGTH_BITS | (length as u64).min(Event::MAX_LENGTH))
    }

    fn age(self) -> Duration {
        Duration::from_micros(self.0 >> Event::LENGTH_BITS)
    }

    fn length(self) -> usize {
        (self.0 & Event::MAX_LENGTH) as usize
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// How long an event is kept.
    life: Duration,
    /// When the first event was measured; [`Instant::NEVER`] before it.
    first: Instant,
    /// Oldest first.
    events: VecDeque<Event>,
    /// How many events have each length, up to the longest that is distinguished.
    counts: Box<[u16]>,
}

impl Histogram {
    /// A histogram for thresholds of up to `max_dup_thresh`, which cover lengths of one segment less.
    pub(crate) fn new(life: Duration, max_dup_thresh: Segments) -> Histogram {
        let lengths = (max_dup_thresh.0 as usize).clamp(1, Event::MAX_LENGTH as usize + 1);
        Histogram { life, first: Instant::NEVER, events: VecDeque::new(), counts: vec![0; lengths].into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds an event; if the histogram is full, it replaces the oldest.
    pub(crate) fn insert(&mut self, at: Instant, length: Segments) {
        if self.events.len() == MAX_EVENTS {
            self.drop_oldest();
        }
        if self.events.len() == self.events.capacity() {
            let doubled = (2 * self.events.len()).clamp(4, MAX_EVENTS); // never more than the limit
            self.events.reserve_exact(doubled - self.events.len());
        }
        if !self.first.is_set() {
            self.first = at;
        }
        let longest = self.counts.len() - 1;
        let event = Event::new(at.since(self.first), longest.min(length.0 as usize));
        self.events.push_back(event);
        self.counts[event.length()] += 1;
    }

    /// Drops events that are older than `max_age`. Returns true if there were any.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let before = self.events.len();
        let (first, life) = (self.first, self.life);
        while self.events.front().is_some_and(|event| now.since(first + event.age()) > life) {
            self.drop_oldest();
        }
        self.events.len() < before
    }

    fn drop_oldest(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.counts[event.length()] -= 1;
        }
    }

    /// The smallest length that at least the fraction `ratio` of the events does not exceed; `None` without events.
    pub(crate) fn percentile(&self, ratio: f64) -> Option<Segments> {
        // 0.9 * 10 may come out a little more than 9.
        let wanted = (ratio * self.events.len() as f64 - 1e-9).max(1.0);
        let mut covered = 0u32;
        let reached = self.counts.iter().position(|count| {
            covered += u32::from(*count);
            f64::from(covered) >= wanted
        });
        reached.map(|length| Segments(length as u32))
    }

    /// The events, oldest first.
    pub(crate) fn events(&self) -> impl Iterator<Item = (Instant, Segments)> {
        self.events.iter().map(|event| (self.first + event.age(), Segments(event.length() as u32)))
    }

    /// The size on the heap, in bytes.
    pub(crate) fn heap_size(&self) -> usize {
        self.events.capacity() * size_of::<Event>() + size_of_val(&*self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(80);

    fn holding(lengths: &[u32]) -> Histogram {
        longest_of(64, lengths)
    }

    fn longest_of(max_dup_thresh: u32, lengths: &[u32]) -> Histogram {
        let mut histogram = Histogram::new(LIFE, Segments(max_dup_thresh));
        for length in lengths {
            histogram.insert(Instant::ZERO, Segments(*length));
        }
        histogram
    }

    #[test]
    fn percentiles_of_ten_events() {
        let histogram = holding(&[1, 1, 2, 2, 3, 3, 4, 4, 8, 20]);
        for (ratio, length) in [(0.9, 8), (0.6467, 4), (0.99, 20), (0.0, 1)] {
            assert_eq!(histogram.percentile(ratio), Some(Segments(length)), "{ratio}");
        }
        assert_eq!(holding(&[]).percentile(0.9), None);
    }

    #[test]
    fn lengths_beyond_the_largest_threshold_count_as_the_longest_below_it() {
        for (max_dup_thresh, length) in [(64, 63), (1, 0), (91, 90), (500, 90), (1000, 90), (5000, 90)] {
            let histogram = longest_of(max_dup_thresh, &[90]);
            assert_eq!(histogram.percentile(0.9), Some(Segments(length)), "{max_dup_thresh}");
            assert_eq!(histogram.events().map(|(_, l)| l.0).collect::<Vec<_>>(), [length]);
        }
        assert_eq!(longest_of(1000, &[999, 5000]).percentile(1.0), Some(Segments(999)));
    }

    #[test]
    fn an_event_is_kept_for_eighty_seconds() {
        let mut histogram = holding(&[4]);
        histogram.expire(Instant::ZERO + LIFE);
        assert_eq!(histogram.len(), 1);
        histogram.expire(Instant::ZERO + LIFE + Duration::from_micros(1));
        assert_eq!((histogram.len(), histogram.percentile(0.9)), (0, None));
    }

    #[test]
    fn the_oldest_of_a_thousand_events_is_replaced() {
        let mut histogram = holding(&[9]);
        for _ in 0..MAX_EVENTS {
            histogram.insert(Instant::ZERO, Segments(2));
        }
        assert_eq!((histogram.len(), histogram.percentile(1.0)), (MAX_EVENTS, Some(Segments(2))));
    }
}
