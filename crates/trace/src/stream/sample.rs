//! Some packets of a direction to which something has happened, by which the rate of the bottleneck is estimated.

use reknit_units::Instant;
use serde::{Deserialize, Serialize};

use super::ranges::Range;
use crate::transit::{Departure, PacketFate};
use crate::{CapturePoint, Transit};

/// Packets that follow each other, such groups of one direction, and packets of all directions together.
const GROUP: usize = 64;
const MAX_GROUPS: usize = 8;
const BUDGET: usize = 1 << 17;
/// Packets between the first two groups; each further pause is longer by this factor.
const PAUSE: u64 = 256;
const LONGER: u64 = 4;

/// A packet that has been acknowledged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Packet {
    seen: Instant,
    delivered: Instant,
    stamp: Option<u32>,
    len: u32,
    /// It passed once, and follows the one before.
    is_plain: bool,
}

/// Groups of packets, which become rarer: the beginning of a transfer has most bursts, but a sender may be slow there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sample {
    packets: Vec<Packet>,
    /// Packets until the next group; none until something has happened.
    pause: Option<u64>,
    last_pause: u64,
}

impl Sample {
    /// Something happened to a packet.
    #[inline]
    pub(super) fn open(&mut self) {
        self.pause.get_or_insert(0);
    }

    /// A range is settled. `sampled`: packets of all directions together.
    #[inline]
    pub(super) fn on_settled(&mut self, range: &Range, sampled: &mut usize) {
        match &mut self.pause {
            None => {}
            Some(0) => self.add(range, sampled),
            Some(pause) => *pause -= 1,
        }
    }

    #[cold]
    fn add(&mut self, range: &Range, sampled: &mut usize) {
        if *sampled >= BUDGET || self.packets.len() >= GROUP * MAX_GROUPS {
            return;
        }
        *sampled += 1;
        let is_first = self.packets.len().is_multiple_of(GROUP);
        self.packets.push(Packet {
            seen: range.first.at,
            delivered: range.delivered_at,
            stamp: range.first.tsval(),
            len: (range.end - range.start) as u32,
            is_plain: range.is_plain() && !is_first,
        });
        if self.packets.len().is_multiple_of(GROUP) {
            self.last_pause = (self.last_pause * LONGER).max(PAUSE);
            self.pause = Some(self.last_pause);
        }
    }

    /// When they were sent and when they arrived, if they were captured at `place`.
    pub(crate) fn transits(&self, stream: u32, end: u8, place: CapturePoint) -> Vec<Transit> {
        let side = place.side_of_transits();
        let transit = |packet: &Packet| {
            let (sent, arrived) = match (place, packet.stamp) {
                (CapturePoint::Sender | CapturePoint::Middle, _) => (Departure::At(packet.seen), packet.delivered),
                (CapturePoint::Receiver, Some(stamp)) => (Departure::Stamp(stamp), packet.seen),
                (CapturePoint::Receiver, None) => (Departure::Unknown, packet.seen),
            };
            let outcome = if packet.is_plain { PacketFate::Arrived(arrived) } else { PacketFate::Unknown };
            Transit {
                stream,
                end,
                side,
                sent,
                outcome,
                is_retransmission: false,
                settled: packet.delivered,
                len: packet.len,
            }
        };
        self.packets.iter().map(transit).collect()
    }
}
