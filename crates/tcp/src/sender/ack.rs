//! The ACK pipeline. The order of its steps matters: first whether the last reduction was spurious, then reordering,
//! RTT, the response, and loss detection, so that loss detection uses the newest threshold while the earlier steps see
//! the window as it was before this ACK.
//!
//! The steps are numbered as in `docs/design/architecture.md`; a line without a number belongs to none of them. Step 1 is done
//! by the connection, which checks the segment, reads its SACK blocks and then calls [`Sender::on_ack`].

use std::mem;
use std::ops::Range;

use reknit_units::{Bytes, Duration, Instant, Segments};

use super::constraints::Order;
use super::rate::add_losses;
use super::rtt::Delivered;
use super::{SackReport, Sender, context};
use crate::experiment::{ExperimentalOption, Features};
use crate::facts::{AckFacts, Dsack, Phase, RateSample, TIMESTAMP_TICK};
use crate::proof;
use crate::scoreboard::{AT_ONCE, Duplicate, Scoreboard, SegId};
use crate::seq::Offset;

/// A segment's acknowledgment, checked (RFC 9293 §3.10.7.4) and converted to offsets.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AckInput {
    pub(crate) ack: Offset,
    /// The sequence number of the segment that carried it, for the window update.
    pub(crate) seq: Offset,
    /// The peer's window, scaled.
    pub(crate) wnd: Bytes,
    /// No payload, no SYN, no FIN: only such a segment can be a duplicate ACK without SACK.
    pub(crate) pure: bool,
    pub(crate) sack: Option<SackReport>,
    /// The age of the echoed timestamp.
    pub(crate) echo_age: Option<Duration>,
    pub(crate) ece: bool,
    pub(crate) experiment: ExperimentalOption,
}

/// The window of a segment, with its numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowUpdate {
    pub(crate) seq: Offset,
    pub(crate) ack: Offset,
    pub(crate) wnd: Bytes,
}

impl AckInput {
    pub(super) fn window_update(&self) -> WindowUpdate {
        WindowUpdate { seq: self.seq, ack: self.ack, wnd: self.wnd }
    }

    /// When the echoed timestamp was set.
    pub(super) fn echoed(&self, now: Instant) -> Option<Instant> {
        self.echo_age.map(|age| now.floor_to(TIMESTAMP_TICK) - age)
    }
}

/// How late an original can come, for detectors that withdraw reductions: half of RFC 9293's maximum segment lifetime.
const MAXIMUM_LATENESS: Duration = Duration::from_secs(60);

impl Sender {
    /// An ACK: called by the connection after step 1. The slow path goes through [`super::backlog`], which runs the pipeline, in
    /// parts if the ACK is large.
    pub(crate) fn on_ack(&mut self, now: Instant, input: &AckInput) {
        if self.withholder.as_mut().is_some_and(|withholder| withholder.is_optimistic(input, &self.board)) {
            // The connection ends: see `has_detected_optimistic_ack`.
        } else if self.is_redundant(input) {
            self.on_repeated_ack(now, input.window_update());
        } else if let Some(segments) = self.expected(input) {
            self.run_fast_path(now, input, segments);
        } else if self.backlog.has_ack() {
            let merged = self.backlog.merge_ack(input);
            self.process_ack(now, &merged);
        } else {
            self.process_ack(now, input);
        }
    }

    /// The ACK repeats the one before, at an end that has only received.
    pub(crate) fn on_repeated_ack(&mut self, now: Instant, update: WindowUpdate) {
        self.update_window(now, update);
        self.stats.acks += 1;
    }

    /// Steps 2 to 10. False if a part of the SACK blocks is left for another event. Called by `process_ack`, in parts for an ACK
    /// of very many segments.
    pub(super) fn run_pipeline(&mut self, now: Instant, input: &AckInput) -> bool {
        let mut newly = mem::take(&mut self.newly);
        let mut duplicates = Vec::new();
        newly.clear();

        let window_changed = self.update_window(now, input.window_update()); // step 2
        let (in_flight_before, lost_before) = (self.board.pipe().bytes, self.board.lost_so_far());
        let none_sacked = self.board.sacked().segments == Segments::ZERO;
        let (newly_sacked, is_complete) = self.update_scoreboard(now, input, &mut newly); // step 3
        let dsack = self.report_duplicate(now, input, &mut duplicates); // also step 3
        self.release_withheld(now);
        let delivered = Delivered::of(&newly, &self.board);
        let una_before = self.state.snd_una;
        let mut ack = AckFacts {
            ack: input.ack,
            una_before,
            flight_before: self.state.flight_size(),
            stale: input.ack < una_before,
            newly: &newly,
            newly_sacked,
            delivered: delivered.bytes,
            highest: self.highest(),
            duplicate: self.is_duplicate(input, newly_sacked, window_changed),
            dsack: dsack.map(|range| Dsack {
                left: range.start,
                right: range.end,
                segments: &duplicates,
                ack_loss: none_sacked && range.start == una_before,
            }),
            echoed: input.echoed(now),
            ece: input.ece,
            experiment: input.experiment,
            reordering: None,
            rtt: None,
            rtt_sample: None,
            rate: None,
        };
        self.advance(now, &ack); // also step 3
        // Until F-RTO has decided, it controls the window, which must not grow in addition.
        let timeout_was_undecided = self.recovery.is_undecided();
        let spurious = self.judge_last_reduction(now, &ack); // step 4
        self.measure_reordering(now, &mut ack); // step 5
        let rtt = delivered.rtt(now, self.state.sack);
        self.measure_rtt(now, &mut ack, rtt, input.echo_age); // step 6
        self.sample_rate(now, &mut ack, in_flight_before);
        self.restart_timer_on_ack(now, &ack); // also step 6
        self.decide_on_undo(now, &ack);
        self.undo_earlier(now, &ack); // step 7
        let undo_allows_growth = spurious.is_none_or(|spurious| self.respond_to_spurious(now, &ack, spurious));
        let may_grow = undo_allows_growth && !timeout_was_undecided;
        self.detect_loss_or_grow(now, &mut ack, lost_before, may_grow); // steps 8 and 9
        self.choose_order(now, &ack);
        self.count(&ack);

        self.newly = newly;
        self.retire(now);
        self.transmit_and_refill(now); // step 10
        debug_assert_eq!(self.board.check(), Ok(()));
        is_complete
    }

    /// Steps 8 and 9: detects losses; without one, the window may grow.
    #[inline]
    fn detect_loss_or_grow(&mut self, now: Instant, ack: &mut AckFacts<'_>, lost_before: Bytes, may_grow: bool) {
        let window_is_set = self.detect_loss(now, ack);
        add_losses(ack, &self.board, lost_before);
        // RFC 3168 §6.1.2: the window grows only on ACKs that do not echo congestion.
        let may_grow = may_grow && !window_is_set && !ack.ece && !self.state.is_frozen(now);
        self.grow_window(now, ack, may_grow);
        self.respond_to_ecn(now, ack);
    }

    /// Whether a reduction that is made now may be undone later. Before steps 7 and 8, which see the decision.
    pub(super) fn decide_on_undo(&mut self, now: Instant, ack: &AckFacts<'_>) {
        let distrusts_dsacks = self.withholder.as_ref().is_some_and(|withholder| withholder.distrusts_dsacks());
        let may_undo = self.plugins.undo_limit.may_undo(&context!(self, now), ack) && !distrusts_dsacks;
        self.state.set_may_undo(may_undo);
    }

    /// After a timeout new data may be sent before retransmissions. Called before step 10.
    fn choose_order(&mut self, now: Instant, ack: &AckFacts<'_>) {
        let new_first =
            self.state.phase == Phase::Loss && self.plugins.timeout_recovery.sends_new_first(&context!(self, now), ack);
        self.constraints.set_order(if new_first { Order::NewDataFirst } else { Order::RetransmissionsFirst });
    }

    /// The delivery rate, if the congestion control wants it. After the RTT measurement, which bounds the interval of the sample.
    pub(super) fn sample_rate(&mut self, now: Instant, ack: &mut AckFacts<'_>, in_flight_before: Bytes) {
        if let Some(sampler) = &mut self.sampler {
            let mut sample = RateSample {
                prior_in_flight: in_flight_before,
                is_cwnd_limited: self.window_use.was_full_at(ack.una_before),
                ..RateSample::default()
            };
            sampler.on_ack(&context!(self, now), ack, &mut sample);
            ack.rate = Some(sample);
        }
    }

    /// The segments that the ACK covers leave the scoreboard. After all steps that read them, before step 10.
    pub(super) fn retire(&mut self, now: Instant) {
        self.board.retire(|| {
            if self.traits.loss_detector.withdraws {
                return now + MAXIMUM_LATENESS;
            }
            now + Scoreboard::retired_lifetime(self.state.rto_or_substitute(&self.config), self.state.srtt)
        });
        if let Some(sampler) = &mut self.sampler {
            sampler.retire(self.board.first());
        }
    }

    /// True if the ACK repeats the one before at an end that has only received: nothing is outstanding, and there is
    /// nothing to send. Most data segments of a transfer arrive at such an end. Plug-ins do not see such an ACK.
    fn is_redundant(&self, input: &AckInput) -> bool {
        let has_news = input.pure || input.ece || input.sack.is_some() || input.ack != self.state.snd_una;
        self.only_receives() && !has_news
    }

    /// True if nothing was ever written here, and an ACK has come since the handshake.
    pub(crate) fn only_receives(&self) -> bool {
        !self.queue.has_written() && self.state.has_acked()
    }

    /// Step 2, RFC 9293 §3.10.7.4: only the newest segment updates the window, and `peer` notes its numbers
    /// (SND.WL1, SND.WL2). True if the window changed.
    pub(super) fn update_window(&mut self, now: Instant, update: WindowUpdate) -> bool {
        if !self.peer.takes_window_update(update, &self.state, self.config.paws) {
            return false;
        }
        let changed = update.wnd != self.state.snd_wnd;
        self.state.set_peer_window(update.wnd);
        if update.wnd == Bytes::ZERO {
            // A peer with a closed window is not dead: the connection stays open as long as it answers (RFC 9293
            // §3.8.6.1).
            self.timers.note_progress(now);
        }
        changed
    }

    /// Step 3. Returns how many segments this ACK newly SACKs, and false if it SACKs more than one event may process.
    fn update_scoreboard(&mut self, now: Instant, input: &AckInput, newly: &mut Vec<SegId>) -> (Segments, bool) {
        let mut is_complete = true;
        if input.ack > self.state.snd_una {
            self.board.acknowledge(input.ack, now, newly);
        }
        let acked = newly.len();
        if let Some(report) = input.sack.as_ref().filter(|_| self.state.sack) {
            for block in self.peer.new_blocks(report) {
                is_complete &= self.board.sack(block.clone(), now, AT_ONCE, newly);
            }
            if is_complete {
                self.peer.note_blocks(report);
            }
        }
        (Segments((newly.len() - acked) as u32), is_complete)
    }

    /// Also step 3: a DSACK. Collects the segments that it reports as duplicates and returns its range.
    fn report_duplicate<'a>(
        &mut self,
        now: Instant,
        input: &'a AckInput,
        duplicates: &mut Vec<Duplicate>,
    ) -> Option<&'a Range<Offset>> {
        let range = input.sack.as_ref()?.dsack.as_ref()?;
        let is_possible = self.dsack_limit.count_report(range.end.since(range.start), self.state.smss);
        if self.config.limit_dsacks && !is_possible {
            return None;
        }
        let repeats = self.state.features.has(Features::REPEATS);
        self.board.report_duplicate(range.clone(), now, repeats, duplicates);
        if let Some(withholder) = &mut self.withholder {
            withholder.note_duplicates(duplicates);
        }
        Some(range)
    }

    /// A duplicate ACK, by RFC 6675 §2 with SACK and by RFC 5681 §2 without. The answer to a probe of a closed window
    /// is not one.
    fn is_duplicate(&self, input: &AckInput, newly_sacked: Segments, window_changed: bool) -> bool {
        if self.state.sack {
            return newly_sacked > Segments::ZERO;
        }
        let in_flight = !self.board.is_empty() && !self.timers.is_probing_window();
        input.pure && input.ack == self.state.snd_una && !window_changed && in_flight
    }

    /// Also step 3, the cumulative acknowledgment: SND.UNA advances, and the count of duplicates restarts.
    pub(super) fn advance(&mut self, now: Instant, ack: &AckFacts<'_>) {
        if ack.advances() {
            self.state.advance_una(ack.ack);
            self.timers.note_progress(now);
            self.queue.note_drained(now, self.state.snd_una);
        }
        self.end_window_probe();
        self.note_unsent();
    }

    /// The highest segment ACKed or SACKed so far.
    fn highest(&self) -> Option<SegId> {
        let acked = self.board.first().0.checked_sub(1).map(SegId);
        self.board.highest_sacked().max(acked)
    }

    /// Step 9. The window grows outside recovery, and only if it was full when the data that this ACK acknowledges was
    /// in flight: an unused window must not grow (RFC 7661 §4, RFC 9438 §5.8). A model of the path sets the window on
    /// every ACK.
    pub(super) fn grow_window(&mut self, now: Instant, ack: &AckFacts<'_>, may_grow: bool) {
        if self.state.is_model_based() {
            let window = self.plugins.congestion_control.on_ack(&context!(self, now), ack);
            self.state.set_cwnd_of_model(&self.config, window.cwnd);
            return;
        }
        if may_grow
            && !ack.newly.is_empty()
            && self.state.phase != Phase::Recovery
            && self.window_use.was_full_at(ack.una_before)
            && !self.plugins.loss_detector.holds_growth(&context!(self, now))
        {
            let window = self.plugins.congestion_control.on_ack(&context!(self, now), ack);
            self.state.set_window(&self.config, window);
        }
    }

    pub(super) fn count(&mut self, ack: &AckFacts<'_>) {
        proof::note_facts(ack);
        self.state.note_ack();
        if let Some(last) = ack.newly.last().and_then(|id| self.board.get(*id)) {
            self.peer.note_acked(last);
        }
        self.stats.acks += 1;
        self.stats.dup_acks += u64::from(ack.duplicate);
        self.stats.stale_acks += u64::from(ack.stale);
        let Some(dsack) = ack.dsack else { return };
        for segment in dsack.segments {
            // A segment that was sent twice can cause one duplicate; any further duplicates were made by the network.
            if segment.reports < segment.transmissions {
                self.stats.spurious_retransmissions += 1;
            } else {
                self.stats.network_duplicates += 1;
            }
        }
    }
}
