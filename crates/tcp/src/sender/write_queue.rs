//! What the application has written, how much of it is in the send buffer, and whether a FIN follows. Advanced as the
//! application writes and as [`super::transmit`] refills the send buffer. Owned by [`super::Sender`].

use reknit_units::{Bytes, Duration, Instant};

use crate::facts::Context;
use crate::seams::{Fill, SendBuffer, SendQueue};
use crate::seq::Offset;

/// What the application has written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct WriteQueue {
    /// One past the last byte that the application has written.
    written: Offset,
    /// One past the last of these bytes that is in the send buffer.
    queued: Offset,
    /// The position of the FIN, once the application has closed.
    fin: Option<Offset>,
    /// A mark for `drain_timeout`: all data up to this offset was pending since this time.
    drain: (Offset, Instant),
}

impl WriteQueue {
    pub(super) fn new() -> WriteQueue {
        WriteQueue { written: Offset::DATA, queued: Offset::DATA, fin: None, drain: (Offset::SYN, Instant::NEVER) }
    }

    /// The application wrote `n` bytes.
    pub(super) fn write(&mut self, n: Bytes, buffers: &[Box<dyn SendBuffer>]) {
        self.written += n;
        self.queue_unlimited(buffers);
    }

    /// Without a plug-in, everything that is written is in the send buffer.
    pub(super) fn queue_unlimited(&mut self, buffers: &[Box<dyn SendBuffer>]) {
        if buffers.is_empty() {
            self.queued = self.written;
        }
    }

    /// The application has no more data.
    pub(super) fn close(&mut self) {
        self.fin = Some(self.written);
    }

    pub(super) fn written(&self) -> Offset {
        self.written
    }

    pub(super) fn queued(&self) -> Offset {
        self.queued
    }

    pub(super) fn fin(&self) -> Option<Offset> {
        self.fin
    }

    /// True if the application has written or closed.
    pub(super) fn has_written(&self) -> bool {
        self.written > Offset::DATA || self.fin.is_some()
    }

    /// True if all that the application has written is in the send buffer.
    pub(super) fn has_queued_all(&self) -> bool {
        self.queued == self.written
    }

    /// True if a FIN follows the last byte of the send buffer.
    pub(super) fn ends_with_fin(&self) -> bool {
        self.fin.is_some() && self.has_queued_all()
    }

    /// One past the last byte of the send buffer, including a FIN after it.
    pub(super) fn end(&self) -> Offset {
        if self.ends_with_fin() { self.queued + Bytes(1) } else { self.queued }
    }

    /// True if the send buffers let the application write. `room` is what the window allowed before the last transmission.
    /// Called before [`WriteQueue::fill`].
    pub(super) fn wakes_writer(&self, cx: &Context<'_>, room: Bytes, buffers: &mut [Box<dyn SendBuffer>]) -> bool {
        let queue = SendQueue { unsent: self.queued.since(cx.snd.snd_nxt), room };
        buffers.iter_mut().all(|buffer| buffer.wakes_writer(cx, &queue))
    }

    /// The application writes what fits in the send buffers; none if they have no free space.
    pub(super) fn fill(&mut self, cx: &Context<'_>, buffers: &[Box<dyn SendBuffer>]) -> Option<Fill> {
        let unsent = self.queued.since(cx.snd.snd_nxt);
        let fills = buffers.iter().map(|buffer| buffer.next_fill(cx, unsent));
        let fill = fills
            .min_by_key(|fill| fill.map_or(Bytes::ZERO, |fill| fill.bytes))
            .flatten()
            .filter(|_| !self.has_queued_all())?;
        self.queued = self.written.min(self.queued + fill.bytes);
        Some(fill)
    }

    /// Once the marked data is acknowledged, marks what is pending now. Called after SND.UNA has advanced, and after a write.
    pub(super) fn note_drained(&mut self, now: Instant, snd_una: Offset) {
        if snd_una >= self.drain.0 {
            self.drain = (self.end(), now);
        }
    }

    /// When the peer has taken longer than `limit` to acknowledge the marked data.
    pub(super) fn drain_expires(&self, limit: Duration) -> Instant {
        self.drain.1 + limit
    }
}
