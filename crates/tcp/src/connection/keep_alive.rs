//! Whether the peer of an idle connection still answers (RFC 9293 §3.8.4).

use reknit_units::{Duration, Instant};

use crate::config::KeepAlive;

/// How long the peer has been silent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Silence {
    since: Instant,
    /// Probes that it has not answered.
    probes: u32,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Silence {
        Silence { since: now, probes: 0 }
    }

    /// The peer has sent something.
    pub(super) fn end(&mut self, now: Instant) {
        *self = Silence::new(now);
    }

    /// When the peer has been silent for this long.
    pub(super) fn reaches(&self, time: Duration) -> Instant {
        self.since + time
    }

    /// When the next probe is due.
    pub(super) fn next_probe(&self, keep_alive: KeepAlive) -> Instant {
        self.since + keep_alive.idle + keep_alive.interval * u64::from(self.probes)
    }

    /// Counts a probe. False if enough were not answered: the peer is gone.
    pub(super) fn may_probe(&mut self, keep_alive: KeepAlive) -> bool {
        let goes_on = self.probes < keep_alive.probes;
        self.probes += u32::from(goes_on);
        goes_on
    }
}
