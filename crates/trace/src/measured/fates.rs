//! What happens to packets after the bottleneck.
//!
//! A receiver discards a packet whose timestamp is older than that of data which arrived before it (PAWS, RFC 7323 §5). Once a
//! retransmission has arrived, this happens to all earlier packets that are late. At the sender they look lost, but another
//! sender might have waited for them. So such a packet counts as late if packets near it were late enough.

use std::ops::Range;

use reknit_units::Duration;

use super::link::Passed;
use super::{DelayAfterBottleneck, Nanos, PathPacket, outages};

/// The fastest of this many packets on either side shows the delay of the path.
const NEIGHBOURS: usize = 8;
/// Smaller changes of the path's delay are noise of the hosts.
const MIN_CHANGE: Duration = Duration::from_millis(2);
/// A late packet is looked for among this many on either side.
const NEAR: usize = 64;

/// The part of the path after its bottleneck.
#[derive(Clone, Debug)]
pub(super) struct PostBottleneck {
    /// The path's delay beyond its shortest one, and from which time on it applies.
    pub(super) delays: Vec<(Duration, Duration)>,
    /// The times during which all packets were lost: start and end.
    pub(super) outages: Vec<(Duration, Duration)>,
    /// The fates of the packets outside of outages.
    pub(super) fates: Vec<DelayAfterBottleneck>,
    /// Packets that were late.
    pub(super) late: u64,
}

/// A packet after the link.
#[derive(Clone, Copy, Debug)]
struct AfterLink {
    at: Nanos,
    /// The time it took from the link, beyond the shortest such time; none: lost.
    extra: Option<Nanos>,
    /// How much longer it would have taken if it had arrived no later than any original that was sent after it.
    extra_in_order: Nanos,
    /// If it was at least this much later than usual, the receiver discarded it, because a retransmission had arrived.
    discarded_from: Option<Nanos>,
}

impl AfterLink {
    /// A packet that was sent later arrived before it.
    fn is_overtaken(&self) -> bool {
        self.extra.is_some_and(|extra| extra > self.extra_in_order)
    }
}

/// What all packets of a time have in common.
#[derive(Debug)]
struct Common {
    least_change: Duration,
    delays: Vec<(Duration, Duration)>,
    /// When the last packet has passed this part of the path.
    left: Duration,
}

impl Common {
    fn new(least_change: Duration) -> Common {
        Common { least_change, delays: vec![(Duration::ZERO, Duration::ZERO)], left: Duration::ZERO }
    }

    /// At this time the path is so much longer. Returns when a packet leaves it.
    fn note(&mut self, at: Duration, delay: Duration) -> Duration {
        if delay.abs_diff(self.usual()) >= self.least_change {
            self.delays.push((at, delay));
        }
        self.left = self.left.max(at + self.usual());
        self.left
    }

    /// How much longer the path is now.
    fn usual(&self) -> Duration {
        self.delays.last().map_or(Duration::ZERO, |(_, delay)| *delay)
    }
}

/// Takes apart what all packets of a time have in common and what is different for each. What they have in common keeps their
/// order: where the path became shorter and packets overtook each other, those were late. A packet that nobody overtook is not
/// late: at the sender, acknowledgments are delayed, and as lateness that would reorder. `reorders`: the capture shows packets
/// that were late.
pub(super) fn behind(
    packets: &[PathPacket],
    passed: &Passed,
    outages: &[Range<usize>],
    (round_trip, reorders): (Duration, bool),
    since: impl Fn(Nanos) -> Duration,
) -> PostBottleneck {
    let rest = rest(packets, passed, outages);
    let span = |nanos: Nanos| Duration::from_nanos(nanos.max(0).cast_unsigned());
    let mut common = Common::new(MIN_CHANGE.max(round_trip / 20).max(resolution(packets) * 2));
    let mut fates = Vec::with_capacity(rest.len());
    let mut discarded = Vec::with_capacity(rest.len());
    let mut late = 0;
    for (i, packet) in rest.iter().enumerate() {
        let near = i.saturating_sub(NEIGHBOURS)..(i + NEIGHBOURS + 1).min(rest.len());
        let least = rest[near].iter().filter_map(|near| near.extra).min().unwrap_or_default();
        let delay = if reorders { least.min(packet.extra_in_order) } else { least };
        let at = common.note(since(packet.at), span(delay));
        let is_overtaken = reorders && packet.is_overtaken();
        late += u64::from(is_overtaken);
        let own = |extra| if is_overtaken { span(extra - delay) } else { Duration::ZERO };
        fates.push(DelayAfterBottleneck { at, late: packet.extra.map(own) });
        let discarded_from = packet.discarded_from.filter(|_| packet.extra.is_none());
        discarded.push(discarded_from.map(|from| span(from - delay)));
    }
    let taken_for_lost = late_instead(&fates, &discarded);
    late += taken_for_lost.len() as u64;
    for (i, late) in taken_for_lost {
        fates[i].late = Some(late);
    }
    let left = |index: usize| passed.left.get(index).copied().flatten();
    let until = |end: usize| left(end).or_else(|| left(end - 1)).map(&since);
    let outages = outages.iter().filter_map(|outage| Some((since(left(outage.start)?), until(outage.end)?)));
    let outages = outages.collect();
    PostBottleneck { delays: common.delays, outages, fates, late }
}

/// The packets that the receiver discarded because they were late, rather than lost: how late the nearest packet was that
/// was as late as this.
fn late_instead(fates: &[DelayAfterBottleneck], discarded: &[Option<Duration>]) -> Vec<(usize, Duration)> {
    let near = |i: usize, least: Duration| {
        let is_late = |late: &Duration| !late.is_zero() && *late >= least;
        let at = |place: Option<usize>| place.and_then(|place| fates.get(place)?.late).filter(is_late);
        (1..=NEAR).find_map(|apart| at(i.checked_sub(apart)).or_else(|| at(Some(i + apart))))
    };
    let discarded = discarded.iter().enumerate().filter_map(|(i, least)| Some((i, (*least)?)));
    discarded.filter_map(|(i, least)| Some((i, near(i, least)?))).collect()
}

fn rest(packets: &[PathPacket], passed: &Passed, outages: &[Range<usize>]) -> Vec<AfterLink> {
    let is_up = outages::outside(packets, outages);
    let (mut earliest, mut earliest_again) = (Nanos::MAX, Nanos::MAX);
    let mut rest = Vec::with_capacity(packets.len());
    for ((packet, left), is_up) in packets.iter().zip(&passed.left).zip(is_up).rev() {
        // Which transmission arrived is not sure for retransmissions, so what they overtake is not late.
        let arrived_first = packet.arrived.filter(|_| !packet.is_retransmission);
        earliest = earliest.min(arrived_first.unwrap_or(Nanos::MAX));
        if let Some(at) = left.filter(|_| packet.is_known() && is_up) {
            let extra = packet.arrived.map(|arrived| arrived - at - passed.transit);
            let extra_in_order = earliest.saturating_sub(at).saturating_sub(passed.transit);
            let has_passed = packet.may_be_discarded && earliest_again < Nanos::MAX;
            let discarded_from = has_passed.then(|| earliest_again - at - passed.transit);
            rest.push(AfterLink { at, extra, extra_in_order, discarded_from });
        }
        if packet.is_retransmission {
            earliest_again = earliest_again.min(packet.arrived.unwrap_or(Nanos::MAX));
        }
    }
    rest.reverse();
    // A late arrival does not hold up those behind it, but the link may have been slower than estimated.
    rest.sort_by_key(|rest| rest.at);
    rest
}

/// The resolution of the clocks: the shortest time between packets that were not sent, or did not arrive, at the same time.
fn resolution(packets: &[PathPacket]) -> Duration {
    let shortest = |mut times: Vec<Nanos>| {
        times.sort_unstable();
        times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0).min().unwrap_or_default()
    };
    let sent = shortest(packets.iter().map(|packet| packet.sent).collect());
    let arrived = shortest(packets.iter().filter_map(|packet| packet.arrived).collect());
    Duration::from_nanos(sent.max(arrived).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A packet each millisecond, with this time to arrival; a negative one is lost.
    fn path(transits: impl Fn(Nanos) -> Nanos, count: Nanos) -> PostBottleneck {
        let packet = |i: Nanos| {
            let transit = transits(i);
            let arrived = (transit >= 0).then_some(i * MS + transit);
            travelled(i * MS, arrived)
        };
        let packets: Vec<PathPacket> = (0..count).map(packet).collect();
        let left = packets.iter().map(|packet| Some(packet.sent)).collect();
        let passed = Passed { left, longest_wait: 0, overflows: false, transit: 20 * MS };
        behind(&packets, &passed, &[], (Duration::from_millis(40), true), |at| Duration::from_nanos(at.cast_unsigned()))
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
        let mut packets: Vec<PathPacket> = (0..100).map(of).collect();
        packets[51] = PathPacket { may_be_discarded: true, ..travelled(51 * MS, None) };
        packets[56] = PathPacket { is_retransmission: true, ..of(56) };
        let fate = |packets: &[PathPacket]| {
            let left = packets.iter().map(|packet| Some(packet.sent)).collect();
            let passed = Passed { left, longest_wait: 0, overflows: false, transit: 20 * MS };
            let since = |at: Nanos| Duration::from_nanos(at.cast_unsigned());
            behind(packets, &passed, &[], (Duration::from_millis(40), true), since).fates[51].late
        };
        assert_eq!(fate(&packets), Some(Duration::from_millis(30)));
        // If the retransmission comes only later than late packets do, it was lost.
        packets[56].arrived = Some(110 * MS);
        assert_eq!(fate(&packets), None);
    }

    #[test]
    fn a_longer_path_is_not_late_packets() {
        let behind = path(|i| if (100..200).contains(&i) { 60 * MS } else { 20 * MS }, 300);
        // As far as order is kept, it becomes shorter by as much as time passes: the first packet of the shorter path
        // overtakes 40 others.
        let delay = |at: u64| {
            let changes = behind.delays.iter().take_while(|(from, _)| from.as_millis() <= at);
            changes.last().map_or(0, |(_, delay)| delay.as_millis())
        };
        assert_eq!([50, 150, 250].map(delay), [0, 40, 0]);
        assert!((18..=22).contains(&delay(180)), "{:?}", behind.delays);
        assert!((36..=40 + NEIGHBOURS as u64).contains(&behind.late), "{}", behind.late);
    }

    #[test]
    fn packets_that_are_held_up_and_arrive_in_order_are_not_late() {
        // A stall of 60 ms: what was sent in the meantime arrives at its end.
        let behind = path(|i| if (100..160).contains(&i) { 20 * MS + (160 - i) * MS } else { 20 * MS }, 300);
        assert!(behind.fates.iter().all(|fate| fate.late == Some(Duration::ZERO)));
        let longest = behind.delays.iter().map(|(_, delay)| delay.as_millis()).max().unwrap();
        assert!((40..=60).contains(&longest), "{longest}");
    }
}
