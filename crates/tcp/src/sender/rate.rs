//! Delivery rate samples (draft-ietf-ccwg-bbr §4.1.2, first draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Each transmission notes how much had been delivered by then. When it is delivered itself, the difference over the time
//! between is the rate of that flight. The time is the longer of the two in which the flight was sent and in which it was
//! acknowledged, so that neither a burst nor ACKs that arrive together make the path look faster than it is.
//!
//! Only a congestion control that wants samples pays: the notes lie beside the scoreboard, not in its records.

use std::collections::VecDeque;

use reknit_units::{Bytes, Duration, Instant};

use super::{Sender, context};
use crate::facts::{AckFacts, LostSegment, RateSample};
use crate::scoreboard::{Record, Scoreboard, SegId};

/// What was known when a segment was last sent (the packet state `P` of the draft, §4.1.2.2).
#[derive(Clone, Copy, Debug)]
struct Transmission {
    /// `P.delivered`: bytes delivered by then.
    delivered: Bytes,
    /// `P.delivered_time`: when the last of them were.
    delivered_time: Instant,
    /// `P.first_send_time`: when the flight began to be sent that the sample is about.
    first_send_time: Instant,
    /// `P.lost`: bytes marked lost by then.
    lost: Bytes,
    /// `P.tx_in_flight`: bytes in flight, these included.
    tx_in_flight: Bytes,
    /// `P.is_app_limited`.
    is_app_limited: bool,
}

/// The connection state `C` of the draft, §4.1.2.1.
#[derive(Clone, Debug)]
pub(super) struct Sampler {
    /// One for each record of the scoreboard, from `front` on.
    transmissions: VecDeque<Transmission>,
    front: SegId,
    delivered: Bytes,
    delivered_time: Instant,
    first_send_time: Instant,
    /// `C.app_limited`: until so much is delivered, samples tell what the application sent, not what the path carries.
    app_limited: Option<Bytes>,
    min_rtt: Option<(Duration, Instant)>,
}

/// How far back the minimum RTT looks that a sample's interval is held against. Linux uses 300 s.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

impl Sampler {
    pub(super) fn new(now: Instant) -> Sampler {
        Sampler {
            transmissions: VecDeque::new(),
            front: SegId(0),
            delivered: Bytes::ZERO,
            delivered_time: now,
            first_send_time: now,
            app_limited: Some(Bytes(1)), // nothing was written so far
            min_rtt: None,
        }
    }

    /// §4.1.2.2: `id` was entered on the scoreboard or sent again.
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

    /// §4.1.2.3: takes in what an ACK delivers. `sample` comes with what the ACK tells besides.
    fn on_ack(&mut self, now: Instant, ack: &AckFacts<'_>, board: &Scoreboard, sample: &mut RateSample) {
        self.note_rtt(now, ack.rtt);
        let delivered = ack.newly.iter().filter_map(|id| Some((*id, board.get(*id)?)));
        let newest = delivered.max_by_key(|(id, record)| (record.last_sent, *id));
        if !ack.newly.is_empty() {
            self.delivered += ack.delivered;
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

    /// §4.1.2.3: the sample that the delivered segment gives that was sent last.
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
        // An interval below the minimum RTT: a segment was marked lost that was not, and its ACK taken for that of the
        // retransmission.
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

    /// Forgets what the scoreboard has forgotten.
    pub(super) fn retire(&mut self, first: SegId) {
        let gone = (first.beyond(self.front).0 as usize).min(self.transmissions.len());
        self.transmissions.drain(..gone);
        self.front = SegId(self.front.0 + gone as u64);
    }

    /// §4.1.2.4: from now on, until what is in flight is delivered, the sender is not what limits the rate.
    pub(super) fn mark_app_limited(&mut self, in_flight: Bytes) {
        self.app_limited = Some((self.delivered + in_flight).max(Bytes(1)));
    }
}

impl Sender {
    /// The delivery rate, if the congestion control wants to know. After the RTT, which bounds the interval.
    pub(super) fn sample_rate(&mut self, now: Instant, ack: &mut AckFacts<'_>, in_flight_before: Bytes) {
        if let Some(sampler) = &mut self.sampler {
            let mut sample = RateSample {
                prior_in_flight: in_flight_before,
                is_cwnd_limited: ack.una_before < self.full_until,
                ..RateSample::default()
            };
            sampler.on_ack(now, ack, &self.board, &mut sample);
            ack.rate = Some(sample);
        }
    }

    /// What the loss detector has added.
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

    /// Something is about to be sent while nothing is in flight, because the application had nothing to send.
    pub(super) fn tell_restart(&mut self, now: Instant) {
        let is_limited = self.sampler.as_ref().is_some_and(|sampler| sampler.app_limited.is_some());
        if !is_limited || !self.board.is_empty() || self.end() == self.state.snd_nxt {
            return;
        }
        if let Some(cwnd) = self.plugins.congestion_control.on_restart(&context!(self, now)) {
            self.bound_and_set_cwnd(cwnd);
        }
    }

    /// §4.1.2.4: true if nothing but the application keeps the sender from sending more.
    fn is_app_limited(&self) -> bool {
        let unsent = self.end().since(self.state.snd_nxt);
        let board = &self.board;
        unsent < self.state.smss
            && board.pipe().bytes < self.state.cwnd
            && board.lost().segments <= board.retransmitted().segments
    }

    /// Marks the samples to come if there is nothing to send, or if the congestion control sends less than it could.
    pub(super) fn note_app_limited(&mut self, now: Instant) {
        let limited = self.sampler.is_some()
            && (self.is_app_limited() || self.plugins.congestion_control.limits_itself(&context!(self, now)));
        if limited && let Some(sampler) = &mut self.sampler {
            sampler.mark_app_limited(self.board.pipe().bytes);
        }
    }
}
