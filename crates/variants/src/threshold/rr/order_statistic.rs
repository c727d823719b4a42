//! A quantile of the last values, at most 4096, which expire by age. Insertion and expiry cost O(log n), reading is
//! constant, and nothing is allocated once the window has been full.
//!
//! The values are in two heaps. `LOW` holds the smallest values, as many as the rank of the quantile, with the largest
//! on top; `HIGH` holds the others, with the smallest on top. Each value knows its position, so that the oldest one can
//! be removed from the middle of a heap.

use reknit_units::{Duration, Instant};

/// The maximum number of values.
const CAPACITY: usize = 4096;
const LOW: usize = 0;
const HIGH: usize = 1;

#[derive(Clone, Copy, Debug)]
struct Slot {
    at: Instant,
    value: Duration,
    heap: usize,
    index: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderStatistic {
    ratio: f64,
    /// A ring in the order of insertion.
    slots: Vec<Slot>,
    oldest: usize,
    /// Indexes of slots.
    heaps: [Vec<u16>; 2],
}

impl OrderStatistic {
    pub(crate) fn new(ratio: f64) -> OrderStatistic {
        OrderStatistic { ratio, slots: Vec::new(), oldest: 0, heaps: [Vec::new(), Vec::new()] }
    }

    pub(crate) fn len(&self) -> usize {
        self.heaps[LOW].len() + self.heaps[HIGH].len()
    }

    /// The value of rank `ceil(ratio * n)`; `None` without values.
    pub(crate) fn value(&self) -> Option<Duration> {
        self.heaps[LOW].first().map(|slot| self.slots[usize::from(*slot)].value)
    }

    /// Adds a value; if there is no room, it replaces the oldest.
    pub(crate) fn insert(&mut self, at: Instant, value: Duration) {
        if self.len() == CAPACITY {
            self.drop_oldest();
        }
        let newest = (self.oldest + self.len()) % CAPACITY;
        let heap = if self.value().is_none_or(|top| value <= top) { LOW } else { HIGH };
        let slot = Slot { at, value, heap, index: 0 };
        if newest == self.slots.len() {
            self.slots.push(slot);
        } else {
            self.slots[newest] = slot;
        }
        self.push(heap, newest as u16);
        self.balance();
    }

    /// Drops the values that are older than `life`.
    pub(crate) fn expire(&mut self, now: Instant, life: Duration) {
        while self.len() > 0 && now.since(self.slots[self.oldest].at) > life {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Slot { heap, index, .. } = self.slots[self.oldest];
        self.remove(heap, index);
        self.oldest = (self.oldest + 1) % CAPACITY;
        self.balance();
    }

    /// Moves values between the heaps until `LOW` holds as many as the rank.
    fn balance(&mut self) {
        // 0.998 * 1000 may come out a little more than 998.
        #[expect(clippy::cast_sign_loss, reason = "a share of a count is not negative")]
        let rank = libm::ceil(self.ratio * self.len() as f64 - 1e-9) as usize;
        let rank = rank.min(self.len()).max(usize::from(self.len() > 0));
        while self.heaps[LOW].len() != rank {
            let (from, to) = if self.heaps[LOW].len() < rank { (HIGH, LOW) } else { (LOW, HIGH) };
            let top = self.remove(from, 0);
            self.push(to, top);
        }
    }

    fn push(&mut self, heap: usize, slot: u16) {
        let index = self.heaps[heap].len();
        self.heaps[heap].push(slot);
        self.put(heap, index, slot);
        self.sift_up(heap, index);
    }

    fn remove(&mut self, heap: usize, index: usize) -> u16 {
        let removed = self.heaps[heap].swap_remove(index);
        if let Some(moved) = self.heaps[heap].get(index).copied() {
            self.put(heap, index, moved);
            self.sift_down(heap, index);
            self.sift_up(heap, index);
        }
        removed
    }

    fn put(&mut self, heap: usize, index: usize, slot: u16) {
        self.heaps[heap][index] = slot;
        let slot = &mut self.slots[usize::from(slot)];
        (slot.heap, slot.index) = (heap, index);
    }

    /// True if in `heap` the entry at `upper` belongs above the one at `lower`.
    fn outranks(&self, heap: usize, upper: usize, lower: usize) -> bool {
        let value = |index: usize| self.slots[usize::from(self.heaps[heap][index])].value;
        if heap == LOW { value(upper) > value(lower) } else { value(upper) < value(lower) }
    }

    fn swap(&mut self, heap: usize, a: usize, b: usize) {
        let (at_a, at_b) = (self.heaps[heap][a], self.heaps[heap][b]);
        self.put(heap, a, at_b);
        self.put(heap, b, at_a);
    }

    fn sift_up(&mut self, heap: usize, mut index: usize) {
        while index > 0 && self.outranks(heap, index, (index - 1) / 2) {
            self.swap(heap, index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    fn sift_down(&mut self, heap: usize, mut index: usize) {
        loop {
            let mut highest = index;
            for child in [2 * index + 1, 2 * index + 2] {
                if child < self.heaps[heap].len() && self.outranks(heap, child, highest) {
                    highest = child;
                }
            }
            if highest == index {
                return;
            }
            self.swap(heap, index, highest);
            index = highest;
        }
    }

    /// The size on the heap, in bytes.
    pub(crate) fn heap_size(&self) -> usize {
        let heaps: usize = self.heaps.iter().map(Vec::capacity).sum();
        self.slots.capacity() * size_of::<Slot>() + heaps * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn it_agrees_with_sorting() {
        for ratio in [0.5, 0.9, 0.998, 1.0] {
            let mut statistic = OrderStatistic::new(ratio);
            let mut kept: VecDeque<(Instant, Duration)> = VecDeque::new();
            let mut random = 1u64;
            for step in 0..12_000u64 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // The window fills, then shrinks by age, again and again.
                let life = Duration::from_millis(if step % 5000 < 4500 { 5000 } else { 40 });
                let (now, value) = (Instant::ZERO + Duration::from_millis(step), Duration::from_nanos(random >> 54));
                statistic.insert(now, value);
                statistic.expire(now, life);
                kept.push_back((now, value));
                if kept.len() > CAPACITY {
                    kept.pop_front();
                }
                kept.retain(|(at, _)| now.since(*at) <= life);
                assert_eq!(statistic.len(), kept.len());
                if step % 97 == 0 {
                    let mut sorted: Vec<_> = kept.iter().map(|(_, value)| *value).collect();
                    sorted.sort_unstable();
                    let rank = (ratio * sorted.len() as f64 - 1e-9).ceil().max(1.0);
                    #[expect(clippy::cast_sign_loss, reason = "a rank is positive")]
                    let expected = sorted[rank as usize - 1];
                    assert_eq!(statistic.value(), Some(expected), "step {step}, ratio {ratio}");
                }
            }
        }
    }
}
