//! The sender's timers: retransmission (RFC 6298), persist (RFC 9293 §3.8.6.1), and those of the plug-ins.

use reknit_units::{Bytes, Duration, Instant, Segments};

use super::reaction::{Loss, Reaction};
use super::{Expiry, Sender, context};
use crate::facts::{AckFacts, Phase, Spurious, Trigger, Turn, Window};
use crate::scoreboard::{AT_ONCE, Cause, SegId};
use crate::seams::{AfterTimeout, DisorderEnd, PluginSet, TimeoutStep};

/// What the connection has to do after a timer has fired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerVerdict {
    Continue,
    /// Nothing was acknowledged within the user timeout.
    GiveUp,
}

impl Sender {
    /// The earliest of the sender's deadlines.
    pub(crate) fn deadline(&self) -> Instant {
        let postponed = self.postponed.map_or(Instant::NEVER, |(_, until)| until);
        let detector = self.plugins.loss_detector.deadline();
        let rto_expires = if self.detector_holds_rto() { Instant::NEVER } else { self.state.rto_expires };
        rto_expires
            .min(self.persist.expires)
            .min(postponed)
            .min(detector)
            .min(self.gate_opens())
            .min(self.pacing_deadline())
            .min(self.drain_expires())
            .min(self.backlog_due())
            .min(self.reneging_expires())
    }

    /// The detector's timer replaces the retransmission timer.
    fn detector_holds_rto(&self) -> bool {
        let detector = &self.plugins.loss_detector;
        detector.holds_rto() && detector.deadline().is_set()
    }

    /// Fires the timers that are due.
    pub(crate) fn on_timer(&mut self, now: Instant) -> TimerVerdict {
        if self.drain_expires() <= now {
            return TimerVerdict::GiveUp;
        }
        if self.work_off(now) {
            return TimerVerdict::Continue;
        }
        if self.reneging_expires() <= now {
            if self.is_hopeless(now) {
                return TimerVerdict::GiveUp;
            }
            self.on_reneging(now);
        }
        let may_enter = self.postponed.is_some_and(|(_, until)| until <= now);
        if may_enter || self.plugins.loss_detector.deadline() <= now {
            if !self.runs_rto() && self.is_hopeless(now) {
                return TimerVerdict::GiveUp;
            }
            self.note_unsent();
            self.ask_detector(now, None);
            if may_enter {
                self.postponed = None; // a postponement that has not led to recovery by now has expired
            }
            self.transmit(now);
        }
        if self.gate_opens() <= now {
            self.gate = Instant::ZERO;
            self.transmit(now);
        }
        if self.pacing_deadline() <= now {
            self.transmit(now);
        }
        if self.state.rto_expires <= now && !self.detector_holds_rto() {
            if self.is_hopeless(now) {
                return TimerVerdict::GiveUp;
            }
            self.on_rto(now);
        }
        if self.persist.expires <= now {
            if self.is_hopeless(now) {
                return TimerVerdict::GiveUp;
            }
            self.persist.backoff += 1;
            self.probe_window(now);
            self.persist.expires = now + self.persist_timeout();
        }
        debug_assert_eq!(self.board.check(), Ok(()));
        TimerVerdict::Continue
    }

    /// True if nothing was acknowledged within the user timeout.
    fn is_hopeless(&self, now: Instant) -> bool {
        now.since(self.last_progress) >= self.config.user_timeout
    }

    /// When the peer has taken too long for what the application had written.
    fn drain_expires(&self) -> Instant {
        match self.config.drain_timeout {
            Some(limit) if !self.is_quiet() => self.drain.1 + limit,
            _ => Instant::NEVER,
        }
    }

    /// If all that was noted is acknowledged, notes what is written now.
    pub(super) fn note_drained(&mut self, now: Instant) {
        if self.state.snd_una >= self.drain.0 {
            self.drain = (self.end(), now);
        }
    }

    /// The retransmission timer expired (RFC 6298 §5.4 to §5.6, RFC 6675 §5.1, RFC 5681 §3.1).
    fn on_rto(&mut self, now: Instant) {
        let expired = self.backed_off(self.backoff);
        let head = self.board.first();
        let again = self.last_expiry.filter(|expiry| expiry.una == self.state.snd_una);
        self.stats.timeouts += 1;
        self.stats.armings.expired += expired;
        self.forget_sacks_if_reneged(now);
        let mut reduced = again.is_some_and(|expiry| expiry.reduced);
        if !self.is_frozen(now) {
            self.reduce_on_timeout(now, head, reduced);
            reduced = true;
            self.backoff += 1;
        }
        self.last_expiry = Some(Expiry { una: self.state.snd_una, reduced });
        self.end_disorder(now, DisorderEnd::Timeout);
        self.state.recover = self.state.snd_nxt;
        let loss = self.give_up_on_timeout(now, head);
        self.enter(Reaction::Loss(loss));
        if self.by_model {
            self.bound_and_set_cwnd(self.board.pipe().bytes + self.state.smss);
        } else if let Some(cwnd) = self.plugins.timeout_recovery.cwnd_after_marking(&context!(self, now)) {
            self.set_cwnd(cwnd);
        }
        self.state.dup_acks = Segments::ZERO;
        self.postponed = None;
        self.plugins.on_turn(&context!(self, now), Turn::Timeout { expired, first: again.is_none() });
        self.forced = true;
        self.restart_rto_timer(now);
        self.transmit(now);
    }

    /// A further timeout of the same segment is no second congestion signal (RFC 5681 §3.1).
    fn reduce_on_timeout(&mut self, now: Instant, head: SegId, again: bool) {
        if again {
            let ssthresh = self.state.ssthresh;
            self.set_window(Window { cwnd: self.state.smss, ssthresh });
        } else {
            self.reduce(now, Trigger::Timeout, head, None);
        }
    }

    /// Marks what is lost because of the timeout.
    fn give_up_on_timeout(&mut self, now: Instant, head: SegId) -> Loss {
        match self.plugins.timeout_recovery.on_timeout(&context!(self, now)) {
            AfterTimeout::Probe => {
                self.board.clear_lost(); // what an earlier recovery has not retransmitted yet
                self.board.open_now(head); // it is marked again
                self.reopen(now);
                self.mark_lost(now, head);
                Loss { probing: Some(Segments::ZERO) }
            }
            AfterTimeout::Conventional => {
                self.mark_lost(now, head);
                self.give_up(now, head);
                Loss { probing: None }
            }
        }
    }

    /// Marks as lost, from `from` on, what was outstanding when the timer expired and the detector says is lost.
    pub(super) fn give_up(&mut self, now: Instant, from: SegId) {
        let mut next = self.board.next_unsacked(from);
        for _ in 0..AT_ONCE {
            let Some(id) = next else { return };
            if self.board.get(id).is_none_or(|record| record.start >= self.state.recover) {
                return;
            }
            if self.plugins.loss_detector.lost_at_timeout(&context!(self, now), id) {
                self.mark_lost(now, id);
            }
            next = self.board.next_unsacked(id.next());
        }
        if let Some(next) = next {
            self.leave_giving_up(now, next);
        }
    }

    /// An ACK while it is undecided whether the timeout was spurious.
    pub(super) fn step_timeout_recovery(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Spurious> {
        if !self.is_probing_timeout() {
            return None;
        }
        match self.plugins.timeout_recovery.on_ack(&context!(self, now), ack) {
            TimeoutStep::Pass => None,
            TimeoutStep::SendNew(segments, cwnd) => {
                self.enter(Reaction::Loss(Loss { probing: Some(segments) }));
                self.set_cwnd(cwnd);
                None
            }
            TimeoutStep::FallBack(cwnd) => {
                self.enter(Reaction::Loss(Loss { probing: None }));
                self.set_cwnd(cwnd);
                // The timer's retransmission is still in flight.
                let head = self.board.first();
                let retransmitted = self.last_expiry.is_some_and(|expiry| expiry.una == self.state.snd_una);
                self.give_up(now, if retransmitted { head.next() } else { head });
                None
            }
            TimeoutStep::Spurious => {
                self.enter(Reaction::Loss(Loss { probing: None }));
                Some(Spurious::Timeout)
            }
        }
    }

    /// RFC 6298 §5.2 and §5.3: new data was acknowledged, so the timer restarts, or stops if nothing is left.
    pub(super) fn restart_timer_on_ack(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if !ack.advances() {
            let by_sack = ack.newly_sacked > Segments::ZERO;
            if by_sack && self.plugins.rto_estimator.restarts_on_sack(&context!(self, now), ack) {
                self.restart_rto_timer(now);
            }
            return;
        }
        let partial = self.state.phase == Phase::Recovery && self.state.snd_una < self.state.recover;
        if !partial || self.plugins.fast_recovery.restarts_timer() {
            self.restart_rto_timer(now);
        }
    }

    pub(super) fn restart_rto_timer(&mut self, now: Instant) {
        let timeout = self.backed_off(self.backoff);
        if timeout != Duration::MAX {
            self.stats.armings.count(timeout);
        }
        self.state.rto_expires = self.plugins.rto_estimator.expires(now, timeout);
    }

    /// Starts and stops timers: the retransmission timer runs if data is in flight, the persist timer if the peer's
    /// window is too small for the waiting data; never both.
    pub(super) fn arm_timers(&mut self, now: Instant) {
        if self.board.is_empty() || self.persist.probing {
            self.state.rto_expires = Instant::NEVER;
        } else if !self.state.rto_expires.is_set() {
            self.restart_rto_timer(now);
        }
        if !self.persist.probing && !self.is_blocked_by_window() {
            self.persist.expires = Instant::NEVER;
        } else if !self.persist.expires.is_set() {
            self.last_progress = now;
            self.persist.backoff = 0;
            self.persist.expires = now + self.persist_timeout();
        }
    }

    /// Ends a probe beyond the window: either it was answered, or it was refused and the window has opened, so that it
    /// is retransmitted with the other data. If the window closes before a probe that was within it, that probe counts
    /// as beyond it.
    pub(super) fn end_window_probe(&mut self) {
        let window_end = self.state.snd_una + self.state.snd_wnd;
        let first = self.board.get(self.board.first());
        self.persist.probing |= first.is_some_and(|r| r.cause == Cause::WindowProbe && r.start >= window_end);
        if self.persist.probing && (self.board.is_empty() || self.state.snd_wnd > Bytes::ZERO) {
            self.persist.probing = false;
            self.complete_probe();
            self.board.mark_lost(self.board.first());
        }
    }

    /// A refused probe is retransmitted as the beginning of a full segment; as a separate segment it would shift all
    /// segments after it. If the receiver has SACKed it, the bytes that follow are not part of what it claims to have.
    fn complete_probe(&mut self) {
        let last = self.board.first();
        let is_last = last.next() == self.board.next_id();
        let Some(record) = self.board.get(last).filter(|record| is_last && !record.is_sacked()) else { return };
        let room = self.state.smss - Bytes(u64::from(record.len));
        let usable = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
        let more = self.queued.since(self.state.snd_nxt).min(usable).min(room);
        self.board.extend_last(more, self.state.smss);
        self.state.snd_nxt += more;
    }

    /// When sending resumes after it was stopped; never if there is nothing to send.
    fn gate_opens(&self) -> Instant {
        if self.gate == Instant::ZERO || self.is_quiet() { Instant::NEVER } else { self.gate }
    }

    /// False if the estimator disables the timer; the loss detector's timer then replaces it everywhere.
    pub(super) fn runs_rto(&self) -> bool {
        self.state.rto != Duration::MAX
    }

    /// The RTO without back-off, or a substitute if there is no RTO, because window probes and the idle check still
    /// need a time.
    pub(super) fn patience(&self) -> Duration {
        if self.runs_rto() {
            return self.state.rto;
        }
        self.state.srtt.unwrap_or(self.config.initial_rto).max(self.config.min_rto)
    }

    fn backed_off(&self, backoff: u32) -> Duration {
        if self.runs_rto() { self.patience_backed_off(backoff) } else { Duration::MAX }
    }

    fn persist_timeout(&self) -> Duration {
        self.patience_backed_off(self.persist.backoff)
    }

    pub(super) fn patience_backed_off(&self, backoff: u32) -> Duration {
        (self.patience() * (1 << backoff.min(20))).min(self.config.max_rto)
    }
}
