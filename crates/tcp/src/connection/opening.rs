//! The timer of the SYN, and what its retransmissions mean for the round trip.

use reknit_units::{Duration, Instant};

use crate::config::Config;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Opening {
    /// When our SYN is retransmitted.
    expires: Instant,
    first_sent: Instant,
    retries: u32,
    /// Our SYN was retransmitted, so its round-trip time is ambiguous (Karn's algorithm).
    ambiguous: bool,
    /// The connection was opened passively: if the SYN-ACK is refused, it returns to LISTEN.
    passive: bool,
}

impl Opening {
    pub(super) fn new() -> Opening {
        Opening { expires: Instant::NEVER, first_sent: Instant::NEVER, retries: 0, ambiguous: false, passive: false }
    }

    /// A SYN has arrived in LISTEN.
    pub(super) fn set_passive(&mut self) {
        self.passive = true;
    }

    /// Our SYN was sent, perhaps again.
    pub(super) fn on_syn_sent(&mut self, now: Instant, config: &Config) {
        if !self.first_sent.is_set() {
            self.first_sent = now;
        }
        let rto = config.initial_rto * (1 << self.retries.min(16));
        self.expires = now + rto.min(config.max_rto);
    }

    /// The peer's SYN was answered before the connection existed.
    pub(super) fn on_answered_syn(&mut self, now: Instant, config: &Config) {
        self.passive = true;
        self.ambiguous = true;
        self.first_sent = now;
        self.expires = now + config.initial_rto;
    }

    /// The timer has expired: our SYN is sent again.
    pub(super) fn on_timeout(&mut self) {
        self.retries += 1;
        self.ambiguous = true;
    }

    /// Our SYN is sent again for another reason.
    pub(super) fn set_ambiguous(&mut self) {
        self.ambiguous = true;
    }

    /// Our SYN is acknowledged.
    pub(super) fn complete(&mut self) {
        self.expires = Instant::NEVER;
    }

    pub(super) fn expires(&self) -> Instant {
        self.expires
    }

    pub(super) fn first_sent(&self) -> Instant {
        self.first_sent
    }

    pub(super) fn retries(&self) -> u32 {
        self.retries
    }

    pub(super) fn is_ambiguous(&self) -> bool {
        self.ambiguous
    }

    pub(super) fn is_passive(&self) -> bool {
        self.passive
    }

    /// The time from our first SYN to its acknowledgment; none if the SYN was sent more than once.
    pub(super) fn round_trip(&self, now: Instant) -> Option<Duration> {
        (!self.ambiguous).then(|| now.since(self.first_sent))
    }
}
