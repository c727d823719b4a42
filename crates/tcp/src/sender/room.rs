//! Whether the next segment fits in the peer's window and in cwnd. Called by [`super::transmit`] for each
//! segment (step 10, and after timers and writes) and for a tail loss probe (step 8 or a timer). Only `waits_for_batch` and
//! `note_unsent` change anything.

use reknit_units::{Bytes, Instant, Segments};

use super::{Sender, context};
use crate::config::MaxWindowCaps;
use crate::facts::Phase;
use crate::scoreboard::SegId;

/// New data that could be sent now.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct NewData {
    /// Sequence space; a FIN counts as one.
    pub(super) len: u32,
}

impl Sender {
    /// The next new segment that data, the peer's window, silly window avoidance and Nagle allow (RFC 9293 §3.8.6.2.1).
    pub(super) fn next_new(&self) -> Option<NewData> {
        let state = &self.state;
        if self.timers.is_probing_window() || !self.constraints.may_send_new() {
            return None;
        }
        let usable = (state.snd_una + state.snd_wnd).since(state.snd_nxt);
        let unsent = self.queue.queued().since(state.snd_nxt);
        if unsent > state.smss && usable >= state.smss && !self.size_probe.is_pending() {
            return Some(NewData { len: state.smss.0 as u32 }); // a full segment that is not the last
        }
        let available = unsent.min(usable);
        let payload = available.min(self.full_size(available));
        let last = payload == unsent;
        let fin = self.queue.ends_with_fin() && last && self.queue.end() > state.snd_nxt && usable > payload;
        let len = payload + Bytes(u64::from(fin));
        let nagle_agrees = !self.config.nagle || state.snd_una == state.snd_nxt;
        let is_worthwhile = payload >= state.smss
            || fin
            || (nagle_agrees && (last || payload * 2 >= state.max_snd_wnd))
            || self.may_cut(last);
        (len > Bytes::ZERO && is_worthwhile).then_some(NewData { len: len.0 as u32 })
    }

    /// The payload of the next full segment, if `usable` bytes can be sent.
    fn full_size(&self, usable: Bytes) -> Bytes {
        self.size_probe.due(usable).filter(|_| self.recovery.is_open()).unwrap_or(self.state.smss)
    }

    /// True if a segment may be short because the send buffer or the peer's window ends there: the last of a batch that
    /// leaves as one packet, if no other short segment is in flight (Minshall's change of Nagle's algorithm).
    fn may_cut(&self, last: bool) -> bool {
        let cut_by_buffer = last && !self.queue.has_queued_all();
        let cut_by_window = !last && self.constraints.in_batch();
        (cut_by_buffer || cut_by_window) && !self.constraints.short_in_flight(self.state.snd_una)
    }

    pub(super) fn has_room_for_new(&self, now: Instant, new: NewData) -> bool {
        let len = Bytes(u64::from(new.len)).min(self.state.smss);
        let room = match self.state.phase {
            _ if self.state.is_model_based() => self.state.cwnd - self.board.pipe().bytes,
            Phase::Recovery => self.plugins.fast_recovery.allowance(&context!(self, now)),
            Phase::Loss => self.state.cwnd - self.board.pipe().bytes,
            Phase::Open | Phase::Disorder if self.traits.limited_transmit.spends_by_pipe => self.room_in_pipe(),
            Phase::Disorder if self.traits.limited_transmit.caps_window => {
                self.recovery.flight_limit() - self.state.flight_size()
            }
            Phase::Open | Phase::Disorder => {
                self.state.cwnd.max(self.recovery.flight_limit()) - self.state.flight_size()
            }
        };
        room >= len && self.is_within_cap(new)
    }

    /// How much more cwnd allows, by the pipe. Without SACK, each duplicate ACK shows that a segment has left the path (RFC
    /// 3042); in recovery, that is counted elsewhere.
    fn room_in_pipe(&self) -> Bytes {
        let is_counted = self.state.sack || self.state.phase != Phase::Disorder;
        let left = if is_counted { Segments::ZERO } else { self.state.dup_acks };
        self.state.cwnd - (self.board.pipe().bytes - left.of(self.state.smss))
    }

    /// True if the windows are too small for the segments that are to leave together. Otherwise the next segment begins or
    /// continues a batch.
    pub(super) fn waits_for_batch(&mut self, now: Instant) -> bool {
        if self.constraints.continue_batch() || self.queue.end().since(self.state.snd_nxt) <= self.state.smss {
            return false;
        }
        let since = now.since(self.constraints.last_sent());
        let Some(batch) = self.plugins.limited_transmit.batch(&context!(self, now), since) else { return false };
        let in_window = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
        let room = self.room_in_pipe().min(in_window);
        let is_too_small = room < batch.least.of(self.state.smss);
        if is_too_small && !self.state.is_model_based() && !self.constraints.batch_starts_at_once() {
            return true;
        }
        let quantum = self.pacer.pacing().map(|pacing| (pacing.quantum.0 / self.state.smss.0) as u32);
        self.constraints.begin_batch(quantum.unwrap_or(batch.most.0));
        false
    }

    /// The configured limit applies to everything in flight unless it limits only cwnd. The FIN of a full segment does not count.
    pub(super) fn is_within_cap(&self, new: NewData) -> bool {
        let len = Bytes(u64::from(new.len)).min(self.state.smss);
        let caps_flight = self.config.max_window_caps == MaxWindowCaps::Flight;
        !caps_flight || self.state.cap(&self.config, Bytes::MAX) >= self.state.flight_size() + len
    }

    pub(super) fn has_room_to_retransmit(&self, now: Instant, id: SegId) -> bool {
        let pipe = self.board.pipe().bytes;
        let room = match self.state.phase {
            Phase::Recovery if !self.state.is_model_based() => {
                self.plugins.fast_recovery.allowance(&context!(self, now))
            }
            _ => self.state.cwnd - pipe,
        };
        let len = self.board.get(id).map_or(Bytes::ZERO, |r| Bytes(u64::from(r.len)));
        let may_stall = self.state.phase == Phase::Recovery && self.traits.fast_recovery.may_stall;
        room >= len.min(self.state.smss) || (pipe == Bytes::ZERO && !may_stall)
    }

    /// True if data waits, the window is too small for it, and nothing is in flight whose ACK would continue the
    /// transfer.
    pub(super) fn is_blocked_by_window(&self) -> bool {
        self.board.is_empty() && self.queue.end() > self.state.snd_nxt && self.next_new().is_none()
    }

    /// Updates the facts about unsent data. Called before the plug-ins see an ACK (step 3) or a timer.
    pub(super) fn note_unsent(&mut self) {
        self.state.set_can_send_new(self.next_new().is_some());
    }
}
