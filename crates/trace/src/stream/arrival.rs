//! A packet that passes, with what its connection knows of it.

use reknit_units::Instant;

use crate::packet::{Flags, Packet, Segment};

/// A packet with data, or an acknowledgment of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) now: Instant,
    pub(super) frame: u64,
    pub(super) packet: &'a Packet,
    /// The logarithm of the unit of its window, if that is known.
    pub(super) scale: Option<u8>,
    /// Ranges that one direction may remember.
    pub(super) most_ranges: usize,
}

impl Arrival<'_> {
    /// The window that it allows, bytes; none if its scale is not known. That of a SYN is not scaled (RFC 7323 §2.2).
    #[inline]
    pub(super) fn window(&self) -> Option<u32> {
        let Segment { flags, window, .. } = self.packet.segment;
        let scale = if flags.has(Flags::SYN) { Some(0) } else { self.scale };
        scale.map(|scale| u32::from(window) << scale)
    }
}
