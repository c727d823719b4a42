//! Leaves slow start by HyStart as long as everything arrives in order. Where segments are late, the gaps between ACKs
//! say nothing, and RTTs vary without a queue.

use reknit_tcp::facts::{AckFacts, Context};
use reknit_tcp::scoreboard::{SegId, SegmentRecord};
use reknit_units::Duration;

use super::hystart::HyStart;

/// HyStart, with the minimum RTT that it needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyExit {
    hystart: HyStart,
    min_rtt: Duration,
}

impl Default for EarlyExit {
    fn default() -> EarlyExit {
        EarlyExit { hystart: HyStart::NEW, min_rtt: Duration::MAX }
    }
}

impl EarlyExit {
    /// Takes the RTT sample of an ACK. Returns true if the ACK shows that a segment was late: it arrived twice, after later
    /// ones without a retransmission, or sooner after its retransmission than any round trip took.
    pub(crate) fn on_ack(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        self.min_rtt = self.min_rtt.min(ack.rtt.unwrap_or(Duration::MAX));
        let mut records = ack.newly.iter().filter_map(|&id| Some((id, cx.board.get(id)?)));
        let is_late = |(id, record): (SegId, &SegmentRecord)| match record.transmissions {
            1 => cx.board.first_above(id).is_some_and(|first_above| first_above < cx.now),
            2 => cx.now.since(record.last_sent) < self.min_rtt,
            _ => false,
        };
        ack.dsack.is_some() || records.any(is_late)
    }

    /// Returns true if slow start ends.
    pub(crate) fn is_due(&mut self, cx: &Context<'_>, ack: &AckFacts<'_>) -> bool {
        ack.rtt.is_some_and(|rtt| self.hystart.ends(cx, rtt, self.min_rtt))
    }
}
