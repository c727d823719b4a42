//! Was the last reduction spurious? If so, what the window becomes.

use reknit_units::{Bytes, Instant};

use super::{Sender, context};
use crate::config::DecreaseOf;
use crate::facts::{AckFacts, Phase, Snapshot, Spurious, Trigger, Turn};
use crate::scoreboard::SegId;
use crate::seams::{LossMarks, Reduction};
use crate::seq::Offset;
use crate::stats::Cut;

impl Sender {
    /// Step 4: every detector sees the ACK; the first verdict of an episode wins.
    ///
    /// An ECN echo on the deciding ACK is a congestion signal of its own, so it blocks the undo (RFC 4015 §3, step 9,
    /// applied to every response). What a timeout wrongly gave up is not retransmitted even so (its
    /// step 8).
    pub(super) fn judge_last_reduction(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Spurious> {
        let mut verdict = None;
        for detector in &mut self.plugins.spurious_detectors {
            let says = detector.on_ack(&context!(self, now), ack);
            verdict = verdict.or(says);
        }
        let verdict = verdict.or(self.step_timeout_recovery(now, ack));
        let frozen_until = self.plugins.spurious_detectors.iter().map(|detector| detector.frozen_until()).max();
        self.state.frozen_until = frozen_until.unwrap_or(Instant::ZERO);
        let counts = |spurious: &Spurious| !ack.ece || *spurious == Spurious::Timeout;
        let spurious = verdict.filter(|spurious| self.state.snapshot.is_some() && counts(spurious))?;
        self.stats.spurious_cuts += 1;
        self.plugins.on_turn(&context!(self, now), Turn::Spurious(spurious));
        Some(spurious)
    }

    /// Step 7: back to [`Phase::Open`], as if the reduction had not been, if its episode still goes on. Fast retransmit is
    /// allowed again. A response may have fast recovery go on instead.
    pub(super) fn respond_to_spurious(&mut self, now: Instant, ack: &AckFacts<'_>, spurious: Spurious) {
        let Some(snapshot) = self.state.snapshot else { return };
        let undo = self.plugins.spurious_response.respond(&context!(self, now), ack, spurious, &snapshot);
        if !undo.stays_open {
            self.state.snapshot = None;
        }
        if undo.ends_back_off {
            self.backoff = 0;
            self.restart_rto_timer(now);
        }
        if let Some(expiry) = &mut self.last_expiry {
            expiry.reduced = false; // a further timeout is a signal of its own
        }
        let goes_on = undo.goes_on && self.state.phase == Phase::Recovery;
        if !goes_on {
            match undo.marks {
                LossMarks::ClearWaiting => self.board.clear_lost(),
                LossMarks::ClearAll => self.board.clear_all_lost(),
                LossMarks::Keep => {}
            }
            // The news may come after the episode, in the middle of another disorder, which goes on.
            if self.in_episode() {
                self.leave_episode();
            }
            self.state.recover = Offset::SYN; // duplicates of this very ACK may tell of a loss
        }
        if let Some(window) = undo.window.filter(|_| !ack.ece) {
            if !undo.stays_reduced {
                self.stats.undos += 1;
                self.plugins.congestion_control.restore(&context!(self, now));
            }
            self.set_window(window);
            if goes_on {
                self.state.recovery_window = self.state.cwnd;
            }
        }
    }

    /// Reduces the window as the loss response says, and keeps what was there before. `ack` is what told of the
    /// congestion, none if a timer did.
    ///
    /// ECN: one window of data reduces once, whether it was marked, lost or both (RFC 3168 §6.1.2).
    pub(super) fn reduce(&mut self, now: Instant, trigger: Trigger, hole: SegId, ack: Option<&AckFacts<'_>>) {
        if trigger != Trigger::Timeout && self.state.snd_una < self.ecn_recover {
            self.state.snapshot = None;
            return;
        }
        if self.is_frozen(now) {
            return;
        }
        let flight_size = self.reducible_flight(ack);
        let snapshot = self.take_snapshot(now, trigger, hole, flight_size);
        self.state.snapshot = Some(snapshot);
        let reduction = Reduction {
            trigger,
            hole,
            flight_size: match self.config.decrease_of {
                DecreaseOf::FlightSize => flight_size,
                DecreaseOf::Cwnd => self.within_recovery(self.state.cwnd),
            },
        };
        let cx = context!(self, now);
        let congestion = self.plugins.congestion_control.as_mut();
        if self.by_model {
            congestion.ssthresh(&cx, &reduction);
        } else {
            let Some(window) = self.plugins.loss_response.respond(&cx, &reduction, congestion) else { return };
            self.set_window(window);
        }
        self.count_cut(now, trigger, hole);
        if self.state.ecn {
            self.ecn_recover = self.state.snd_nxt;
            self.send_cwr = true;
        }
    }

    /// The window as it is, for an undo. A timeout in the middle of a recovery keeps the older one: otherwise its undo
    /// would restore only half.
    fn take_snapshot(&mut self, now: Instant, trigger: Trigger, hole: SegId, flight_size: Bytes) -> Snapshot {
        let earlier = self.state.snapshot.filter(|_| trigger == Trigger::Timeout && self.in_episode());
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
        }
    }

    fn count_cut(&mut self, now: Instant, trigger: Trigger, hole: SegId) {
        self.stats.cuts.count(trigger);
        self.stats.last_cut = self.board.get(hole).map(|record| Cut {
            trigger,
            at: now,
            position: record.start.since(Offset::DATA).0,
            transmissions: record.transmissions,
        });
    }

    /// The FlightSize that a reduction starts from (RFC 5681 eq. 4), without what limited transmit sent. What the ACK at
    /// hand has just released still met the congestion. Outside an episode whatever exceeds cwnd was sent by limited
    /// transmit, in this disorder or an earlier one.
    fn reducible_flight(&self, ack: Option<&AckFacts<'_>>) -> Bytes {
        if self.in_episode() {
            return self.within_recovery(self.state.flight_size());
        }
        let flight_size = ack.map_or(self.state.flight_size(), |ack| ack.flight_before);
        (flight_size - self.state.limited_transmit).min(self.state.cwnd)
    }

    /// A timeout in fast recovery: FlightSize counts what has arrived above the holes, and an inflated cwnd too. What the
    /// network held is what recovery was to end with.
    fn within_recovery(&self, window: Bytes) -> Bytes {
        if self.state.phase == Phase::Recovery { window.min(self.state.recovery_window) } else { window }
    }

    /// RFC 3168 §6.1.2: an echo reduces the window as a loss would, at most once per round trip. An echo by an ACK of
    /// data that was sent before the last reduction is no news.
    pub(super) fn respond_to_ecn(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if ack.ece && self.state.ecn && ack.ack > self.ecn_recover && !self.in_episode() && !self.is_frozen(now) {
            let smallest = self.state.cwnd <= self.state.smss;
            self.reduce(now, Trigger::Ecn, self.board.first(), Some(ack));
            self.state.snapshot = None;
            if smallest {
                // Less than a segment per round trip: the next one waits for the timer.
                self.gate = now + self.patience();
            }
        }
    }
}
