//! How long a socket had something to send, and what limited its rate: `tcpi_busy_time`, `tcpi_rwnd_limited` and
//! `tcpi_sndbuf_limited` of Linux. Updated by `Stack::settle`, each time that the socket has sent all it can.
//! A part of each socket.

use reknit_tcp::SendLimit;
use reknit_units::{Duration, Instant};

/// Times since the connection was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BusyTimes {
    /// Something was written and not acknowledged.
    pub busy: Duration,
    /// Of this, the peer's window was full while the congestion window was not.
    pub by_peer_window: Duration,
    /// Of this, everything in the send buffer was sent, and the application had more that did not fit.
    pub by_send_buffer: Duration,
}

/// Measures [`BusyTimes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch {
    times: BusyTimes,
    limit: SendLimit,
    /// The application has more to write than fits in the send buffer.
    has_more: bool,
    since: Instant,
}

impl Stopwatch {
    pub(crate) fn new(now: Instant) -> Stopwatch {
        Stopwatch { times: BusyTimes::default(), limit: SendLimit::Idle, has_more: false, since: now }
    }

    /// From now on, `limit` holds.
    pub(crate) fn set(&mut self, now: Instant, limit: SendLimit, has_more: bool) {
        if (limit, has_more) != (self.limit, self.has_more) {
            *self = Stopwatch { times: self.times(now), limit, has_more, since: now };
        }
    }

    /// The times up to now.
    pub(crate) fn times(&self, now: Instant) -> BusyTimes {
        let (mut times, passed) = (self.times, now.since(self.since));
        match self.limit {
            SendLimit::Idle => return times,
            SendLimit::PeerWindow => times.by_peer_window += passed,
            SendLimit::Written if self.has_more => times.by_send_buffer += passed,
            SendLimit::Written | SendLimit::Path => {}
        }
        times.busy += passed;
        times
    }
}
