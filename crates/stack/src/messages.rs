//! ICMP messages that wait to be sent, and the limits on them. Queued in `stack/datagrams.rs` as packets arrive and fragments
//! expire; `Stack::poll_other` sends them before UDP datagrams. Owned by [`crate::Stack`].

use std::collections::VecDeque;
use std::net::IpAddr;

use reknit_units::Instant;
use reknit_wire::{EchoRequest, IcmpError, encode_icmp_error};

use crate::rate_limit::RateLimit;

/// The most messages that wait; further ones are dropped.
const MOST: usize = 1024;

/// ICMP messages to send. Any host can trigger them, so their rate is limited (RFC 1812 §4.3.2.8, RFC 4443 §2.4(f)).
#[derive(Debug)]
pub(crate) struct Messages {
    queue: VecDeque<Vec<u8>>,
    errors: RateLimit,
    echoes: RateLimit,
}

impl Messages {
    /// `per_second` limits errors, and echo replies as well.
    pub(crate) fn new(per_second: u32) -> Messages {
        let limit = RateLimit::new(per_second);
        Messages { queue: VecDeque::new(), errors: limit, echoes: limit }
    }

    /// Answers an echo request. False if there were too many.
    pub(crate) fn echo(&mut self, now: Instant, request: &EchoRequest<'_>) -> bool {
        let is_allowed = self.queue.len() < MOST && self.echoes.allows(now);
        if is_allowed {
            let mut packet = Vec::new();
            request.reply(&mut packet);
            self.queue.push_back(packet);
        }
        is_allowed
    }

    /// Sends an error about `packet` from `local` to `remote`. False if there were too many.
    pub(crate) fn error(
        &mut self,
        now: Instant,
        (local, remote): (IpAddr, IpAddr),
        error: IcmpError,
        packet: &[u8],
    ) -> bool {
        let is_allowed = self.queue.len() < MOST && self.errors.allows(now);
        if is_allowed {
            let mut message = Vec::new();
            encode_icmp_error(local, remote, error, packet, &mut message);
            self.queue.push_back(message);
        }
        is_allowed
    }

    pub(crate) fn poll(&mut self) -> Option<Vec<u8>> {
        self.queue.pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
