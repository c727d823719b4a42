//! How late the emulation was: on a busy machine packets leave late, and the result reflects the machine instead of the
//! path.

use std::fmt;
use std::fs;

use hdrhistogram::Histogram;
use reknit_units::{Duration, Instant};

/// Results are doubtful if the 99th percentile of lateness exceeds this: a quarter of the shortest time that a sender
/// on a path of a few milliseconds waits for reordering (RFC 8985 §6.2: a quarter of the round-trip time).
const LATE: Duration = Duration::from_millis(1);
/// They are also doubtful if the testbed's threads waited for a processor for more than this share of the time.
const BUSY: f64 = 0.02;

/// Fewer packets say nothing about the machine: one that happens to be late is more than 1 % of them.
const FEW: u64 = 10;

/// Records how late packets left the path.
#[derive(Debug)]
pub(crate) struct Lateness(Histogram<u64>);

impl Lateness {
    pub(crate) fn note(&mut self, due: Instant, left: Instant) {
        let _ = self.0.record(left.since(due).as_nanos() / 1000); // grows as needed, up to 2^64
    }

    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_micros(self.0.value_at_quantile(share))
    }
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness(Histogram::new(2).expect("2 digits are allowed"))
    }
}

/// How late the emulator was, and how busy the machine.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TimingAccuracy {
    /// How late packets left the path: 99th percentile, to two digits.
    pub late_p99: Duration,
    /// The maximum.
    pub late_max: Duration,
    /// How long the testbed's threads were ready to run but had no processor, as a share of the transfer's length. The
    /// sum over several threads may exceed 1. Zero if the kernel does not report it.
    pub waited_for_cpu: f64,
    /// Packets that left the path.
    pub packets: u64,
    /// Packets that were lost because a device kept refusing them.
    pub refused: u64,
}

impl TimingAccuracy {
    pub(crate) fn new(lateness: &Lateness, waited: Duration, elapsed: Duration, refused: u64) -> TimingAccuracy {
        TimingAccuracy {
            late_p99: lateness.quantile(0.99),
            late_max: lateness.quantile(1.0),
            waited_for_cpu: waited.as_secs_f64() / elapsed.as_secs_f64().max(1e-9),
            packets: lateness.0.len(),
            refused,
        }
    }

    /// Why the result is in doubt; none if it is not.
    pub fn doubt(&self) -> Option<TimingWarning> {
        let busy = self.late_p99 > LATE || self.waited_for_cpu > BUSY;
        let doubtful = (busy && self.packets >= FEW) || self.refused > 0;
        doubtful.then_some(TimingWarning(*self))
    }
}

/// Why a result is in doubt; `Display` gives the text.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimingWarning(TimingAccuracy);

impl fmt::Display for TimingWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimingAccuracy { late_p99, waited_for_cpu, refused, .. } = self.0;
        let mut separator = "";
        if late_p99 > LATE {
            write!(f, "1 % of the packets left the path {late_p99} or more behind schedule (limit {LATE})")?;
            separator = "; ";
        }
        if waited_for_cpu > BUSY {
            let [percent, limit] = [waited_for_cpu, BUSY].map(|share| share * 100.0);
            write!(f, "{separator}its threads waited for a processor {percent:.0} % of the time (limit {limit:.0} %)")?;
            separator = "; ";
        }
        if refused > 0 {
            write!(f, "{separator}a device refused {refused} packets")?;
        }
        Ok(())
    }
}

/// How long the calling thread has been ready to run without a processor (the second number of `schedstat`).
pub(crate) fn waited_for_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_late_packet_in_fifty_is_reported() {
        let mut lateness = Lateness::default();
        for packet in 0..50 {
            let due = Instant::ZERO + Duration::from_millis(packet);
            let late = if packet == 7 { Duration::from_millis(4) } else { Duration::from_micros(80) };
            lateness.note(due, due + late);
        }
        let second = Duration::from_secs(1);
        let punctuality = TimingAccuracy::new(&lateness, Duration::from_millis(50), second, 0);
        let doubt = punctuality.doubt().expect("a packet of 50 was late").to_string();
        assert!(doubt.contains("1 % of the packets left the path 4"), "{doubt}");
        assert!(doubt.contains("waited for a processor 5 % of the time"), "{doubt}");
    }

    #[test]
    fn a_transfer_on_time_is_not_in_doubt() {
        let mut lateness = Lateness::default();
        lateness.note(Instant::ZERO, Instant::ZERO + Duration::from_micros(80));
        let second = Duration::from_secs(1);
        assert_eq!(TimingAccuracy::new(&lateness, Duration::from_micros(300), second, 0).doubt(), None);
    }

    #[test]
    fn a_few_packets_leave_no_doubt() {
        let late = |packets: u64| {
            let mut lateness = Lateness::default();
            (0..packets).for_each(|_| lateness.note(Instant::ZERO, Instant::ZERO + Duration::from_millis(2)));
            TimingAccuracy::new(&lateness, Duration::from_millis(50), Duration::from_millis(100), 0).doubt()
        };
        assert_eq!([late(0), late(9)], [None, None]);
        assert!(late(10).is_some());
    }
}
