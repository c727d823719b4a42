//! Delivery rate samples (draft-ietf-ccwg-bbr §4.1.2, originally draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each transmission records how much had been delivered by then. When it is delivered itself, the difference divided
//! by the time is the rate of that flight. The time is the longer of the time in which the flight was sent and the time
//! in which it was acknowledged, so that neither a burst nor ACKs that arrive together make the path look faster than
//! it is.
//!
//! The records are kept outside the scoreboard, so they cost nothing if the congestion control does not want samples.

use std::collections::VecDeque;

use reknit_units::{Bytes, Duration, Instant};

use super::{Sender, context};
use crate::facts::{AckFacts, LostSegment, RateSample};
use crate::scoreboard::{Record, Scoreboard, SegId};

/// The state at the last transmission of a segment (the packet state `P` of the draft, §4.1.2.2).
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// `P.delivered`: bytes delivered by then.
    delivered: Bytes,
    /// `P.delivered_time`: when the last of them were delivered.
    delivered_time: Instant,
    /// `P.first_send_time`: when the flight of the sample began to be sent.
    first_send_time: Instant,
    /// `P.lost`: bytes marked lost by then.
    lost: Bytes,
    /// `P.tx_in_flight`: bytes in flight, including these.
    tx_in_flight: Bytes,
    /// `P.is_app_limited`.
    is_app_limited: bool,
}

/// The connection state `C` of the draft, §4.1.2.1.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// One for each record of the scoreboard, starting at `front`.
    transmissions: VecDeque<Transmission>,
    front: SegId,
    delivered: Bytes,
    delivered_time: Instant,
    first_send_time: Instant,
    /// `C.app_limited`: until this much is delivered, samples reflect what the application sent, not what the path can
    /// carry.
    app_limited: Option<Bytes>,
    min_rtt: Option<(Duration, Instant)>,
    /// Duplicates that a DSACK reports count as delivered.
    counts_duplicates: bool,
}

/// The window of the minimum RTT with which a sample's interval is compared. Linux uses 300 s.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

impl Sampler {
    pub(super) fn new(now: Instant, counts_duplicates: bool) -> Sampler {
        Sampler {
            transmissions: VecDeque::new(),
            front: SegId(0),
            delivered: Bytes::ZERO,
            delivered_time: now,
            first_send_time: now,
            app_limited: Some(Bytes(1)), // nothing has been written yet
            min_rtt: None,
            counts_duplicates,
        }
    }

    /// §4.1.2.2: `id` was added to the scoreboard or retransmitted.
    pub(super) fn on_sent(&mut self, now: Instant, id: SegId, board: &Scoreboard) {
        let index = id.beyond(self.front).0 as usize;
        let is_new = index == self.transmissions.len();
        if is_new && board.sent().segments.0 == 1 {
            self.first_send_time = now;
            self.delivered_time = now;
        }
        let transmission = Transmission {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
            lost: board.lost_so_far(),
            tx_in_flight: board.pipe().bytes,
            is_app_limited: self.app_limited.is_some(),
        };
        if is_new {
            self.transmissions.push_back(transmission);
        } else if let Some(before) = self.transmissions.get_mut(index) {
            *before = transmission;
        }
    }

    /// §4.1.2.3: processes what an ACK delivers. The other fields of `sample` are already set.
    fn on_ack(&mut self, now: Instant, ack: &AckFacts<'_>, board: &Scoreboard, sample: &mut RateSample) {
        self.note_rtt(now, ack.rtt);
        let delivered = ack.newly.iter().filter_map(|id| Some((*id, board.get(*id)?)));
        let newest = delivered.max_by_key(|(id, record)| (record.last_sent, *id));
        let dsack = ack.dsack.filter(|_| self.counts_duplicates);
        if !ack.newly.is_empty() || dsack.is_some() {
            self.delivered += ack.delivered + dsack.map_or(Bytes::ZERO, |dsack| dsack.right.since(dsack.left));
            self.delivered_time = now;
        }
        if self.app_limited.is_some_and(|until| self.delivered > until) {
            self.app_limited = None;
        }
        sample.total_delivered = self.delivered;
        if let Some((id, record)) = newest {
            self.judge(id, record, sample);
        }
    }

    /// §4.1.2.3: the sample of the delivered segment that was sent last.
    fn judge(&mut self, id: SegId, record: &Record, sample: &mut RateSample) {
        let Some(sent) = self.transmission(id).copied() else { return };
        let send_elapsed = record.last_sent.since(sent.first_send_time);
        let ack_elapsed = self.delivered_time.since(sent.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        self.first_send_time = record.last_sent;
        sample.prior_delivered = Some(sent.delivered);
        sample.delivered = self.delivered - sent.delivered;
        sample.lost_before = sent.lost;
        sample.tx_in_flight = sent.tx_in_flight;
        sample.is_app_limited = sent.is_app_limited;
        sample.is_retransmission = record.transmissions > 1;
        // An interval below the minimum RTT: a segment was falsely marked lost, and the ACK of the original was taken
        // for that of the retransmission.
        let is_credible = !interval.is_zero() && self.min_rtt.is_none_or(|(min, _)| interval >= min);
        sample.interval = Some(interval).filter(|_| is_credible);
    }

    fn note_rtt(&mut self, now: Instant, rtt: Option<Duration>) {
        if let Some(rtt) = rtt
            && self.min_rtt.is_none_or(|(min, at)| rtt <= min || now.since(at) > MIN_RTT_WINDOW)
        {
            self.min_rtt = Some((rtt, now));
        }
    }

    fn transmission(&self, id: SegId) -> Option<&Transmission> {
        self.transmissions.get(id.0.checked_sub(self.front.0)? as usize)
    }

    /// Removes the records of segments that have left the scoreboard.
    pub(super) fn retire(&mut self, first: SegId) {
        let gone = (first.beyond(self.front).0 as usize).min(self.transmissions.len());
        self.transmissions.drain(..gone);
        self.front = SegId(self.front.0 + gone as u64);
    }

    pub(super) fn holds_memory(&self) -> bool {
        self.transmissions.capacity() > 0
    }

    /// Releases what a full window needed.
    pub(super) fn shrink(&mut self) {
        self.transmissions.shrink_to_fit();
    }

    /// §4.1.2.4: from now until the data in flight is delivered, samples are application-limited.
    pub(super) fn mark_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited = Some((self.delivered + in_flight).max(Bytes(1)));
    }
}

impl Sender {
    /// Computes the delivery rate if the congestion control wants it. Runs after the RTT measurement, which bounds the
    /// interval.
    pub(super) fn sample_rate(&mut self, now: Instant, ack: &mut AckFacts<'_>, in_flight_before: Bytes) {
        if let Some(sampler) = &mut self.sampler {
            let mut sample = RateSample {
                prior_in_flight: in_flight_before,
                is_cwnd_limited: ack.una_before < self.window_use.full_until,
                ..RateSample::default()
            };
            sampler.on_ack(now, ack, &self.board, &mut sample);
            ack.rate = Some(sample);
        }
    }

    /// Adds the losses that the loss detector has found.
    pub(super) fn sample_losses(&self, ack: &mut AckFacts<'_>, lost_before: Bytes) {
        if let Some(sample) = &mut ack.rate {
            sample.newly_lost = self.board.lost_so_far() - lost_before;
            if sample.prior_delivered.is_some() {
                sample.lost = self.board.lost_so_far() - sample.lost_before;
            }
        }
    }

    /// Marks the latest transmission of `id` as lost, and tells the congestion control.
    pub(super) fn mark_lost(&mut self, now: Instant, id: SegId) {
        if !self.board.mark_lost(id) {
            return;
        }
        let Some(sampler) = &self.sampler else { return };
        let (Some(sent), Some(record)) = (sampler.transmission(id), self.board.get(id)) else { return };
        let lost = LostSegment {
            segment: id,
            size: Bytes(u64::from(record.len)),
            tx_in_flight: sent.tx_in_flight,
            lost: self.board.lost_so_far() - sent.lost,
            is_app_limited: sent.is_app_limited,
            total_delivered: sampler.delivered,
        };
        self.plugins.congestion_control.on_lost(&context!(self, now), &lost);
    }

    /// Something is about to be sent with nothing in flight, because the application had no data before.
    pub(super) fn tell_restart(&mut self, now: Instant) {
        let is_limited = self.sampler.as_ref().is_some_and(|sampler| sampler.app_limited.is_some());
        if !is_limited || !self.board.is_empty() || self.end() == self.state.snd_nxt {
            return;
        }
        if let Some(cwnd) = self.plugins.congestion_control.on_restart(&context!(self, now)) {
            self.bound_and_set_cwnd(cwnd);
        }
    }

    /// §4.1.2.4: true if only the application prevents the sender from sending more.
    fn is_app_limited(&self) -> bool {
        let unsent = self.end().since(self.state.snd_nxt);
        let board = &self.board;
        self.has_queued_all()
            && unsent < self.state.smss
            && board.pipe().bytes < self.state.cwnd
            && board.lost().segments <= board.retransmitted().segments
    }

    /// Marks the following samples if there is no data to send, or if the congestion control sends less than it could.
    pub(super) fn note_app_limited(&mut self, now: Instant) {
        let limited = self.sampler.is_some()
            && (self.is_app_limited() || self.plugins.congestion_control.limits_itself(&context!(self, now)));
        if limited && let Some(sampler) = &mut self.sampler {
            sampler.mark_app_limited(self.board.pipe().bytes);
        }
    }
}
