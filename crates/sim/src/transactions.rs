//! Completion times of transactions.

use hdrhistogram::Histogram;
use reknit_units::{Bytes, Duration, Instant};

/// A transaction that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The flow.
    pub flow: u32,
    /// When it began; before the handshake, if it is the first of its connection.
    pub began: Instant,
    /// When the last byte of the response arrived.
    pub ended: Instant,
    /// Bytes of the response.
    pub response: Bytes,
}

impl Transaction {
    /// The completion time.
    pub fn completion(&self) -> Duration {
        self.ended.since(self.began)
    }

    /// The response divided by the completion time, in bit/s.
    pub fn goodput(&self) -> f64 {
        let seconds = self.completion().as_secs_f64();
        if seconds > 0.0 { self.response.0 as f64 * 8.0 / seconds } else { 0.0 }
    }
}

/// Completion times and goodputs of many transactions, in constant space.
#[derive(Clone, Debug)]
pub struct TransactionStats {
    completed: u64,
    failed: u64,
    total: Duration,
    goodputs: f64,
    /// Completion times in microseconds.
    completions: Histogram<u32>,
}

impl Default for TransactionStats {
    fn default() -> TransactionStats {
        let completions = Histogram::new(3).expect("3 digits are allowed");
        TransactionStats { completed: 0, failed: 0, total: Duration::ZERO, goodputs: 0.0, completions }
    }
}

impl TransactionStats {
    /// How many completed.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// How many failed because their connection was aborted.
    pub fn failed(&self) -> u64 {
        self.failed
    }

    /// Mean completion time.
    pub fn mean(&self) -> Duration {
        self.total.mul_f64(1.0 / self.completed.max(1) as f64)
    }

    /// A quantile of the completion time, to three digits.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.completions.value_at_quantile(share))
    }

    /// Mean of the transactions' goodputs, in bit/s.
    pub fn goodput(&self) -> f64 {
        self.goodputs / self.completed.max(1) as f64
    }

    /// Adds those of another group.
    pub fn add(&mut self, other: &TransactionStats) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.total += other.total;
        self.goodputs += other.goodputs;
        let _ = self.completions.add(&other.completions); // grows as needed, up to 2^64
    }

    pub(crate) fn note(&mut self, transaction: &Transaction) {
        self.completed += 1;
        self.total += transaction.completion();
        self.goodputs += transaction.goodput();
        let _ = self.completions.record(transaction.completion().as_nanos() / 1000); // grows as needed, up to 2^64
    }

    pub(crate) fn note_failure(&mut self) {
        self.failed += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transaction(ms: u64) -> Transaction {
        let ended = Instant::ZERO + Duration::from_millis(ms);
        Transaction { flow: 0, began: Instant::ZERO, ended, response: Bytes(1000) }
    }

    #[test]
    fn the_statistics_of_a_hundred() {
        let (mut odd, mut even) = (TransactionStats::default(), TransactionStats::default());
        for ms in 1..=100 {
            if ms % 2 == 1 { odd.note(&transaction(ms)) } else { even.note(&transaction(ms)) }
        }
        odd.note_failure();
        odd.add(&even);
        assert_eq!((odd.completed(), odd.failed()), (100, 1));
        assert_eq!(odd.mean(), Duration::from_micros(50_500));
        for (share, ms) in [(0.5, 50.0), (0.9, 90.0), (0.99, 99.0)] {
            let found = odd.quantile(share).as_secs_f64() * 1e3;
            assert!((found - ms).abs() < 0.001 * ms, "{share}: {found}");
        }
        // 8000 bits in 1, 2, ..., 100 ms: 80 kbit/s times the 100th harmonic number.
        assert!((odd.goodput() - 80_000.0 * 5.187_377_5).abs() < 1.0, "{}", odd.goodput());
    }
}
