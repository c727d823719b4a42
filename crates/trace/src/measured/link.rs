//! The measured packets on a link with the estimated rate: how long each waits, and which ones its queue drops.

use std::ops::Range;

use super::{Nanos, PathPacket, outages, rate};

/// Lost packets that waited at least this share of the longest wait show the length of the full queue.
const NEARLY: f64 = 0.8;
/// A loss counts as a drop of the full queue if the wait is at least this share of the full queue's: the estimate of the wait
/// is often too low, because some of the load of the link is not known.
const FULL: f64 = 0.6;
/// The longest wait must be the transmission time of at least this many packets; otherwise there is no full queue.
const MIN_QUEUE: f64 = 4.0;
/// Packets with such a wait must be lost this many times as often as the others.
const MORE_OFTEN: f64 = 3.0;

/// The effect of the link on each packet.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    /// When each packet leaves the link; none: its queue drops it.
    pub(super) left: Vec<Option<Nanos>>,
    /// The wait in the full queue if it overflowed, otherwise the longest of packets that arrived.
    pub(super) longest_wait: Nanos,
    pub(super) overflows: bool,
    /// The shortest time from the link to where arrival is seen; the two clocks may differ.
    pub(super) transit: Nanos,
}

impl Passed {
    pub(super) fn drops(&self) -> u64 {
        self.left.iter().filter(|left| left.is_none()).count() as u64
    }
}

/// A packet cannot leave the link later than its arrival allows, so errors in the rate do not accumulate.
struct Link {
    rate: f64,
    transit: Nanos,
    free_at: Nanos,
}

impl Link {
    fn new(packets: &[PathPacket], rate: f64) -> Link {
        let shortest = |packet: &PathPacket| Some(packet.arrived? - packet.sent - time(packet, rate));
        let once = packets.iter().filter(|packet| !packet.is_retransmission);
        let transit = once.filter_map(shortest).min().unwrap_or_default();
        Link { rate, transit, free_at: packets[0].sent }
    }

    fn wait(&self, packet: &PathPacket) -> Nanos {
        (self.free_at - packet.sent).max(0)
    }

    fn pass(&mut self, packet: &PathPacket) -> Nanos {
        let leaves = self.free_at.max(packet.sent) + time(packet, self.rate);
        let arrived = packet.arrived.filter(|_| !packet.is_retransmission);
        self.free_at = arrived.map_or(leaves, |arrived| leaves.min(arrived - self.transit));
        self.free_at
    }
}

fn time(packet: &PathPacket, rate: f64) -> Nanos {
    rate::time_for(packet.size, rate) as Nanos
}

/// Sends `packets`, which are in the order of sending, through a link with this rate. Losses in `outages` are not drops of the
/// queue.
pub(super) fn pass(packets: &[PathPacket], outages: &[Range<usize>], rate: f64) -> Passed {
    let mut link = Link::new(packets, rate);
    let wait = |(packet, is_up): (&PathPacket, bool)| {
        let wait = link.wait(packet);
        link.pass(packet);
        is_up.then_some(wait)
    };
    let waits: Vec<Option<Nanos>> = packets.iter().zip(outages::outside(packets, outages)).map(wait).collect();
    let waited: Vec<(&PathPacket, Nanos)> =
        packets.iter().zip(&waits).filter_map(|(packet, wait)| Some((packet, (*wait)?))).collect();
    let longest_wait = waited.iter().filter(|(packet, _)| packet.arrived.is_some()).map(|(_, wait)| *wait).max();
    let longest_wait = longest_wait.unwrap_or_default();
    let at_full = full_wait(&waited, longest_wait);
    let full = (at_full as f64 * FULL) as Nanos;
    let is_long = longest_wait as f64 >= MIN_QUEUE * rate::time_for(packets[0].size, rate);
    let overflows = is_long && lost_share(&waited, full, true) > MORE_OFTEN * lost_share(&waited, full, false);
    let mut link = Link::new(packets, rate);
    let mut left = Vec::with_capacity(packets.len());
    for (packet, wait) in packets.iter().zip(&waits) {
        let is_dropped = overflows && packet.is_lost && wait.is_some_and(|wait| wait >= full);
        left.push((!is_dropped).then(|| link.pass(packet)));
    }
    let longest_wait = if overflows { at_full } else { longest_wait };
    Passed { left, longest_wait, overflows, transit: link.transit }
}

/// The share of lost packets among those that arrived at a full queue, or among the others.
fn lost_share(waited: &[(&PathPacket, Nanos)], full: Nanos, is_full: bool) -> f64 {
    let same = waited.iter().filter(|(packet, wait)| packet.is_known() && (*wait >= full) == is_full);
    let (mut all, mut lost) = (0.0, 0.0);
    for (packet, _) in same {
        all += 1.0;
        lost += f64::from(u8::from(packet.is_lost));
    }
    lost / f64::max(all, 1.0)
}

/// The usual wait of lost packets that waited nearly the longest.
fn full_wait(waited: &[(&PathPacket, Nanos)], longest: Nanos) -> Nanos {
    let near = (longest as f64 * NEARLY) as Nanos;
    let lost = waited.iter().filter(|(packet, wait)| packet.is_lost && *wait >= near);
    let mut lost: Vec<Nanos> = lost.map(|(_, wait)| *wait).collect();
    lost.sort_unstable();
    lost.get(lost.len() / 2).copied().unwrap_or(longest)
}

#[cfg(test)]
mod tests {
    use super::super::tests::travelled;
    use super::*;

    /// A burst of packets at one per millisecond into a link of one per two milliseconds, 10 ms long, whose queue takes
    /// five; some packets are lost behind it.
    fn burst(is_lost: impl Fn(i64) -> bool) -> Vec<PathPacket> {
        let (mut free_at, mut packets) = (0, Vec::new());
        for i in 0..200 {
            let sent = i * 1_000_000;
            let is_full = free_at - sent >= 10_000_000;
            if !is_full {
                free_at = free_at.max(sent) + 2_000_000;
            }
            let arrived = (!is_full && !is_lost(i)).then_some(free_at + 10_000_000);
            packets.push(travelled(sent, arrived));
        }
        packets
    }

    #[test]
    fn losses_with_a_full_queue_are_its_drops() {
        let packets = burst(|_| false);
        let passed = pass(&packets, &[], 6e6);
        let lost = packets.iter().filter(|packet| packet.is_lost).count() as u64;
        assert!(passed.overflows && lost > 50, "{lost}");
        assert_eq!(passed.drops(), lost);
        assert!((8_000_000..=12_000_000).contains(&passed.longest_wait), "{}", passed.longest_wait);
        assert_eq!(passed.transit, 10_000_000);
    }

    #[test]
    fn a_queue_that_overflows_before_an_outage_is_recognized() {
        let mut packets = burst(|_| false);
        let began = packets[199].sent + 500_000_000;
        let down =
            (0..120).map(|i| travelled(began + i * 3_000_000, (i < 20).then_some(began + i * 3_000_000 + 12_000_000)));
        packets.extend(down);
        let drops = packets[..200].iter().filter(|packet| packet.is_lost).count() as u64;
        assert_eq!(pass(&packets, std::slice::from_ref(&(220..320)), 6e6).drops(), drops);
        assert_eq!(pass(&packets, &[], 6e6).drops(), 0);
    }

    #[test]
    fn losses_with_an_empty_queue_are_not() {
        let mut packets = burst(|_| false);
        packets.truncate(8); // before the queue is full
        packets[3] = travelled(packets[3].sent, None);
        assert_eq!(pass(&packets, &[], 6e6).drops(), 0);
    }
}
