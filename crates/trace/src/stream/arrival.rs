//! A captured packet and its context. `Stream::on_packet` makes one for each packet after the handshake step and passes it to
//! both directions.

use reknit_units::Instant;

use crate::packet::{Flags, Packet, Segment};

/// A packet with data or an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) now: Instant,
    pub(super) frame: u64,
    pub(super) packet: &'a Packet,
    /// The shift of its window (RFC 7323 §2.2), if known.
    pub(super) scale: Option<u8>,
    /// How many ranges one direction may remember.
    pub(super) most_ranges: usize,
    /// When the first SYN passed, if it was captured.
    pub(super) opened: Option<Instant>,
}

impl Arrival<'_> {
    /// The window that it allows, bytes; none if the scale is not known. The window of a SYN is not scaled (RFC 7323 §2.2).
    #[inline]
    pub(super) fn window(&self) -> Option<u32> {
        let Segment { flags, window, .. } = self.packet.segment;
        let scale = if flags.has(Flags::SYN) { Some(0) } else { self.scale };
        scale.map(|scale| u32::from(window) << scale)
    }
}
