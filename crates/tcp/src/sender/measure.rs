//! Steps 5 and 6: what an ACK measures, reordering lengths (RR-TCP §4.1) and round-trip times (RFC 6298 §3). Called by
//! [`super::ack`] after the verdict on the last reduction, before the response.

use reknit_units::{Duration, Instant, Segments};

use super::rtt::update_rto;
use super::{Sender, context};
use crate::facts::{AckFacts, Reordering};
use crate::scoreboard::SegId;

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
        self.tell_of_order(now, ack);
    }

    /// Also step 5: the plug-ins that learn from reordering see the ACK.
    pub(super) fn tell_of_order(&mut self, now: Instant, ack: &AckFacts<'_>) {
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

    /// Step 6: the RTT of the data that this ACK delivers, the estimator of the timeout, and the back-off. `rtt` is the RTT by
    /// when the data was sent, `echoed` the one by timestamps.
    pub(super) fn measure_rtt(
        &mut self,
        now: Instant,
        ack: &mut AckFacts<'_>,
        rtt: Option<Duration>,
        echoed: Option<Duration>,
    ) {
        let is_valid = self.round_trips.measure(&context!(self, now), ack, rtt, echoed);
        let sampled = self.plugins.rto_estimator.on_ack(&context!(self, now), ack);
        // With timestamps more ACKs are valid samples than the estimator uses. Each of them ends the back-off (RFC 6298
        // §5).
        if sampled || (self.state.timestamps && is_valid) {
            self.timers.end_backoff();
        }
        update_rto(&mut self.state, &*self.plugins.rto_estimator, &self.config);
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
