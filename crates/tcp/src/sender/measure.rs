//! What an ACK measures: reordering lengths (RR-TCP §4.1) and round-trip times (RFC 6298 §3).

use reknit_units::{Bytes, Duration, Instant, Segments};

use super::{Sender, Timed, context};
use crate::config::RttSamples;
use crate::facts::{AckFacts, Reordering};
use crate::scoreboard::SegId;
use crate::seq::Offset;

impl Sender {
    /// Step 5: the reordering that this ACK reveals, and the plug-ins that use it.
    ///
    /// If one ACK closes two holes, nothing can be measured: an ACK was lost or overtaken, or ACKs are delayed. A
    /// segment that was sent twice cannot be measured until a DSACK shows that both copies arrived. Then both lengths
    /// count, and their mean does not depend on which copy caused which ACK.
    pub(super) fn measure_reordering(&mut self, now: Instant, ack: &mut AckFacts<'_>) {
        let first = match ack.newly {
            [segment] => self.first_length(*segment, ack.highest),
            _ => None,
        };
        ack.reordering = first.or_else(|| twice_sent_length(ack));
        if let Some(event) = ack.reordering {
            self.stats.count_reordering(event.length);
        }
        let cx = context!(self, now);
        self.plugins.dup_thresh.on_ack(&cx, ack);
        for postponement in &mut self.plugins.postponements {
            postponement.on_ack(&cx, ack);
        }
    }

    /// The distance from `segment` to the highest segment that the receiver has.
    fn first_length(&mut self, segment: SegId, highest: Option<SegId>) -> Option<Reordering> {
        let length = highest?.beyond(segment);
        match self.board.get(segment)?.transmissions {
            1 if length > Segments::ZERO => Some(Reordering { segment, length }),
            2 => {
                self.board.set_first_length(segment, length);
                None
            }
            _ => None,
        }
    }

    /// Step 6: the RTT of the data that this ACK delivers, and a sample for the estimator if one is due.
    ///
    /// `echoed` is the RTT computed from the echoed timestamp, which is also valid for retransmitted segments (RFC 7323
    /// §4.1).
    pub(super) fn measure_rtt(&mut self, now: Instant, ack: &mut AckFacts<'_>, echoed: Option<Duration>) {
        ack.rtt = self.unambiguous_rtt(now, ack);
        self.min_rtt = ack.rtt.map_or(self.min_rtt, |rtt| Some(self.min_rtt.map_or(rtt, |least| least.min(rtt))));
        let rtt = ack.rtt.or(echoed.filter(|_| ack.advances()));
        ack.rtt_sample = match self.config.rtt_samples {
            RttSamples::PerAck => rtt,
            RttSamples::PerRound if self.state.timestamps => self.round_sample(ack, rtt),
            RttSamples::PerRound => self.timed_sample(now, ack),
        };
        let sampled = self.plugins.rto_estimator.on_ack(&context!(self, now), ack);
        // With timestamps more ACKs are valid samples than the estimator uses. Each of them ends the back-off (RFC 6298
        // §5).
        if sampled || (self.state.timestamps && rtt.is_some()) {
            self.backoff = 0;
        }
        self.update_rto();
    }

    /// RTT of the newest segment that this ACK newly delivers and that was sent only once (Karn's algorithm).
    ///
    /// Without SACK, a cumulative ACK may cover segments that arrived long ago behind a hole. If any of them was
    /// retransmitted, none of them gives a valid sample.
    fn unambiguous_rtt(&self, now: Instant, ack: &AckFacts<'_>) -> Option<Duration> {
        let records = || ack.newly.iter().filter_map(|id| self.board.get(*id));
        if !self.state.sack && records().any(|r| r.transmissions > 1) {
            return None;
        }
        let once = records().filter(|r| r.transmissions == 1);
        once.map(|r| r.last_sent).max().map(|sent| now.since(sent))
    }

    /// With timestamps, SND.NXT marks a round trip, and the first ACK beyond the mark gives the sample.
    fn round_sample(&mut self, ack: &AckFacts<'_>, rtt: Option<Duration>) -> Option<Duration> {
        if ack.ack >= self.round_end && rtt.is_some() {
            self.round_end = self.state.snd_nxt + Bytes(1);
            return rtt;
        }
        None
    }

    /// Without timestamps one segment is timed until it is cumulatively acknowledged.
    fn timed_sample(&mut self, now: Instant, ack: &AckFacts<'_>) -> Option<Duration> {
        let timed = self.timed.filter(|timed| ack.ack >= timed.end)?;
        self.timed = None;
        Some(now.since(timed.sent))
    }

    /// A new segment that ends at `end` is sent. Times it if no other segment is being timed.
    pub(super) fn start_timing(&mut self, now: Instant, end: Offset) {
        if self.timed.is_none() {
            self.timed = Some(Timed { end, sent: now });
        }
    }

    /// A segment is retransmitted. Its own RTT would be ambiguous (Karn's algorithm), and that of a later segment would
    /// include the wait for the retransmission.
    pub(super) fn stop_timing(&mut self) {
        self.timed = None;
    }

    /// Clamps the estimator's timeout (RFC 6298 §2.4, §2.5).
    pub(super) fn update_rto(&mut self) {
        self.state.srtt = self.plugins.rto_estimator.srtt();
        if let Some(rto) = self.plugins.rto_estimator.rto() {
            self.state.rto = if rto == Duration::MAX {
                rto
            } else {
                rto.ceil_to(self.config.rto_tick).max(self.config.min_rto).min(self.config.max_rto)
            };
        }
    }
}

/// For a DSACK of a segment that was sent twice: the mean of its two lengths, rounded up.
fn twice_sent_length(ack: &AckFacts<'_>) -> Option<Reordering> {
    let duplicate = ack.dsack?.segments.iter().find(|d| d.transmissions == 2 && d.reports == 1)?;
    let first = duplicate.first_length?;
    let second = ack.highest?.beyond(duplicate.id);
    let length = Segments((first + second).0.div_ceil(2));
    (length > Segments::ZERO).then_some(Reordering { segment: duplicate.id, length })
}
