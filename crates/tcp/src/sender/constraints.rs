//! What may be sent next; how much is up to the windows and pacing. Set by loss detection (step 8), `choose_order` (between
//! steps 9 and 10), timers and [`super::live`]; read and used up by [`super::transmit`] and [`super::room`] (step 10). Owned by
//! [`super::Sender`].

use reknit_units::Instant;

use crate::seq::Offset;

/// Whether the window applies to the next retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NextRetransmission {
    WithinWindow,
    /// The first retransmission after a detected loss or a timeout, and that of a partial ACK.
    AtOnce,
}

/// What goes first in the answer to the current ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    RetransmissionsFirst,
    NewDataFirst,
}

/// The progress of the segments that one ACK or timer may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Burst {
    /// Everything that could be sent was sent.
    Done,
    /// The detector's probe was sent as its first segment.
    Begun,
    /// The burst limit holds some segments back; they are sent with the next ACK or timer, or when the pacer
    /// says so.
    HeldBack,
}

/// When a batch may begin with fewer segments than the plug-in asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum BatchStart {
    WithRoom,
    AtOnce,
}

/// Segments that leave together.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Batch {
    /// Segments of the current batch that are still to be sent.
    left: u16,
    start: BatchStart,
}

/// Whether new data may be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NewData {
    Allowed,
    /// Not until the plug-ins are replaced.
    HeldBack,
}

/// What may be sent next.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Constraints {
    next_retransmission: NextRetransmission,
    order: Order,
    burst: Burst,
    batch: Batch,
    new_data: NewData,
    /// One past the last new segment that was shorter than a full one.
    short_end: Offset,
    /// When something was last sent.
    last_sent: Instant,
}

impl Constraints {
    pub(super) fn new(now: Instant) -> Constraints {
        Constraints {
            next_retransmission: NextRetransmission::WithinWindow,
            order: Order::RetransmissionsFirst,
            burst: Burst::Done,
            batch: Batch { left: 0, start: BatchStart::WithRoom },
            new_data: NewData::Allowed,
            short_end: Offset::SYN,
            last_sent: now,
        }
    }

    /// The next retransmission is sent regardless of the window.
    pub(super) fn retransmit_at_once(&mut self) {
        self.next_retransmission = NextRetransmission::AtOnce;
    }

    /// The window applies to retransmissions again.
    pub(super) fn retransmit_within_window(&mut self) {
        self.next_retransmission = NextRetransmission::WithinWindow;
    }

    /// True if the window does not apply to the retransmission that is sent now. It applies to later ones. Called by `send_one`
    /// for every segment.
    pub(super) fn take_at_once(&mut self) -> bool {
        let next = std::mem::replace(&mut self.next_retransmission, NextRetransmission::WithinWindow);
        next == NextRetransmission::AtOnce
    }

    pub(super) fn order(&self) -> Order {
        self.order
    }

    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    pub(super) fn burst(&self) -> Burst {
        self.burst
    }

    pub(super) fn set_burst(&mut self, burst: Burst) {
        self.burst = burst;
    }

    pub(super) fn may_send_new(&self) -> bool {
        self.new_data == NewData::Allowed
    }

    /// No new data is sent until [`Constraints::resume_new_data`].
    pub(super) fn hold_new_data(&mut self) {
        self.new_data = NewData::HeldBack;
    }

    pub(super) fn resume_new_data(&mut self) {
        self.new_data = NewData::Allowed;
    }

    /// A new segment that ends at `end` is shorter than a full one.
    pub(super) fn note_short(&mut self, end: Offset) {
        self.short_end = end;
    }

    /// True if a new segment that is shorter than a full one is in flight (Minshall's change of Nagle's algorithm).
    pub(super) fn short_in_flight(&self, snd_una: Offset) -> bool {
        self.short_end > snd_una
    }

    pub(super) fn note_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    pub(super) fn last_sent(&self) -> Instant {
        self.last_sent
    }
}

/// Batches.
impl Constraints {
    /// True if the next segment continues a batch.
    pub(super) fn in_batch(&self) -> bool {
        self.batch.left > 0
    }

    /// The next segment of the batch is sent. False if there is no batch.
    pub(super) fn continue_batch(&mut self) -> bool {
        if self.in_batch() {
            self.batch.left -= 1;
            return true;
        }
        false
    }

    /// The next segment is the first of `segments` that leave together.
    pub(super) fn begin_batch(&mut self, segments: u32) {
        self.batch.left = segments.saturating_sub(1).min(u32::from(u16::MAX)) as u16;
    }

    pub(super) fn end_batch(&mut self) {
        self.batch.left = 0;
    }

    /// True if a batch need not wait until the window has room for all of it.
    pub(super) fn batch_starts_at_once(&self) -> bool {
        self.batch.start == BatchStart::AtOnce
    }

    /// Batches begin with what the window allows, until [`Constraints::start_batches_with_room`].
    pub(super) fn start_batches_at_once(&mut self) {
        self.batch.start = BatchStart::AtOnce;
    }

    pub(super) fn start_batches_with_room(&mut self) {
        self.batch.start = BatchStart::WithRoom;
    }
}
