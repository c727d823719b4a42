//! Which packets have been received, among the last 4096.

/// Numbers of packets.
pub(super) struct Dedup {
    /// One bit for each number, in a ring.
    window: Vec<u64>,
    /// One above the highest.
    next: u64,
}

const SIZE: u64 = 4096;

impl Dedup {
    pub(super) fn new() -> Self {
        Self { window: vec![0; (SIZE / 64) as usize], next: 0 }
    }

    fn bit(number: u64) -> (usize, u64) {
        ((number % SIZE / 64) as usize, 1 << (number % 64))
    }

    fn has(&self, number: u64) -> bool {
        let (word, bit) = Self::bit(number);
        self.window[word] & bit != 0
    }

    /// Whether the packet might be a duplicate.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number + SIZE < self.next {
            return true;
        }
        for skipped in self.next.max((number + 1).saturating_sub(SIZE))..=number {
            let (word, bit) = Self::bit(skipped);
            self.window[word] &= !bit;
        }
        self.next = self.next.max(number + 1);
        let is_duplicate = self.has(number);
        let (word, bit) = Self::bit(number);
        self.window[word] |= bit;
        is_duplicate
    }

    pub(super) fn smallest_missing_in_interval(&self, low: u64, high: u64) -> Option<u64> {
        (low.max(self.next.saturating_sub(SIZE)) + 1..high).find(|number| !self.has(*number))
    }

    pub(super) fn missing_in_interval(&self, low: u64, high: u64) -> bool {
        self.smallest_missing_in_interval(low, high).is_some()
    }
}
