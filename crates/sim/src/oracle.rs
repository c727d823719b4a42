//! The loss reports of an oracle: each real loss is reported to the sender at the time when an acknowledgment of the lost
//! packet would have arrived, and nothing else.
//!
//! A lost packet is never acknowledged, so this time must be defined: one smoothed round-trip time after the packet was
//! sent, and not before it was lost. Before the round-trip time is known, the initial RTO takes its place: with immediate
//! reports, a sender would keep refilling a full queue with retransmissions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reknit_tcp::Connection;
use reknit_tcp::scoreboard::SegId;
use reknit_units::Instant;

use crate::trace::Datagram;

/// A loss to report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct LossNotice {
    at: Instant,
    pub(crate) segment: SegId,
    /// The number of the transmission, from 1.
    pub(crate) number: u16,
}

/// The losses that must still be reported to a sender.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    notices: BinaryHeap<Reverse<LossNotice>>,
}

impl Oracle {
    /// The path lost `datagram`, which `sender` had sent. Returns when to report it; none if it has been retransmitted
    /// since.
    pub(crate) fn on_lost(&mut self, now: Instant, datagram: &Datagram, sender: &Connection) -> Option<Instant> {
        let number = datagram.transmission?.number;
        let (segment, record) = sender.outstanding(datagram.segment.seq)?;
        if record.transmissions != number {
            return None;
        }
        let round_trip = sender.info(now).srtt.unwrap_or(sender.config().initial_rto);
        let at = now.max(record.last_sent + round_trip);
        self.notices.push(Reverse(LossNotice { at, segment, number }));
        Some(at)
    }

    /// A notice that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<LossNotice> {
        let next = self.notices.peek().filter(|Reverse(notice)| notice.at <= now);
        next.is_some().then(|| self.notices.pop())?.map(|Reverse(notice)| notice)
    }
}
