//! Segments that belong to no socket: RSTs, SYN cookies, and acknowledgments in TIME-WAIT. Queued by `stack/input.rs`,
//! `opening.rs` and `forwarding.rs` as segments arrive; [`crate::Stack::poll`] sends them; together they have the share of one socket.
//! Owned by [`crate::Stack`].

use std::collections::VecDeque;

use reknit_tcp::Segment;
use reknit_units::Instant;
use reknit_wire::Endpoints;

use crate::deficit::Deficit;
use crate::rate_limit::RateLimit;

/// The most answers that wait to be sent; further ones are dropped.
const MOST: usize = 4096;

/// A segment to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Source and destination.
    pub endpoints: Endpoints,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// The header.
    pub segment: Segment,
}

/// Answers that wait to be sent, and the limit on those that any host can trigger.
#[derive(Debug)]
pub(crate) struct Replies {
    queue: VecDeque<Transmit>,
    limit: RateLimit,
    deficit: Deficit,
    /// The round of the send queue in which it has last had a turn.
    round: u32,
}

impl Replies {
    /// `per_second` limits [`Replies::is_allowed`].
    pub(crate) fn new(per_second: u32) -> Replies {
        let (queue, limit) = (VecDeque::new(), RateLimit::new(per_second));
        Replies { queue, limit, deficit: Deficit::new(), round: 0 }
    }

    /// True if one more answer that any host can trigger may be sent now; it then counts.
    pub(crate) fn is_allowed(&mut self, now: Instant) -> bool {
        self.limit.allows(now)
    }

    pub(crate) fn push(&mut self, transmit: Transmit) {
        if self.queue.len() < MOST {
            self.queue.push_back(transmit);
        }
    }

    /// The next answer. None if there is none, or if they have used their share of this `round` of the send queue, in which
    /// sockets wait.
    pub(crate) fn pop(&mut self, round: Option<u32>) -> Option<Transmit> {
        match round {
            None => self.deficit = Deficit::new(),
            Some(round) if round != self.round => {
                self.round = round;
                self.deficit.begin_turn();
            }
            Some(_) => {}
        }
        if self.deficit.is_used_up() {
            return None;
        }
        let answer = self.queue.pop_front()?;
        self.deficit.charge_sent(0, false);
        Some(answer)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
