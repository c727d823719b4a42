//! The sender's own timers, and when they expire: retransmission (RFC 6298), persist (RFC 9293 §3.8.6.1), the pause
//! after a collapse of the window, and the user timeout. Used by [`super::timeout`], which decides what is done then.
//! Owned by [`super::Sender`].

use reknit_units::{Duration, Instant};

use super::state::SendVariables;
use crate::config::Config;
use crate::seams::RtoEstimator;
use crate::seq::Offset;

/// The last expiry of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Expiry {
    /// SND.UNA at that time. The timer may expire for it again.
    pub(super) una: Offset,
    /// The window was reduced for this SND.UNA, and the reduction was neither suppressed nor spurious.
    pub(super) reduced: bool,
}

/// What the persist timer has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WindowProbe {
    /// Nothing that is outstanding.
    None,
    /// A byte beyond the peer's window. Its loss is no sign of congestion.
    BeyondWindow,
}

/// The persist timer.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Persist {
    expires: Instant,
    backoff: u32,
    probe: WindowProbe,
}

/// The timers of a sender. The time at which the retransmission timer expires is a fact for plug-ins
/// (`SendState::rto_expires`); only these functions set it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Timers {
    /// How often the retransmission timeout is doubled.
    backoff: u32,
    last_expiry: Option<Expiry>,
    persist: Persist,
    /// Nothing is sent before this time.
    paused_until: Instant,
    /// When the peer last made progress, or when data was first sent after an idle time.
    last_progress: Instant,
}

impl Timers {
    pub(super) fn new(now: Instant) -> Timers {
        Timers {
            backoff: 0,
            last_expiry: None,
            persist: Persist { expires: Instant::NEVER, backoff: 0, probe: WindowProbe::None },
            paused_until: Instant::ZERO,
            last_progress: now,
        }
    }

    /// The plug-ins are replaced while nothing is outstanding.
    pub(super) fn forget_timeouts(&mut self) {
        self.backoff = 0;
        self.last_expiry = None;
        self.paused_until = Instant::ZERO;
    }

    /// Brings its fields into the cache.
    pub(super) fn prefetch(&self) {
        std::hint::black_box(&(self.persist.expires, self.last_expiry.is_some(), self.last_progress));
    }
}

/// The retransmission timer.
impl Timers {
    pub(super) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(super) fn last_expiry(&self) -> Option<Expiry> {
        self.last_expiry
    }

    /// A valid sample of the round-trip time, or an undo, ends the back-off (RFC 6298 §5).
    pub(super) fn end_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The timer expired at SND.UNA. `backs_off` doubles the timeout (RFC 6298 §5.5).
    pub(super) fn note_expiry(&mut self, expiry: Expiry, backs_off: bool) {
        self.last_expiry = Some(expiry);
        self.backoff += u32::from(backs_off);
    }

    /// The last reduction was spurious: a further timeout of the same segment is a separate signal. Called in step 7.
    pub(super) fn forget_reduction(&mut self) {
        if let Some(expiry) = &mut self.last_expiry {
            expiry.reduced = false;
        }
    }

    /// The timeout with its back-off.
    pub(super) fn timeout(&self, state: &SendVariables, config: &Config) -> Duration {
        state.backed_off(config, self.backoff)
    }

    /// Starts the timer. Returns the timeout with its back-off; none if the estimator disables the timer.
    pub(super) fn restart_rto(
        &self,
        now: Instant,
        state: &mut SendVariables,
        config: &Config,
        estimator: &dyn RtoEstimator,
    ) -> Option<Duration> {
        let timeout = state.has_rto_timer().then(|| self.timeout(state, config));
        state.set_rto_expires(timeout.map_or(Instant::NEVER, |timeout| estimator.expires(now, timeout)));
        timeout
    }
}

/// The persist timer.
impl Timers {
    /// True if a probe beyond the window is outstanding.
    pub(super) fn is_probing_window(&self) -> bool {
        self.persist.probe == WindowProbe::BeyondWindow
    }

    /// A probe counts as one beyond the window.
    pub(super) fn probe_beyond_window(&mut self) {
        self.persist.probe = WindowProbe::BeyondWindow;
    }

    /// The probe was answered, or the window has opened.
    pub(super) fn end_probe(&mut self) {
        self.persist.probe = WindowProbe::None;
    }

    pub(super) fn persist_expires(&self) -> Instant {
        self.persist.expires
    }

    /// Keeps the timer running while it is needed.
    pub(super) fn arm_persist(&mut self, now: Instant, is_needed: bool, state: &SendVariables, config: &Config) {
        if !is_needed {
            self.persist.expires = Instant::NEVER;
        } else if !self.persist.expires.is_set() {
            self.last_progress = now;
            self.persist.backoff = 0;
            self.restart_persist(now, state, config);
        }
    }

    /// The timer expired. Each further probe waits twice as long.
    pub(super) fn back_off_persist(&mut self) {
        self.persist.backoff += 1;
    }

    pub(super) fn restart_persist(&mut self, now: Instant, state: &SendVariables, config: &Config) {
        self.persist.expires = now + state.backed_off(config, self.persist.backoff);
    }
}

/// The pause, and the user timeout.
impl Timers {
    /// Nothing is sent before `until`.
    pub(super) fn pause_until(&mut self, until: Instant) {
        self.paused_until = until;
    }

    pub(super) fn is_paused(&self, now: Instant) -> bool {
        now < self.paused_until
    }

    pub(super) fn end_pause(&mut self) {
        self.paused_until = Instant::ZERO;
    }

    /// When sending resumes after it was stopped.
    pub(super) fn pause_ends(&self) -> Instant {
        if self.paused_until == Instant::ZERO { Instant::NEVER } else { self.paused_until }
    }

    pub(super) fn note_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    pub(super) fn last_progress(&self) -> Instant {
        self.last_progress
    }

    /// True if nothing was acknowledged within the user timeout.
    pub(super) fn user_timeout_expired(&self, now: Instant, config: &Config) -> bool {
        now.since(self.last_progress) >= config.user_timeout
    }
}
