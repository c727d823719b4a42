//! Measurements of connections that can be added up.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use reknit_tcp::seams::ShownName;
use reknit_units::{Bytes, Duration, Instant};

/// Mean and standard deviation of a value, weighted by the time for which it held.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TimeMean {
    seconds: f64,
    sum: f64,
    squares: f64,
    largest: f64,
}

impl TimeMean {
    /// The value was `value` for the time `span`.
    pub(crate) fn note(&mut self, value: f64, span: Duration) {
        let seconds = span.as_secs_f64();
        self.seconds += seconds;
        self.sum += value * seconds;
        self.squares += value * value * seconds;
        self.largest = self.largest.max(value);
    }

    fn add(&mut self, other: &TimeMean) {
        self.seconds += other.seconds;
        self.sum += other.sum;
        self.squares += other.squares;
        self.largest = self.largest.max(other.largest);
    }

    /// The mean; none if there was no time.
    pub fn mean(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.sum / self.seconds)
    }

    /// The standard deviation over time; none if there was no time.
    pub fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        Some((self.squares / self.seconds - mean * mean).max(0.0).sqrt())
    }

    /// The largest value; none if there was no time.
    pub fn largest(&self) -> Option<f64> {
        (self.seconds > 0.0).then_some(self.largest)
    }
}

/// Measurements of some connections after the warm-up.
#[derive(Clone, Debug)]
pub struct Measures {
    /// Congestion window, bytes.
    pub cwnd: TimeMean,
    /// Duplicate threshold, segments.
    pub dup_thresh: TimeMean,
    /// Smoothed round-trip time, seconds.
    pub srtt: TimeMean,
    /// The numbers that plug-ins show.
    pub shown: BTreeMap<ShownName, TimeMean>,
    /// Data segments that one ACK caused the sender to send: the number of ACKs for each count.
    pub(crate) bursts: Vec<u64>,
    /// Round-trip times in microseconds.
    pub(crate) rtts: Histogram<u32>,
    /// Their sum.
    pub(crate) rtt_total: Duration,
    /// Segments retransmitted by the loss detector whose earlier copies were all lost.
    pub needed_fast_retransmissions: u64,
    /// Segments retransmitted by the loss detector of which an earlier copy was not lost.
    pub spurious_fast_retransmissions: u64,
    /// Lost data packets whose segment was next retransmitted by the loss detector, or speculatively in fast recovery.
    pub repaired_by_fast_retransmit: u64,
    /// Data segments sent.
    pub segments: u64,
    /// Bytes of these on the wire, IP and TCP headers included.
    pub wire: Bytes,
    /// The most memory that the plug-ins of one end used, less what those of `sack` use.
    pub reordering_state: Bytes,
    /// Connections whose FIN the peer has not acknowledged.
    pub(crate) open: u32,
    /// From the first SYN to the acknowledgment of the last FIN. Not affected by the warm-up.
    pub(crate) lifetime: Option<(Instant, Instant)>,
}

impl Default for Measures {
    fn default() -> Measures {
        Measures {
            cwnd: TimeMean::default(),
            dup_thresh: TimeMean::default(),
            srtt: TimeMean::default(),
            shown: BTreeMap::new(),
            bursts: Vec::new(),
            rtts: Histogram::new(3).expect("3 digits are allowed"),
            rtt_total: Duration::ZERO,
            needed_fast_retransmissions: 0,
            spurious_fast_retransmissions: 0,
            repaired_by_fast_retransmit: 0,
            segments: 0,
            wire: Bytes::ZERO,
            reordering_state: Bytes::ZERO,
            open: 0,
            lifetime: None,
        }
    }
}

impl Measures {
    /// Adds those of other connections.
    pub fn add(&mut self, other: &Measures) {
        self.cwnd.add(&other.cwnd);
        self.dup_thresh.add(&other.dup_thresh);
        self.srtt.add(&other.srtt);
        for (name, mean) in &other.shown {
            self.shown.entry(*name).or_default().add(mean);
        }
        self.bursts.resize(self.bursts.len().max(other.bursts.len()), 0);
        self.bursts.iter_mut().zip(&other.bursts).for_each(|(sum, count)| *sum += count);
        let _ = self.rtts.add(&other.rtts); // grows as needed, up to 2^64
        self.rtt_total += other.rtt_total;
        self.needed_fast_retransmissions += other.needed_fast_retransmissions;
        self.spurious_fast_retransmissions += other.spurious_fast_retransmissions;
        self.repaired_by_fast_retransmit += other.repaired_by_fast_retransmit;
        self.segments += other.segments;
        self.wire += other.wire;
        self.reordering_state = self.reordering_state.max(other.reordering_state);
        self.open += other.open;
        if let Some((first, last)) = other.lifetime {
            let (own_first, own_last) = self.lifetime.unwrap_or((first, last));
            self.lifetime = Some((own_first.min(first), own_last.max(last)));
        }
    }

    /// Resets the measurements at the end of the warm-up.
    pub(crate) fn restart(&mut self) {
        *self = Measures { open: self.open, lifetime: self.lifetime, ..Measures::default() };
    }

    /// A quantile of the number of data segments that one ACK released.
    pub fn burst_quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.bursts.iter().sum::<u64>() as f64).max(1.0);
        let mut covered = 0;
        let reached = self.bursts.iter().position(|count| {
            covered += count;
            covered as f64 >= wanted
        });
        reached.unwrap_or(0) as u64
    }

    /// Mean round-trip time of first transmissions: from sending to the arrival of the first ACK that was sent after
    /// they had arrived. Retransmitted and lost segments do not count.
    pub fn rtt_mean(&self) -> Option<Duration> {
        (!self.rtts.is_empty()).then(|| self.rtt_total / self.rtts.len())
    }

    /// A quantile of the same, to three digits.
    pub fn rtt_quantile(&self, share: f64) -> Option<Duration> {
        (!self.rtts.is_empty()).then(|| Duration::from_micros(self.rtts.value_at_quantile(share)))
    }

    /// From the first SYN to the acknowledgment of the last FIN; none if one is missing.
    pub fn lifetime(&self) -> Option<Duration> {
        let (first, last) = self.lifetime.filter(|_| self.open == 0)?;
        Some(last.since(first))
    }
}
