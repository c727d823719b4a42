//! The record of one segment.

use std::cell::Cell;
use std::ops::{Add, Sub};

use reknit_units::{Bytes, Instant, Segments};

use crate::seq::Offset;

/// The number of a segment in the order of first transmission; the first segment of a connection is 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SegId(pub u64);

impl SegId {
    /// The segment after this one.
    #[must_use]
    pub const fn next(self) -> SegId {
        SegId(self.0 + 1)
    }

    /// How many segments `self` is after `earlier`.
    pub const fn beyond(self, earlier: SegId) -> Segments {
        Segments(self.0.saturating_sub(earlier.0) as u32)
    }
}

/// Why a segment was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendReason {
    /// New data within the window.
    New,
    /// New data beyond the window (RFC 3042 and similar algorithms).
    LimitedTransmit,
    /// Marked lost by the loss detector.
    FastRetransmit,
    /// Marked lost by the retransmission timer.
    Timeout,
    /// Tail loss probe (RFC 8985 §7).
    Probe,
    /// Speculative retransmission at the end of `NextSeg` (RFC 6675 §4, rules 3 and 4).
    Rescue,
    /// The persist timer probes a closed window (RFC 9293 §3.8.6.1).
    WindowProbe,
}

/// One segment.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentRecord {
    /// First byte.
    pub start: Offset,
    /// Bytes; a FIN counts as one.
    pub len: u32,
    /// When it was first sent.
    pub first_sent: Instant,
    /// When it was last sent.
    pub last_sent: Instant,
    /// When it was first ACKed or SACKed; never before. See [`SegmentRecord::delivered`].
    pub(super) delivered: Instant,
    /// cwnd at its last transmission, in bytes.
    pub cwnd_at_sent: u32,
    /// Its reordering length when it was first delivered, if it had been sent twice by then (RR-TCP §4.1).
    pub first_length: Option<Segments>,
    /// How often it was sent.
    pub transmissions: u16,
    /// The number of duplicates of it that the receiver has reported (DSACK).
    pub duplicates: u16,
    /// How often it had been sent at the last such report.
    pub(super) reported_at: u16,
    /// Why it was last sent.
    pub cause: SendReason,
    pub(super) marks: Marks,
    /// Distance to the next record that may be unsacked; 0 on an unsacked one.
    pub(super) skip: Cell<u32>,
    /// Neighbours in the list of transmissions (low half of their ids).
    pub(super) newer: u32,
    pub(super) older: u32,
}

impl SegmentRecord {
    /// When it was first ACKed or SACKed; none if it was not.
    pub fn delivered(&self) -> Option<Instant> {
        self.delivered.is_set().then_some(self.delivered)
    }

    /// One past the last byte.
    pub fn end(&self) -> Offset {
        self.start + Bytes(u64::from(self.len))
    }

    /// How many copies have been sent.
    pub fn copies(&self) -> u16 {
        self.transmissions - u16::from(self.marks.has(Marks::WITHHELD))
    }

    /// Selectively acknowledged.
    pub fn is_sacked(&self) -> bool {
        self.marks.has(Marks::SACKED)
    }

    /// Marked lost.
    pub fn is_lost(&self) -> bool {
        self.marks.has(Marks::LOST)
    }

    /// Retransmitted, and that copy is estimated to be in flight.
    pub fn is_retransmitted(&self) -> bool {
        self.marks.has(Marks::RETRANSMITTED)
    }

    /// Its latest transmission is neither known to have arrived nor marked lost.
    pub fn is_open(&self) -> bool {
        !self.marks.has(Marks::SACKED) && !self.marks.has(Marks::ACKED) && (!self.is_lost() || self.is_retransmitted())
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Marks(u8);

impl Marks {
    pub(super) const SACKED: Marks = Marks(1);
    pub(super) const LOST: Marks = Marks(2);
    pub(super) const RETRANSMITTED: Marks = Marks(4);
    pub(super) const ACKED: Marks = Marks(8);
    /// Shorter than a full segment.
    pub(super) const SHORT: Marks = Marks(16);
    /// It was withheld at first (`withhold_every`): its first transmission is only on the scoreboard.
    pub(super) const WITHHELD: Marks = Marks(32);

    pub(super) const fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    pub(super) fn set(&mut self, mark: Marks) {
        self.0 |= mark.0;
    }

    pub(super) fn clear(&mut self, mark: Marks) {
        self.0 &= !mark.0;
    }
}

/// An amount of data, in segments and in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SegmentCount {
    /// In segments.
    pub segments: Segments,
    /// In bytes.
    pub bytes: Bytes,
}

impl SegmentCount {
    pub(super) fn one(record: &SegmentRecord) -> SegmentCount {
        SegmentCount { segments: Segments(1), bytes: Bytes(u64::from(record.len)) }
    }
}

impl Add for SegmentCount {
    type Output = SegmentCount;
    fn add(self, other: SegmentCount) -> SegmentCount {
        SegmentCount { segments: self.segments + other.segments, bytes: self.bytes + other.bytes }
    }
}

impl Sub for SegmentCount {
    type Output = SegmentCount;
    fn sub(self, other: SegmentCount) -> SegmentCount {
        SegmentCount { segments: self.segments - other.segments, bytes: self.bytes - other.bytes }
    }
}
