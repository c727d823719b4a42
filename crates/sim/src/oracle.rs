//! What an oracle tells its sender: each real loss, at the moment when an acknowledgment of the lost packet would have
//! come, and nothing else.
//!
//! No acknowledgment of a lost packet ever comes, so its moment has to be defined: one smoothed round-trip time after the
//! packet was sent, and not before it was lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reknit_tcp::Connection;
use reknit_tcp::scoreboard::SegId;
use reknit_units::{Duration, Instant};

use crate::trace::Datagram;

/// A loss to tell of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Notice {
    at: Instant,
    pub(crate) segment: SegId,
    /// Which transmission of it, from 1.
    pub(crate) number: u16,
}

/// The losses that a sender has still to be told of.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    notices: BinaryHeap<Reverse<Notice>>,
}

impl Oracle {
    /// The path lost `datagram`, which `sender` had sent. Returns when to tell; none if it was sent again since.
    pub(crate) fn on_lost(&mut self, now: Instant, datagram: &Datagram, sender: &Connection) -> Option<Instant> {
        let number = datagram.transmission?.number;
        let (segment, record) = sender.outstanding(datagram.segment.seq)?;
        if record.transmissions != number {
            return None;
        }
        let at = now.max(record.last_sent + sender.info(now).srtt.unwrap_or(Duration::ZERO));
        self.notices.push(Reverse(Notice { at, segment, number }));
        Some(at)
    }

    /// A notice that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Notice> {
        let next = self.notices.peek().filter(|Reverse(notice)| notice.at <= now);
        next.is_some().then(|| self.notices.pop())?.map(|Reverse(notice)| notice)
    }
}
