//! A histogram of positive numbers that takes little memory.

use reknit_path::Late;
use serde::{Deserialize, Serialize};

/// Steps per octave: values below 16 are exact, others within 12.5 %.
const STEPS: usize = 8;
const OCTAVES: usize = 44;

/// A histogram with logarithmic steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LogHistogram {
    /// Counts by size, from the slot `lowest` on; empty before the first value.
    counts: Vec<u32>,
    lowest: u16,
    pub(crate) values: u64,
    least: u64,
    pub(crate) most: u64,
}

impl LogHistogram {
    pub(crate) fn add(&mut self, value: u64) {
        let slot = slot(value);
        if slot.wrapping_sub(usize::from(self.lowest)) >= self.counts.len() {
            self.grow(slot);
        }
        let count = &mut self.counts[slot - usize::from(self.lowest)];
        *count = count.saturating_add(1);
        self.least = if self.values == 0 { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.values += 1;
    }

    /// Adds a missing slot. There are many spreads with few slots, so they grow only as needed.
    #[cold]
    fn grow(&mut self, slot: usize) {
        let lowest = usize::from(self.lowest);
        if self.counts.is_empty() || slot < lowest {
            let more = if self.counts.is_empty() { 1 } else { lowest - slot };
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.lowest = slot as u16;
        } else {
            self.counts.reserve_exact(slot + 1 - lowest - self.counts.len());
            self.counts.resize(slot + 1 - lowest, 0);
        }
    }

    /// A quantile; none without values.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<u64> {
        #[expect(clippy::cast_sign_loss, reason = "a quantile is not negative")]
        let rank = (quantile * self.values.saturating_sub(1) as f64 + 0.5) as u64;
        let mut before = 0;
        for (i, count) in (usize::from(self.lowest)..).zip(&self.counts) {
            before += u64::from(*count);
            if before > rank {
                return Some(middle(i).clamp(self.least, self.most));
            }
        }
        None
    }
}

/// How late packets were that arrived out of order (RFC 4737 §4.2, §4.3).
#[derive(Debug, Default)]
pub(crate) struct Lateness {
    pub(crate) extents: LogHistogram,
    pub(crate) late_us: LogHistogram,
}

impl Lateness {
    pub(crate) fn add(&mut self, late: &Late) {
        self.extents.add(late.extent.into());
        self.late_us.add(late.late.as_nanos() / 1_000);
    }
}

fn slot(value: u64) -> usize {
    let value = value.max(1);
    let octave = value.ilog2() as usize;
    let step = if octave < 3 { value << (3 - octave) } else { value >> (octave - 3) } as usize & (STEPS - 1);
    (octave * STEPS + step).min(OCTAVES * STEPS - 1)
}

/// The middle of a slot.
fn middle(slot: usize) -> u64 {
    let (octave, step) = (slot / STEPS, (slot % STEPS + STEPS) as u64);
    if octave <= 3 { step >> (3 - octave) } else { (2 * step + 1) << (octave - 4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact_and_large_ones_close() {
        for value in 1..16 {
            assert_eq!(middle(slot(value)), value);
        }
        for value in [17, 100, 999, 1_000_000, 123_456_789_012] {
            let found = middle(slot(value));
            assert!(found.abs_diff(value) * 8 <= value, "{value}: {found}");
        }
        let mut spread = LogHistogram::default();
        assert_eq!(spread.quantile(0.5), None);
        (1..=9).for_each(|value| spread.add(value));
        assert_eq!([0.0, 0.5, 1.0].map(|q| spread.quantile(q)), [Some(1), Some(5), Some(9)]);
    }
}
