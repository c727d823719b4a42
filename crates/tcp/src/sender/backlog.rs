//! Work that would take too long for one event: an acknowledgment of more segments than [`AT_ONCE`], marks on more, or
//! sending more. `Sender::on_timer` continues it before any other timer. Owned by [`super::Sender`].
//!
//! It is done in parts, each in a separate event at the same time: the deadline of the sender is now until nothing is left.
//! So the owner of many connections can serve the others in between. An ACK of a hundred thousand segments becomes a few ACKs
//! in a row, as if the receiver had sent them.

use reknit_units::Instant;

use super::{AckInput, Sender};
use crate::experiment::ExperimentalOption;
use crate::scoreboard::{AT_ONCE, SegId};

/// Segments that are still to be marked.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Marking {
    /// A receiver has reneged: SACK marks from here on are removed.
    forget_from: Option<SegId>,
    /// The retransmission timer expired: segments from here on may be marked lost.
    lost_from: Option<SegId>,
}

/// What is left to do, and since when.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Backlog {
    since: Instant,
    /// An ACK that was processed in part.
    ack: Option<Box<AckInput>>,
    marking: Option<Box<Marking>>,
    /// How many more segments may be sent.
    to_send: u32,
    /// How many one event may send.
    most_to_send: u32,
}

impl Backlog {
    pub(super) fn new() -> Backlog {
        Backlog { since: Instant::ZERO, ack: None, marking: None, to_send: 0, most_to_send: AT_ONCE as u32 }
    }

    /// How many segments one event may send.
    pub(super) fn most_to_send(&self) -> u32 {
        self.most_to_send
    }

    /// From now on, one event may send `most` segments, if that is less than [`AT_ONCE`].
    pub(super) fn set_most_to_send(&mut self, most: u32) {
        self.most_to_send = most.clamp(1, AT_ONCE as u32);
    }

    /// When to continue: at once if anything is left. `board_reopens` while loss marks are being removed.
    pub(super) fn deadline(&self, board_reopens: bool) -> Instant {
        let is_left = board_reopens || self.marking.is_some() || self.ack.is_some() || self.to_send > 0;
        if is_left { self.since } else { Instant::NEVER }
    }

    /// True if no ACK and no marks are left.
    pub(super) fn is_empty(&self) -> bool {
        self.ack.is_none() && self.marking.is_none()
    }

    pub(super) fn has_ack(&self) -> bool {
        self.ack.is_some()
    }

    /// An ACK arrives while another is not completely processed: merges them. A SACK block that is lost in the merge is
    /// reported again, or its data is retransmitted.
    pub(super) fn merge_ack(&mut self, input: &AckInput) -> AckInput {
        match self.ack.take() {
            Some(left) if left.ack > input.ack => *left,
            Some(left) => AckInput { sack: input.sack.clone().or(left.sack), ..input.clone() },
            None => input.clone(),
        }
    }

    /// The rest of an ACK.
    fn push_ack(&mut self, now: Instant, rest: AckInput) {
        self.ack = Some(Box::new(rest));
        self.since = now;
    }

    /// `to_send` more segments may be sent in the next event.
    pub(super) fn set_to_send(&mut self, now: Instant, to_send: u32) {
        self.to_send = to_send;
        if to_send > 0 {
            self.since = now;
        }
    }

    /// Loss marks are being removed from the scoreboard.
    pub(super) fn note_reopening(&mut self, now: Instant) {
        self.since = now;
    }

    /// SACK marks from `from` on are still to be removed.
    pub(super) fn push_forgetting(&mut self, now: Instant, from: SegId) {
        self.marking.get_or_insert_default().forget_from = Some(from);
        self.since = now;
    }

    /// It is still to be decided which segments from `from` on are lost by the timeout.
    pub(super) fn push_lost(&mut self, now: Instant, from: SegId) {
        self.marking.get_or_insert_default().lost_from = Some(from);
        self.since = now;
    }
}

impl Sender {
    /// Does the next part of the backlog. False if there was nothing to do. Called first by `on_timer`.
    pub(super) fn process_backlog(&mut self, now: Instant) -> bool {
        if !self.has_backlog() {
            return false;
        }
        if self.board.reopens() {
            self.reopen(now);
            self.transmit(now);
        } else if let Some(marking) = self.backlog.marking.take() {
            self.continue_marking(now, *marking);
        } else if let Some(ack) = self.backlog.ack.take() {
            self.process_ack(now, &ack);
        } else {
            let burst = self.backlog.to_send;
            self.send_rest(now, burst);
        }
        true
    }

    fn continue_marking(&mut self, now: Instant, marking: Marking) {
        if let Some(from) = marking.forget_from {
            self.backlog.marking = marking.lost_from.map(|_| Box::new(Marking { forget_from: None, ..marking }));
            self.forget_sacks_from(now, from);
        } else if let Some(from) = marking.lost_from {
            if self.recovery.is_loss() {
                self.mark_outstanding_lost(now, from);
            }
            self.transmit(now);
        }
    }

    /// Processes as much of an ACK as one event may, and leaves the rest. Called by `on_ack` and, for the rest,
    /// `process_backlog`.
    pub(super) fn process_ack(&mut self, now: Instant, input: &AckInput) {
        if self.board.reopens() {
            self.backlog.push_ack(now, input.clone());
            return;
        }
        let part = self.board.end_of_first(AT_ONCE).filter(|end| input.ack > *end);
        if let Some(end) = part {
            let part = AckInput { ack: end, sack: None, experiment: ExperimentalOption::default(), ..input.clone() };
            self.run_pipeline(now, &part);
            self.backlog.push_ack(now, input.clone());
        } else if !self.run_pipeline(now, input) {
            let mut rest = input.clone();
            if let Some(report) = &mut rest.sack {
                report.dsack = None; // it has been counted
            }
            self.backlog.push_ack(now, rest);
        }
    }

    /// Removes the next part of the loss marks that are to be removed. Until all are, nothing is sent, because the pipe
    /// seems too small.
    pub(super) fn reopen(&mut self, now: Instant) {
        self.board.reopen(AT_ONCE);
        self.backlog.note_reopening(now);
    }

    /// Removes the SACK marks from `from` on, because the receiver has reneged.
    pub(super) fn forget_sacks_from(&mut self, now: Instant, from: SegId) {
        if let Some(next) = self.board.forget_sacks(from, AT_ONCE) {
            self.backlog.push_forgetting(now, next);
        }
    }
}
