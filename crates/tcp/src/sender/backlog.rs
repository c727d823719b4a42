//! Work that would take too long for one event: an acknowledgment of more segments than [`AT_ONCE`], marks on more, or
//! sending more.
//!
//! It is done in parts, each of them an event of its own at the same time: the deadline of the sender is now, until
//! nothing is left. So an owner of many connections can serve the others in between. An ACK of a hundred thousand
//! segments becomes a few ACKs in a row, as if the receiver had sent them.

use reknit_units::Instant;

use super::reaction::{Loss, Reaction};
use super::{AckInput, Sender};
use crate::experiment::Experiment;
use crate::scoreboard::{AT_ONCE, SegId};

/// What is left to do, and since when.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    since: Instant,
    /// An ACK that was processed in part.
    ack: Option<Box<AckInput>>,
    marking: Option<Box<Marking>>,
    /// How many more segments may be sent.
    to_send: u32,
}

/// Segments that are still to be marked.
#[derive(Clone, Copy, Debug, Default)]
struct Marking {
    /// A receiver has reneged: SACK marks from here on are removed.
    forget_from: Option<SegId>,
    /// The retransmission timer expired: segments from here on may be marked lost.
    give_up_from: Option<SegId>,
}

impl Sender {
    /// When to go on: at once if anything is left.
    pub(super) fn backlog_due(&self) -> Instant {
        let Backlog { since, ack, marking, to_send } = &self.backlog;
        let is_left = self.board.reopens() || marking.is_some() || ack.is_some() || *to_send > 0;
        if is_left { *since } else { Instant::NEVER }
    }

    /// Does the next part. False if there was nothing to do.
    pub(super) fn work_off(&mut self, now: Instant) -> bool {
        if !self.backlog_due().is_set() {
            return false;
        }
        if self.board.reopens() {
            self.reopen(now);
            self.transmit(now);
        } else if let Some(marking) = self.backlog.marking.take() {
            self.go_on_marking(now, *marking);
        } else if let Some(ack) = self.backlog.ack.take() {
            self.process_ack(now, &ack);
        } else {
            let burst = self.backlog.to_send;
            self.send_rest(now, burst);
        }
        true
    }

    fn go_on_marking(&mut self, now: Instant, marking: Marking) {
        if let Some(from) = marking.forget_from {
            self.backlog.marking = marking.give_up_from.map(|_| Box::new(Marking { forget_from: None, ..marking }));
            self.forget_sacks_from(now, from);
        } else if let Some(from) = marking.give_up_from {
            if matches!(self.reaction, Reaction::Loss(Loss { probing: None })) {
                self.give_up(now, from);
            }
            self.transmit(now);
        }
    }

    /// Processes as much of an ACK as one event may; the rest is left.
    pub(super) fn process_ack(&mut self, now: Instant, input: &AckInput) {
        if self.board.reopens() {
            self.leave_ack(now, input.clone());
            return;
        }
        let part = self.board.end_of_first(AT_ONCE).filter(|end| input.ack > *end);
        if let Some(end) = part {
            let part = AckInput { ack: end, sack: None, experiment: Experiment::default(), ..input.clone() };
            self.run_pipeline(now, &part);
            self.leave_ack(now, input.clone());
        } else if !self.run_pipeline(now, input) {
            let mut rest = input.clone();
            if let Some(report) = &mut rest.sack {
                report.dsack = None; // it has been counted
            }
            self.leave_ack(now, rest);
        }
    }

    /// An ACK arrives while another is not completely processed: they become one. A SACK block that is lost thereby is
    /// reported again, or its data is retransmitted.
    pub(super) fn merge_acks(&mut self, input: &AckInput) -> AckInput {
        match self.backlog.ack.take() {
            Some(left) if left.ack > input.ack => *left,
            Some(left) => AckInput { sack: input.sack.clone().or(left.sack), ..input.clone() },
            None => input.clone(),
        }
    }

    pub(super) fn has_ack_left(&self) -> bool {
        self.backlog.ack.is_some()
    }

    fn leave_ack(&mut self, now: Instant, rest: AckInput) {
        self.backlog.ack = Some(Box::new(rest));
        self.backlog.since = now;
    }

    /// `to_send` more segments may be sent in the next event.
    pub(super) fn leave_sending(&mut self, now: Instant, to_send: u32) {
        self.backlog.to_send = to_send;
        if to_send > 0 {
            self.backlog.since = now;
        }
    }

    /// Removes the next part of the loss marks that are to be removed. Until all are, nothing is sent, because the pipe
    /// seems too small.
    pub(super) fn reopen(&mut self, now: Instant) {
        self.board.reopen(AT_ONCE);
        self.backlog.since = now;
    }

    pub(super) fn leave_forgetting(&mut self, now: Instant, from: SegId) {
        self.backlog.marking.get_or_insert_default().forget_from = Some(from);
        self.backlog.since = now;
    }

    pub(super) fn leave_giving_up(&mut self, now: Instant, from: SegId) {
        self.backlog.marking.get_or_insert_default().give_up_from = Some(from);
        self.backlog.since = now;
    }
}
