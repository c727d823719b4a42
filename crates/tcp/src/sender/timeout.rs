//! The deadlines of the sender and what it does when they pass: its own timers ([`super::timers`]), those of the
//! plug-ins, pacing, and the backlog. The connection calls [`Sender::on_timer`]; some functions are also steps of an ACK.

use reknit_units::{Bytes, Instant, Segments};

use super::renege::first_is_sacked;
use super::timers::Expiry;
use super::{Sender, context};
use crate::facts::{AckFacts, Phase, RecoveryEvent, Spurious, Trigger, Window};
use crate::scoreboard::{AT_ONCE, SegId, SendReason};
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
        if self.queue.has_written() {
            return self.earliest();
        }
        debug_assert!(!self.earliest().is_set(), "nothing was ever sent");
        Instant::NEVER
    }

    fn earliest(&self) -> Instant {
        let rto_expires = if self.detector_replaces_rto() { Instant::NEVER } else { self.state.rto_expires };
        rto_expires
            .min(self.timers.persist_expires())
            .min(self.recovery.postponed_until().unwrap_or(Instant::NEVER))
            .min(self.plugins.loss_detector.deadline())
            .min(self.pause_ends())
            .min(self.pacing_deadline())
            .min(self.drain_expires())
            .min(self.backlog.deadline(self.board.reopens()))
            .min(self.reneging_expires())
    }

    fn reneging_expires(&self) -> Instant {
        self.reneging.expires(&self.state, &self.board, &self.timers, &self.config)
    }

    /// When sending resumes after a pause.
    fn pause_ends(&self) -> Instant {
        self.unless_quiet(self.timers.pause_ends())
    }

    /// When pacing allows the next burst, if something waits for it.
    fn pacing_deadline(&self) -> Instant {
        self.unless_quiet(self.pacer.deadline())
    }

    /// A deadline for sending: never if there is nothing to send.
    fn unless_quiet(&self, at: Instant) -> Instant {
        if at.is_set() && self.is_quiet() { Instant::NEVER } else { at }
    }

    /// When the peer has taken too long for what the application had written.
    fn drain_expires(&self) -> Instant {
        match self.config.drain_timeout {
            Some(limit) if !self.is_quiet() => self.queue.drain_expires(limit),
            _ => Instant::NEVER,
        }
    }

    /// The detector's timer replaces the retransmission timer.
    fn detector_replaces_rto(&self) -> bool {
        self.traits.loss_detector.holds_rto && self.plugins.loss_detector.deadline().is_set()
    }

    /// Fires the timers that are due.
    pub(crate) fn on_timer(&mut self, now: Instant) -> TimerVerdict {
        if self.drain_expires() <= now {
            return TimerVerdict::GiveUp;
        }
        if self.process_backlog(now) {
            return TimerVerdict::Continue;
        }
        if self.reneging_expires() <= now {
            if self.user_timeout_expired(now) {
                return TimerVerdict::GiveUp;
            }
            self.reneging.note(self.state.snd_una);
            self.forget_sacks_if_reneged(now);
            self.transmit(now);
        }
        let may_enter = self.recovery.postponed_until().is_some_and(|until| until <= now);
        if may_enter || self.plugins.loss_detector.deadline() <= now {
            if !self.state.has_rto_timer() && self.user_timeout_expired(now) {
                return TimerVerdict::GiveUp;
            }
            self.note_unsent();
            self.ask_detector(now, None);
            if may_enter {
                self.recovery.end_postponement(); // one that has not led to recovery by now has expired
            }
            self.transmit(now);
        }
        if self.pause_ends() <= now {
            self.timers.end_pause();
            self.transmit(now);
        }
        if self.pacing_deadline() <= now {
            self.transmit(now);
        }
        if self.state.rto_expires <= now && !self.detector_replaces_rto() {
            if self.user_timeout_expired(now) {
                return TimerVerdict::GiveUp;
            }
            self.on_rto(now);
        }
        if self.timers.persist_expires() <= now {
            if self.user_timeout_expired(now) {
                return TimerVerdict::GiveUp;
            }
            self.timers.back_off_persist();
            self.probe_window(now);
            self.timers.restart_persist(now, &self.state, &self.config);
        }
        debug_assert_eq!(self.board.check(), Ok(()));
        TimerVerdict::Continue
    }

    /// True if nothing was acknowledged within the user timeout.
    fn user_timeout_expired(&self, now: Instant) -> bool {
        self.timers.user_timeout_expired(now, &self.config)
    }

    /// The retransmission timer expired (RFC 6298 §5.4 to §5.6, RFC 6675 §5.1, RFC 5681 §3.1).
    fn on_rto(&mut self, now: Instant) {
        let una = self.state.snd_una;
        let expired = self.timers.timeout(&self.state, &self.config);
        let head = self.board.first();
        let again = self.timers.last_expiry().filter(|expiry| expiry.una == una);
        self.stats.timeouts += 1;
        self.stats.armings.expired += expired;
        self.forget_sacks_if_reneged(now);
        let was_reduced = again.is_some_and(|expiry| expiry.reduced);
        let is_frozen = self.state.is_frozen(now);
        if !is_frozen {
            self.reduce_on_timeout(now, head, was_reduced);
        }
        self.timers.note_expiry(Expiry { una, reduced: was_reduced || !is_frozen }, !is_frozen);
        self.end_disorder(now, DisorderEnd::Timeout);
        self.state.recover_until_nxt();
        let is_tested = self.mark_lost_on_timeout(now, head);
        self.recovery.on_timeout(is_tested, &mut self.state);
        if self.state.is_model_based() {
            self.state.set_cwnd_of_model(&self.config, self.board.pipe().bytes + self.state.smss);
        } else if let Some(cwnd) = self.plugins.timeout_recovery.cwnd_after_marking(&context!(self, now)) {
            self.state.set_cwnd(&self.config, cwnd);
        }
        self.state.forget_dup_acks();
        self.plugins
            .on_recovery_event(&context!(self, now), RecoveryEvent::Timeout { expired, first: again.is_none() });
        self.constraints.retransmit_at_once();
        self.restart_rto_timer(now);
        self.transmit(now);
    }

    /// A further timeout of the same segment is not a second congestion signal (RFC 5681 §3.1).
    fn reduce_on_timeout(&mut self, now: Instant, head: SegId, again: bool) {
        if again {
            let ssthresh = self.state.ssthresh;
            self.state.set_window(&self.config, Window { cwnd: self.state.smss, ssthresh });
        } else {
            self.reduce(now, Trigger::Timeout, head, None);
        }
    }

    /// Marks what is lost because of the timeout. True if F-RTO first tests whether the timeout was spurious. Called after the
    /// reduction, before the stage changes.
    fn mark_lost_on_timeout(&mut self, now: Instant, head: SegId) -> bool {
        match self.plugins.timeout_recovery.on_timeout(&context!(self, now)) {
            AfterTimeout::Probe => {
                self.board.clear_lost(); // what an earlier recovery has not retransmitted yet
                self.board.open_now(head); // it is marked again
                self.reopen(now);
                self.mark_lost(now, head);
                true
            }
            AfterTimeout::Conventional => {
                self.mark_lost(now, head);
                self.mark_outstanding_lost(now, head);
                false
            }
        }
    }

    /// Marks as lost, from `from` on, what was outstanding when the timer expired and the detector says is lost.
    pub(super) fn mark_outstanding_lost(&mut self, now: Instant, from: SegId) {
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
            self.backlog.push_lost(now, next);
        }
    }

    /// An ACK while it is undecided whether the timeout was spurious. Step 4, after the spurious-retransmission detectors.
    pub(super) fn step_timeout_recovery(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Spurious> {
        if !self.recovery.is_undecided() {
            return None;
        }
        match self.plugins.timeout_recovery.on_ack(&context!(self, now), ack) {
            TimeoutStep::Pass => None,
            TimeoutStep::SendNew(segments, cwnd) => {
                self.recovery.grant(segments);
                self.state.set_cwnd(&self.config, cwnd);
                None
            }
            TimeoutStep::FallBack(cwnd) => {
                self.recovery.on_timeout_decided(&mut self.state);
                self.state.set_cwnd(&self.config, cwnd);
                // The timer's retransmission is still in flight.
                let head = self.board.first();
                let retransmitted = self.timers.last_expiry().is_some_and(|expiry| expiry.una == self.state.snd_una);
                self.mark_outstanding_lost(now, if retransmitted { head.next() } else { head });
                None
            }
            TimeoutStep::Spurious => {
                self.recovery.on_timeout_decided(&mut self.state);
                Some(Spurious::Timeout)
            }
        }
    }

    /// RFC 6298 §5.2 and §5.3: new data was acknowledged, so the timer restarts, or stops if nothing is left. Also step 6, after
    /// the update of the timeout.
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
        let estimator = self.plugins.rto_estimator.as_ref();
        if let Some(timeout) = self.timers.restart_rto(now, &mut self.state, &self.config, estimator) {
            self.stats.armings.count(timeout);
        }
    }

    /// Starts and stops timers: the retransmission timer runs if data is in flight, the persist timer if the peer's
    /// window is too small for the waiting data; never both. Called at the end of each transmission.
    pub(super) fn arm_timers(&mut self, now: Instant) {
        let is_probing = self.timers.is_probing_window();
        if self.board.is_empty() || is_probing {
            self.state.set_rto_expires(Instant::NEVER);
        } else if !self.state.rto_expires.is_set() {
            self.restart_rto_timer(now);
        }
        let needs_persist = is_probing || self.is_blocked_by_window();
        self.timers.arm_persist(now, needs_persist, &self.state, &self.config);
    }

    /// If the receiver has reneged, its SACK marks are removed.
    pub(super) fn forget_sacks_if_reneged(&mut self, now: Instant) {
        if first_is_sacked(&self.board) {
            self.peer.forget_blocks();
            self.forget_sacks_from(now, self.board.first());
        }
    }

    /// Ends a probe beyond the window: either it was answered, or it was refused and the window has opened, so that it
    /// is retransmitted with the other data. If the window closes before a probe that was within it, that probe counts
    /// as beyond it. Step 3, after SND.UNA has advanced.
    pub(super) fn end_window_probe(&mut self) {
        let window_end = self.state.snd_una + self.state.snd_wnd;
        let first = self.board.get(self.board.first());
        if first.is_some_and(|r| r.cause == SendReason::WindowProbe && r.start >= window_end) {
            self.timers.probe_beyond_window();
        }
        if self.timers.is_probing_window() && (self.board.is_empty() || self.state.snd_wnd > Bytes::ZERO) {
            self.timers.end_probe();
            self.complete_probe();
            self.board.mark_lost(self.board.first());
        }
    }

    /// A refused probe is retransmitted as the beginning of a full segment; as a separate segment it would shift all later
    /// segments. If the receiver has SACKed it, the SACK does not cover the bytes that follow.
    fn complete_probe(&mut self) {
        let last = self.board.first();
        let is_last = last.next() == self.board.next_id();
        let Some(record) = self.board.get(last).filter(|record| is_last && !record.is_sacked()) else { return };
        let room = self.state.smss - Bytes(u64::from(record.len));
        let usable = (self.state.snd_una + self.state.snd_wnd).since(self.state.snd_nxt);
        let more = self.queue.queued().since(self.state.snd_nxt).min(usable).min(room);
        self.board.extend_last(more, self.state.smss);
        self.state.advance_nxt(more);
    }
}
