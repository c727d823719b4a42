//! What all connections of a flow have shown, as far as it adds up.

use hdrhistogram::Histogram;
use reknit_tcp::stats::{ReceiveStats, SendStats};
use reknit_units::{Bytes, Duration};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Octets that arrived in order.
    pub(crate) delivered: Bytes,
    /// Of connections that are gone.
    pub(crate) send: SendStats,
    pub(crate) receive: ReceiveStats,
    pub(crate) lost: u64,
    pub(crate) spurious_retransmissions: u64,
    pub(crate) false_cuts: u64,
    pub(crate) waits: Waits,
}

/// How long segments wait at the receiver for those before them.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Segments that did not wait.
    none: u64,
    /// Waits in microseconds.
    some: Option<Histogram<u32>>,
}

impl Waits {
    /// A segment has come in its turn.
    pub(crate) fn note_none(&mut self) {
        self.none += 1;
    }

    /// A segment has waited.
    pub(crate) fn note(&mut self, wait: Duration) {
        let some = self.some.get_or_insert_with(|| Histogram::new(3).expect("3 digits are allowed"));
        let _ = some.record(wait.as_nanos() / 1000); // it grows as needed, up to 2^64
    }

    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        let some = self.some.as_ref().map_or(0, Histogram::len);
        let rank = quantile * (self.none + some) as f64 - self.none as f64;
        match &self.some {
            Some(histogram) if rank > 0.0 => Duration::from_micros(histogram.value_at_quantile(rank / some as f64)),
            _ => Duration::ZERO,
        }
    }
}
