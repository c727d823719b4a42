//! Detection and quantification of reordering: Zimmermann, Schulte, Wolff, Hannemann,
//! draft-zimmermann-tcpm-reordering-detection-02, 2014. It measures how late segments arrive, as a share of what was
//! outstanding when disorder began, so that the measure does not depend on the window.
//!
//! **Rules.** The names are those of the draft.
//! - (A.2): an ACK counts that closes a hole and delivers a single segment. If it delivers more, the order of arrival is
//!   unknown.
//! - (E.3), (E.4): `ReorExtA = (SND.FACK - SEG.SEQ) / SMSS`, `ReorExtR = ReorExtA * SMSS / FlightSizePrev`.
//! - (S.1) to (S.3): a segment that was sent once counts at once. So does a retransmitted one if the echoed timestamp is
//!   older than the retransmission.
//! - (S.4), (D.2): without timestamps, the extent of a retransmitted segment is kept for two round trips, and counts if a
//!   DSACK reports the copy in that time.
//! - (S.5), (D.3): with timestamps, `FlightSizePrev` is kept for a segment that was sent twice and whose retransmission
//!   seems to have been acknowledged. If a DSACK reports it, it was late by more than a round trip: its extent is that at
//!   the DSACK.
//! - (D.1): before the first DSACK of the connection nothing is kept, and that DSACK does not count.
//! - (RTO): a timeout discards what is kept. Nothing is measured until disorder begins again.
//!
//! **Departures.** Extents are counted in segments, as the engine numbers them. (A.3) asks for DSACKs only without
//! timestamps, which would leave (S.5) and (D.3) without a purpose; here both are executed, as §5 describes them. A DSACK
//! is valid by RFC 3708 if the segment was sent twice, was reported once, and no whole window of ACKs was lost. (S.5) may
//! also follow from an ACK whose timestamp is newer than that of the retransmission.

use std::collections::VecDeque;

use reknit_tcp::facts::{AckFacts, Context, Phase, TIMESTAMP_TICK};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_units::{Bytes, Instant, Segments};

/// The most segments that are remembered for a DSACK.
const MAX_KEPT: usize = 256;

/// `ReorExtR`, the relative reordering extent: at most 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct RelativeExtent {
    late: Bytes,
    outstanding: Bytes,
}

impl RelativeExtent {
    /// (E.4). None while nothing was outstanding.
    pub(super) fn new(late: Bytes, outstanding: Bytes) -> Option<RelativeExtent> {
        let late = late.min(outstanding); // (Ext) of the reaction: at most 1
        (outstanding > Bytes::ZERO).then_some(RelativeExtent { late, outstanding })
    }

    /// The larger one.
    pub(super) fn max(self, other: RelativeExtent) -> RelativeExtent {
        let product = |late: Bytes, outstanding: Bytes| u128::from(late.0) * u128::from(outstanding.0.max(1));
        let is_larger = product(other.late, self.outstanding) > product(self.late, other.outstanding);
        if is_larger { other } else { self }
    }

    /// This share of `flight`, in whole segments, rounded up.
    pub(super) fn of(self, flight: Bytes, smss: Bytes) -> Segments {
        let share = u128::from(self.late.0) * u128::from(flight.0);
        let whole = u128::from(self.outstanding.0.max(1)) * u128::from(smss.0);
        Segments(u32::try_from(share.div_ceil(whole)).unwrap_or(u32::MAX))
    }
}

/// A retransmitted segment that was delivered: a DSACK may still show that its original was late.
#[derive(Clone, Debug)]
struct Kept {
    segment: SegId,
    /// `FlightSizePrev` when it was delivered.
    outstanding: Bytes,
    /// How late it was then (S.4), or none if that is only known when a DSACK comes (S.5).
    late: Option<Segments>,
    /// (S.4): two round trips later.
    expires: Instant,
}

/// The detection algorithm.
#[derive(Clone, Debug, Default)]
pub(super) struct Detection {
    /// `Dsack`: a DSACK has been received.
    seen_dsack: bool,
    /// `Samples` and `Retrans_Dsack`.
    kept: VecDeque<Kept>,
}

impl Detection {
    /// What this ACK shows.
    pub(super) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<RelativeExtent> {
        self.kept.retain(|kept| kept.expires > cx.now);
        let closed = self.on_hole_closed(cx, ack);
        let reported = self.on_dsack(cx, ack);
        match (closed, reported) {
            (Some(closed), Some(reported)) => Some(closed.max(reported)),
            (closed, reported) => closed.or(reported),
        }
    }

    /// (RTO).
    pub(super) fn on_timeout(&mut self) {
        self.kept.clear();
    }

    /// What is allocated.
    pub(super) fn heap_size(&self) -> usize {
        self.kept.capacity() * size_of::<Kept>()
    }

    /// (A.2), (S.1) to (S.5).
    fn on_hole_closed(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<RelativeExtent> {
        let [segment] = *ack.newly else { return None };
        let late = lateness(ack, segment).filter(|_| cx.snd.phase != Phase::Loss)?;
        let record = cx.board.get(segment)?;
        let outstanding = cx.snd.flight_before_disorder;
        if record.transmissions == 1 || answers_original(cx, ack, record) {
            return RelativeExtent::new(late.of(cx.snd.smss), outstanding);
        }
        if self.seen_dsack && !cx.snd.timestamps {
            self.keep(cx, segment, Some(late));
        } else if self.seen_dsack && record.transmissions == 2 {
            self.keep(cx, segment, None);
        }
        None
    }

    /// (A.3), (D.1) to (D.4).
    fn on_dsack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> Option<RelativeExtent> {
        let dsack = ack.dsack.filter(|dsack| !dsack.ack_loss)?;
        let valid = dsack.segments.iter().find(|segment| segment.transmissions == 2 && segment.reports == 1)?;
        self.seen_dsack = true; // nothing was kept before
        let at = self.kept.iter().position(|kept| kept.segment == valid.id)?;
        let kept = self.kept.remove(at)?;
        let late = kept.late.or_else(|| lateness(ack, kept.segment))?;
        RelativeExtent::new(late.of(cx.snd.smss), kept.outstanding)
    }

    fn keep(&mut self, cx: &Context<'_>, segment: SegId, late: Option<Segments>) {
        if self.kept.len() == MAX_KEPT {
            self.kept.pop_front();
        }
        let expires = cx.now + cx.snd.srtt.unwrap_or(cx.snd.rto) * 2;
        self.kept.push_back(Kept { segment, outstanding: cx.snd.flight_before_disorder, late, expires });
    }
}

/// (E.3): how late `segment` is, itself included; none if nothing above it has arrived.
fn lateness(ack: &AckFacts<'_>, segment: SegId) -> Option<Segments> {
    let beyond = ack.highest?.beyond(segment);
    (beyond > Segments::ZERO).then_some(beyond + Segments(1))
}

/// (S.3) b: `Retrans_TS > ACK.TSecr`.
fn answers_original(cx: &Context<'_>, ack: &AckFacts<'_>, record: &SegmentRecord) -> bool {
    let echoed = ack.echoed.filter(|_| cx.snd.timestamps);
    echoed.is_some_and(|echoed| echoed < record.last_sent.floor_to(TIMESTAMP_TICK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::given::{SMSS, segments};

    fn extent(late: u32, outstanding: u32) -> RelativeExtent {
        RelativeExtent::new(segments(late), segments(outstanding)).unwrap()
    }

    #[test]
    fn an_extent_is_a_share_of_any_window_and_at_most_all_of_it() {
        let shares = |late, outstanding| [10, 20, 25].map(|n| extent(late, outstanding).of(segments(n), SMSS).0);
        assert_eq!(shares(4, 10), [4, 8, 10]);
        assert_eq!(shares(1, 3), [4, 7, 9]);
        assert_eq!(shares(15, 10), [10, 20, 25]);
        assert_eq!(RelativeExtent::default().of(segments(10), SMSS), Segments(0));
        assert_eq!(RelativeExtent::new(segments(3), Bytes::ZERO), None);
    }

    #[test]
    fn the_larger_share_counts_not_the_longer_extent() {
        assert_eq!(extent(4, 10).max(extent(6, 20)), extent(4, 10));
        assert_eq!(extent(4, 10).max(extent(9, 20)), extent(9, 20));
        assert_eq!(RelativeExtent::default().max(extent(1, 20)), extent(1, 20));
    }
}
