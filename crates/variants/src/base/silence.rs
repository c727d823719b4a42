//! Probes when no ACKs arrive, for detectors without a retransmission timer.

use reknit_tcp::facts::Context;
use reknit_units::{Duration, Instant};

/// When to probe, and how many probes have not been answered.
#[derive(Clone, Debug)]
pub(crate) struct Silence {
    probe_at: Instant,
    unanswered: u32,
}

impl Silence {
    pub(crate) fn new() -> Silence {
        Silence { probe_at: Instant::NEVER, unanswered: 0 }
    }

    /// When the next probe is due.
    pub(crate) fn deadline(&self) -> Instant {
        self.probe_at
    }

    /// Data was sent: a probe is due after `wait`, unless one is already scheduled.
    pub(crate) fn on_sent(&mut self, cx: &Context<'_>, wait: Duration) {
        if !self.probe_at.is_set() {
            self.schedule(cx, wait);
        }
    }

    /// An ACK arrived; `delivers` is true if it acknowledged or SACKed new data.
    pub(crate) fn on_ack(&mut self, cx: &Context<'_>, delivers: bool, wait: Duration) {
        if delivers {
            self.unanswered = 0;
        }
        self.schedule(cx, wait);
    }

    /// The number of the probe that is due now, from 1.
    pub(crate) fn on_timer(&mut self, cx: &Context<'_>, wait: Duration) -> Option<u32> {
        if self.probe_at > cx.now {
            return None;
        }
        self.unanswered += 1;
        self.schedule(cx, wait);
        Some(self.unanswered)
    }

    /// The interval doubles with each probe (RFC 6298 §5.5).
    fn schedule(&mut self, cx: &Context<'_>, wait: Duration) {
        let wait = wait.max(cx.config.min_rto) * (1 << self.unanswered.min(10));
        self.probe_at = if cx.board.is_empty() { Instant::NEVER } else { cx.now + wait.min(cx.config.max_rto) };
    }
}
