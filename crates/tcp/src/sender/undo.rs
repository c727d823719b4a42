//! Decides whether a reduction was spurious and undoes it: steps 4 and 7. Also makes the reductions, for loss detection
//! (step 8), ECN (step 9) and timeouts.

use reknit_units::{Bytes, Instant};

use super::recovery::Event;
use super::{Sender, context};
use crate::config::DecreaseOf;
use crate::facts::{AckFacts, Phase, RecoveryEvent, Snapshot, Spurious, Trigger, Window};
use crate::scoreboard::SegId;
use crate::seams::{LossMarks, PluginSet, Reduction};
use crate::seq::Offset;
use crate::stats::Cut;

impl Sender {
    /// Step 4: every detector sees the ACK, and the first verdict of an episode applies.
    ///
    /// An ECN echo on the deciding ACK is a separate congestion signal, so it blocks the undo (RFC 4015 §3, step 9,
    /// applied to every response). So does a reduction that was final. What a timeout wrongly marked lost is still not
    /// retransmitted (step 8).
    pub(super) fn judge_last_reduction(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Spurious> {
        if self.plugins.spurious_detectors.is_empty() && !self.recovery.is_undecided() {
            return None;
        }
        let mut verdict = None;
        for detector in &mut self.plugins.spurious_detectors {
            let says = detector.on_ack(&context!(self, now), ack);
            verdict = verdict.or(says);
        }
        let verdict = verdict.or(self.step_timeout_recovery(now, ack));
        let frozen_until = self.plugins.spurious_detectors.iter().map(|detector| detector.frozen_until()).max();
        self.state.freeze_until(frozen_until.unwrap_or(Instant::ZERO));
        let snapshot = self.state.snapshot?;
        let restores = !ack.ece && !snapshot.is_final;
        let spurious = verdict.filter(|spurious| restores || *spurious == Spurious::Timeout)?;
        self.stats.spurious_cuts += 1;
        self.plugins.on_recovery_event(&context!(self, now), RecoveryEvent::Spurious(spurious));
        Some(spurious)
    }

    /// Step 7, after [`Sender::undo_earlier`]: returns to [`Phase::Open`] if the episode of the spurious reduction is not over.
    /// Fast retransmit is allowed again. A response may also let fast recovery continue.
    ///
    /// True if the window may grow on this ACK.
    pub(super) fn respond_to_spurious(&mut self, now: Instant, ack: &AckFacts<'_>, spurious: Spurious) -> bool {
        let Some(snapshot) = self.state.snapshot else { return false };
        let undo = self.plugins.spurious_response.respond(&context!(self, now), ack, spurious, &snapshot);
        if !undo.stays_open {
            self.state.set_snapshot(None);
            self.undoable.forget_last(snapshot.hole);
        }
        if undo.ends_back_off {
            self.timers.end_backoff();
            self.restart_rto_timer(now);
        }
        self.timers.forget_reduction();
        let continues_recovery = undo.continues_recovery && self.state.phase == Phase::Recovery;
        if !continues_recovery {
            match undo.marks {
                LossMarks::ClearWaiting => self.board.clear_lost(),
                LossMarks::ClearAll => self.board.clear_all_lost(),
                LossMarks::Keep => {}
            }
            self.reopen(now);
            // The verdict may come after the episode, during a later disorder, which continues.
            if self.recovery.in_episode() {
                self.leave_episode(Event::SpuriousReduction);
            }
            self.state.forget_recover(); // duplicates of this ACK may indicate a loss
        }
        if let Some(window) = undo.window.filter(|_| !ack.ece && !snapshot.is_final) {
            if !undo.stays_reduced {
                self.stats.undos += 1;
                self.plugins.congestion_control.restore(&context!(self, now));
            }
            self.state.set_window(&self.config, window);
            if continues_recovery {
                self.state.recover_to_cwnd();
            }
        }
        undo.grows
    }

    /// Also step 7: the ACK shows that a reduction before the last one was spurious. The response sees the window without that
    /// reduction. The later ones remain, and so does the phase.
    pub(super) fn undo_earlier(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if self.undoable.is_empty() || ack.ece {
            return;
        }
        let detectors = &mut self.plugins.spurious_detectors;
        let Some(hole) = detectors.iter_mut().find_map(|detector| detector.earlier()) else { return };
        let current = self.state.window_after_recovery();
        let Some(withdrawal) = self.undoable.withdraw(hole, current) else { return };
        self.stats.spurious_cuts += 1;
        if let Some(before) = withdrawal.before_last {
            self.state.restate_snapshot(before);
        }
        let snapshot = self.snapshot_of_earlier(now, hole, withdrawal.window);
        // In recovery cwnd follows the pipe; the response is about the window after it.
        let cwnd = self.state.replace_cwnd(current.cwnd);
        let response = &mut self.plugins.spurious_response;
        let undo = response.respond(&context!(self, now), ack, Spurious::FastRetransmit, &snapshot);
        self.state.replace_cwnd(cwnd);
        let Some(window) = undo.window.filter(|_| !undo.stays_reduced) else { return };
        self.stats.undos += 1;
        self.state.set_window_after_recovery(&self.config, window);
        if self.state.phase == Phase::Recovery {
            self.state.set_cwnd(&self.config, cwnd + (window.cwnd - current.cwnd));
        }
        if let Some(before) = withdrawal.before_last {
            self.plugins.congestion_control.on_earlier_undone(&context!(self, now), before.cwnd);
        }
    }

    /// What a response needs to know about an earlier reduction: the window that it would restore.
    fn snapshot_of_earlier(&self, now: Instant, hole: SegId, window: Window) -> Snapshot {
        Snapshot {
            trigger: Trigger::FastRetransmit,
            at: now,
            cwnd: window.cwnd,
            ssthresh: window.ssthresh,
            flight_size: window.cwnd,
            dup_acks: self.state.dup_acks,
            hole,
            snd_nxt: self.state.snd_nxt,
            retransmitted: 0,
            is_final: false,
        }
    }

    /// Saves the state and reduces the window as the loss response decides. `ack` is the ACK that signalled congestion; none if
    /// a timer did. Called before the phase changes.
    ///
    /// ECN: one window of data causes one reduction, whether it was marked, lost or both (RFC 3168 §6.1.2).
    pub(super) fn reduce(&mut self, now: Instant, trigger: Trigger, hole: SegId, ack: Option<&AckFacts<'_>>) {
        if trigger != Trigger::Timeout && self.ecn.was_reduced_for(self.state.snd_una) {
            self.state.set_snapshot(None);
            return;
        }
        if self.state.is_frozen(now) {
            return;
        }
        let flight_size = self.reducible_flight(ack);
        let snapshot = self.take_snapshot(now, trigger, hole, flight_size);
        self.state.set_snapshot(Some(snapshot));
        let reduction = Reduction {
            trigger,
            hole,
            flight_size: match self.config.decrease_of {
                DecreaseOf::FlightSize => flight_size,
                DecreaseOf::Cwnd => self.within_recovery(self.state.cwnd),
            },
        };
        let before = self.state.window_after_recovery();
        let cx = context!(self, now);
        let congestion = self.plugins.congestion_control.as_mut();
        if self.state.is_model_based() {
            congestion.ssthresh(&cx, &reduction);
        } else {
            let Some(window) = self.plugins.loss_response.respond(&cx, &reduction, congestion) else { return };
            self.state.set_window(&self.config, window);
            match trigger {
                Trigger::FastRetransmit if self.keeps_reductions_open() && self.state.may_undo => {
                    self.undoable.push(hole, before, self.state.cwnd);
                }
                _ => self.undoable.close(),
            }
        }
        self.plugins.undo_limit.on_reduced(&context!(self, now), trigger);
        self.count_cut(now, trigger, hole);
        if self.state.ecn {
            self.ecn.note_reduction(self.state.snd_nxt);
        }
    }

    /// The loss detector reports that the reduction for `hole` was spurious. Called first in `act_on_loss` (step 8).
    pub(super) fn withdraw(&mut self, now: Instant, hole: SegId) {
        let window = self.state.window_after_recovery();
        let Some(withdrawal) = self.undoable.withdraw(hole, window) else { return };
        self.stats.spurious_cuts += 1;
        self.stats.undos += 1;
        self.plugins.on_recovery_event(&context!(self, now), RecoveryEvent::Spurious(Spurious::FastRetransmit));
        let is_last = withdrawal.before_last.is_none();
        if is_last {
            self.state.set_snapshot(None);
            if self.state.phase == Phase::Recovery {
                self.leave_episode(Event::SpuriousReduction);
                self.state.forget_recover();
            }
            self.plugins.congestion_control.restore(&context!(self, now));
        }
        self.state.set_window_after_recovery(&self.config, withdrawal.window);
        if let Some(before) = withdrawal.before_last {
            self.plugins.congestion_control.on_earlier_undone(&context!(self, now), before.cwnd);
        }
    }

    fn keeps_reductions_open(&self) -> bool {
        self.traits.loss_detector.withdraws || self.traits.judges_earlier
    }

    /// The current window, for an undo. A timeout during a recovery keeps the older snapshot: otherwise its undo would
    /// restore only half of the window.
    fn take_snapshot(&mut self, now: Instant, trigger: Trigger, hole: SegId, flight_size: Bytes) -> Snapshot {
        let earlier = self.state.snapshot.filter(|_| trigger == Trigger::Timeout && self.recovery.in_episode());
        if earlier.is_none() {
            self.plugins.congestion_control.save();
        }
        Snapshot {
            trigger,
            at: now,
            cwnd: earlier.map_or(self.state.cwnd, |earlier| earlier.cwnd),
            ssthresh: earlier.map_or(self.state.ssthresh, |earlier| earlier.ssthresh),
            flight_size,
            dup_acks: self.state.dup_acks,
            hole,
            snd_nxt: self.state.snd_nxt,
            retransmitted: earlier.map_or(0, |earlier| earlier.retransmitted),
            is_final: !self.state.may_undo || earlier.is_some_and(|earlier| earlier.is_final),
        }
    }

    fn count_cut(&mut self, now: Instant, trigger: Trigger, hole: SegId) {
        self.stats.cuts.count(trigger);
        self.stats.last_cut = self.board.get(hole).map(|record| Cut {
            trigger,
            at: now,
            position: record.start.since(Offset::DATA).0,
            transmissions: record.copies(),
        });
    }

    /// The FlightSize from which a reduction starts (RFC 5681 eq. 4), without what limited transmit sent. Data that the
    /// current ACK has just acknowledged still counts. Outside an episode, whatever exceeds cwnd was sent by limited
    /// transmit, in this disorder or an earlier one.
    fn reducible_flight(&self, ack: Option<&AckFacts<'_>>) -> Bytes {
        if self.recovery.in_episode() {
            return self.within_recovery(self.state.flight_size());
        }
        let flight_size = ack.map_or(self.state.flight_size(), |ack| ack.flight_before);
        (flight_size - self.state.limited_transmit).min(self.state.cwnd)
    }

    /// For a timeout in fast recovery. FlightSize includes data that has arrived above the holes, and cwnd may be
    /// inflated, so the window that recovery was meant to end with is used.
    fn within_recovery(&self, window: Bytes) -> Bytes {
        if self.state.phase == Phase::Recovery { window.min(self.state.recovery_window) } else { window }
    }

    /// Step 9, after the growth. RFC 3168 §6.1.2: an echo reduces the window like a loss, at most once per round trip. An echo on
    /// an ACK of data that was sent before the last reduction is ignored.
    pub(super) fn respond_to_ecn(&mut self, now: Instant, ack: &AckFacts<'_>) {
        let is_signal = ack.ece && self.state.ecn && self.ecn.is_new_congestion(ack.ack);
        if is_signal && !self.recovery.in_episode() && !self.state.is_frozen(now) {
            let smallest = self.state.cwnd <= self.state.smss;
            self.reduce(now, Trigger::Ecn, self.board.first(), Some(ack));
            self.state.set_snapshot(None);
            if smallest {
                // Less than one segment per round trip: the next segment waits for the timer.
                self.timers.pause_until(now + self.state.rto_or_substitute(&self.config));
            }
        }
    }
}
