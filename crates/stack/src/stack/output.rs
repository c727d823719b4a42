//! Segments to send, and time. Called by the owner of the stack after every other call, and at [`Stack::deadline`].

use reknit_units::Instant;
use reknit_wire::encode_with;

use super::Stack;
use crate::answers::Transmit;
use crate::sockets::{AHEAD, Dequeued};
use crate::table::Slot;

impl Stack {
    /// The next segment to send; its payload is appended to `payload`. None if there is none now.
    pub fn poll(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.poll_any(now, payload);
        self.counters.segments_out += u64::from(transmit.is_some());
        transmit
    }

    /// Segments that belong to no socket have the share of one.
    fn poll_any(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            if let Some(answer) = self.answers.pop(self.sockets.round()) {
                return Some(answer);
            }
            match self.sockets.poll(now, payload, !self.answers.is_empty()) {
                Dequeued::Segment(transmit) => return Some(transmit),
                Dequeued::Arrival(index) => self.on_waiting_segment(now, index),
                Dequeued::Backlog(index) => self.on_due(now, index),
                Dequeued::Over(index) => self.settle(now, index),
                Dequeued::Nobody => return self.answers.pop(None),
            }
        }
    }

    /// The next packet to send, in `packet`. False if there is nothing to send now. Segments alternate with other packets.
    pub fn poll_packet(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        self.was_other = !self.was_other;
        if self.was_other {
            return self.poll_other(packet) || self.poll_segment(now, packet);
        }
        self.poll_segment(now, packet) || self.poll_other(packet)
    }

    fn poll_segment(&mut self, now: Instant, packet: &mut Vec<u8>) -> bool {
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        let transmit = self.poll(now, &mut payload);
        if let Some(Transmit { endpoints, hop_limit, segment }) = &transmit {
            encode_with(*endpoints, *hop_limit, segment, &payload, packet);
        }
        self.payload = payload;
        transmit.is_some()
    }

    /// Fires the timers that are due.
    pub fn on_timer(&mut self, now: Instant) {
        self.expire_fragments(now);
        let mut due = std::mem::take(&mut self.due);
        self.sockets.advance(now, &mut due);
        for sockets in due.chunks(AHEAD) {
            self.sockets.read_sockets(sockets);
            for index in sockets {
                self.on_due(now, *index);
            }
        }
        due.clear();
        self.due = due;
    }

    fn on_due(&mut self, now: Instant, index: u32) {
        match self.sockets.slot(index) {
            Slot::Vacant => {}
            Slot::Live(socket) => {
                let peer = socket.flow().remote.ip();
                if let Some(learned) =
                    self.sockets.on_timer(now, index, self.options.detect_black_holes, &mut self.counters)
                {
                    self.remember(now, peer, learned);
                }
            }
            Slot::TimeWait(_) => self.sockets.on_time_wait_timer(now, index),
        }
    }
}
