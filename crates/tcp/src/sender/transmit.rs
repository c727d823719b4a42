//! Step 10: what to send next, and whether it may be sent now.

use reknit_units::{Bytes, Instant, Rate, Segments};

use super::reaction::{Loss, Reaction, Recovery};
use super::{Burst, Outgoing, Sender, context};
use crate::config::{MaxWindowCaps, Retransmit};
use crate::facts::Phase;
use crate::scoreboard::{AT_ONCE, Cause, New, SegId};

/// New data that could be sent now.
#[derive(Clone, Copy, Debug)]
struct NewData {
    /// Sequence space; a FIN counts as one.
    len: u32,
}

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
        let burst = self.config.max_burst.filter(|_| self.pacing.is_none()).map_or(u32::MAX, |max| max.0);
        let sent = u32::from(self.burst == Burst::Begun);
        let more = self.send_up_to(now, burst - sent);
        self.new_first = false;
        self.burst = Burst::Done;
        if more {
            self.hold_back(now, burst);
        }
    }

    /// The next burst follows with the next ACK, or at the rate of one window for each round trip: after a stall there are
    /// too few ACKs to fill a large window. Not if most of the flight is SACKed: a receiver that SACKs what it has not
    /// received makes the pipe seem empty.
    fn hold_back(&mut self, now: Instant, burst: u32) {
        self.burst = Burst::HeldBack;
        let is_stalled = self.board.sacked().bytes <= self.board.pipe().bytes;
        let spreads = is_stalled && self.plugins.limited_transmit.spreads_bursts();
        if let Some(srtt) = self.state.srtt.filter(|_| spreads) {
            let burst = Segments(burst).of(self.state.smss);
            self.pacer.wait_until(now + Rate::of(self.state.cwnd, srtt).time_for(burst));
        }
    }

    /// The application has written, read or closed. The burst limit applies here too.
    pub(crate) fn transmit_written(&mut self, now: Instant) {
        self.note_drained(now);
        if self.burst != Burst::HeldBack && !self.board.reopens() {
            self.send_up_to(now, u32::MAX);
            self.refill(now, self.state.cwnd - self.board.pipe().bytes);
        }
    }

    /// Goes on with what one event could not send.
    pub(super) fn send_rest(&mut self, now: Instant, burst: u32) {
        if self.send_up_to(now, burst) {
            self.hold_back(now, burst);
        }
    }

    /// True if `burst` segments were sent and more could be. What one event may not send is left for the next.
    pub(super) fn send_up_to(&mut self, now: Instant, burst: u32) -> bool {
        self.restart_after_idle(now);
        self.set_pace(now);
        self.batch_left = 0;
        let mut stop = (now < self.gate).then_some(Stop::NoRoom);
        let burst = if stop.is_some() { 0 } else { burst };
        if stop.is_none() {
            self.gate = Instant::ZERO;
        }
        let part = burst.min(AT_ONCE as u32);
        for _ in 0..part {
            stop = if self.is_paced(now) { Some(Stop::Paced) } else { self.send_one(now).err() };
            if stop.is_some() {
                break;
            }
        }
        self.batch_left = 0;
        self.note_use_of_window(now, stop);
        self.note_app_limited(now);
        self.arm_timers(now);
        let left = match burst {
            _ if stop.is_some() => 0,
            u32::MAX => u32::MAX,
            _ => burst - part,
        };
        self.leave_sending(now, left);
        stop.is_none() && left == 0
    }

    fn send_one(&mut self, now: Instant) -> Result<(), Stop> {
        // A model of the path leaves room for retransmissions, except after a timeout. A plug-in may need one at once.
        let forced = std::mem::take(&mut self.forced)
            && (!self.by_model
                || self.state.phase == Phase::Loss
                || self.plugins.fast_recovery.retransmits_at_once(&context!(self, now)));
        if self.new_first
            && let Some(new) = self.next_new()
        {
            return self.send_if_room(now, new);
        }
        let holds = self.plugins.loss_detector.holds_retransmissions();
        if let Some(id) = self.board.lowest_to_retransmit().filter(|_| !holds) {
            if !forced && !self.has_room_to_retransmit(now, id) {
                return Err(Stop::NoRoom);
            }
            let cause = if self.state.phase == Phase::Loss { Cause::Timeout } else { Cause::FastRetransmit };
            self.retransmit(now, id, cause);
            return Ok(());
        }
        if let Reaction::Loss(Loss { probing: Some(granted) }) = self.reaction {
            return self.send_granted(now, granted);
        }
        if self.config.retransmit == Retransmit::AnyHole && self.retransmit_hole(now) {
            return Ok(());
        }
        if let Some(new) = self.next_new() {
            return self.send_if_room(now, new);
        }
        let suspects = self.plugins.loss_detector.retransmits_on_suspicion();
        if suspects && (self.retransmit_hole(now) || self.rescue(now)) {
            return Ok(());
        }
        Err(Stop::NothingToSend)
    }

    fn send_if_room(&mut self, now: Instant, new: NewData) -> Result<(), Stop> {
        let continues_batch = self.batch_left > 0;
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
        self.enter(Reaction::Loss(Loss { probing: Some(granted - Segments(1)) }));
        self.send_new_because(now, new, Cause::New);
        Ok(())
    }

    /// `NextSeg` rule 3: a hole above everything retransmitted so far, below the highest SACK, and not marked lost.
    fn retransmit_hole(&mut self, now: Instant) -> bool {
        let Reaction::Recovery(recovery) = self.reaction else { return false };
        let from = recovery.high_rxt.map_or(self.board.first(), SegId::next);
        let hole = self.board.next_unsacked(from).filter(|id| Some(*id) < self.board.highest_sacked());
        let Some(hole) = hole.filter(|id| self.has_room_to_retransmit(now, *id)) else { return false };
        self.retransmit(now, hole, Cause::Rescue);
        true
    }

    /// `NextSeg` rule 4: the last unSACKed segment, once per recovery.
    fn rescue(&mut self, now: Instant) -> bool {
        let Reaction::Recovery(recovery) = self.reaction else { return false };
        let due = self.state.sack && recovery.rescue_rxt.is_some_and(|rescue_rxt| self.state.snd_una > rescue_rxt);
        let last = SegId(self.board.next_id().0.saturating_sub(1));
        let open = self.board.get(last).is_some_and(|r| !r.is_sacked() && !r.is_retransmitted());
        if !due || !open || !self.has_room_to_retransmit(now, last) {
            return false;
        }
        self.retransmit(now, last, Cause::Rescue);
        self.enter(Reaction::Recovery(Recovery { rescue_rxt: Some(self.state.recover), ..recovery }));
        true
    }

    /// Tail loss probe: new data if there is any, else retransmits the last segment (RFC 8985 §7.3).
    pub(super) fn probe_tail(&mut self, now: Instant) {
        let last = SegId(self.board.next_id().0.saturating_sub(1));
        let new = self.next_new().filter(|new| self.is_within_cap(*new));
        if let Some(new) = new {
            self.send_new_because(now, new, Cause::Probe);
            self.burst = Burst::Begun;
        } else if self.board.get(last).is_some_and(|r| !r.is_sacked()) {
            self.retransmit(now, last, Cause::Probe);
        }
        self.restart_rto_timer(now);
    }

    /// The next new segment that data, the peer's window, silly window avoidance and Nagle allow (RFC 9293 §3.8.6.2.1).
    fn next_new(&self) -> Option<NewData> {
        let state = &self.state;
        if self.persist.probing || self.holds_new_data {
            return None;
        }
        let usable = (state.snd_una + state.snd_wnd).since(state.snd_nxt);
        let unsent = self.queued.since(state.snd_nxt);
        let available = unsent.min(usable);
        let payload = available.min(self.next_size(available));
        let last = payload == unsent;
        let fin = self.closing && self.has_queued_all() && last && self.end() > state.snd_nxt && usable > payload;
        let len = payload + Bytes(u64::from(fin));
        let nagle_agrees = !self.config.nagle || state.snd_una == state.snd_nxt;
        let worth_it = payload >= state.smss
            || fin
            || (nagle_agrees && (last || payload * 2 >= state.max_snd_wnd))
            || self.may_cut(last);
        (len > Bytes::ZERO && worth_it).then_some(NewData { len: len.0 as u32 })
    }

    /// True if a segment may be short because the send buffer or the peer's window ends there: the last of a batch that
    /// leaves as one packet, if no other short segment is in flight (Minshall's change of Nagle's algorithm).
    fn may_cut(&self, last: bool) -> bool {
        let cut_by_buffer = last && !self.has_queued_all();
        let cut_by_window = !last && self.batch_left > 0;
        (cut_by_buffer || cut_by_window) && self.short_end <= self.state.snd_una
    }

    fn has_room_for_new(&mut self, now: Instant, new: NewData) -> bool {
        let len = Bytes(u64::from(new.len)).min(self.state.smss);
        let flight_size = self.state.flight_size();
        let room = match self.reaction {
            _ if self.by_model => self.state.cwnd - self.board.pipe().bytes,
            Reaction::Recovery(_) => self.plugins.fast_recovery.allowance(&context!(self, now)),
            Reaction::Loss(_) => self.state.cwnd - self.board.pipe().bytes,
            Reaction::Open | Reaction::Disorder(_) if self.plugins.limited_transmit.spends_by_pipe() => {
                self.state.cwnd - self.board.pipe().bytes
            }
            Reaction::Open => self.state.cwnd - flight_size,
            Reaction::Disorder(disorder) => self.state.cwnd.max(disorder.flight_limit) - flight_size,
        };
        room >= len && self.is_within_cap(new)
    }

    /// True if there is too little room for the segments that are to leave together.
    fn waits_for_batch(&mut self, now: Instant) -> bool {
        if self.batch_left > 0 {
            self.batch_left -= 1;
            return false;
        }
        let unsent = self.end().since(self.state.snd_nxt);
        if unsent <= self.state.smss {
            return false;
        }
        let since = now.since(self.last_activity);
        let Some(batch) = self.plugins.limited_transmit.batch(&context!(self, now), since) else { return false };
        let in_window = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
        let room = (self.state.cwnd - self.board.pipe().bytes).min(in_window);
        if room < batch.least.of(self.state.smss) && !self.by_model && !self.batch_at_once {
            return true;
        }
        let quantum = self.pacing.map(|pacing| (pacing.quantum.0 / self.state.smss.0) as u32);
        self.batch_left = quantum.unwrap_or(batch.most.0).saturating_sub(1).min(u32::from(u16::MAX)) as u16;
        false
    }

    /// The limit applies to everything in flight, unless it limits only cwnd. The FIN of a full segment does not count.
    fn is_within_cap(&self, new: NewData) -> bool {
        let len = Bytes(u64::from(new.len)).min(self.state.smss);
        let caps_flight = self.config.max_window_caps == MaxWindowCaps::Flight;
        !caps_flight || self.cap(Bytes::MAX) >= self.state.flight_size() + len
    }

    fn has_room_to_retransmit(&mut self, now: Instant, id: SegId) -> bool {
        let pipe = self.board.pipe().bytes;
        let room = match self.state.phase {
            Phase::Recovery if !self.by_model => self.plugins.fast_recovery.allowance(&context!(self, now)),
            _ => self.state.cwnd - pipe,
        };
        let len = self.board.get(id).map_or(Bytes::ZERO, |r| Bytes(u64::from(r.len)));
        let may_stall = self.state.phase == Phase::Recovery && self.plugins.fast_recovery.may_stall();
        room >= len.min(self.state.smss) || (pipe == Bytes::ZERO && !may_stall)
    }

    fn send_new(&mut self, now: Instant, new: NewData) {
        let len = Bytes(u64::from(new.len));
        let is_disorder = self.state.phase == Phase::Disorder && !self.by_model;
        let beyond = is_disorder && self.state.flight_size() + len > self.state.cwnd;
        if beyond {
            self.state.limited_transmit += len;
        }
        self.send_new_because(now, new, if beyond { Cause::LimitedTransmit } else { Cause::New });
    }

    fn send_new_because(&mut self, now: Instant, new: NewData, cause: Cause) {
        let start = self.state.snd_nxt;
        let len = Bytes(u64::from(new.len));
        if self.board.is_empty() {
            self.last_progress = now;
        }
        let (smss, cwnd) = (self.state.smss, self.state.cwnd);
        let withheld = self.must_withhold(new.len, cause);
        let id = self.board.push(now, New { start, len: new.len, smss, cwnd, cause });
        self.state.snd_nxt = start + len;
        self.note_probe(id, len);
        if len < smss {
            self.short_end = self.state.snd_nxt;
        }
        self.start_timing(now, self.state.snd_nxt);
        self.put(now, id, cause, false);
        if withheld {
            self.withhold(id);
        } else {
            let push = self.state.snd_nxt >= self.queued;
            self.outbox.push(Outgoing { start, len: new.len, again: false, stamped: now, cause, push });
        }
    }

    pub(super) fn retransmit(&mut self, now: Instant, id: SegId, cause: Cause) {
        if !self.board.on_retransmit(id, now, self.state.cwnd, cause) {
            return;
        }
        let Some(record) = self.board.get(id) else { return };
        let (start, end) = (record.start, record.end());
        let stamped = self.stamp_again(now, record.first_sent);
        if let Some(snapshot) = &mut self.state.snapshot {
            snapshot.retransmitted += 1;
        }
        self.stop_timing();
        if id == self.board.first() && self.plugins.rto_estimator.restarts_on_retransmission() {
            self.restart_rto_timer(now);
        }
        self.note_probe_again(id);
        if let Reaction::Recovery(recovery) = &mut self.reaction {
            recovery.high_rxt = recovery.high_rxt.max(Some(id));
            recovery.rescue_rxt = recovery.rescue_rxt.or(Some(end));
        }
        for detector in &mut self.plugins.spurious_detectors {
            detector.on_retransmitted(&context!(self, now), id, cause);
        }
        self.put(now, id, cause, true);
        // The segment size may have shrunk since the record was made; a full segment may also carry a FIN.
        let mut start = start;
        while start < end {
            let rest = end.since(start);
            let len = if rest <= self.state.smss + Bytes(1) { rest } else { self.state.smss };
            self.outbox.push(Outgoing { start, len: len.0 as u32, again: true, stamped, cause, push: false });
            start += len;
        }
    }

    fn put(&mut self, now: Instant, id: SegId, cause: Cause, again: bool) {
        self.last_activity = now;
        self.stats.sent.count(cause, again);
        let len = Bytes(self.board.get(id).map_or(0, |r| u64::from(r.len)));
        if self.state.phase == Phase::Recovery {
            self.plugins.fast_recovery.on_sent(len);
        }
        self.pace(now, len, again);
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
            self.retransmit(now, first, Cause::WindowProbe);
        } else {
            let usable = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
            let unsent = self.end().since(self.state.snd_nxt).min(self.state.smss);
            let len = unsent.min(usable.max(Bytes(1)));
            self.persist.probing = usable == Bytes::ZERO;
            self.send_new_because(now, NewData { len: len.0 as u32 }, Cause::WindowProbe);
        }
    }

    /// RFC 5681 §4.1: after an idle RTO there is no ACK clock any more. A model does not need one.
    fn restart_after_idle(&mut self, now: Instant) {
        if self.by_model {
            self.tell_restart(now);
            return;
        }
        let idle = self.board.is_empty() && now.since(self.last_activity) > self.patience();
        if self.config.idle_restart && idle && self.end() > self.state.snd_nxt {
            let restart_window = self.config.initial_window.of(self.state.smss);
            self.state.cwnd = self.state.cwnd.min(restart_window);
        }
    }

    /// True if data waits, the window is too small for it, and nothing is in flight whose ACK would continue the
    /// transfer.
    pub(super) fn is_blocked_by_window(&self) -> bool {
        self.board.is_empty() && self.end() > self.state.snd_nxt && self.next_new().is_none()
    }

    /// Updates the facts about unsent data.
    pub(super) fn note_unsent(&mut self) {
        self.state.can_send_new = self.next_new().is_some();
    }
}
