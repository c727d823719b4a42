//! Step 8: loss detection and the changes of phase. Called by [`super::ack`] for an ACK, after the undo (step 7), and by
//! [`super::timeout`] for the detector's timer and postponements.

use reknit_units::{Bytes, Instant, Segments};

use super::recovery::Event;
use super::{Sender, context};
use crate::facts::{AckFacts, Context, Phase, RecoveryEvent, Trigger};
use crate::scoreboard::SegId;
use crate::seams::{DisorderEnd, LossReason, PluginSet, RecoveryEntry, Verdicts};

impl Sender {
    /// True if the ACK ended an episode and thereby set the window, which must not grow in addition.
    pub(super) fn detect_loss(&mut self, now: Instant, ack: &AckFacts<'_>) -> bool {
        let mut window_is_set = self.leave_if_over(now, ack);
        if ack.advances() {
            window_is_set |= self.end_disorder(now, DisorderEnd::Advance);
        }
        self.count_duplicate(now, ack);
        let entered = self.ask_detector(now, Some(ack));
        match self.state.phase {
            Phase::Recovery if !entered => {
                let cwnd = self.plugins.fast_recovery.on_ack(&context!(self, now), ack);
                self.state.set_cwnd(&self.config, cwnd);
            }
            Phase::Recovery | Phase::Loss => {}
            Phase::Open | Phase::Disorder => self.allow_limited_transmit(now, ack),
        }
        window_is_set
    }

    /// Calls the detector because of an ACK, or because its deadline or a postponement has passed. True if fast
    /// recovery begins.
    pub(super) fn ask_detector(&mut self, now: Instant, ack: Option<&AckFacts<'_>>) -> bool {
        let mut verdicts = Verdicts::default();
        self.state.set_postponed_until(self.recovery.postponed_until().unwrap_or(Instant::ZERO));
        let cx = context!(self, now);
        match ack {
            Some(ack) => self.plugins.loss_detector.on_ack(&cx, ack, &mut verdicts),
            None => self.plugins.loss_detector.on_timer(&cx, &mut verdicts),
        }
        if verdicts.is_empty() {
            return false;
        }
        if verdicts.probe_repaired_loss && !self.recovery.in_episode() {
            self.reduce(now, Trigger::Probe, self.board.first(), ack);
        }
        if verdicts.probe {
            self.probe_tail(now);
        }
        self.act_on_loss(now, &verdicts, ack)
    }

    /// The simulator reports that the latest transmission of `id` was lost.
    pub(crate) fn report_loss(&mut self, now: Instant, id: SegId) {
        let mut verdicts = Verdicts::default();
        self.plugins.loss_detector.on_loss_report(&context!(self, now), id, &mut verdicts);
        self.act_on_loss(now, &verdicts, None);
        self.transmit(now);
    }

    /// True if losses of the network must be reported to the loss detector.
    pub(crate) fn needs_loss_reports(&self) -> bool {
        self.traits.loss_detector.needs_loss_reports
    }

    /// Marks segments lost. Outside an episode this starts fast recovery, unless a postponement delays it.
    fn act_on_loss(&mut self, now: Instant, verdicts: &Verdicts, ack: Option<&AckFacts<'_>>) -> bool {
        let first_lost = verdicts.lost.first().map(|(hole, _)| *hole).filter(|_| !self.recovery.in_episode());
        let event = verdicts.event.or(first_lost);
        for &hole in &verdicts.withdrawn {
            self.withdraw(now, hole);
        }
        for &id in &verdicts.repairs {
            self.mark_lost(now, id);
            if self.retransmits_at_once() {
                self.constraints.retransmit_at_once();
            }
        }
        if let Some(hole) = event {
            if self.must_wait(now, hole) {
                return false;
            }
            self.reduce(now, Trigger::FastRetransmit, hole, ack);
        }
        for &(id, why) in &verdicts.lost {
            if why == LossReason::PartialAck {
                self.constraints.retransmit_at_once();
            }
            self.mark_lost(now, id);
        }
        for &id in &verdicts.originals_lost {
            self.board.mark_original_lost(id);
        }
        if event.is_some() {
            self.enter_recovery(now, ack);
        }
        if let Some(until) = verdicts.collapse {
            self.state.set_cwnd(&self.config, self.state.smss);
            self.timers.pause_until(until);
        }
        event.is_some()
    }

    fn enter_recovery(&mut self, now: Instant, ack: Option<&AckFacts<'_>>) {
        self.end_disorder(now, DisorderEnd::Recovery);
        self.recovery.on_loss(&mut self.state);
        if self.retransmits_at_once() {
            self.constraints.retransmit_at_once();
        } else {
            self.constraints.retransmit_within_window();
        }
        self.recovery.end_postponement();
        let cwnd = self.plugins.fast_recovery.enter(&context!(self, now), ack);
        self.state.set_cwnd(&self.config, cwnd);
        self.plugins.on_recovery_event(&context!(self, now), RecoveryEvent::EnterRecovery);
    }

    /// The normal end of recovery, or of the time after a timeout. True if that set the window.
    fn leave_if_over(&mut self, now: Instant, ack: &AckFacts<'_>) -> bool {
        let cx = context!(self, now);
        match self.state.phase {
            Phase::Recovery if self.plugins.fast_recovery.is_over(&cx, ack) => {
                let cwnd = self.plugins.fast_recovery.exit(&cx);
                self.state.set_cwnd(&self.config, cwnd);
                self.leave_episode(Event::RecoveryOver);
                self.plugins.on_recovery_event(&context!(self, now), RecoveryEvent::LeaveRecovery);
                !self.traits.fast_recovery.grows_on_exit
            }
            // While it is undecided whether a timeout was spurious, the plug-in decides when this phase ends.
            Phase::Loss if self.state.snd_una >= self.state.recover && !self.recovery.is_undecided() => {
                self.leave_episode(Event::RecoveryOver);
                self.plugins.on_recovery_event(&context!(self, now), RecoveryEvent::LeaveRecovery);
                false
            }
            _ => false,
        }
    }

    /// Fast recovery or the time after a timeout is over.
    pub(super) fn leave_episode(&mut self, event: Event) {
        self.recovery.open(event, &mut self.state);
        self.constraints.retransmit_within_window();
    }

    fn count_duplicate(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if ack.duplicate && self.state.phase != Phase::Recovery {
            self.state.count_dup_ack();
        }
        if self.recovery.in_episode() {
            return;
        }
        let is_disorder = self.state.dup_acks > Segments::ZERO || self.board.sacked().segments > Segments::ZERO;
        if is_disorder && self.recovery.is_open() {
            self.recovery.begin_disorder(&mut self.state);
        } else if !is_disorder && self.recovery.is_disorder() {
            self.recovery.open(Event::NothingMissing, &mut self.state);
        }
        let dup_thresh = self.plugins.dup_thresh.dup_thresh(&context!(self, now));
        self.state.set_dup_thresh(dup_thresh);
    }

    /// How far FlightSize may exceed cwnd during disorder. The last part of step 8.
    fn allow_limited_transmit(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if self.recovery.is_disorder() {
            let limit = self.plugins.limited_transmit.flight_limit(&context!(self, now), ack);
            self.recovery.set_flight_limit(limit);
        }
    }

    /// Ends what limited transmit allowed beyond the window. This happens after the measurements, so that the ACK that
    /// ends an episode is measured as part of it. True if the window was set.
    pub(super) fn end_disorder(&mut self, now: Instant, end: DisorderEnd) -> bool {
        let mut window = None;
        if self.recovery.is_disorder() {
            self.recovery.set_flight_limit(Bytes::ZERO);
            window = self.plugins.limited_transmit.on_disorder_end(&context!(self, now), end);
            if let Some(flight) = self.plugins.limited_transmit.newer_flight() {
                self.state.renew_flight_before_disorder(flight);
            }
        }
        if let Some(window) = window {
            self.state.set_window(&self.config, window);
        }
        self.state.end_limited_transmit();
        self.recovery.forget_filled_hole(self.board.first());
        window.is_some()
    }

    /// Asks the postponements once for each hole. The longest wait applies.
    fn must_wait(&mut self, now: Instant, hole: SegId) -> bool {
        if let Some(until) = self.recovery.postponed_until() {
            return until > now;
        }
        let cx: Context<'_> = context!(self, now);
        let waits = self.plugins.postponements.iter_mut().map(|p| p.may_enter(&cx, hole));
        let until = waits.filter_map(|entry| match entry {
            RecoveryEntry::Now => None,
            RecoveryEntry::At(at) => Some(at),
        });
        let until = until.max().filter(|until| *until > now);
        if let Some(until) = until {
            self.recovery.postpone(hole, until);
        }
        until.is_some()
    }

    /// Marks the latest transmission of `id` as lost and notifies the congestion control if it measures rates.
    pub(super) fn mark_lost(&mut self, now: Instant, id: SegId) {
        if self.board.mark_lost(id)
            && let Some(lost) = self.sampler.as_ref().and_then(|sampler| sampler.lost_segment(id, &self.board))
        {
            self.plugins.congestion_control.on_lost(&context!(self, now), &lost);
        }
    }
}
