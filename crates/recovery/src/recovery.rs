//! The detector for transports that never reuse a packet number.

use crate::Nanos;
use crate::advances::Advances;
use crate::decisions::{Decisions, Terms};
use crate::lateness::FROM_1_US;
use crate::queue::Queue;

/// RFC 9002 §6.1.1: a packet is lost when one this much higher has been acknowledged.
const PACKET_THRESHOLD: u64 = 3;
/// The most undecided retransmissions for which the window is not reduced yet.
const MAX_UNDECIDED: u32 = 10;
/// Times are kept in microseconds, so packets of one ACK may seem this far apart.
const RESOLUTION: Nanos = Nanos::from_micros(1);

/// The transport's estimates of the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rtt {
    /// The smoothed estimate.
    pub smoothed: Nanos,
    /// The last sample.
    pub latest: Nanos,
}

/// Settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Timers are no finer than this: 1 ms in RFC 9002 §6.1.2, less in data centers.
    pub granularity: Nanos,
    /// The wait is at most this many smoothed round-trip times.
    pub max_wait: u32,
}

impl Config {
    /// 1 ms, and 16 round-trip times.
    pub const DEFAULT: Config = Config { granularity: Nanos::from_millis(1), max_wait: 16 };
}

impl Default for Config {
    fn default() -> Config {
        Config::DEFAULT
    }
}

/// Which packets are lost, when to reduce the window, and which reductions to undo. [The crate](crate) says when to call what.
///
/// All calls that tell of an ACK have the time at which it arrived. Times must not decrease.
#[derive(Clone, Debug)]
pub struct Recovery {
    decisions: Decisions<FROM_1_US>,
    queue: Queue,
    advances: Advances,
    /// The smallest acknowledged number.
    first_acked: u64,
    /// One above the largest; zero before the first.
    acked_end: u64,
    /// The next number to be sent.
    next: u64,
    /// The first that was sent on this path.
    path_start: u64,
    rtt: Rtt,
    config: Config,
}

impl Default for Recovery {
    fn default() -> Recovery {
        Recovery::new()
    }
}

impl Recovery {
    /// For a new connection, with the default settings.
    pub const fn new() -> Recovery {
        Recovery::with(Config::DEFAULT)
    }

    /// For a new connection.
    pub const fn with(config: Config) -> Recovery {
        Recovery {
            decisions: Decisions::new(),
            queue: Queue::new(),
            advances: Advances::new(),
            first_acked: u64::MAX,
            acked_end: 0,
            next: 0,
            path_start: 0,
            rtt: Rtt { smoothed: Nanos::ZERO, latest: Nanos::ZERO },
            config,
        }
    }

    /// For another path of the connection, on which packets are sent from now on. Those sent before are lost as in RFC 9002; the
    /// window of the new path is not reduced for them, and nothing is learned from them.
    #[must_use]
    pub fn on_new_path(&self) -> Recovery {
        Recovery {
            acked_end: self.acked_end,
            next: self.next,
            path_start: self.next,
            rtt: self.rtt, // until there is a sample
            ..Recovery::with(self.config)
        }
    }

    /// The packet `number` is sent. Numbers may be skipped.
    pub fn on_sent(&mut self, number: u64) {
        self.next = self.next.max(number.saturating_add(1));
    }

    /// An ACK acknowledges `number`, which was outstanding. The packets of one ACK may come in any order.
    pub fn on_acked(&mut self, now: Nanos, number: u64) {
        let is_older = number < self.path_start;
        if !is_older {
            self.first_acked = self.first_acked.min(number);
        }
        let end = number.saturating_add(1);
        if end > self.acked_end {
            self.acked_end = end;
            self.next = self.next.max(end);
            self.advances.on_largest(now, number, self.next, self.horizon());
        } else if let Some(overtaken) = self.advances.overtaken(number).filter(|_| !is_older) {
            self.learn(now, overtaken);
        }
    }

    /// An ACK acknowledges all numbers from `first` to `last`, outstanding or not: packets that were declared lost may be
    /// among them.
    pub fn on_acked_range(&mut self, now: Nanos, first: u64, last: u64) {
        loop {
            let late = self.decisions.repairs.iter().find_map(|repair| repair.open_in(first, last));
            let Some(overtaken) = late.and_then(|number| self.decisions.on_original(now, number)) else { return };
            self.learn(now, overtaken);
        }
    }

    /// Packets that were overtaken longer ago than this are lost.
    fn horizon(&self) -> Nanos {
        self.wait().unwrap_or_default().max(self.rtt.smoothed) * 2
    }

    fn learn(&mut self, now: Nanos, overtaken: Nanos) {
        if now - overtaken >= RESOLUTION {
            self.decisions.lateness.learn(now - overtaken);
        }
    }

    /// An ACK gave a sample of the round-trip time.
    pub fn on_rtt(&mut self, rtt: Rtt) {
        self.rtt = rtt;
        self.queue.on_rtt(self.acked_end.saturating_sub(1), rtt.latest, self.next);
    }

    /// When the outstanding packet `number`, which was sent at `sent`, will be lost: at [`Nanos::ZERO`] if it already is,
    /// [`Nanos::NEVER`] if no higher one was acknowledged. It is never earlier than in RFC 9002 §6.1, and the same until the
    /// first packet arrives late. Packets are lost in the order of their numbers, so a search ends at the first that is not.
    pub fn loss_time(&self, number: u64, sent: Nanos) -> Nanos {
        let higher = self.acked_end.saturating_sub(1).saturating_sub(number);
        if higher == 0 {
            return Nanos::NEVER;
        }
        let rfc9002 = if higher >= PACKET_THRESHOLD { Nanos::ZERO } else { sent + self.loss_delay() };
        let wait = self.wait().filter(|_| number >= self.path_start);
        match (wait, self.advances.overtaken(number)) {
            (Some(wait), Some(overtaken)) => rfc9002.max(overtaken + wait),
            _ => rfc9002,
        }
    }

    /// RFC 9002 §6.1.2.
    fn loss_delay(&self) -> Nanos {
        (self.rtt.smoothed.max(self.rtt.latest) * 9 / 8).max(self.config.granularity)
    }

    /// The packet `number`, which elicits acknowledgments, is declared lost: what was in it is retransmitted. If it was sent
    /// before all that are acknowledged, the peer may not have had the keys for it, so the window is not reduced (RFC 9002 §7.4).
    pub fn on_lost(&mut self, now: Nanos, number: u64) {
        if number < self.first_acked || !self.decisions.make_room(number) {
            return;
        }
        let overtaken = self.advances.overtaken(number).unwrap_or(now).min(now);
        let event_end = self.advances.next_at(overtaken).unwrap_or(self.next);
        self.decisions.on_retransmitted(now, number, overtaken, event_end);
    }

    /// Decides after an ACK, after losses, and at the [`Decision::next`] of the last call.
    pub fn decide(&mut self, now: Nanos) -> Decision {
        let mut decision = Decision { reduce: None, next: Nanos::NEVER, undone: [0; 4], undone_len: 0 };
        self.decisions.undo_spurious(|event| decision.add_undone(event));
        let wait = self.wait();
        let terms = Terms {
            patience: self.rtt.smoothed.max(self.config.granularity),
            sure: wait.unwrap_or(self.rtt.smoothed).max(self.rtt.smoothed / 4) * 3 / 2,
            at_once: wait.is_none(), // nothing was ever late
            learns_outcomes: true,
            max_undecided: MAX_UNDECIDED,
        };
        let decided = self.decisions.decide(now, &terms);
        decision.next = decided.look_again;
        if let Some(cause) = decided.cause {
            // RFC 9002 §7.3.2: what was sent before the reduction does not cause another. Without a queue, losses are not due to
            // its overflow: if the reduction comes late, only those that were sent before the loss could be known are one event.
            let ends_now = terms.at_once || decided.is_burst || self.queue.is_shown();
            let end = if ends_now { self.next } else { cause.event_end() };
            self.decisions.reduce(cause.first, end);
            decision.reduce = Some(cause.first);
        }
        decision
    }

    /// The learned wait: how long packets are missing before they are lost. `None` before the first late packet.
    pub fn wait(&self) -> Option<Nanos> {
        let longest = match self.rtt.smoothed {
            Nanos::ZERO => Nanos::NEVER, // no sample
            smoothed => (smoothed * u64::from(self.config.max_wait)).max(self.config.granularity),
        };
        self.decisions.lateness.wait().map(|wait| wait.min(longest))
    }

    /// True while it is not known of some retransmissions whether they were needed, and the window may not have been reduced for
    /// them. Meanwhile slow start should pause if the window has more than 32 packets: it may be too large already.
    pub fn is_undecided(&self) -> bool {
        self.decisions.is_undecided()
    }

    /// A queue has marked packets (ECN-CE); `number` is the largest acknowledged one. True if the window is to be reduced for this
    /// event, which is named `number` and never undone. Otherwise the window was reduced for the same event (RFC 9002 §7.3.2), and
    /// that reduction is not undone any more.
    pub fn on_marked(&mut self, number: u64) -> bool {
        self.decisions.on_marked(number, self.next)
    }

    /// The transport restarts from its smallest window (persistent congestion, RFC 9002 §7.6.2). All reductions so far become final,
    /// and losses of packets that have been sent cause none. Call it before [`decide`](Recovery::decide).
    pub fn settle(&mut self) {
        self.decisions.settle_until(self.next);
    }
}

/// What [`Recovery::decide`] decided. A congestion event is named by a packet that was lost in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// Reduce the window for this event.
    pub reduce: Option<u64>,
    /// When to decide again, even if no ACK arrives.
    pub next: Nanos,
    undone: [u64; 4],
    undone_len: u8,
}

impl Decision {
    /// The events that were spurious: undo the reduction of each, and only of these.
    pub fn undone(&self) -> &[u64] {
        &self.undone[..usize::from(self.undone_len)]
    }

    fn add_undone(&mut self, event: u64) {
        self.undone[usize::from(self.undone_len)] = event;
        self.undone_len += 1;
    }
}
