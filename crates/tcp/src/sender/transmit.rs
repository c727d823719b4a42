//! Step 10: what to send next, and whether it may be sent now. Called at the end of each ACK and timer, and when the application
//! has written.

use reknit_units::{Bytes, Instant, Rate, Segments};

use super::constraints::{Burst, Order};
use super::room::NewData;
use super::{Outgoing, Sender, context};
use crate::config::Retransmit;
use crate::facts::Phase;
use crate::scoreboard::{New, SegId, SegmentRecord, SendReason};
use crate::seams::Fill;

/// Why transmission stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    NoRoom,
    NothingToSend,
    /// The pacing rate: more is sent later.
    Paced,
}

impl Sender {
    /// Sends what the window allows: retransmissions first, then new data, then speculative retransmissions (RFC 6675).
    ///
    /// At most one burst is sent per ACK or timer; the rest follows with the next one. If a congestion control paces,
    /// pacing limits bursts instead.
    pub(super) fn transmit(&mut self, now: Instant) {
        if self.board.reopens() {
            return;
        }
        let burst = self.config.max_burst.filter(|_| self.pacer.pacing().is_none()).map_or(u32::MAX, |max| max.0);
        let sent = u32::from(self.constraints.burst() == Burst::Begun);
        let more = self.send_up_to(now, burst - sent);
        self.constraints.set_order(Order::RetransmissionsFirst);
        self.constraints.set_burst(Burst::Done);
        if more {
            self.hold_back(now, burst);
        }
    }

    /// The next burst follows with the next ACK, or at the rate of one window for each round trip: after a stall there are
    /// too few ACKs to fill a large window. Not if most of the flight is SACKed: a receiver that SACKs what it has not
    /// received makes the pipe seem empty.
    fn hold_back(&mut self, now: Instant, burst: u32) {
        self.constraints.set_burst(Burst::HeldBack);
        let is_stalled = self.board.sacked().bytes <= self.board.pipe().bytes;
        let spreads = is_stalled && self.traits.limited_transmit.spreads_bursts;
        if let Some(srtt) = self.state.srtt.filter(|_| spreads) {
            let burst = Segments(burst).of(self.state.smss);
            let pause = Rate::of(self.state.cwnd, srtt).time_for(burst).min(self.config.max_rto);
            self.pacer.wait_until(now + pause);
        }
    }

    /// The application has written, read or closed. The burst limit applies here too.
    pub(crate) fn transmit_written(&mut self, now: Instant) {
        self.queue.note_drained(now, self.state.snd_una);
        if self.constraints.burst() != Burst::HeldBack && !self.board.reopens() {
            self.send_up_to(now, u32::MAX);
            self.refill(now, self.state.cwnd - self.board.pipe().bytes);
        }
    }

    /// Sends what the window allows, then what the application writes into the free space of the send buffer. Called at the
    /// end of an ACK.
    pub(super) fn transmit_and_refill(&mut self, now: Instant) {
        if self.queue.has_queued_all() {
            self.transmit(now);
            return;
        }
        let room = self.state.cwnd - self.board.pipe().bytes;
        self.transmit(now);
        self.refill(now, room);
    }

    /// If the send buffer has free space, the application continues to write, and that data is sent as far as the window
    /// allows. `room` is what the window allowed before the last transmission.
    fn refill(&mut self, now: Instant, room: Bytes) {
        let buffers = &mut self.plugins.send_buffers;
        if self.queue.has_queued_all() || !self.queue.wakes_writer(&context!(self, now), room, buffers) {
            return;
        }
        while let Some(Fill { alone, .. }) = self.queue.fill(&context!(self, now), &self.plugins.send_buffers) {
            if alone {
                self.constraints.start_batches_at_once();
                self.send_up_to(now, u32::MAX);
                self.constraints.start_batches_with_room();
            }
        }
    }

    /// Sends more of what one event could not send. Called by `process_backlog`.
    pub(super) fn send_rest(&mut self, now: Instant, burst: u32) {
        if self.send_up_to(now, burst) {
            self.hold_back(now, burst);
        }
    }

    /// True if `burst` segments were sent and more could be. What one event may not send is left for the next.
    pub(super) fn send_up_to(&mut self, now: Instant, burst: u32) -> bool {
        self.restart_after_idle(now);
        self.pacer.set(self.plugins.congestion_control.pacing(&context!(self, now)));
        self.constraints.end_batch();
        let mut stop = self.timers.is_paused(now).then_some(Stop::NoRoom);
        let burst = if stop.is_some() { 0 } else { burst };
        if stop.is_none() {
            self.timers.end_pause();
        }
        let part = burst.min(self.backlog.most_to_send());
        for _ in 0..part {
            stop = if self.pacer.must_wait(now) { Some(Stop::Paced) } else { self.send_one(now).err() };
            if stop.is_some() {
                break;
            }
        }
        self.constraints.end_batch();
        self.note_use_of_window(now, stop);
        self.note_app_limited(now);
        self.arm_timers(now);
        let left = match burst {
            _ if stop.is_some() => 0,
            u32::MAX => u32::MAX,
            _ => burst - part,
        };
        self.backlog.set_to_send(now, left);
        stop.is_none() && left == 0
    }

    fn send_one(&mut self, now: Instant) -> Result<(), Stop> {
        // A model of the path leaves room for retransmissions, except after a timeout. A plug-in may need one at once.
        let forced = self.constraints.take_at_once()
            && (!self.state.is_model_based() || self.state.phase == Phase::Loss || self.retransmits_at_once());
        if self.constraints.order() == Order::NewDataFirst
            && let Some(new) = self.next_new()
        {
            return self.send_if_room(now, new);
        }
        if let Some(id) = self.board.lowest_to_retransmit()
            && !self.plugins.loss_detector.holds_retransmissions()
        {
            if !forced && !self.has_room_to_retransmit(now, id) {
                return Err(Stop::NoRoom);
            }
            let cause = if self.state.phase == Phase::Loss { SendReason::Timeout } else { SendReason::FastRetransmit };
            self.retransmit(now, id, cause);
            return Ok(());
        }
        if let Some(granted) = self.recovery.granted() {
            return self.send_granted(now, granted);
        }
        if self.config.retransmit == Retransmit::AnyHole && self.retransmit_hole(now) {
            return Ok(());
        }
        if let Some(new) = self.next_new() {
            return self.send_if_room(now, new);
        }
        let suspects = self.traits.loss_detector.retransmits_on_suspicion;
        if suspects && (self.retransmit_hole(now) || self.rescue(now)) {
            return Ok(());
        }
        Err(Stop::NothingToSend)
    }

    fn send_if_room(&mut self, now: Instant, new: NewData) -> Result<(), Stop> {
        let continues_batch = self.constraints.in_batch();
        if !self.has_room_for_new(now, new) || self.waits_for_batch(now) {
            return Err(Stop::NoRoom);
        }
        self.send_new(now, new);
        if continues_batch && let [.., before, last] = &mut self.outbox[..] {
            (before.push, last.push) = (false, true);
        }
        Ok(())
    }

    /// While it is undecided whether a timeout was spurious, sends only what the plug-in has allowed.
    fn send_granted(&mut self, now: Instant, granted: Segments) -> Result<(), Stop> {
        let some = granted > Segments::ZERO;
        let Some(new) = self.next_new().filter(|new| some && self.is_within_cap(*new)) else {
            return Err(Stop::NoRoom);
        };
        self.recovery.grant(granted - Segments(1));
        self.send_new_because(now, new, SendReason::New);
        Ok(())
    }

    /// `NextSeg` rule 3: a hole above everything retransmitted so far, below the highest SACK, and not marked lost.
    fn retransmit_hole(&mut self, now: Instant) -> bool {
        let Some((high_rxt, _)) = self.recovery.retransmitted() else { return false };
        let from = high_rxt.map_or(self.board.first(), SegId::next);
        let hole = self.board.next_unsacked(from).filter(|id| Some(*id) < self.board.highest_sacked());
        let Some(hole) = hole.filter(|id| self.has_room_to_retransmit(now, *id)) else { return false };
        self.retransmit(now, hole, SendReason::Rescue);
        true
    }

    /// `NextSeg` rule 4: the last unSACKed segment, once per recovery.
    fn rescue(&mut self, now: Instant) -> bool {
        let Some((high_rxt, rescue_rxt)) = self.recovery.retransmitted() else { return false };
        let due = self.state.sack && rescue_rxt.is_some_and(|rescue_rxt| self.state.snd_una > rescue_rxt);
        let last = SegId(self.board.next_id().0.saturating_sub(1));
        let open = self.board.get(last).is_some_and(|r| !r.is_sacked() && !r.is_retransmitted());
        if !due || !open || !self.has_room_to_retransmit(now, last) {
            return false;
        }
        self.retransmit(now, last, SendReason::Rescue);
        self.recovery.note_rescue(high_rxt, self.state.recover);
        true
    }

    /// Tail loss probe: sends new data if there is any, else retransmits the last segment (RFC 8985 §7.3), unless the receiver
    /// has closed its window to it since: the retransmission timer then probes the window with the first segment. Called by
    /// `ask_detector`, before the losses are marked.
    pub(super) fn probe_tail(&mut self, now: Instant) {
        let last = SegId(self.board.next_id().0.saturating_sub(1));
        let window_end = self.state.snd_una + self.state.snd_wnd;
        let is_wanted = |record: &SegmentRecord| record.start < window_end || record.start == self.state.snd_una;
        let new = self.next_new().filter(|new| self.is_within_cap(*new));
        if let Some(new) = new {
            self.send_new_because(now, new, SendReason::Probe);
            self.constraints.set_burst(Burst::Begun);
        } else if self.board.get(last).is_some_and(|r| !r.is_sacked() && is_wanted(r)) {
            self.retransmit(now, last, SendReason::Probe);
        }
        self.restart_rto_timer(now);
    }

    fn send_new(&mut self, now: Instant, new: NewData) {
        let len = Bytes(u64::from(new.len));
        let is_disorder = self.state.phase == Phase::Disorder && !self.state.is_model_based();
        let beyond = is_disorder && self.state.flight_size() + len > self.state.cwnd;
        if beyond {
            self.state.add_limited_transmit(len);
        }
        self.send_new_because(now, new, if beyond { SendReason::LimitedTransmit } else { SendReason::New });
    }

    fn send_new_because(&mut self, now: Instant, new: NewData, cause: SendReason) {
        let start = self.state.snd_nxt;
        let len = Bytes(u64::from(new.len));
        if self.board.is_empty() {
            self.timers.note_progress(now);
        }
        let (smss, cwnd) = (self.state.smss, self.state.cwnd);
        let withheld = self.must_withhold(now, new.len, cause);
        let id = self.board.push(now, New { start, len: new.len, smss, cwnd, cause });
        self.state.advance_nxt(len);
        self.size_probe.note_sent(id, len);
        if len < smss {
            self.constraints.note_short(self.state.snd_nxt);
        }
        self.round_trips.start_timing(now, self.state.snd_nxt);
        self.put(now, id, len, cause, false);
        if let Some(withholder) = self.withholder.as_mut().filter(|_| withheld) {
            withholder.withhold(id);
        } else {
            let push = self.state.snd_nxt >= self.queue.queued();
            self.outbox.push(Outgoing { start, len: new.len, again: false, stamped: now, cause, push });
        }
    }

    pub(super) fn retransmit(&mut self, now: Instant, id: SegId, cause: SendReason) {
        if !self.board.on_retransmit(id, now, self.state.cwnd, cause) {
            return;
        }
        let Some(record) = self.board.get(id) else { return };
        let (start, end) = (record.start, record.end());
        let stamped = self.retransmission_timestamp(now, record.first_sent);
        self.state.count_retransmission();
        self.dsack_limit.on_retransmit(end.since(start), self.state.smss);
        self.round_trips.stop_timing();
        if id == self.board.first() && self.traits.rto_estimator.restarts_on_retransmission {
            self.restart_rto_timer(now);
        }
        self.size_probe.note_retransmission(id);
        self.recovery.note_retransmission(id, end);
        for detector in &mut self.plugins.spurious_detectors {
            detector.on_retransmitted(&context!(self, now), id, cause);
        }
        self.put(now, id, end.since(start), cause, true);
        // The segment size may have shrunk since the record was made; a full segment may also carry a FIN.
        let mut start = start;
        while start < end {
            let rest = end.since(start);
            let len = if rest <= self.state.smss + Bytes(1) { rest } else { self.state.smss };
            self.outbox.push(Outgoing { start, len: len.0 as u32, again: true, stamped, cause, push: false });
            start += len;
        }
    }

    fn put(&mut self, now: Instant, id: SegId, len: Bytes, cause: SendReason, again: bool) {
        self.constraints.note_sent(now);
        self.stats.sent.count(cause, again);
        if self.state.phase == Phase::Recovery {
            self.plugins.fast_recovery.on_sent(len);
        }
        self.pacer.note_sent(now, len, again, self.config.max_rto, &mut self.state);
        if let Some(sampler) = &mut self.sampler {
            sampler.on_sent(now, id, &self.board);
        }
        self.plugins.loss_detector.on_sent(&context!(self, now), id, cause);
    }

    /// A probe beyond a closed window: one byte of new data, or the last probe again.
    pub(super) fn probe_window(&mut self, now: Instant) {
        let first = self.board.first();
        self.forget_sacks_if_reneged(now);
        if self.board.get(first).is_some() {
            self.retransmit(now, first, SendReason::WindowProbe);
        } else {
            let usable = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
            let unsent = self.queue.end().since(self.state.snd_nxt).min(self.state.smss);
            let len = unsent.min(usable.max(Bytes(1)));
            if usable == Bytes::ZERO {
                self.timers.probe_beyond_window();
            } else {
                self.timers.end_probe();
            }
            self.send_new_because(now, NewData { len: len.0 as u32 }, SendReason::WindowProbe);
        }
    }

    /// RFC 5681 §4.1: after an idle RTO there is no ACK clock any more. A model does not need one. Called before the first
    /// segment.
    fn restart_after_idle(&mut self, now: Instant) {
        let state = &self.state;
        if !self.board.is_empty() || self.queue.end() <= state.snd_nxt {
            return;
        }
        if state.is_model_based() {
            self.restart_model(now);
        } else if self.config.idle_restart
            && now.since(self.constraints.last_sent()) > state.rto_or_substitute(&self.config)
        {
            self.state.restart_window(self.config.initial_window.of(state.smss));
        }
    }

    /// Data is about to be sent while nothing is in flight, because the application had none before.
    fn restart_model(&mut self, now: Instant) {
        if self.sampler.as_ref().is_some_and(|sampler| sampler.is_app_limited())
            && let Some(cwnd) = self.plugins.congestion_control.on_restart(&context!(self, now))
        {
            self.state.set_cwnd_of_model(&self.config, cwnd);
        }
    }

    /// True if the first retransmission is sent even if the window has no room for it.
    pub(super) fn retransmits_at_once(&self) -> bool {
        !(self.traits.fast_recovery.first_retransmission_waits && self.state.sack)
    }

    /// Notes whether the window is in use, and notifies the congestion control if it is not. Called after each transmission.
    fn note_use_of_window(&mut self, now: Instant, stop: Option<Stop>) {
        let is_unused = self.window_use.note_stop(stop, &self.state, &self.board, self.traits.congestion_control);
        if is_unused && self.queue.has_queued_all() {
            self.plugins.congestion_control.on_unused_window(now);
        }
    }

    /// Marks the following rate samples if there is no data to send, or if the congestion control sends less than it
    /// could (draft-ietf-ccwg-bbr §4.1.2.4).
    fn note_app_limited(&mut self, now: Instant) {
        let is_limited = self.sampler.is_some()
            && (self.is_app_limited() || self.plugins.congestion_control.limits_itself(&context!(self, now)));
        if is_limited && let Some(sampler) = &mut self.sampler {
            sampler.mark_app_limited(self.board.pipe().bytes);
        }
    }

    /// True if only the application prevents the sender from sending more.
    fn is_app_limited(&self) -> bool {
        let board = &self.board;
        self.queue.has_queued_all()
            && self.queue.end().since(self.state.snd_nxt) < self.state.smss
            && board.pipe().bytes < self.state.cwnd
            && board.lost().segments <= board.retransmitted().segments
    }

    /// True if the next new segment, of `len` bytes, is to be withheld.
    fn must_withhold(&mut self, now: Instant, len: u32, cause: SendReason) -> bool {
        let Some(withholder) = &mut self.withholder else { return false };
        withholder.must_withhold(&context!(self, now), self.queue.queued(), len, cause)
    }

    /// Sends the withheld segment if the receiver has passed the test. Step 3, after the SACK blocks were processed.
    pub(super) fn release_withheld(&mut self, now: Instant) {
        let (Some(withholder), Some(every)) = (&mut self.withholder, self.config.withhold_every) else { return };
        let Some(id) = withholder.release(&self.board, every) else { return };
        let withheld_at = self.board.get(id).map_or(now, |record| record.first_sent);
        let stamped = self.retransmission_timestamp(now, withheld_at);
        self.board.release(id, now);
        let Some(record) = self.board.get(id) else { return };
        let (start, len) = (record.start, record.len);
        self.outbox.push(Outgoing { start, len, again: false, stamped, cause: SendReason::New, push: false });
        if let Some(sampler) = &mut self.sampler {
            sampler.on_sent(now, id, &self.board);
        }
    }
}
