//! The path as measured, as a path file of reknit.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{DirectionReport, Event, Place, Verdict};

/// Packets that a path file has at most.
const MOST_PACKETS: u64 = 20_000;
/// Events that are kept for it, all directions together.
const MOST_EVENTS: usize = 2_000_000;

/// Late and lost packets, kept to write a path.
#[derive(Clone, Debug, Default)]
pub struct Fates {
    /// By stream and end, then by offset: how late, nanoseconds; none: lost.
    fates: BTreeMap<(u32, u8), BTreeMap<u64, Option<u64>>>,
    kept: usize,
}

impl Fates {
    /// Keeps `event` if it tells how late a packet was, or that it was lost.
    pub fn add(&mut self, event: &Event) {
        let fate = match event.verdict {
            Verdict::Reordered { late, .. } => Some(late.as_nanos()),
            Verdict::Lost => None,
            _ => return,
        };
        if self.kept < MOST_EVENTS {
            self.kept += 1;
            self.fates.entry((event.stream, event.end)).or_default().insert(event.offset, fate);
        }
    }

    /// The path of one direction as TOML. Packets are late by the time since the first packet that overtook them, so
    /// the path reorders as the measured one did, with packets at the same pace.
    ///
    /// # Errors
    /// If the capture does not have the round trip, or too few packets.
    pub fn path(&self, direction: &DirectionReport) -> Result<String, String> {
        let Some(round_trip) = &direction.round_trip else {
            return Err(format!("stream {} has no round trip: capture both directions", direction.stream));
        };
        let segment = direction.segment();
        let packets = direction.acknowledged_bytes.max(direction.bytes / 2) / segment.max(1);
        if packets < 10 {
            return Err(format!("stream {} has too few packets for a path", direction.stream));
        }
        let nothing = BTreeMap::new();
        let fates = self.fates.get(&(direction.stream, direction.end)).unwrap_or(&nothing);
        let mut recorded = vec!["0 ms".to_owned(); packets.min(MOST_PACKETS) as usize];
        for (offset, fate) in fates {
            if let Some(packet) = recorded.get_mut((offset / segment) as usize) {
                *packet = fate.map_or_else(|| "lost".to_owned(), |late| format!("{} us", late / 1_000));
            }
        }
        let one_way_us = round_trip.least_ms * 500.0;
        let rate = (direction.peak_mbit_s * 1000.0).max(8.0);
        let place = match direction.captured_at {
            Place::Sender => "at the sender",
            Place::Middle => "between the ends",
            Place::Receiver => "at the receiver",
        };
        let mut text = format!(
            "description = \"as measured: {rate:.0} kbit/s, {:.1} ms round trip, {:.2} % reordered, {} lost\"\n\
             source = \"a capture {place}, stream {}, {} to {}\"\n\n\
             # The highest rate of any round trip: the link may be faster.\n\
             [[forward]]\nkind = \"link\"\nname = \"bottleneck\"\nrate = \"{rate:.0} kbit/s\"\ndelay = \"{one_way_us:.0} us\"\n\n\
             # How late each packet was, in the order of sending.\n[[forward]]\nkind = \"recorded\"\npackets = [\n",
            round_trip.least_ms,
            100.0 * direction.reordering.ratio,
            direction.verdicts.lost,
            direction.stream,
            direction.from,
            direction.to,
        );
        for line in recorded.chunks(12) {
            let quoted: Vec<String> = line.iter().map(|packet| format!("\"{packet}\"")).collect();
            let _ = writeln!(text, "    {},", quoted.join(", "));
        }
        let _ = write!(text, "]\n\n[[reverse]]\nkind = \"link\"\ndelay = \"{one_way_us:.0} us\"\n");
        Ok(text)
    }
}
