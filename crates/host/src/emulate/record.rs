//! The delay or loss of each packet, in the order in which they entered. Filled by [`super::direction`] as packets enter and leave.

use std::fmt::Write;

use reknit_units::{Duration, Instant};

/// The most packets of a direction that are recorded.
const MOST: usize = 20_000_000;
/// A packet whose delay or loss is not known yet.
const UNKNOWN: u64 = u64::MAX;
const LOST: u64 = u64::MAX - 1;
/// Packets per line of the file.
const PER_LINE: usize = 10;

/// Delays or losses of the packets of one direction.
#[derive(Debug, Default)]
pub struct PathRecording {
    /// Nanoseconds.
    delays: Vec<u64>,
    /// Packets beyond [`MOST`].
    left_out: u64,
}

impl PathRecording {
    /// The next packet enters.
    pub(super) fn on_entry(&mut self) {
        if self.delays.len() < MOST {
            self.delays.push(UNKNOWN);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn on_loss(&mut self, number: u64) {
        self.set(number, LOST);
    }

    /// Packet `number`, which entered at `entered`, is due to leave at `due`. Copies do not count.
    pub(super) fn on_exit(&mut self, number: u64, entered: Instant, due: Instant) {
        self.set(number, due.since(entered).as_nanos());
    }

    fn set(&mut self, number: u64, delay: u64) {
        if let Some(slot) = self.delays.get_mut(number as usize).filter(|slot| **slot == UNKNOWN) {
            *slot = delay;
        }
    }

    /// The delay of each packet in the order in which they entered; none if it was lost or still in transit at the end.
    pub fn delays(&self) -> impl Iterator<Item = Option<Duration>> {
        self.delays.iter().map(|delay| (*delay < LOST).then(|| Duration::from_nanos(*delay)))
    }

    /// Packets that were not recorded because there were too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The `recorded` stage of a path file for this direction, `forward` or `reverse`; empty if there were no packets.
    pub fn stage(&self, direction: &str) -> String {
        if self.delays.is_empty() {
            return String::new();
        }
        let mut text = format!("\n[[{direction}]]\nkind = \"recorded\"\npackets = [\n");
        let delays: Vec<_> = self.delays().collect();
        for line in delays.chunks(PER_LINE) {
            text.push_str("   ");
            for delay in line {
                let _ = match delay {
                    Some(delay) => write!(text, " \"{} ns\",", delay.as_nanos()),
                    None => write!(text, " \"lost\","),
                };
            }
            text.push('\n');
        }
        text.push_str("]\n");
        text
    }
}
