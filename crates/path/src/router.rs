//! Routers that report to a flow's receiver what they have dropped (RN-TCP: Sathiaseelan and Radzik, as described in
//! the survey of Leung, Li, Yang, §5.2.5).
//!
//! A router remembers, for each flow, the range of the packets that it has dropped. It writes the range into the next
//! packet of the flow that it forwards, and forgets it. A range that is already in the packet is extended. If a packet
//! with a range is dropped, the router remembers that range too.

use std::collections::{BTreeMap, BTreeSet};

use reknit_units::{Duration, Instant};

/// The most flows that are remembered. If there are more, the oldest entry is removed.
const MAX_FLOWS: usize = 4096;
/// A flow that forwards nothing for this long is forgotten.
const IDLE: Duration = Duration::from_secs(10);

/// The range of a flow's dropped packets. Its numbers wrap like TCP's sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropRange {
    /// The lowest.
    pub lowest: u32,
    /// The highest.
    pub highest: u32,
}

impl DropRange {
    /// A single packet.
    const fn of(number: u32) -> DropRange {
        DropRange { lowest: number, highest: number }
    }

    /// The range that covers both.
    fn and(self, other: Option<DropRange>) -> DropRange {
        let Some(other) = other else { return self };
        let before = |a: u32, b: u32| a.wrapping_sub(b).cast_signed() < 0;
        DropRange {
            lowest: if before(other.lowest, self.lowest) { other.lowest } else { self.lowest },
            highest: if before(self.highest, other.highest) { other.highest } else { self.highest },
        }
    }
}

/// What a router reads in a packet that has space for a notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropNotice {
    /// The flow of the packet.
    pub flow: u64,
    /// The packet's number: the sequence number of its first byte.
    pub number: u32,
    /// What earlier routers have written.
    pub dropped: Option<DropRange>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    dropped: DropRange,
    since: Instant,
}

/// What one router has dropped and not yet reported.
#[derive(Debug, Default)]
pub(crate) struct Router {
    entries: BTreeMap<u64, Entry>,
    /// The same flows, by the time of their last drop.
    by_age: BTreeSet<(Instant, u64)>,
}

impl Router {
    /// True if there is nothing to report.
    pub(crate) fn is_silent(&self) -> bool {
        self.entries.is_empty()
    }

    /// A packet is dropped.
    pub(crate) fn on_drop(&mut self, now: Instant, notice: DropNotice) {
        let known = self.remove(now, notice.flow);
        if self.entries.len() == MAX_FLOWS
            && let Some((_, flow)) = self.by_age.pop_first()
        {
            self.entries.remove(&flow);
        }
        let dropped = DropRange::of(notice.number).and(notice.dropped).and(known);
        self.entries.insert(notice.flow, Entry { dropped, since: now });
        self.by_age.insert((now, notice.flow));
    }

    /// A packet is forwarded. Returns what to write into it, if anything.
    pub(crate) fn on_forward(&mut self, now: Instant, notice: DropNotice) -> Option<DropRange> {
        Some(self.remove(now, notice.flow)?.and(notice.dropped))
    }

    /// Removes the entry of `flow`, and returns it unless it is too old.
    fn remove(&mut self, now: Instant, flow: u64) -> Option<DropRange> {
        let entry = self.entries.remove(&flow)?;
        self.by_age.remove(&(entry.since, flow));
        (now.since(entry.since) <= IDLE).then_some(entry.dropped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(s)
    }

    fn packet(flow: u64, number: u32) -> DropNotice {
        DropNotice { flow, number, dropped: None }
    }

    fn range(lowest: u32, highest: u32) -> DropRange {
        DropRange { lowest, highest }
    }

    #[test]
    fn the_next_packet_carries_the_notice() {
        let mut router = Router::default();
        router.on_drop(at(0), packet(1, 10));
        router.on_drop(at(0), packet(1, 14));
        assert_eq!(router.on_forward(at(0), packet(2, 15)), None);
        assert_eq!(router.on_forward(at(0), packet(1, 15)), Some(range(10, 14)));
        assert!(router.is_silent());
        assert_eq!(router.on_forward(at(0), packet(1, 16)), None);
    }

    #[test]
    fn the_notice_of_an_earlier_router_is_kept() {
        let mut router = Router::default();
        router.on_drop(at(0), packet(1, 10));
        router.on_drop(at(0), packet(1, 14));
        let carrying = DropNotice { dropped: Some(range(8, 9)), ..packet(1, 15) };
        assert_eq!(router.on_forward(at(0), carrying), Some(range(8, 14)));
    }

    #[test]
    fn the_notice_in_a_dropped_packet_is_not_lost() {
        let mut router = Router::default();
        router.on_drop(at(0), DropNotice { dropped: Some(range(8, 9)), ..packet(1, 15) });
        assert_eq!(router.on_forward(at(0), packet(1, 16)), Some(range(8, 15)));
    }

    #[test]
    fn numbers_wrap() {
        let mut router = Router::default();
        for number in [5, u32::MAX - 5, 1] {
            router.on_drop(at(0), packet(1, number));
        }
        assert_eq!(router.on_forward(at(0), packet(1, 9)), Some(range(u32::MAX - 5, 5)));
    }

    #[test]
    fn an_idle_flow_is_forgotten() {
        for (later, told) in [(10, Some(range(5, 5))), (11, None)] {
            let mut router = Router::default();
            router.on_drop(at(0), packet(1, 5));
            assert_eq!(router.on_forward(at(later), packet(1, 6)), told);
        }
    }

    #[test]
    fn the_oldest_entry_is_removed_first() {
        let mut router = Router::default();
        for flow in 0..=MAX_FLOWS as u64 {
            router.on_drop(Instant::from_nanos(flow), packet(flow, 5));
        }
        assert_eq!((router.entries.len(), router.by_age.len()), (MAX_FLOWS, MAX_FLOWS));
        assert_eq!(router.on_forward(at(1), packet(0, 6)), None);
        assert!(router.on_forward(at(1), packet(1, 6)).is_some());
    }
}
