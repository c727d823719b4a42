//! ACKs without news, by their number: a receiver answers each packet that it has already, or that arrives behind a hole. Called by
//! [`super`] for each such ACK, and as data arrives whose packets were counted.

use reknit_units::Instant;

use super::super::ranges::{Delivery, Evidence, Origin, Range};
use super::{Downstream, View};

impl Downstream {
    /// An acknowledgment without news. A receiver answers a duplicate at once (RFC 9293 §3.10.7.4), so if it does not send
    /// DSACKs, it may have received a duplicate now.
    #[cold]
    pub(super) fn on_bare_ack(&mut self, ack: u64, blocks: &[(u64, u64)], view: &mut View<'_>) {
        // It repeats the last one.
        let is_repeated = ack == view.heard && ack >= view.acked;
        self.answers += u32::from(is_repeated);
        if is_repeated && blocks.is_empty() && self.answers_duplicate(ack, view) || self.duplicates > 0 {
            return;
        }
        for start in self.repaired {
            let index = view.ranges.locate(start);
            let is_it = |range: &&mut Range| range.start == start && matches!(range.delivery, Delivery::Likely { .. });
            if let Some(range) = view.ranges.at_mut(index).filter(is_it) {
                range.duplicates = range.duplicates.saturating_add(1);
            }
        }
    }

    /// If nothing is outstanding, and the last data alone was sent several times, an ACK without news can only answer one more
    /// arrival of it. True if it does.
    fn answers_duplicate(&mut self, ack: u64, view: &mut View<'_>) -> bool {
        let Some(index) = view.ranges.len().checked_sub(1).filter(|_| view.ranges.end() == ack) else { return false };
        let before = index.checked_sub(1).and_then(|before| view.ranges.at(before)).map(|range| range.delivered_at);
        let Some(range) = view.ranges.at_mut(index) else { return false };
        let is_alone = range.again.first().is_some_and(|again| before.is_none_or(|before| before < again.seen.at));
        if !is_alone || !range.is_delivered() || usize::from(range.duplicates) >= range.again.len() {
            return false;
        }
        range.duplicates += 1;
        let Delivery::Likely { by, .. } = range.delivery else { return true };
        let by = usize::from(by);
        if usize::from(range.duplicates) > range.again.len() - by {
            // An earlier transmission has arrived too.
            range.delivery =
                if by > 1 { Delivery::Likely { by: by as u8 - 1, evidence: Evidence::Time } } else { Delivery::Clear };
            if by == 1 {
                self.on_counted_arrival(range, view.now);
            }
        }
        true
    }

    /// The number of acknowledgments shows that the first transmission of a range has arrived, but not when.
    pub(super) fn on_counted_arrival(&mut self, range: &mut Range, now: Instant) {
        if range.origin == Origin::Original && range.order() >= self.causes.top() {
            range.place_there = self.reordering.arrived() as u32;
            self.reordering.on_arrival(range.order(), now);
        }
    }
}
