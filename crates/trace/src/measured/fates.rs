//! What happens to packets after the bottleneck.
//!
//! A receiver discards a packet whose timestamp is older than that of data which arrived before it (PAWS, RFC 7323 §5). Once a
//! retransmission has arrived, this happens to all earlier packets that are late. At the sender they look lost, but another
//! sender might have waited for them. So such a packet counts as late if packets near it were late enough.

use std::ops::Range;

use reknit_units::Duration;

use super::link::Passed;
use super::{Fate, Nanos, Travelled, outages};

/// The fastest of this many packets on either side shows the delay of the path.
const NEIGHBOURS: usize = 8;
/// Smaller changes of the path's delay are noise of the hosts.
const LEAST_CHANGE: Duration = Duration::from_millis(2);
/// A late packet is looked for among this many on either side.
const NEAR: usize = 64;

/// The part of the path after its bottleneck.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    /// The path's delay beyond its shortest one, and from which time on it applies.
    pub(super) delays: Vec<(Duration, Duration)>,
    /// The times during which all packets were lost: start and end.
    pub(super) outages: Vec<(Duration, Duration)>,
    /// The fates of the packets outside of outages.
    pub(super) fates: Vec<Fate>,
}

/// A packet after the link.
#[derive(Clone, Copy, Debug)]
struct Rest {
    at: Nanos,
    /// The time it took from the link, beyond the shortest such time; none: lost.
    extra: Option<Nanos>,
    /// A packet that was sent later arrived before it.
    is_overtaken: bool,
    /// If it was at least this much later than usual, the receiver discarded it because a retransmission had arrived.
    discarded_from: Option<Nanos>,
}

/// Separates the delay that all packets of a time have in common from the lateness of each. A packet that was not overtaken is
/// not late: in a capture at the sender the ACK may have been delayed, and that delay as lateness would reorder packets.
pub(super) fn behind(
    packets: &[Travelled],
    passed: &Passed,
    outages: &[Range<usize>],
    round_trip: Duration,
    since: impl Fn(Nanos) -> Duration,
) -> Behind {
    let rest = rest(packets, passed, outages);
    let least_change = LEAST_CHANGE.max(round_trip / 20);
    let mut delays: Vec<(Duration, Duration)> = vec![(Duration::ZERO, Duration::ZERO)];
    let mut fates = Vec::with_capacity(rest.len());
    let mut discarded = Vec::with_capacity(rest.len());
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
        discarded.push(packet.discarded_from.filter(|_| late.is_none()).map(|from| span(from - common)));
    }
    let taken_for_lost = late_instead(&fates, &discarded);
    for (i, late) in taken_for_lost {
        fates[i].late = Some(late);
    }
    let left = |index: usize| passed.left.get(index).copied().flatten();
    let until = |end: usize| left(end).or_else(|| left(end - 1)).map(&since);
    let outages = outages.iter().filter_map(|outage| Some((since(left(outage.start)?), until(outage.end)?)));
    let outages = outages.collect();
    Behind { delays, outages, fates }
}

/// The packets that the receiver discarded because they were late, rather than lost: how late the nearest packet was that
/// was as late as this.
fn late_instead(fates: &[Fate], discarded: &[Option<Duration>]) -> Vec<(usize, Duration)> {
    let near = |i: usize, least: Duration| {
        let is_late = |late: &Duration| !late.is_zero() && *late >= least;
        let at = |place: Option<usize>| place.and_then(|place| fates.get(place)?.late).filter(is_late);
        (1..=NEAR).find_map(|apart| at(i.checked_sub(apart)).or_else(|| at(Some(i + apart))))
    };
    let discarded = discarded.iter().enumerate().filter_map(|(i, least)| Some((i, (*least)?)));
    discarded.filter_map(|(i, least)| Some((i, near(i, least)?))).collect()
}

fn rest(packets: &[Travelled], passed: &Passed, outages: &[Range<usize>]) -> Vec<Rest> {
    let is_up = outages::outside(packets, outages);
    let (mut earliest, mut earliest_again) = (Nanos::MAX, Nanos::MAX);
    let mut rest = Vec::with_capacity(packets.len());
    for ((packet, left), is_up) in packets.iter().zip(&passed.left).zip(is_up).rev() {
        let is_overtaken = packet.arrived.is_some_and(|arrived| earliest < arrived);
        earliest = earliest.min(packet.arrived.unwrap_or(Nanos::MAX));
        if let Some(at) = left.filter(|_| packet.is_known() && is_up) {
            let extra = packet.arrived.map(|arrived| arrived - at - passed.transit);
            let has_passed = packet.may_be_discarded && earliest_again < Nanos::MAX;
            let discarded_from = has_passed.then(|| earliest_again - at - passed.transit);
            rest.push(Rest { at, extra, is_overtaken, discarded_from });
        }
        if packet.is_again {
            earliest_again = earliest_again.min(packet.arrived.unwrap_or(Nanos::MAX));
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
        behind(&packets, &passed, &[], Duration::from_millis(40), |at| Duration::from_nanos(at.cast_unsigned()))
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
    fn a_late_packet_that_is_discarded_is_not_lost() {
        // Every second packet is late by 30 ms. One of them is retransmitted after 5 ms, so it is discarded when it comes.
        let of = |i: Nanos| travelled(i * MS, Some(i * MS + if i % 2 == 1 { 50 * MS } else { 20 * MS }));
        let mut packets: Vec<Travelled> = (0..100).map(of).collect();
        packets[51] = Travelled { may_be_discarded: true, ..travelled(51 * MS, None) };
        packets[56] = Travelled { is_again: true, ..of(56) };
        let fate = |packets: &[Travelled]| {
            let left = packets.iter().map(|packet| Some(packet.sent)).collect();
            let passed = Passed { left, longest_wait: 0, overflows: false, transit: 20 * MS };
            let since = |at: Nanos| Duration::from_nanos(at.cast_unsigned());
            behind(packets, &passed, &[], Duration::from_millis(40), since).fates[51].late
        };
        assert_eq!(fate(&packets), Some(Duration::from_millis(30)));
        // If the retransmission comes only later than late packets do, it was lost.
        packets[56].arrived = Some(110 * MS);
        assert_eq!(fate(&packets), None);
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
