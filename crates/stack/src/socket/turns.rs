//! What a socket does in its turn of the send queue, and what has to wait for it. Called by [`crate::sockets`].

use reknit_units::Instant;
use reknit_wire::Decoded;

use super::Socket;
use crate::deficit::Deficit;
use crate::ingress::Arrival;

impl Socket {
    /// True if it may process a segment that arrives now: `others_wait` in the send queue only if it has not used its share.
    #[inline]
    pub(crate) fn may_process(&mut self, others_wait: bool, len: usize) -> bool {
        if !self.ingress.is_empty() || others_wait && self.deficit.is_used_up() {
            return false;
        }
        if others_wait {
            self.deficit.charge_arrival(len);
        } else {
            self.deficit = Deficit::new();
        }
        true
    }

    /// Keeps a segment until the next turn. False if it is dropped, because too much waits.
    pub(crate) fn delay<'a>(
        &mut self,
        arrived: &Decoded<'_>,
        payloads: impl Iterator<Item = &'a [u8]>,
        is_short: bool,
    ) -> bool {
        let Decoded { segment, hop_limit, .. } = *arrived;
        let window = self.tuning.window().0 as usize;
        let has_room = self.ingress.has_room(usize::from(segment.len), window, is_short);
        if has_room {
            let payload = payloads.flatten().copied().collect();
            self.ingress.push(Arrival { segment, hop_limit, payload });
        }
        has_room
    }

    /// True if segments wait.
    #[inline]
    pub(crate) fn has_arrivals(&self) -> bool {
        !self.ingress.is_empty()
    }

    /// The next segment that has waited.
    pub(crate) fn next_arrival(&mut self) -> Option<Arrival> {
        let arrival = self.ingress.pop()?;
        self.deficit.charge_arrival(arrival.payload.len());
        Some(arrival)
    }

    /// True if the last event has left a part of its work, which is charged to it like a segment that arrives.
    pub(crate) fn takes_backlog(&mut self, now: Instant) -> bool {
        let has_backlog = self.connection().has_backlog(now);
        if has_backlog {
            self.deficit.charge_arrival(0);
        }
        has_backlog
    }

    /// True if it may go on: it has not used its share, or no others wait. `begins`: its turn begins.
    #[inline]
    pub(crate) fn has_turn(&mut self, begins: bool, others_wait: bool) -> bool {
        if begins {
            self.deficit.begin_turn();
        }
        if self.deficit.is_used_up() && !others_wait {
            self.deficit = Deficit::new();
        }
        !self.deficit.is_used_up()
    }

    /// It has sent a segment with `len` bytes of data, in the packet of the one before if `is_joined`.
    #[inline]
    pub(crate) fn charge_sent(&mut self, len: usize, is_joined: bool) {
        self.deficit.charge_sent(len, is_joined);
    }
}
