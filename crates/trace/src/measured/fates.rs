//! What happens to packets behind the bottleneck.

use reknit_units::Duration;

use super::link::Passed;
use super::{Fate, Nanos, Travelled};

/// Packets on either side among which the fastest shows how long the path is.
const NEIGHBOURS: usize = 8;
/// Changes of the path's delay below this are noise of the hosts.
const LEAST_CHANGE: Duration = Duration::from_millis(2);

/// The part of the path behind its bottleneck.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    /// How much longer than at its shortest the path was, from when on.
    pub(super) delays: Vec<(Duration, Duration)>,
    pub(super) fates: Vec<Fate>,
}

/// A packet behind the link.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: Nanos,
    /// How much longer than the shortest time it took from the link; none: lost.
    extra: Option<Nanos>,
    /// A packet that was sent later arrived before it.
    is_overtaken: bool,
}

/// Takes apart what all packets of a time have in common and what is different for each. A packet that nobody overtook is
/// not late: at the sender, acknowledgments are delayed, and as lateness that would reorder.
pub(super) fn behind(
    packets: &[Travelled],
    passed: &Passed,
    round_trip: Duration,
    since: impl Fn(Nanos) -> Duration,
) -> Behind {
    let rest = rest(packets, passed);
    let least_change = LEAST_CHANGE.max(round_trip / 20);
    let mut delays: Vec<(Duration, Duration)> = vec![(Duration::ZERO, Duration::ZERO)];
    let mut fates = Vec::with_capacity(rest.len());
    for (i, packet) in rest.iter().enumerate() {
        let near = i.saturating_sub(NEIGHBOURS)..(i + NEIGHBOURS + 1).min(rest.len());
        let common = rest[near].iter().filter_map(|near| near.extra).min().unwrap_or_default();
        let span = |nanos: Nanos| Duration::from_nanos(nanos.max(0).cast_unsigned());
        let (at, usual) = (since(packet.at), delays.last().map_or(Duration::ZERO, |(_, delay)| *delay));
        if span(common).abs_diff(usual) >= least_change {
            delays.push((at, span(common)));
        }
        let late = packet.extra.map(|extra| if packet.is_overtaken { span(extra - common) } else { Duration::ZERO });
        fates.push(Fate { at, late });
    }
    Behind { delays, fates }
}

fn rest(packets: &[Travelled], passed: &Passed) -> Vec<Rest> {
    let mut earliest = Nanos::MAX;
    let mut rest = Vec::with_capacity(packets.len());
    for (packet, left) in packets.iter().zip(&passed.left).rev() {
        let is_overtaken = packet.arrived.is_some_and(|arrived| earliest < arrived);
        earliest = earliest.min(packet.arrived.unwrap_or(Nanos::MAX));
        if let Some(at) = left.filter(|_| packet.is_known()) {
            let extra = packet.arrived.map(|arrived| arrived - at - passed.transit);
            rest.push(Rest { at, extra, is_overtaken });
        }
    }
    rest.reverse();
    // A late arrival does not hold up those behind it, but the link may have been slower than estimated.
    rest.sort_by_key(|rest| rest.at);
    rest
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A packet each millisecond, with this time to arrival; a negative one is lost.
    fn path(transits: impl Fn(Nanos) -> Nanos, count: Nanos) -> Behind {
        let packet = |i: Nanos| {
            let transit = transits(i);
            let arrived = (transit >= 0).then_some(i * MS + transit);
            travelled(i * MS, arrived)
        };
        let packets: Vec<Travelled> = (0..count).map(packet).collect();
        let left = packets.iter().map(|packet| Some(packet.sent)).collect();
        let passed = Passed { left, longest_wait: 0, overflows: false, transit: 20 * MS };
        behind(&packets, &passed, Duration::from_millis(40), |at| Duration::from_nanos(at.cast_unsigned()))
    }

    #[test]
    fn single_packets_are_late_and_lost() {
        let fate = |i| match i % 10 {
            3 => 50 * MS,
            7 => -1,
            _ => 20 * MS,
        };
        let behind = path(fate, 100);
        assert_eq!(behind.delays.len(), 1);
        let late: Vec<_> = behind.fates.iter().map(|fate| fate.late).collect();
        assert_eq!(late[..4], [Some(0), Some(0), Some(0), Some(30)].map(|late| late.map(Duration::from_millis)));
        assert_eq!(late[7], None);
    }

    #[test]
    fn a_longer_path_is_not_late_packets() {
        let behind = path(|i| if (100..200).contains(&i) { 60 * MS } else { 20 * MS }, 300);
        let delays: Vec<u64> = behind.delays.iter().map(|(_, delay)| delay.as_millis()).collect();
        assert_eq!(delays, [0, 40, 0]);
        // Only those that the first packets of the shorter path overtake are late.
        let late = behind.fates.iter().filter(|fate| fate.late.is_some_and(|late| !late.is_zero())).count();
        assert!(late <= NEIGHBOURS, "{late}");
    }
}
