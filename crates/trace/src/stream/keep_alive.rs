//! Keep-alives (RFC 9293 §3.8.4): segments without data or with the last byte again, to check that the other end is alive. Called
//! by [`super::direction`]: for a packet before it would count as data, and for an ACK before the window.

use reknit_units::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// A single byte that is sent again sooner than this is a retransmission.
const MIN_IDLE: Duration = Duration::from_secs(1);

/// The keep-alives of one direction that wait for an answer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeepAlives {
    unanswered: u32,
    first: Option<(u64, Instant)>,
}

/// Keep-alives without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unanswered {
    pub(super) count: u32,
    /// The first of them.
    pub(super) frame: u64,
    pub(super) at: Instant,
}

impl KeepAlives {
    /// True if a segment of `len` bytes may be a keep-alive. `sent`: when data was last sent.
    pub(super) fn is_one(len: u32, sent: Option<Instant>, now: Instant) -> bool {
        len == 0 || sent.is_none_or(|sent| now.since(sent) >= MIN_IDLE)
    }

    pub(super) fn on_keep_alive(&mut self, frame: u64, now: Instant) {
        self.first.get_or_insert((frame, now));
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// True if a keep-alive was sent and not answered yet.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.unanswered > 0
    }

    /// The other end has sent something.
    pub(super) fn on_answer(&mut self) {
        *self = KeepAlives::default();
    }

    /// The connection or the capture ends. A single keep-alive may still be answered, so it is not reported.
    pub(super) fn finish(&mut self) -> Option<Unanswered> {
        let KeepAlives { unanswered: count, first } = std::mem::take(self);
        let (frame, at) = first.filter(|_| count > 1)?;
        Some(Unanswered { count, frame, at })
    }
}
