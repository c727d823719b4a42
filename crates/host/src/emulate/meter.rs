//! Counts what passes through one direction of the path. Called by [`super::direction`] as packets enter and leave.

use reknit_path::{Late, Reordering};
use reknit_units::{Duration, Instant};

/// The counts of one direction since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Packets that entered the path.
    pub packets: u64,
    /// Their bytes, with IP headers.
    pub bytes: u64,
    /// Packets that left it, without copies.
    pub delivered: u64,
    /// Bytes that left it, with copies.
    pub delivered_bytes: u64,
    /// Packets that the path lost.
    pub lost: u64,
    /// Copies that the path made and that left it.
    pub copies: u64,
    /// Packets that left after a packet that had entered later (RFC 4737 §3.3).
    pub reordered: u64,
    /// The largest extent (RFC 4737 §4.2).
    pub largest_extent: u32,
}

impl Counts {
    /// The counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            delivered: self.delivered - earlier.delivered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            lost: self.lost - earlier.lost,
            copies: self.copies - earlier.copies,
            reordered: self.reordered - earlier.reordered,
            largest_extent: self.largest_extent,
        }
    }

    /// Delivered packets that were reordered, as a share.
    pub fn reordered_share(&self) -> f64 {
        self.reordered as f64 / self.delivered.max(1) as f64
    }

    /// Lost packets as a share of those that entered.
    pub fn lost_share(&self) -> f64 {
        self.lost as f64 / self.packets.max(1) as f64
    }
}

/// Counts the packets of one direction.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) counts: Counts,
    reordering: Reordering,
    /// When the first packet left, and the last.
    span: Option<(Instant, Instant)>,
}

impl Meter {
    pub(super) fn on_entry(&mut self, bytes: usize) {
        self.counts.packets += 1;
        self.counts.bytes += bytes as u64;
    }

    pub(super) fn on_loss(&mut self) {
        self.counts.lost += 1;
    }

    /// Packet `number` of `bytes` bytes leaves.
    pub(super) fn on_exit(&mut self, now: Instant, number: u64, bytes: usize, copy: bool) {
        self.counts.delivered_bytes += bytes as u64;
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
        if copy {
            self.counts.copies += 1;
            return;
        }
        self.counts.delivered += 1;
        if let Some(Late { extent, .. }) = self.reordering.on_arrival(number, now) {
            self.counts.reordered += 1;
            self.counts.largest_extent = self.counts.largest_extent.max(extent);
        }
    }

    /// Time from the first packet that left to the last.
    pub(super) fn span(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| last.since(first))
    }
}
