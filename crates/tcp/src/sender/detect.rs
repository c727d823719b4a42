//! Step 8: loss detection, and the changes of phase.

use reknit_units::{Bytes, Instant, Segments};

use super::reaction::{Disorder, Reaction, Recovery};
use super::{Sender, context};
use crate::facts::{AckFacts, Context, Phase, Trigger, Turn};
use crate::scoreboard::SegId;
use crate::seams::{DisorderEnd, Entry, PluginSet, Verdicts, Why};

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
                self.set_cwnd(cwnd);
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
        self.state.postponed_until = self.postponed.map_or(Instant::ZERO, |(_, until)| until);
        let cx = context!(self, now);
        match ack {
            Some(ack) => self.plugins.loss_detector.on_ack(&cx, ack, &mut verdicts),
            None => self.plugins.loss_detector.on_timer(&cx, &mut verdicts),
        }
        if verdicts.probe_repaired_loss && !self.in_episode() {
            self.reduce(now, Trigger::Probe, self.board.first(), ack);
        }
        if verdicts.probe {
            self.probe_tail(now);
        }
        self.act_on_loss(now, &verdicts, ack)
    }

    /// The simulator reports that the latest transmission of `id` was lost.
    pub(crate) fn tell_lost(&mut self, now: Instant, id: SegId) {
        let mut verdicts = Verdicts::default();
        self.plugins.loss_detector.on_told(&context!(self, now), id, &mut verdicts);
        self.act_on_loss(now, &verdicts, None);
        self.transmit(now);
    }

    /// True if the loss detector must be told what the network lost.
    pub(crate) fn is_told(&self) -> bool {
        self.plugins.loss_detector.is_told()
    }

    /// Marks segments lost. Outside an episode this starts fast recovery, unless a postponement delays it.
    fn act_on_loss(&mut self, now: Instant, verdicts: &Verdicts, ack: Option<&AckFacts<'_>>) -> bool {
        let first_lost = verdicts.lost.first().map(|(hole, _)| *hole).filter(|_| !self.in_episode());
        let event = verdicts.event.or(first_lost);
        for &hole in &verdicts.withdrawn {
            self.withdraw(now, hole);
        }
        for &id in &verdicts.repairs {
            self.mark_lost(now, id);
            self.forced |= self.plugins.fast_recovery.retransmits_at_once(&context!(self, now));
        }
        if let Some(hole) = event {
            if self.must_wait(now, hole) {
                return false;
            }
            self.reduce(now, Trigger::FastRetransmit, hole, ack);
        }
        for &(id, why) in &verdicts.lost {
            self.forced |= why == Why::PartialAck;
            self.mark_lost(now, id);
        }
        for &id in &verdicts.originals_lost {
            self.board.mark_original_lost(id);
        }
        if event.is_some() {
            self.enter_recovery(now, ack);
        }
        if let Some(until) = verdicts.collapse {
            self.set_cwnd(self.state.smss);
            self.gate = until;
        }
        event.is_some()
    }

    fn enter_recovery(&mut self, now: Instant, ack: Option<&AckFacts<'_>>) {
        self.end_disorder(now, DisorderEnd::Recovery);
        self.enter(Reaction::Recovery(Recovery::default()));
        self.state.recover = self.state.snd_nxt;
        self.state.recovery_window = self.state.cwnd;
        self.forced = self.plugins.fast_recovery.retransmits_at_once(&context!(self, now));
        self.postponed = None;
        let cwnd = self.plugins.fast_recovery.enter(&context!(self, now), ack);
        self.set_cwnd(cwnd);
        self.plugins.on_turn(&context!(self, now), Turn::EnterRecovery);
    }

    /// The normal end of recovery, or of the time after a timeout. True if that set the window.
    fn leave_if_over(&mut self, now: Instant, ack: &AckFacts<'_>) -> bool {
        let cx = context!(self, now);
        match self.state.phase {
            Phase::Recovery if self.plugins.fast_recovery.is_over(&cx, ack) => {
                let cwnd = self.plugins.fast_recovery.exit(&cx);
                self.set_cwnd(cwnd);
                self.leave_episode();
                self.plugins.on_turn(&context!(self, now), Turn::LeaveRecovery);
                !self.plugins.fast_recovery.grows_on_exit()
            }
            // While it is undecided whether a timeout was spurious, the plug-in decides when this phase ends.
            Phase::Loss if self.state.snd_una >= self.state.recover && !self.is_probing_timeout() => {
                self.leave_episode();
                self.plugins.on_turn(&context!(self, now), Turn::LeaveRecovery);
                false
            }
            _ => false,
        }
    }

    fn count_duplicate(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if ack.duplicate && self.state.phase != Phase::Recovery {
            self.state.dup_acks += Segments(1);
        }
        if self.in_episode() {
            return;
        }
        let disorder = self.state.dup_acks > Segments::ZERO || self.board.sacked().segments > Segments::ZERO;
        match self.reaction {
            Reaction::Open if disorder => {
                self.state.flight_before_disorder = self.state.flight_size();
                self.enter(Reaction::Disorder(Disorder::default()));
            }
            Reaction::Disorder(_) if !disorder => self.enter(Reaction::Open),
            _ => {}
        }
        self.state.dup_thresh = self.plugins.dup_thresh.dup_thresh(&context!(self, now));
    }

    /// How far FlightSize may exceed cwnd during disorder.
    fn allow_limited_transmit(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if let Reaction::Disorder(disorder) = &mut self.reaction {
            disorder.flight_limit = self.plugins.limited_transmit.flight_limit(&context!(self, now), ack);
        }
    }

    /// Ends what limited transmit allowed beyond the window. This happens after the measurements, so that the ACK that
    /// ends an episode is measured as part of it. True if the window was set.
    pub(super) fn end_disorder(&mut self, now: Instant, end: DisorderEnd) -> bool {
        let window = match &mut self.reaction {
            Reaction::Disorder(disorder) => {
                disorder.flight_limit = Bytes::ZERO;
                self.plugins.limited_transmit.on_disorder_end(&context!(self, now), end)
            }
            _ => None,
        };
        if let Some(window) = window {
            self.set_window(window);
        }
        self.state.limited_transmit = Bytes::ZERO;
        if self.postponed.is_some_and(|(hole, _)| hole < self.board.first()) {
            self.postponed = None;
        }
        window.is_some()
    }

    /// Asks the postponements once for each hole. The longest wait applies.
    fn must_wait(&mut self, now: Instant, hole: SegId) -> bool {
        if let Some((_, until)) = self.postponed {
            return until > now;
        }
        let cx: Context<'_> = context!(self, now);
        let waits = self.plugins.postponements.iter_mut().map(|p| p.may_enter(&cx, hole));
        let until = waits.filter_map(|entry| match entry {
            Entry::Now => None,
            Entry::At(at) => Some(at),
        });
        self.postponed = until.max().filter(|until| *until > now).map(|until| (hole, until));
        self.postponed.is_some()
    }
}
