//! Was the last reduction needless? If so, what the window becomes.

use reknit_units::{Bytes, Instant};

use super::{Sender, context};
use crate::config::DecreaseOf;
use crate::facts::{AckFacts, Phase, Snapshot, Spurious, Trigger, Turn};
use crate::scoreboard::SegId;
use crate::seq::Offset;
use crate::stats::Cut;

impl Sender {
    /// Step 4: every detector sees the ACK; the first verdict of an episode wins.
    ///
    /// An ECN echo on the deciding ACK is a congestion signal of its own, so it blocks the undo (RFC 4015 §3, step 9,
    /// applied to every response).
    pub(super) fn judge_last_reduction(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Spurious> {
        let mut verdict = None;
        for detector in &mut self.plugins.spurious_detectors {
            let says = detector.on_ack(&context!(self, now), ack, self.snapshot.as_ref());
            verdict = verdict.or(says);
        }
        let spurious = verdict.filter(|_| self.snapshot.is_some() && !ack.ece)?;
        self.stats.spurious_cuts += 1;
        self.plugins.on_turn(&context!(self, now), Turn::Spurious(spurious));
        Some(spurious)
    }

    /// Step 7: back to [`Phase::Open`], as if the reduction had not been. Fast retransmit is allowed again.
    pub(super) fn respond_to_spurious(&mut self, now: Instant, ack: &AckFacts<'_>, spurious: Spurious) {
        let Some(snapshot) = self.snapshot.take() else { return };
        let window = self.plugins.spurious_response.respond(&context!(self, now), ack, spurious, &snapshot);
        self.board.clear_lost();
        self.leave_episode();
        self.state.recover = self.state.snd_una;
        if let Some(window) = window {
            self.stats.undos += 1;
            self.plugins.congestion_control.restore(&context!(self, now));
            self.set_window(window);
        }
    }

    /// Reduces the window as the loss response says, and keeps what was there before.
    ///
    /// A timeout in the middle of a recovery keeps the older window: otherwise its undo would restore only half.
    pub(super) fn reduce(&mut self, now: Instant, trigger: Trigger, hole: SegId) {
        let flight_size = self.reducible_flight();
        let before = match (trigger, self.snapshot) {
            (Trigger::Timeout, Some(earlier)) if self.in_episode() => (earlier.cwnd, earlier.ssthresh),
            _ => {
                self.plugins.congestion_control.save();
                (self.state.cwnd, self.state.ssthresh)
            }
        };
        self.snapshot = Some(Snapshot {
            trigger,
            at: now,
            cwnd: before.0,
            ssthresh: before.1,
            flight_size,
            dup_acks: self.state.dup_acks,
            hole,
            snd_nxt: self.state.snd_nxt,
        });
        let reduced_from = match self.config.decrease_of {
            DecreaseOf::FlightSize => flight_size,
            DecreaseOf::Cwnd => self.state.cwnd,
        };
        let cx = context!(self, now);
        let congestion = self.plugins.congestion_control.as_mut();
        let window = self.plugins.loss_response.respond(&cx, trigger, reduced_from, congestion);
        if let Some(window) = window {
            self.set_window(window);
            self.stats.cuts.count(trigger);
            self.stats.last_cut = self.board.get(hole).map(|record| Cut {
                trigger,
                at: now,
                position: record.start.since(Offset::DATA).0,
                transmissions: record.transmissions,
            });
        }
    }

    /// The FlightSize that a reduction starts from (RFC 5681 eq. 4), without what limited transmit sent. Outside an
    /// episode whatever exceeds cwnd was sent that way, in this disorder or an earlier one.
    fn reducible_flight(&self) -> Bytes {
        let flight_size = self.state.flight_size() - self.state.limited_transmit;
        if self.in_episode() { flight_size } else { flight_size.min(self.state.cwnd) }
    }

    /// RFC 3168 §6.1.2: an echo reduces the window as a loss would, at most once per round trip.
    pub(super) fn respond_to_ecn(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if !ack.ece || !self.config.ecn || self.state.snd_una < self.ecn_recover || self.in_episode() {
            return;
        }
        self.ecn_recover = self.state.snd_nxt + Bytes(1);
        self.send_cwr = true;
        self.reduce(now, Trigger::Ecn, self.board.first());
        self.snapshot = None;
    }

    pub(super) fn in_episode(&self) -> bool {
        matches!(self.state.phase, Phase::Recovery | Phase::Loss)
    }
}
