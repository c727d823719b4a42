//! The measured packets on a link with the estimated rate: how long each waits, and which ones its queue drops.

use super::{Nanos, Travelled, rate};

/// A loss belongs to the queue if the wait is at least this share of the longest.
const FULL: f64 = 0.85;
/// Packets for whose transmission the longest wait must be enough to speak of a full queue.
const LEAST_QUEUE: f64 = 4.0;
/// Packets with such a wait must be lost this many times as often as others.
const MORE_OFTEN: f64 = 3.0;

/// What the link does to each packet.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    /// When each packet leaves the link; none: its queue drops it.
    pub(super) left: Vec<Option<Nanos>>,
    /// The longest wait in the queue, of packets that arrived.
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

/// A packet cannot leave the link later than its arrival allows, so an error of the rate does not add up.
struct Link {
    rate: f64,
    transit: Nanos,
    free_at: Nanos,
}

impl Link {
    fn new(packets: &[Travelled], rate: f64) -> Link {
        let shortest = |packet: &Travelled| Some(packet.arrived? - packet.sent - time(packet, rate));
        let transit = packets.iter().filter_map(shortest).min().unwrap_or_default();
        Link { rate, transit, free_at: packets[0].sent }
    }

    fn wait(&self, packet: &Travelled) -> Nanos {
        (self.free_at - packet.sent).max(0)
    }

    fn pass(&mut self, packet: &Travelled) -> Nanos {
        let leaves = self.free_at.max(packet.sent) + time(packet, self.rate);
        self.free_at = packet.arrived.map_or(leaves, |arrived| leaves.min(arrived - self.transit));
        self.free_at
    }
}

fn time(packet: &Travelled, rate: f64) -> Nanos {
    rate::time_for(packet.size, rate) as Nanos
}

/// Sends `packets`, which are in the order of sending, through a link with this rate.
pub(super) fn pass(packets: &[Travelled], rate: f64) -> Passed {
    let mut link = Link::new(packets, rate);
    let mut waits = Vec::with_capacity(packets.len());
    for packet in packets {
        waits.push(link.wait(packet));
        link.pass(packet);
    }
    let arrived = packets.iter().zip(&waits).filter(|(packet, _)| packet.arrived.is_some());
    let longest_wait = arrived.map(|(_, wait)| *wait).max().unwrap_or_default();
    let full = (longest_wait as f64 * FULL) as Nanos;
    let is_long = longest_wait as f64 >= LEAST_QUEUE * rate::time_for(packets[0].size, rate);
    let lost_share = |is_full: bool| {
        let same = packets.iter().zip(&waits).filter(|(_, wait)| (**wait >= full) == is_full);
        let (mut all, mut lost) = (0.0, 0.0);
        for (packet, _) in same {
            all += 1.0;
            lost += f64::from(u8::from(packet.arrived.is_none()));
        }
        lost / f64::max(all, 1.0)
    };
    let overflows = is_long && lost_share(true) > MORE_OFTEN * lost_share(false);
    let mut link = Link::new(packets, rate);
    let mut left = Vec::with_capacity(packets.len());
    for (packet, wait) in packets.iter().zip(&waits) {
        let is_dropped = overflows && packet.arrived.is_none() && *wait >= full;
        left.push((!is_dropped).then(|| link.pass(packet)));
    }
    Passed { left, longest_wait, overflows, transit: link.transit }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of packets at one per millisecond into a link of one per two milliseconds, 10 ms long, whose queue takes
    /// five; some packets are lost behind it.
    fn burst(is_lost: impl Fn(i64) -> bool) -> Vec<Travelled> {
        let (mut free_at, mut packets) = (0, Vec::new());
        for i in 0..200 {
            let sent = i * 1_000_000;
            let is_full = free_at - sent >= 10_000_000;
            if !is_full {
                free_at = free_at.max(sent) + 2_000_000;
            }
            let arrived = (!is_full && !is_lost(i)).then_some(free_at + 10_000_000);
            packets.push(Travelled { sent, arrived, settled: 0, size: 1500, len: 1448 });
        }
        packets
    }

    #[test]
    fn losses_with_a_full_queue_are_its_drops() {
        let packets = burst(|_| false);
        let passed = pass(&packets, 6e6);
        let lost = packets.iter().filter(|packet| packet.arrived.is_none()).count() as u64;
        assert!(passed.overflows && lost > 50, "{lost}");
        assert_eq!(passed.drops(), lost);
        assert!((8_000_000..=12_000_000).contains(&passed.longest_wait), "{}", passed.longest_wait);
        assert_eq!(passed.transit, 10_000_000);
    }

    #[test]
    fn losses_with_an_empty_queue_are_not() {
        let mut packets = burst(|_| false);
        packets.truncate(8); // before the queue is full
        packets[3].arrived = None;
        assert_eq!(pass(&packets, 6e6).drops(), 0);
    }
}
