//! Delivery rate samples (draft-ietf-ccwg-bbr §4.1.2, originally draft-cheng-iccrg-delivery-rate-estimation).
//! Owned by [`super::Sender`].
//!
//! Each transmission records how much had been delivered by then. When it is delivered itself, the difference divided
//! by the time is the rate of that flight. The time is the longer of the time in which the flight was sent and the time
//! in which it was acknowledged, so that neither a burst nor ACKs that arrive together make the path look faster than
//! it is.
//!
//! The records are kept outside the scoreboard, so they cost nothing if the congestion control does not want samples. `on_sent`
//! is called for each transmission, `on_ack` after step 6, and [`add_losses`] after step 8.

use std::collections::VecDeque;

use reknit_units::{Bytes, Duration, Instant};

use crate::facts::{AckFacts, Context, LostSegment, RateSample};
use crate::scoreboard::{Scoreboard, SegId, SegmentRecord};

/// The state at the last transmission of a segment (the packet state `P` of the draft, §4.1.2.2).
#[derive(Clone, Copy, PartialEq, Debug)]
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
#[derive(Clone, PartialEq, Debug)]
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

    /// §4.1.2.3: processes what an ACK delivers. Runs after the RTT measurement, which bounds the interval. The other
    /// fields of `sample` are already set.
    pub(super) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>, sample: &mut RateSample) {
        self.note_rtt(cx.now, ack.rtt);
        let delivered = ack.newly.iter().filter_map(|id| Some((*id, cx.board.get(*id)?)));
        let newest = delivered.max_by_key(|(id, record)| (record.last_sent, *id));
        let dsack = ack.dsack.filter(|_| self.counts_duplicates);
        if !ack.newly.is_empty() || dsack.is_some() {
            self.delivered += ack.delivered + dsack.map_or(Bytes::ZERO, |dsack| dsack.right.since(dsack.left));
            self.delivered_time = cx.now;
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
    fn judge(&mut self, id: SegId, record: &SegmentRecord, sample: &mut RateSample) {
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
        // An interval below the minimum RTT: a segment was falsely marked lost, and the ACK of the original was mistaken for
        // that of the retransmission.
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

    /// Removes the records of segments that have left the scoreboard. Called right after that.
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

    /// True while samples reflect what the application sent.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited.is_some()
    }

    /// What the congestion control needs to know about `id`, which was marked lost.
    pub(super) fn lost_segment(&self, id: SegId, board: &Scoreboard) -> Option<LostSegment> {
        let (sent, record) = (self.transmission(id)?, board.get(id)?);
        Some(LostSegment {
            segment: id,
            size: Bytes(u64::from(record.len)),
            tx_in_flight: sent.tx_in_flight,
            lost: board.lost_so_far() - sent.lost,
            is_app_limited: sent.is_app_limited,
            total_delivered: self.delivered,
        })
    }
}

/// Adds the losses that the loss detector has found to the sample of this ACK. Called after step 8, before the window grows.
pub(super) fn add_losses(ack: &mut AckFacts<'_>, board: &Scoreboard, lost_before: Bytes) {
    if let Some(sample) = &mut ack.rate {
        sample.newly_lost = board.lost_so_far() - lost_before;
        if sample.prior_delivered.is_some() {
            sample.lost = board.lost_so_far() - sample.lost_before;
        }
    }
}
