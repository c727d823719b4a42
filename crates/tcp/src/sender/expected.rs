//! The fast path of an ACK that arrives while all goes well: it acknowledges whole segments (at most 2048), all of which were sent
//! once, without SACK blocks and ECN echo; the sender is in Open, nothing is SACKed, lost or retransmitted, and no earlier ACK,
//! window probe or withheld segment is pending. Most ACKs of a transfer without reordering are of this kind.
//!
//! [`Sender::on_ack`] asks for each ACK whether it is such an ACK, and then calls [`Sender::run_fast_path`] instead of the pipeline of
//! [`super::ack`]. It runs the same numbered steps without those parts that need SACK blocks, an ECN echo, a duplicate, a
//! retransmission or another state than Open. `choose_order` is left out: it would choose to retransmit first, which is the order
//! after each `transmit`. Tests compare it with the pipeline ([`crate::proof`]).

use std::mem;

use reknit_units::{Instant, Segments};

use super::rate::add_losses;
use super::{AckInput, Sender, context};
use crate::facts::AckFacts;
use crate::proof::{self, FastPath};

impl Sender {
    /// The number of segments that `input` acknowledges, if it is expected.
    pub(super) fn expected(&self, input: &AckInput) -> Option<usize> {
        let is_plain = input.ack > self.state.snd_una && input.sack.is_none() && !input.ece;
        let is_undisturbed = self.recovery.is_open() && self.board.is_undisturbed();
        let nothing_is_pending =
            self.backlog.is_empty() && self.withholder.is_none() && !self.timers.is_probing_window();
        if is_plain && is_undisturbed && nothing_is_pending && !proof::takes_slow_path() {
            return self.board.sent_once_until(input.ack);
        }
        None
    }

    /// Steps 2 to 10 for an expected ACK of the first `segments` segments.
    pub(super) fn run_fast_path(&mut self, now: Instant, input: &AckInput, segments: usize) {
        proof::note_fast_path(FastPath::SentOnce);
        let mut newly = mem::take(&mut self.newly);
        newly.clear();
        self.update_window(now, input.window_update()); // step 2
        let (in_flight_before, lost_before) = (self.board.pipe().bytes, self.board.lost_so_far());
        let (una_before, flight_before) = (self.state.snd_una, self.state.flight_size());
        self.board.acknowledge_first(segments, now, &mut newly); // step 3
        let mut ack = AckFacts {
            ack: input.ack,
            una_before,
            flight_before,
            stale: false,
            newly: &newly,
            newly_sacked: Segments::ZERO,
            delivered: input.ack.since(una_before),
            highest: newly.last().copied(),
            duplicate: false,
            dsack: None,
            echoed: input.echoed(now),
            ece: false,
            experiment: input.experiment,
            reordering: None,
            rtt: None,
            rtt_sample: None,
            rate: None,
        };
        self.advance(now, &ack); // also step 3
        let spurious = self.judge_last_reduction(now, &ack); // step 4
        self.tell_of_order(now, &ack); // step 5
        let newest = ack.highest.and_then(|id| self.board.get(id));
        let rtt = newest.map(|record| now.since(record.last_sent));
        self.measure_rtt(now, &mut ack, rtt, input.echo_age); // step 6
        self.sample_rate(now, &mut ack, in_flight_before);
        self.restart_rto_timer(now); // also step 6
        self.decide_on_undo(now, &ack);
        self.undo_earlier(now, &ack); // step 7
        let undo_allows_growth = spurious.is_none_or(|spurious| self.respond_to_spurious(now, &ack, spurious));
        // Of step 8, what the pipeline does while nothing is missing.
        self.state.end_limited_transmit();
        self.recovery.forget_filled_hole(self.board.first());
        self.state.set_dup_thresh(self.plugins.dup_thresh.dup_thresh(&context!(self, now)));
        self.ask_detector(now, Some(&ack)); // step 8
        add_losses(&mut ack, &self.board, lost_before);
        self.grow_window(now, &ack, undo_allows_growth && !self.state.is_frozen(now)); // step 9
        self.count(&ack);

        self.newly = newly;
        self.retire(now);
        self.transmit_and_refill(now); // step 10
        debug_assert_eq!(self.board.check(), Ok(()));
    }
}
