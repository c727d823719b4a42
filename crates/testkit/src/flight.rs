//! Packets on their way between two ends, over a random network.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;

use reknit_path::{Phases, Stream as Random, StreamId};
use reknit_tcp::Segment;
use reknit_tcp::segment::Ecn;
use reknit_units::{Duration, Instant};

use crate::network::Network;

/// Packets in flight by time and order: the end that they go to, and their bytes.
pub struct Flight {
    network: Network,
    /// The network's random decisions for the packets of each end.
    random: [Random; 2],
    packets: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    serial: u64,
}

impl Flight {
    /// An empty network.
    pub fn new(network: Network, seed: u64) -> Flight {
        let random = [0, 1].map(|stage| StreamId { seed, stage, phases: Phases::Fixed }.stream(0));
        Flight { network, random, packets: BTreeMap::new(), serial: 0 }
    }

    /// End `from` is about to send `segment`: a congested router may mark it.
    pub fn mark(&mut self, from: usize, segment: &mut Segment) {
        let marking = self.network.marking;
        if marking > 0.0 && segment.ecn == Ecn::Ect0 && self.random[from].chance(marking) {
            segment.ecn = Ecn::Congested;
        }
    }

    /// End `from` sends `packet`. It is lost, delayed, duplicated or damaged, as the network decides.
    pub fn send(&mut self, now: Instant, from: usize, packet: &[u8]) {
        let network = self.network;
        let random = &mut self.random[from];
        let copies = 1 + usize::from(random.chance(network.duplication));
        for _ in 0..copies {
            let lost = random.chance(network.loss);
            let damaged = random.chance(network.damage);
            let jitter = Duration::from_millis(network.jitter_ms).mul_f64(random.uniform());
            let at = now + Duration::from_millis(network.delay_ms) + jitter;
            let mut packet = packet.to_vec();
            let which = (0..packet.len()).position(|_| random.chance(0.02)).unwrap_or(0);
            if damaged {
                packet[which] ^= 0x5a;
            }
            if !lost {
                self.serial += 1;
                self.packets.insert((at, self.serial), (1 - from, packet));
            }
        }
    }

    /// When the next packet arrives; never if there is none.
    pub fn next(&self) -> Instant {
        self.packets.keys().next().map_or(Instant::NEVER, |(at, _)| *at)
    }

    /// A packet that has arrived by `now`, and the end that it arrives at.
    pub fn take(&mut self, now: Instant) -> Option<(usize, Vec<u8>)> {
        self.packets.first_entry().filter(|entry| entry.key().0 <= now).map(OccupiedEntry::remove)
    }
}
