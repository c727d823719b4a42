//! The end of a network: what is still delivered, and how long that may take. The driver calls it after each batch once an end
//! has begun.

use reknit_stack::{Stack, Undelivered};
use reknit_units::{Duration, Instant};

/// How often to check whether everything is delivered, which visits all sockets.
const CHECK: Duration = Duration::from_millis(5);
/// After everything is delivered, a network without handles waits this long for its peers to close.
const FAREWELL: Duration = Duration::from_secs(5);

/// Data that is being delivered before the end.
#[derive(Clone, Copy, Debug)]
struct Draining {
    until: Instant,
    next_check: Instant,
    /// What the stack had counted as undelivered at the beginning.
    before: Undelivered,
}

/// The progress of the end of a network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drain {
    draining: Option<Draining>,
    result: Option<Undelivered>,
    /// No handle is left. The driver ends when nothing is left to deliver, at this time at the latest.
    abandoned: Option<Instant>,
}

impl Drain {
    /// Deliver what was written, in at most `limit`. `before` was lost earlier.
    pub(crate) fn begin(&mut self, now: Instant, limit: Duration, before: Undelivered) {
        self.result = None;
        self.draining = Some(Draining { until: now + limit, next_check: now, before });
    }

    /// No handle is left.
    pub(crate) fn abandon(&mut self, now: Instant, limit: Duration) {
        if self.draining.is_none() {
            self.begin(now, limit, Undelivered::default());
        }
        self.abandoned = Some(now + FAREWELL);
    }

    /// As [`Drain::abandon`], without waiting for the peers to close.
    pub(crate) fn abandon_at_once(&mut self, now: Instant, limit: Duration) {
        self.begin(now, limit, Undelivered::default());
        self.abandoned = Some(now);
    }

    /// What was not delivered, once that is known.
    pub(crate) fn result(&self) -> Option<Undelivered> {
        self.result
    }

    /// The driver has ended: nothing more is delivered.
    pub(crate) fn end(&mut self, stack: &Stack) {
        self.result = Some(stack.undelivered());
        self.draining = None;
    }

    /// Checks whether everything is delivered. True once, when there is a result.
    pub(crate) fn check(&mut self, now: Instant, stack: &mut Stack) -> bool {
        let Some(draining) = self.draining.as_mut().filter(|draining| now >= draining.next_check) else { return false };
        draining.next_check = now + CHECK;
        let is_delivering = stack.is_delivering();
        if is_delivering && now < draining.until {
            return false;
        }
        let failed = stack.counters().undelivered.since(&draining.before);
        self.result = Some(stack.undelivered().and(&failed));
        self.draining = None;
        if is_delivering {
            stack.abort_undelivered(now);
        }
        true
    }

    /// True if the driver may end, once it has nothing to send.
    pub(crate) fn is_over(&self, now: Instant, stack: &Stack) -> bool {
        let Some(until) = self.abandoned.filter(|_| self.draining.is_none()) else { return false };
        now >= until || stack.is_finished()
    }

    /// When the driver must check again.
    pub(crate) fn deadline(&self) -> Instant {
        let check = self.draining.map_or(Instant::NEVER, |draining| draining.next_check);
        check.min(self.abandoned.unwrap_or(Instant::NEVER))
    }
}
