//! The window that the receiver announces: how much of the receive buffer it shows, and when its right edge moves.

use reknit_units::Bytes;

use crate::config::Config;
use crate::seams::ReceiveBuffer;
use crate::seq::Offset;

/// What the window depends on.
pub(super) struct WindowFacts<'a> {
    pub(super) rcv_nxt: Offset,
    /// The application has read up to this position.
    pub(super) read: Offset,
    pub(super) config: &'a Config,
    pub(super) buffers: &'a [Box<dyn ReceiveBuffer>],
}

impl WindowFacts<'_> {
    /// The most that the window may be, even if there is more space.
    fn largest(&self) -> Bytes {
        self.buffers.iter().map(|buffer| buffer.largest_window()).fold(Bytes::MAX, Bytes::min)
    }
}

/// The announced window.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ReceiveWindow {
    /// The part of the receive buffer that is used.
    buffer: Bytes,
    /// The owner limits the window to this, below the receive buffer.
    limit: Bytes,
    /// Right edge of the announced window; it never moves back.
    edge: Offset,
    /// What the edge was last computed from, if nothing else has changed since: it would not move again.
    settled: Inputs,
    shift: u8,
    is_settled: bool,
}

/// What the edge depends on, besides the fields of the window. Small, because each idle connection keeps it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Inputs {
    rcv_nxt: Offset,
    /// How far the acknowledgment is behind that, and what the application has read.
    withheld: u32,
    unread: u32,
    /// The most that the window may be; all above 4 GiB is the same.
    largest: u32,
}

impl Inputs {
    fn of(ack: Offset, facts: &WindowFacts<'_>, largest: Bytes) -> Inputs {
        let behind = |offset: Offset| facts.rcv_nxt.since(offset).0 as u32;
        let largest = u32::try_from(largest.0).unwrap_or(u32::MAX);
        Inputs { rcv_nxt: facts.rcv_nxt, withheld: behind(ack), unread: behind(facts.read), largest }
    }
}

impl ReceiveWindow {
    pub(super) fn new(config: &Config) -> ReceiveWindow {
        ReceiveWindow {
            buffer: config.receive_buffer_size(),
            limit: Bytes::MAX,
            edge: Offset::SYN,
            settled: Inputs { rcv_nxt: Offset::SYN, withheld: 0, unread: 0, largest: 0 },
            shift: 0,
            is_settled: false,
        }
    }

    /// The peer's SYN arrived.
    pub(super) fn synchronise(&mut self) {
        self.edge = Offset::DATA;
        self.is_settled = false;
    }

    /// The shift of the window scale is negotiated.
    pub(super) fn establish(&mut self, shift: u8) {
        self.shift = shift;
        self.is_settled = false;
    }

    /// The right edge.
    pub(super) fn edge(&self) -> Offset {
        self.edge
    }

    /// `size` of the receive buffer is used from now on, or all of it if that is less.
    pub(super) fn use_buffer(&mut self, size: Bytes, config: &Config) {
        let buffer = size.min(config.receive_buffer_size());
        if buffer != self.buffer {
            self.buffer = buffer;
            self.is_settled = false;
        }
    }

    /// The window is at most `limit`. What was announced before is still accepted.
    pub(super) fn limit(&mut self, limit: Bytes) {
        self.limit = limit;
        self.is_settled = false;
    }

    /// The window field for a segment that acknowledges `ack`, scaled.
    #[inline]
    pub(super) fn advertise_window(&mut self, ack: Offset, facts: &WindowFacts<'_>) -> u16 {
        let largest = facts.largest();
        let inputs = Inputs::of(ack, facts, largest);
        if !self.is_settled || self.settled != inputs {
            self.move_edge((ack, largest), facts);
            (self.settled, self.is_settled) = (inputs, true);
        }
        self.field(ack)
    }

    /// The right edge only moves forward, and only by a useful amount (silly window avoidance, RFC 9293 §3.8.6.2.2).
    fn move_edge(&mut self, (ack, largest): (Offset, Bytes), facts: &WindowFacts<'_>) {
        let rounds_up = self.shift > 0 && !facts.buffers.is_empty();
        let visible = self.visible(facts.config);
        let edge = self.allowed_edge(facts, visible, largest);
        let is_wide = rounds_up && edge.since(facts.rcv_nxt) >= Bytes(visible.0 / 2);
        // The right edge does not move by less.
        let useful_opening = Bytes(u64::from(facts.config.mss)).min(Bytes(visible.min(largest).0 / 2));
        if is_wide || edge.since(self.edge) >= useful_opening {
            self.edge = self.edge.max(edge);
        }
        if rounds_up {
            self.round_up(ack, edge, facts);
        }
    }

    /// Moves the right edge to the end of a unit of the window scale beyond `allowed`, unless the receive buffer has no room for it.
    fn round_up(&mut self, ack: Offset, allowed: Offset, facts: &WindowFacts<'_>) {
        let unit = 1 << self.shift;
        let edge = ack + Bytes(self.edge.since(ack).0.next_multiple_of(unit));
        let end = facts.read + facts.config.receive_buffer_size().min(self.limit);
        if edge <= end.min(allowed + Bytes(unit)) {
            self.edge = self.edge.max(edge);
        }
    }

    /// The window field that announces nothing new.
    pub(super) fn field(&self, ack: Offset) -> u16 {
        // The field is rounded down, but everything that was once announced is still accepted.
        let window = self.edge.since(ack).0;
        (window >> self.shift).min(u64::from(u16::MAX)) as u16
    }

    /// The window field of a SYN.
    pub(super) fn advertise_unscaled(&mut self, rcv_nxt: Offset, config: &Config) -> u16 {
        let field = self.visible(config).0.min(u64::from(u16::MAX));
        self.edge = self.edge.max(rcv_nxt + Bytes(field));
        field as u16
    }

    /// True if the application has read so much that the peer should get a window update.
    pub(super) fn is_update_due(&self, facts: &WindowFacts<'_>) -> bool {
        let (visible, largest) = (self.visible(facts.config), facts.largest());
        let half = Bytes(visible.min(largest).0 / 2);
        let worthwhile = half.min(Bytes(u64::from(facts.config.mss)) * 2);
        let edge = self.allowed_edge(facts, visible, largest);
        self.edge.since(facts.rcv_nxt) < half && edge.since(self.edge) >= worthwhile
    }

    /// How far the right edge may move.
    fn allowed_edge(&self, facts: &WindowFacts<'_>, visible: Bytes, largest: Bytes) -> Offset {
        let field_limit = Bytes(u64::from(u16::MAX) << self.shift);
        (facts.read + visible).min(facts.rcv_nxt + field_limit.min(largest))
    }

    /// The part of the receive buffer that the window shows.
    fn visible(&self, config: &Config) -> Bytes {
        self.buffer.min(config.receive_buffer_size()).min(self.limit)
    }
}
