//! The end of a network: what is still delivered, and how long that may take. The driver calls it after each batch once an end
//! has begun.

use reknit_stack::{Stack, Undelivered};
use reknit_units::{Duration, Instant};

/// How often to check whether everything is delivered, which visits all sockets.
const CHECK: Duration = Duration::from_millis(5);
/// Once everything is delivered, a network without handles waits this long for its peers to close.
const PEER_CLOSE_WAIT: Duration = Duration::from_secs(5);

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
    /// No handle is left: the driver ends once everything is delivered and the peers have closed, for which it waits this long.
    abandoned: Option<Duration>,
    /// When the last delivery ended.
    delivered: Instant,
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
        self.abandoned = Some(PEER_CLOSE_WAIT);
    }

    /// As [`Drain::abandon`], without waiting for the peers to close.
    pub(crate) fn abandon_at_once(&mut self, now: Instant, limit: Duration) {
        self.begin(now, limit, Undelivered::default());
        self.abandoned = Some(Duration::ZERO);
    }

    /// What was not delivered, once that is known.
    pub(crate) fn result(&self) -> Option<Undelivered> {
        self.result
    }

    /// The driver has ended: nothing more is delivered.
    pub(crate) fn end(&mut self, stack: &Stack) {
        if self.result.is_none() {
            let failed = self.draining.map(|draining| stack.counters().undelivered.since(&draining.before));
            self.result = Some(stack.undelivered().and(&failed.unwrap_or_default()));
        }
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
        self.delivered = now;
        if is_delivering {
            stack.abort_undelivered(now);
        }
        true
    }

    /// True if the driver may end, once it has nothing to send.
    pub(crate) fn is_over(&self, now: Instant, stack: &Stack) -> bool {
        self.peers_close_by().is_some_and(|until| now >= until || stack.is_finished())
    }

    /// When an abandoned network that has delivered everything stops waiting for its peers.
    fn peers_close_by(&self) -> Option<Instant> {
        self.abandoned.filter(|_| self.draining.is_none()).map(|wait| self.delivered + wait)
    }

    /// When the driver must check again.
    pub(crate) fn deadline(&self) -> Instant {
        let check = self.draining.map(|draining| draining.next_check);
        check.or_else(|| self.peers_close_by()).unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use reknit_stack::Options;

    use super::*;

    #[test]
    fn peers_have_time_to_close_after_a_delivery_of_any_length() {
        let second = Duration::from_secs(1);
        let at = |seconds: u64| Instant::ZERO + second * seconds;
        let mut stack = Stack::new(at(0), Options::default(), [7; 32]);
        let mut drain = Drain::default();
        drain.abandon(at(1), second * 30);
        assert!(!drain.check(at(0), &mut stack));
        assert_eq!(drain.deadline(), at(1), "the first check");
        assert!(drain.check(at(20), &mut stack), "everything is delivered");
        assert_eq!(drain.deadline(), at(20) + PEER_CLOSE_WAIT);
    }
}
