//! The application fills the send buffer, if a plug-in limits it.

use reknit_units::{Bytes, Instant};

use super::{Sender, context};
use crate::seams::{Fill, SendQueue};

impl Sender {
    /// Sends what the window allows, and then what the application writes into the room that this leaves.
    pub(super) fn transmit_and_refill(&mut self, now: Instant) {
        if self.has_queued_all() {
            self.transmit(now);
            return;
        }
        let room = self.state.cwnd - self.board.pipe().bytes;
        self.transmit(now);
        self.refill(now, room);
    }

    /// If the send buffer has room, the application goes on writing, and what it writes is sent as far as the window
    /// allows. `room` is what the window allowed before the last transmission.
    pub(super) fn refill(&mut self, now: Instant, room: Bytes) {
        if self.has_queued_all() || !self.wakes_writer(now, room) {
            return;
        }
        while let Some(Fill { bytes, alone }) = self.next_fill(now) {
            self.queued = self.written.min(self.queued + bytes);
            if alone {
                self.batch_at_once = true;
                self.send_up_to(now, u32::MAX);
                self.batch_at_once = false;
            }
        }
    }

    fn wakes_writer(&mut self, now: Instant, room: Bytes) -> bool {
        let queue = SendQueue { unsent: self.queued.since(self.state.snd_nxt), room };
        self.plugins.send_buffers.iter_mut().all(|buffer| buffer.wakes_writer(&context!(self, now), &queue))
    }

    /// What the application writes next; none if it waits again.
    fn next_fill(&self, now: Instant) -> Option<Fill> {
        let unsent = self.queued.since(self.state.snd_nxt);
        let fills = self.plugins.send_buffers.iter().map(|buffer| buffer.next_fill(&context!(self, now), unsent));
        fills
            .min_by_key(|fill| fill.map_or(Bytes::ZERO, |fill| fill.bytes))
            .flatten()
            .filter(|_| !self.has_queued_all())
    }
}
